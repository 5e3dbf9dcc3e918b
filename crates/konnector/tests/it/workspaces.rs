//! A plain cluster becomes a provider: workspaces of kcp that bind an APIExport are the consumers of one contract. The konnector has no more rights
//! than its roles give it.

#[allow(dead_code, reason = "other tests use all of it")]
mod world;

mod ends;
mod lives;
mod moves;
mod shards;
