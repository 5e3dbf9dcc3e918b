//! kube-bind v2 between two real API servers: what upstream's own suite demands.

crate::core::upstream::play!(crate::core::world::Ground::real());
