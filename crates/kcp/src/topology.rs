//! The group `topology.kcp.io`: sets of shards.

pub mod v1alpha1;
