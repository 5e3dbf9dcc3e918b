//! Whole flows on embedded planes: one consumer, one or more providers as a kube-bind backend leaves them, and a konnector with no more rights than
//! its roles give it.

pub mod world;

mod bind;
mod bundle;
mod claims;
mod contract;
mod existing;
mod faults;
mod hostile;
mod input;
mod process;
mod rights;
mod unbind;
