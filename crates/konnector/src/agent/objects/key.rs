//! What is worked on.

use std::fmt;

use carrick_bind_api::mapping::ObjectKey;
use carrick_multicluster::{ClusterName, HasCluster};

/// One piece of work. The queue is fair between workspaces, if there are many, and otherwise between lanes: an API, a claimed kind, or the
/// namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct WorkKey {
    /// Its lane, such as `widgets.example.io`.
    pub lane: ClusterName,
    /// Whose turn it is: the lane, or what stands for the workspace.
    pub turn: ClusterName,
    /// What in it.
    pub item: Item,
}

/// What is worked on in a lane.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Item {
    /// The object with this key on the consumer.
    Object(ObjectKey),
    /// The claimed object with this key on the consumer.
    Claimed(ObjectKey),
    /// All namespaces.
    Namespaces,
}

impl HasCluster for WorkKey {
    fn cluster(&self) -> &ClusterName {
        &self.turn
    }
}

impl fmt::Display for WorkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.item {
            Item::Object(key) | Item::Claimed(key) => write!(f, "{} {key}", self.lane),
            Item::Namespaces => f.write_str("namespaces"),
        }
    }
}
