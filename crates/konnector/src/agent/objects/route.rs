//! From what a watch tells to what has to be looked at.

use std::collections::BTreeSet;
use std::sync::Arc;

use carrick_bind_api::claims::NamedObject;
use carrick_bind_api::copies::came_from_provider;
use carrick_bind_api::mapping::{ObjectKey, ServiceNamespaces};
use carrick_client::Object;
use carrick_multicluster::{ClusterName, Priority, Reason};
use carrick_sync::Role;

use super::hub::Hub;
use super::key::Item;
use super::layout::{Api, BoundClaim, ClaimedKind, Layout, consumer_namespaces, service_namespaces};
use super::watched::{WatchId, Watched};

impl Hub {
    /// A watch has told about objects: those with these keys have come, changed or gone.
    pub fn told(&self, watched: &Watched, keys: &[ObjectKey]) {
        let id = &watched.id;
        if *id == service_namespaces(&self.contract) {
            self.lay_out_anew();
            return self.look_at_namespaces();
        }
        let (layout, assigned) = (self.layout(), self.assigned());
        if *id == consumer_namespaces() {
            // What the provider has may be waiting for its namespace here.
            let is_meant = |key: &ObjectKey| {
                key.namespace.as_deref().is_some_and(|namespace| keys.iter().any(|key| key.name == namespace))
            };
            for api in layout.apis.values().filter(|api| api.existing.makes_objects()) {
                self.look_at_api(api, &assigned, is_meant);
            }
            self.look_at_refused(is_meant);
            return self.look_at_namespaces();
        }
        for api in layout.apis.values().filter(|api| api.consumer == *id || api.is_told_by(id)) {
            for key in keys {
                self.told_object(api, id, key, &assigned);
            }
            if api.consumer == *id {
                // What the provider has may be waiting for somebody to use its API here.
                self.look_at_refused(|claimed| keys.iter().any(|key| key.namespace == claimed.namespace));
            }
            // The last object of a namespace that is gone has held it on the provider.
            if api.consumer == *id && keys.iter().any(|key| self.has_lost_namespace(key)) {
                self.look_at_namespaces();
            }
        }
        for kind in layout.claimed.values() {
            if kind.consumer == *id || kind.is_told_by(id) {
                for key in keys {
                    self.told_claimed(kind, id, key, &assigned);
                }
            }
            if kind.references().any(|reference| reference == id) {
                kind.claims.iter().for_each(|claim| self.told_reference(kind, claim, watched, keys, &assigned));
            }
        }
    }

    /// A watch has told for the first time all there is, or that there is nothing to tell: nothing that needs it was decided before.
    pub fn told_first(&self, watched: &Watched) {
        let id = &watched.id;
        let (layout, assigned) = (self.layout(), self.assigned());
        let everything = *id == service_namespaces(&self.contract);
        if everything {
            self.lay_out_anew();
        }
        // A watch of one namespace is needed for that namespace only.
        let namespace = id.namespace.as_deref().filter(|_| !everything).and_then(|it| assigned.mirrored_by(it));
        let is_meant = |key: &ObjectKey| namespace.is_none() || key.namespace.as_deref() == namespace;
        for api in layout.apis.values() {
            let awaits = || *id == consumer_namespaces() && api.existing.makes_objects();
            if everything || api.consumer == *id || api.is_told_by(id) || awaits() {
                self.look_at_api(api, &assigned, is_meant);
            }
        }
        for kind in layout.claimed.values() {
            let refers = || kind.references().any(|reference| reference == id);
            let uses = || {
                let mut apis = layout.apis.values().filter(|api| api.consumer == *id);
                *id == consumer_namespaces() || apis.any(|api| kind.claims.iter().any(|it| it.binding == api.binding))
            };
            if everything || kind.consumer == *id || kind.is_told_by(id) || refers() || uses() {
                self.look_at_claimed(kind, &assigned, is_meant);
            }
        }
        self.look_at_namespaces();
        self.tell();
    }

    /// Looks again at claimed objects that something stands in the way of.
    fn look_at_refused(&self, is_meant: impl Fn(&ObjectKey) -> bool) {
        for key in self.ledger.problems(|_| true).into_keys() {
            if matches!(&key.item, Item::Claimed(object) if is_meant(object)) {
                self.queue.add(key);
            }
        }
    }

    /// Whether the consumer's namespace of an object is not there any more.
    fn has_lost_namespace(&self, key: &ObjectKey) -> bool {
        let Some(namespace) = &key.namespace else { return false };
        let namespaces = self.synced(&consumer_namespaces());
        namespaces.is_some_and(|watched| watched.store.get(&ObjectKey::cluster(namespace)).is_none())
    }

    /// Namespaces are decided about all at once.
    pub fn look_at_namespaces(&self) {
        // A lane of its own; the name is not empty.
        let Ok(lane) = ClusterName::new("namespaces") else { return };
        self.queue.add(self.work(&lane, Item::Namespaces));
    }

    fn told_object(&self, api: &Api, id: &WatchId, key: &ObjectKey, assigned: &ServiceNamespaces) {
        let key = if id.role == Role::Consumer { Some(key.clone()) } else { api.mapping.to_consumer(key, assigned) };
        if let Some(key) = key {
            self.queue.add(self.work(&api.lane, Item::Object(key)));
        }
    }

    fn told_claimed(&self, kind: &ClaimedKind, id: &WatchId, key: &ObjectKey, assigned: &ServiceNamespaces) {
        let key = if id.role == Role::Consumer { Some(key.clone()) } else { mirrored(key, assigned) };
        if let Some(key) = key {
            self.queue.add(self.work(&kind.lane, Item::Claimed(key)));
        }
    }

    /// Objects that may name others have come, changed or gone.
    fn told_reference(
        &self,
        kind: &ClaimedKind,
        claim: &BoundClaim,
        watched: &Watched,
        keys: &[ObjectKey],
        assigned: &ServiceNamespaces,
    ) {
        let mut changed = Vec::new();
        let places = claim.claim.references().iter().zip(&claim.references).enumerate();
        for (place, (reference, _)) in places.filter(|(_, (_, id))| **id == watched.id) {
            for key in keys {
                // What is read under the lock cannot be older than what was noted before.
                let mut named = claim.named.lock();
                let object = watched.store.get(key);
                // What the provider has written itself names nothing of the consumer's.
                let value = object.as_ref().map(Object::value).filter(|value| !came_from_provider(value));
                let named = named.entry(self.share(key).to_owned()).or_default();
                let cluster = object.map(|object| object.cluster.to_string());
                let news = named.update(place, reference, key, value.as_ref());
                changed.extend(news.into_iter().map(|named| (self.share(key).to_owned(), cluster.clone(), named)));
            }
        }
        for (share, cluster, named) in changed {
            self.look_at_named(kind, &share, cluster.as_deref(), &named, assigned);
        }
    }

    /// Notes all that is named for a claimed kind.
    pub fn read_references(&self, kind: &ClaimedKind, assigned: &ServiceNamespaces) {
        for watched in kind.references().filter_map(|id| self.watched(id)) {
            let keys = watched.store.keys();
            kind.claims.iter().for_each(|claim| self.told_reference(kind, claim, &watched, &keys, assigned));
        }
    }

    fn look_at_named(
        &self,
        kind: &ClaimedKind,
        share: &str,
        cluster: Option<&str>,
        named: &NamedObject,
        assigned: &ServiceNamespaces,
    ) {
        let look = |key: ObjectKey| self.queue.add(self.work(&kind.lane, Item::Claimed(key)));
        match (&named.namespace, &self.flat, cluster) {
            (Some(namespace), None, _) => look(ObjectKey::namespaced(namespace, &named.name)),
            (Some(namespace), Some(flat), Some(cluster)) => look(flat.of(cluster, Some(namespace), &named.name)),
            // Of what names nothing any more it is not known where it was: whatever has that name in its workspace.
            (_, Some(_), _) => {
                let keys = self.claimed_keys(kind, assigned).into_iter();
                keys.filter(|key| key.name == named.name && self.share(key) == share).for_each(look);
            }
            (None, None, _) => {
                self.claimed_keys(kind, assigned).into_iter().filter(|key| named.is(key)).for_each(look);
            }
        }
    }

    /// Every key of an API, whichever side has an object of it.
    pub fn api_keys(&self, api: &Api, assigned: &ServiceNamespaces) -> BTreeSet<ObjectKey> {
        let store = |id: &WatchId| self.watched(id).map(|watched| watched.store.keys()).unwrap_or_default();
        let mut keys: BTreeSet<ObjectKey> = store(&api.consumer).into_iter().collect();
        for id in api.copy_watches(assigned) {
            keys.extend(store(&id).iter().filter_map(|key| api.mapping.to_consumer(key, assigned)));
        }
        keys
    }

    /// Every key of a claimed kind, whichever side has an object of it.
    pub fn claimed_keys(&self, kind: &ClaimedKind, assigned: &ServiceNamespaces) -> BTreeSet<ObjectKey> {
        let store = |id: &WatchId| self.watched(id).map(|watched| watched.store.keys()).unwrap_or_default();
        let mut keys: BTreeSet<ObjectKey> = store(&kind.consumer).into_iter().collect();
        for id in kind.provider_watches(assigned) {
            keys.extend(store(&id).iter().filter_map(|key| mirrored(key, assigned)));
        }
        keys
    }

    fn look_at_api(&self, api: &Api, assigned: &ServiceNamespaces, is_meant: impl Fn(&ObjectKey) -> bool) {
        for key in self.api_keys(api, assigned).into_iter().filter(is_meant) {
            let key = self.work(&api.lane, Item::Object(key));
            self.queue.add_with(key, Priority::Low, Reason::Listed);
        }
    }

    fn look_at_claimed(&self, kind: &ClaimedKind, assigned: &ServiceNamespaces, is_meant: impl Fn(&ObjectKey) -> bool) {
        for key in self.claimed_keys(kind, assigned).into_iter().filter(is_meant) {
            let key = self.work(&kind.lane, Item::Claimed(key));
            self.queue.add_with(key, Priority::Low, Reason::Listed);
        }
    }

    /// Looks at everything that another layout, or another assignment of namespaces, may change.
    pub fn follow(
        &self,
        before: &Layout,
        layout: &Layout,
        assigned_before: &ServiceNamespaces,
        assigned: &Arc<ServiceNamespaces>,
    ) {
        for (lane, kind) in &layout.claimed {
            let is_same = before.claimed.get(lane).is_some_and(|known| Arc::ptr_eq(known, kind));
            if !is_same {
                self.read_references(kind, assigned);
            }
            if !is_same || before.guarded != layout.guarded {
                self.look_at_claimed(kind, assigned, |_| true);
            }
        }
        for (lane, api) in &layout.apis {
            if before.apis.get(lane) != Some(api) {
                self.look_at_api(api, assigned, |_| true);
            }
        }
        if before.exports != layout.exports {
            self.look_at_namespaces();
        }
        if assigned_before == &**assigned {
            return;
        }
        let moved = |namespace: &str| {
            assigned_before.assigned_to(namespace) != assigned.assigned_to(namespace)
                || assigned_before.refused(namespace) != assigned.refused(namespace)
        };
        let is_moved = |key: &ObjectKey| key.namespace.as_deref().is_some_and(moved);
        layout.apis.values().for_each(|api| self.look_at_api(api, assigned, is_moved));
        layout.claimed.values().for_each(|kind| self.look_at_claimed(kind, assigned, is_moved));
    }
}

/// The key on the consumer of an object in a namespace of the provider.
fn mirrored(key: &ObjectKey, assigned: &ServiceNamespaces) -> Option<ObjectKey> {
    let namespace = assigned.mirrored_by(key.namespace.as_deref()?)?;
    Some(ObjectKey::namespaced(namespace, &key.name))
}
