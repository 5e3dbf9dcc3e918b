//! `core.kcp.io/v1alpha1`.

mod logical_cluster;
mod shard;

pub use logical_cluster::{
    LogicalCluster, LogicalClusterOwner, LogicalClusterPhase, LogicalClusterSpec, LogicalClusterStatus, UserInfo,
};
pub use shard::{Shard, ShardSpec};
