//! Shard.

use serde_json::Value;

use crate::kinds::SHARD;
use crate::object::{kind, object};

kind! {
    /// A Shard is one of the servers that logical clusters are spread over.
    Shard = SHARD {
        /// Where it is.
        spec: ShardSpec => "spec",
        /// How it is.
        status: Value => "status",
    }
}

object! {
    /// Where a shard is.
    ShardSpec {
        /// Where other shards find it.
        base_url: String => "baseURL",
        /// Where clients find its workspaces.
        external_url: String => "externalURL",
        /// Where clients find its virtual workspaces.
        virtual_workspace_url: String => "virtualWorkspaceURL",
    }
}
