//! The primaries of all PublishedResources that are synchronized.

use std::collections::HashMap;
use std::sync::Arc;

use carrick_client::Object;
use carrick_multicluster::{Fleet, FleetStore};
use parking_lot::Mutex;

use super::uses::Told;
use crate::decide::{Other, has_finalizer};
use crate::rules::{ApiKind, Rules};

/// Where the primaries of each PublishedResource are found, and by which rules they are copied.
#[derive(Default)]
pub(super) struct AllPrimaries(Mutex<HashMap<String, Primaries>>);

/// The rules of one PublishedResource, and its primaries.
type Primaries = (Arc<Rules>, FleetStore<Object>);

impl AllPrimaries {
    /// Adds the primaries of a PublishedResource.
    pub fn add(&self, rules: &Arc<Rules>, store: FleetStore<Object>) {
        self.0.lock().insert(rules.name.clone(), (rules.clone(), store));
    }

    /// Takes note of other rules of a PublishedResource.
    pub fn set_rules(&self, rules: &Arc<Rules>) {
        if let Some((known, _)) = self.0.lock().get_mut(&rules.name) {
            *known = rules.clone();
        }
    }

    /// Other PublishedResources whose copies are of the same kind, and could be of a source of the same place.
    pub fn rivals(&self, rules: &Rules) -> Vec<(Arc<Rules>, FleetStore<Object>)> {
        let is_rival = |theirs: &Rules| {
            theirs.local.resource() == rules.local.resource()
                && theirs.remote.resource() != rules.remote.resource()
                && theirs.remote.namespaced == rules.remote.namespaced
        };
        self.0.lock().values().filter(|(theirs, _)| is_rival(theirs)).cloned().collect()
    }

    /// Removes them.
    pub fn remove(&self, published: &str) {
        self.0.lock().remove(published);
    }

    /// Whether objects of a kind in kcp are primaries.
    pub fn are_of(&self, kind: &ApiKind) -> bool {
        self.0.lock().values().any(|(known, _)| known.remote.group == kind.group && known.remote.kind == kind.kind)
    }

    /// What a primary really uses of what its state Secret tells; also if that cannot be told.
    pub fn uses(&self, consumers: &Fleet, told: &Told, other: Other) -> Option<Other> {
        let Some(primary) = &told.primary else { return Some(other) };
        let all = self.0.lock();
        let is_kind = |rules: &Rules| rules.remote.group == primary.group && rules.remote.kind == primary.kind;
        let found = all.values().find(|(rules, _)| is_kind(rules));
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
