//! The group `core.kcp.io`: logical clusters and the shards that hold them.

pub mod v1alpha1;
