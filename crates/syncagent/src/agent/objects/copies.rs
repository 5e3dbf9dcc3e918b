//! Copies on the service cluster, found by the link to their source.

use std::sync::Arc;

use carrick_client::Object;
use carrick_multicluster::FleetStore;

use crate::api::{REMOTE_CLUSTER, REMOTE_NAME_HASH, REMOTE_NAMESPACE_HASH, REMOTE_RESOURCE};
use crate::rules::metadata::{self, SourceKey, link_to};

const BY_SOURCE: &str = "source";
const BY_RESOURCE: &str = "resource";

/// Name of the service cluster.
pub(super) const SERVICE: &str = "service";

/// Lets a store of copies find them by source, and by the resource of their source.
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
    store.index(BY_RESOURCE, |copy| vec![copy.annotation(REMOTE_RESOURCE).unwrap_or_default()]);
}

/// All copies that may belong to a source of a resource in kcp. Copies of the reference agent do not name the resource: several sources of
/// different kinds may have the same claim to them.
pub(super) fn of(store: &FleetStore<Object>, source: &SourceKey, resource: &str) -> Vec<Arc<Object>> {
    let labels = link_to(source, None).labels;
    let label =
        |wanted| labels.iter().find(|(key, _)| *key == wanted).map(|(_, value)| value.as_str()).unwrap_or_default();
    let key = key(&source.cluster, label(REMOTE_NAMESPACE_HASH), label(REMOTE_NAME_HASH));
    let mut copies = store.by_index(SERVICE, BY_SOURCE, &key);
    copies.retain(|copy| may_belong(copy, resource));
    copies
}

/// How many copies there are for a resource in kcp.
pub(super) fn count(store: &FleetStore<Object>, resource: &str) -> usize {
    [resource, ""].iter().map(|resource| store.by_index(SERVICE, BY_RESOURCE, resource).len()).sum()
}

/// The source of a resource that a copy may belong to.
pub(super) fn source_of(copy: &Object, resource: &str) -> Option<SourceKey> {
    if !may_belong(copy, resource) {
        return None;
    }
    metadata::source_of(&copy.value())
}

fn may_belong(copy: &Object, resource: &str) -> bool {
    copy.annotation(REMOTE_RESOURCE).is_none_or(|theirs| theirs == resource)
}

fn key(cluster: &str, namespace_hash: &str, name_hash: &str) -> String {
    format!("{cluster}/{namespace_hash}/{name_hash}")
}
