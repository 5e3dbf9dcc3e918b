//! Where a source is among all consumers.

use std::fmt;
use std::sync::Arc;

/// Where a source is. Cloning is cheap.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceKey {
    /// Cluster of the consumer.
    pub cluster: Arc<str>,
    /// Namespace, empty for cluster-scoped kinds.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl fmt::Display for SourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cluster://{}/{}/{}", self.cluster, self.namespace, self.name)
    }
}
