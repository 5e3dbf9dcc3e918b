//! kube-bind v2 on planes, and what upstream demands of it on real servers too: a consumer and a provider without any component of kube-bind.

mod contests;
mod ends;
mod guards;
mod hostile;
mod kills;
mod lives;
mod losses;
mod moves;
mod neighbours;
mod openapi;
mod policies;
mod related;
pub mod upstream;
pub mod world;
