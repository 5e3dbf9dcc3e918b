//! The primaries of all PublishedResources that are synchronized.

use std::collections::HashMap;

use carrick_client::Object;
use carrick_multicluster::{Fleet, FleetStore};
use parking_lot::Mutex;

use super::uses::Told;
use crate::decide::{Other, has_finalizer};
use crate::rules::ApiKind;

/// Where the primaries of each PublishedResource are found.
#[derive(Default)]
pub(super) struct AllPrimaries(Mutex<HashMap<String, (ApiKind, FleetStore<Object>)>>);

impl AllPrimaries {
    /// Adds the primaries of a PublishedResource.
    pub fn add(&self, published: &str, kind: &ApiKind, store: FleetStore<Object>) {
        self.0.lock().insert(published.to_owned(), (kind.clone(), store));
    }

    /// Removes them.
    pub fn remove(&self, published: &str) {
        self.0.lock().remove(published);
    }

    /// Whether objects of a kind in kcp are primaries.
    pub fn are_of(&self, kind: &ApiKind) -> bool {
        self.0.lock().values().any(|(known, _)| known.group == kind.group && known.kind == kind.kind)
    }

    /// What a primary really uses of what its state Secret tells; also if that cannot be told.
    pub fn uses(&self, consumers: &Fleet, told: &Told, other: Other) -> Option<Other> {
        let Some(primary) = &told.primary else { return Some(other) };
        let all = self.0.lock();
        let found = all.values().find(|(kind, _)| kind.group == primary.group && kind.kind == primary.kind);
        let (Some((_, store)), Ok(cluster)) = (found, consumers.cluster(&told.cluster)) else { return Some(other) };
        if !store.is_synced(cluster.endpoint()) {
            return Some(other);
        }
        let source = &primary.source;
        let object = store.get(&source.cluster, &source.namespace, &source.name)?;
        // One that was let go keeps its copies, but holds nothing in kcp.
        let held = has_finalizer(&object.value());
        (!object.is_deleting()).then_some(Other { origin: other.origin && held, copy: other.copy })
    }
}
