//! kube-bind v2 on planes: a consumer and a provider without any component of kube-bind.

mod contests;
mod ends;
mod guards;
mod kills;
mod lives;
mod losses;
mod moves;
mod neighbours;
mod openapi;
mod policies;
mod related;
mod upstream;
mod world;
