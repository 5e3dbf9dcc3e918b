//! `topology.kcp.io/v1alpha1`.

use crate::kinds::PARTITION;
use crate::meta::LabelSelector;
use crate::object::{kind, object};

kind! {
    /// A Partition is a set of shards.
    Partition = PARTITION {
        /// Which shards belong to it.
        spec: PartitionSpec => "spec",
    }
}

object! {
    /// Which shards belong to a Partition.
    PartitionSpec {
        /// Labels of the shards.
        selector: Option<LabelSelector> => "selector",
    }
}
