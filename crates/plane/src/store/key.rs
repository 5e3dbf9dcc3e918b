//! Where an object is: its kind, and its address.

use std::sync::Arc;

/// What is stored together: group, resource, and the identity of the export it is bound from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    /// API group, empty for core.
    pub group: Arc<str>,
    /// Plural resource name.
    pub resource: Arc<str>,
    /// Identity hash of the export, empty unless bound.
    pub identity: Arc<str>,
}

impl Kind {
    /// A kind without identity.
    pub fn new(group: &str, resource: &str) -> Self {
        Self { group: group.into(), resource: resource.into(), identity: "".into() }
    }
}

/// The full address of one object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// What it is.
    pub kind: Kind,
    /// Logical cluster, empty on a plain service cluster.
    pub cluster: Arc<str>,
    /// Namespace, empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    /// Object name.
    pub name: Arc<str>,
}

impl Key {
    /// The address of one object of `kind`.
    pub fn new(kind: &Kind, cluster: &str, namespace: &str, name: &str) -> Self {
        Self { kind: kind.clone(), cluster: cluster.into(), namespace: namespace.into(), name: name.into() }
    }
}
