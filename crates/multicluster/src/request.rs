//! What a reconcile is asked to look at.

use std::sync::Arc;

use carrick_client::Object;

/// A key of a [`crate::Queue`]: anything that belongs to a logical cluster.
pub trait HasCluster {
    /// The logical cluster; the queue is fair between these.
    fn cluster(&self) -> &Arc<str>;
}

/// One object of one logical cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Request {
    /// Logical cluster.
    pub cluster: Arc<str>,
    /// Namespace; empty for cluster-wide objects.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl Request {
    /// A request for an object by its key.
    pub fn new(cluster: impl Into<Arc<str>>, namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { cluster: cluster.into(), namespace: namespace.into(), name: name.into() }
    }
}

impl From<&Object> for Request {
    fn from(object: &Object) -> Self {
        Self { cluster: object.cluster.clone(), namespace: object.namespace.clone(), name: object.name.clone() }
    }
}

impl HasCluster for Request {
    fn cluster(&self) -> &Arc<str> {
        &self.cluster
    }
}

impl std::fmt::Display for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cluster://{}/{}/{}", self.cluster, self.namespace, self.name)
    }
}
