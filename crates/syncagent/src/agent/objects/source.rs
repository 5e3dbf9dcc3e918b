//! Between the keys of the multicluster library, which stops at the controller, and the one key that the agent uses from there on.

use carrick_client::{Object, Resource};
use carrick_multicluster::{ClusterName, Key, Request};

use crate::rules::metadata::SourceKey;

/// The source that the library's key stands for.
pub(super) fn source_key(key: &Key) -> SourceKey {
    SourceKey { cluster: key.cluster.to_arc(), namespace: key.namespace.clone(), name: key.name.clone() }
}

/// The request to reconcile a source; none if its cluster has no name.
pub(super) fn request(source: &SourceKey, resource: Resource) -> Option<Request<Object>> {
    let cluster = ClusterName::new(source.cluster.clone()).ok()?;
    let key = Key::new(cluster, source.namespace.clone(), source.name.clone());
    Some(Request::from_key(&key, resource))
}
