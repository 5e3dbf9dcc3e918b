//! Copies on the service cluster, found by the link to their source.

use std::sync::Arc;

use carrick_client::Object;
use carrick_multicluster::{ClusterName, FleetStore, Key};
use serde_json::Value;

use crate::api::{REMOTE_CLUSTER, REMOTE_NAME_HASH, REMOTE_NAMESPACE_HASH};
use crate::rules::metadata::{Link, SourceKey};

const BY_SOURCE: &str = "source";

/// Name of the service cluster.
pub(super) const SERVICE: &str = "service";

/// Lets a store of copies find them by source.
pub(super) fn index(store: &FleetStore<Object>) {
    store.index(BY_SOURCE, |copy| {
        let label = |key| copy.label(key);
        match (label(REMOTE_CLUSTER), label(REMOTE_NAME_HASH)) {
            (Some(cluster), Some(name)) => {
                vec![key(&cluster, &label(REMOTE_NAMESPACE_HASH).unwrap_or_default(), &name)]
            }
            _ => Vec::new(),
        }
    });
}

/// All copies of a source; more than one is an error somewhere.
pub(super) fn of(store: &FleetStore<Object>, source: &SourceKey) -> Vec<Arc<Object>> {
    let labels = Link::to(source, None).labels;
    let label =
        |wanted| labels.iter().find(|(key, _)| *key == wanted).map(|(_, value)| value.as_str()).unwrap_or_default();
    store.by_index(SERVICE, BY_SOURCE, &key(&source.cluster, label(REMOTE_NAMESPACE_HASH), label(REMOTE_NAME_HASH)))
}

/// The source that a copy belongs to.
pub(super) fn source_of(copy: &Value) -> Option<Key> {
    let source = Link::source_of(copy)?;
    Some(Key::new(ClusterName::new(source.cluster).ok()?, source.namespace, source.name))
}

fn key(cluster: &str, namespace_hash: &str, name_hash: &str) -> String {
    format!("{cluster}/{namespace_hash}/{name_hash}")
}
