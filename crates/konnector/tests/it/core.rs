//! kube-bind v2 on planes: a consumer and a provider without any component of kube-bind.

mod ends;
mod guards;
mod lives;
mod openapi;
mod policies;
mod world;
