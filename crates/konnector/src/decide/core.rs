//! kube-bind v2: what was seen of Connections, bindings, CRDs and objects → what has to be written.

pub mod autobind;
pub mod binding;
pub mod connection;
pub mod crd;
pub mod moves;
pub mod objects;
pub mod related;
pub mod rivals;
