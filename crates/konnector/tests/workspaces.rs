//! A plain cluster becomes a provider: workspaces of kcp that bind an APIExport are the consumers of one contract. The konnector has no more rights
//! than its roles give it.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

#[allow(dead_code, reason = "other tests use all of it")]
#[path = "scenarios/clusters.rs"]
mod clusters;
#[path = "workspaces/world.rs"]
mod world;

#[path = "workspaces/ends.rs"]
mod ends;
#[path = "workspaces/lives.rs"]
mod lives;
#[path = "workspaces/shards.rs"]
mod shards;
