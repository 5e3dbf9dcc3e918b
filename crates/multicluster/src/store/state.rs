//! The store without locks and decoding.

use std::collections::hash_map::Entry as MapEntry;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use carrick_client::Object;

use super::index::{Index, Values};
use super::ledger::{Ledger, OVERHEAD};
use super::{Change, Update};
use crate::guard::{Callback, Panicked};
use crate::name::{ClusterName, EndpointId};
use crate::priority::Priority;
use crate::request::Key;

/// Endpoints are known by a small number inside the store: there is one per object.
type Slot = u32;

pub(super) struct StoreState<K> {
    clusters: HashMap<ClusterName, Members<K>>,
    /// Where clusters have settled.
    homes: HashMap<ClusterName, Home>,
    endpoints: HashMap<EndpointId, Endpoint>,
    slots: Slot,
    /// The clusters of each endpoint, so that nothing has to search all clusters because of one endpoint.
    concerns: HashMap<Slot, Concerns>,
    indexes: HashMap<String, Index<K>>,
    len: usize,
    /// Who counts what is kept.
    ledger: Option<Arc<Ledger>>,
    /// Panics of index functions that have not been reported yet.
    panics: Vec<Panicked>,
    /// Objects compared to find those that are gone.
    #[cfg(test)]
    pub(super) visited: std::sync::atomic::AtomicUsize,
}

/// The clusters of an endpoint.
#[derive(Default)]
struct Concerns {
    /// Those that have settled there.
    settled: HashSet<ClusterName>,
    /// Those with objects that it delivered last, and how many these are.
    delivered: HashMap<ClusterName, usize>,
}

/// The endpoint that serves a cluster.
struct Home {
    slot: Slot,
    /// Endpoints it has moved away from, whose events are ignored. Those of an endpoint that it will move to count: they may arrive before
    /// anybody knows of the move.
    left: Vec<Slot>,
    /// Those of them that had something to say about it all the same: it may be about to return there.
    ignored: Vec<Slot>,
    /// The first of its lists that must hold everything the endpoint before had; none before it is asked for.
    complete_from: Option<u64>,
}

/// The objects of one cluster by namespace and name.
type Members<K> = HashMap<Arc<str>, HashMap<Arc<str>, Stored<K>>>;

struct Stored<K> {
    item: Arc<K>,
    endpoint: Slot,
    /// The list of the endpoint that last held the object.
    list: u64,
    /// A hash of the version. The resource version alone is not enough: after a change of the schema the same version may come
    /// with more or fewer fields.
    digest: u64,
    generation: i64,
    deleting: bool,
    /// How many bytes the item takes.
    kept: usize,
}

struct Endpoint {
    slot: Slot,
    list: u64,
    synced: bool,
}

impl<K> Default for StoreState<K> {
    fn default() -> Self {
        Self::counted_by(None)
    }
}

impl<K> StoreState<K> {
    /// An empty one, whose objects count.
    pub(super) fn counted_by(ledger: Option<Arc<Ledger>>) -> Self {
        Self {
            clusters: HashMap::new(),
            homes: HashMap::new(),
            endpoints: HashMap::new(),
            slots: 0,
            concerns: HashMap::new(),
            indexes: HashMap::new(),
            len: 0,
            ledger,
            panics: Vec::new(),
            #[cfg(test)]
            visited: std::sync::atomic::AtomicUsize::default(),
        }
    }
}

impl<K> Drop for StoreState<K> {
    fn drop(&mut self) {
        let Some(ledger) = self.ledger.take() else { return };
        for (cluster, namespaces) in &self.clusters {
            let kept = namespaces.values().flat_map(HashMap::values).map(|stored| stored.kept + OVERHEAD).sum();
            ledger.replace(cluster, kept, 0);
        }
    }
}

impl<K> StoreState<K> {
    /// How many bytes an object takes.
    pub(super) fn kept(&self, key: &Key) -> usize {
        let names = self.clusters.get(&key.cluster).and_then(|namespaces| namespaces.get(&key.namespace));
        names.and_then(|names| names.get(&key.name)).map_or(0, |stored| stored.kept)
    }

    /// Replaces what is kept of a version, unless there is another one by now.
    pub(super) fn swap(&mut self, key: &Key, known: &Arc<K>, item: &Arc<K>, kept: usize) -> bool {
        let names = self.clusters.get_mut(&key.cluster).and_then(|namespaces| namespaces.get_mut(&key.namespace));
        let stored = names.and_then(|names| names.get_mut(&key.name));
        let Some(stored) = stored.filter(|stored| Arc::ptr_eq(&stored.item, known)) else { return false };
        let old = std::mem::replace(&mut stored.item, item.clone());
        let before = std::mem::replace(&mut stored.kept, kept);
        self.count(&key.cluster, before, kept);
        for index in self.indexes.values_mut() {
            index.remove(key, &old);
        }
        self.add_to_indexes(key, item);
        true
    }

    fn count(&self, cluster: &ClusterName, before: usize, now: usize) {
        if let Some(ledger) = &self.ledger {
            ledger.replace(cluster, before, now);
        }
    }

    /// A list of an endpoint begins.
    pub(super) fn begin(&mut self, endpoint: &EndpointId) {
        self.endpoint(endpoint).list += 1;
    }

    /// A list of an endpoint is complete: what it left out is gone.
    pub(super) fn finish(&mut self, endpoint: &EndpointId) -> Vec<Update<K>> {
        let endpoint = self.endpoint(endpoint);
        endpoint.synced = true;
        let (slot, list) = (endpoint.slot, endpoint.list);
        let gone = self.find(slot, |home, stored| match home {
            Some(home) if home.slot != slot => false,
            // What an endpoint delivered before the cluster moved away from it has had time to arrive here.
            Some(home) if stored.endpoint != slot => {
                home.left.contains(&stored.endpoint) && home.complete_from.is_some_and(|from| from <= list)
            }
            Some(_) => stored.list < list,
            None => stored.endpoint == slot && stored.list < list,
        });
        let deleted = |(key, item)| Update { key, change: Change::Deleted(item), priority: Priority::High };
        gone.into_iter()
            .filter_map(|key| Some((self.take(&key)?, key)))
            .map(|(item, key)| deleted((key, item)))
            .collect()
    }

    /// An object as an endpoint shows it.
    pub(super) fn upsert(
        &mut self,
        endpoint: &EndpointId,
        mut key: Key,
        object: &Object,
        (item, kept): (Arc<K>, usize),
        listed: bool,
    ) -> Option<Update<K>> {
        let Some((slot, list)) = self.speaker(endpoint, &key.cluster) else {
            self.ignore(endpoint, &key.cluster);
            return None;
        };
        self.intern(&mut key);
        let new = Stored {
            item: item.clone(),
            endpoint: slot,
            list,
            digest: digest(object),
            generation: object.generation,
            deleting: object.is_deleting(),
            kept,
        };
        let namespaces = self.clusters.entry(key.cluster.clone()).or_default();
        match namespaces.entry(key.namespace.clone()).or_default().entry(key.name.clone()) {
            MapEntry::Vacant(place) => {
                place.insert(new);
                self.len += 1;
                self.count(&key.cluster, 0, kept + OVERHEAD);
                self.deliver(&key.cluster, None, Some(slot));
                self.add_to_indexes(&key, &item);
                let priority = if listed { Priority::Low } else { Priority::High };
                Some(Update { key, change: Change::Added(item), priority })
            }
            MapEntry::Occupied(mut place) => {
                let same = place.get().digest == new.digest;
                let urgent = place.get().generation != new.generation || place.get().deleting != new.deleting;
                if same {
                    let stored = place.get_mut();
                    let before = std::mem::replace(&mut stored.endpoint, slot);
                    stored.list = list;
                    self.deliver(&key.cluster, Some(before), Some(slot));
                    return None;
                }
                let Stored { item: old, endpoint: before, kept: kept_before, .. } = place.insert(new);
                self.count(&key.cluster, kept_before, kept);
                self.deliver(&key.cluster, Some(before), Some(slot));
                for index in self.indexes.values_mut() {
                    index.remove(&key, &old);
                }
                self.add_to_indexes(&key, &item);
                let priority = if urgent { Priority::High } else { Priority::Normal };
                Some(Update { key, change: Change::Changed { old, new: item }, priority })
            }
        }
    }

    /// An object is still there, in whatever state.
    pub(super) fn touch(&mut self, endpoint: &EndpointId, key: &Key) {
        let Some((slot, list)) = self.speaker(endpoint, &key.cluster) else { return };
        let names = self.clusters.get_mut(&key.cluster).and_then(|namespaces| namespaces.get_mut(&key.namespace));
        if let Some(stored) = names.and_then(|names| names.get_mut(&key.name)) {
            let before = std::mem::replace(&mut stored.endpoint, slot);
            stored.list = list;
            self.deliver(&key.cluster, Some(before), Some(slot));
        }
    }

    /// Removes an object, unless it is another endpoint's by now.
    pub(super) fn remove(&mut self, endpoint: &EndpointId, key: Key, last: Option<Arc<K>>) -> Option<Update<K>> {
        let (slot, _) = self.speaker(endpoint, &key.cluster)?;
        let stored = self.clusters.get(&key.cluster)?.get(&key.namespace)?.get(&key.name)?;
        if stored.endpoint != slot {
            return None;
        }
        let known = self.take(&key)?;
        Some(Update { key, change: Change::Deleted(last.unwrap_or(known)), priority: Priority::High })
    }

    /// Whether a cluster has left an endpoint, whose events are ignored since then.
    pub(super) fn has_left(&self, cluster: &ClusterName, endpoint: &EndpointId) -> bool {
        let slot = self.endpoints.get(endpoint).map(|endpoint| endpoint.slot);
        slot.is_some_and(|slot| self.homes.get(cluster).is_some_and(|home| home.left.contains(&slot)))
    }

    /// Endpoints that a cluster has left and that have objects of it again, which were ignored.
    pub(super) fn ignored(&self, cluster: &ClusterName) -> Vec<EndpointId> {
        let Some(home) = self.homes.get(cluster) else { return Vec::new() };
        let ignored = self.endpoints.iter().filter(|(_, endpoint)| home.ignored.contains(&endpoint.slot));
        ignored.map(|(id, _)| id.clone()).collect()
    }

    /// Settles a cluster at an endpoint; true if there are objects of another one.
    pub(super) fn settle(&mut self, cluster: &ClusterName, endpoint: &EndpointId) -> bool {
        let slot = self.endpoint(endpoint).slot;
        let namespaces = self.clusters.get(cluster).into_iter().flat_map(HashMap::values);
        let mut left: Vec<Slot> = namespaces.flat_map(HashMap::values).map(|stored| stored.endpoint).collect();
        left.sort_unstable();
        left.dedup();
        left.retain(|other| *other != slot);
        let moved = !left.is_empty();
        let mut ignored = Vec::new();
        if let Some(old) = self.leave_home(cluster) {
            left.extend(old.left.into_iter().chain([old.slot]).filter(|other| *other != slot));
            ignored.extend(old.ignored.into_iter().filter(|other| *other != slot));
        }
        self.homes.insert(cluster.clone(), Home { slot, left, ignored, complete_from: None });
        self.concerns.entry(slot).or_default().settled.insert(cluster.clone());
        moved
    }

    pub(super) fn expect_everything(&mut self, endpoint: &EndpointId) {
        let &mut Endpoint { slot, list, .. } = self.endpoint(endpoint);
        for cluster in self.concerns.get(&slot).into_iter().flat_map(|concerns| &concerns.settled) {
            if let Some(home) = self.homes.get_mut(cluster) {
                home.complete_from.get_or_insert(list + 1);
            }
        }
    }

    pub(super) fn unsettle(&mut self, cluster: &ClusterName) {
        self.leave_home(cluster);
    }

    pub(super) fn forget_endpoint(&mut self, endpoint: &EndpointId) -> usize {
        let Some(Endpoint { slot, .. }) = self.endpoints.remove(endpoint) else { return 0 };
        let gone = self.find(slot, |home, stored| stored.endpoint == slot && home.is_none_or(|home| home.slot == slot));
        let settled = self.concerns.get(&slot).into_iter().flat_map(|concerns| concerns.settled.iter().cloned());
        for cluster in settled.collect::<Vec<_>>() {
            self.leave_home(&cluster);
        }
        gone.iter().filter_map(|key| self.take(key)).count()
    }

    pub(super) fn forget_cluster(&mut self, cluster: &str) -> usize {
        self.leave_home(cluster);
        let Some((name, _)) = self.clusters.get_key_value(cluster) else { return 0 };
        let name = name.clone();
        let keys: Vec<Key> = self
            .items(cluster)
            .map(|(namespace, name_of, _)| Key::new(name.clone(), namespace.clone(), name_of.clone()))
            .collect();
        keys.iter().filter_map(|key| self.take(key)).count()
    }

    pub(super) fn is_synced(&self, endpoint: &EndpointId) -> bool {
        self.endpoints.get(endpoint).is_some_and(|endpoint| endpoint.synced)
    }

    pub(super) fn is_listed(&self) -> bool {
        !self.endpoints.is_empty() && self.endpoints.values().all(|endpoint| endpoint.synced)
    }

    pub(super) fn get(&self, cluster: &str, namespace: &str, name: &str) -> Option<&Arc<K>> {
        self.clusters.get(cluster)?.get(namespace)?.get(name).map(|stored| &stored.item)
    }

    /// Namespace, name and object of everything in a cluster.
    pub(super) fn items(&self, cluster: &str) -> impl Iterator<Item = (&Arc<str>, &Arc<str>, &Arc<K>)> {
        let namespaces = self.clusters.get(cluster).into_iter().flatten();
        namespaces
            .flat_map(|(namespace, names)| names.iter().map(move |(name, stored)| (namespace, name, &stored.item)))
    }

    pub(super) fn namespace(&self, cluster: &str, namespace: &str) -> impl Iterator<Item = &Arc<K>> {
        let names = self.clusters.get(cluster).and_then(|namespaces| namespaces.get(namespace));
        names.into_iter().flat_map(HashMap::values).map(|stored| &stored.item)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (Key, Arc<K>)> {
        self.clusters.keys().flat_map(|cluster| {
            self.items(cluster).map(|(namespace, name, item)| {
                (Key::new(cluster.clone(), namespace.clone(), name.clone()), item.clone())
            })
        })
    }

    pub(super) fn clusters(&self) -> Vec<ClusterName> {
        self.clusters.keys().cloned().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn add_index(&mut self, name: String, values: Box<Values<K>>) {
        let mut index = Index::new(values);
        let mut panics = Vec::new();
        for (key, item) in self.all() {
            if let Err(message) = index.add(&key, &item) {
                panics.push(panicked(&name, &key, message));
            }
        }
        self.panics.append(&mut panics);
        self.indexes.insert(name, index);
    }

    pub(super) fn by_index<'a>(
        &'a self,
        cluster: &'a str,
        index: &str,
        value: &'a str,
    ) -> impl Iterator<Item = &'a Arc<K>> {
        let index = self.indexes.get(index);
        let found =
            index.into_iter().flat_map(move |index| index.of(value, Some(cluster)).map(move |entry| (index, entry)));
        found.filter_map(move |(index, (_, [cluster, namespace, name]))| {
            self.get(cluster, namespace, name).filter(|item| index.has(item, value))
        })
    }

    pub(super) fn by_index_all<'a>(&'a self, index: &str, value: &'a str) -> impl Iterator<Item = (Key, Arc<K>)> {
        let index = self.indexes.get(index);
        let found = index.into_iter().flat_map(move |index| index.of(value, None).map(move |entry| (index, entry)));
        found.filter_map(move |(index, (_, [cluster, namespace, name]))| {
            let item = self.get(cluster, namespace, name).filter(|item| index.has(item, value))?;
            let key = Key::new(ClusterName::new(cluster.clone()).ok()?, namespace.clone(), name.clone());
            Some((key, item.clone()))
        })
    }

    fn endpoint(&mut self, id: &EndpointId) -> &mut Endpoint {
        let slots = &mut self.slots;
        self.endpoints.entry(id.clone()).or_insert_with(|| {
            *slots += 1;
            Endpoint { slot: *slots, list: 0, synced: false }
        })
    }

    /// The number and list of an endpoint, if its events count for a cluster.
    fn speaker(&mut self, endpoint: &EndpointId, cluster: &ClusterName) -> Option<(Slot, u64)> {
        let &mut Endpoint { slot, list, .. } = self.endpoint(endpoint);
        self.homes.get(cluster).is_none_or(|home| !home.left.contains(&slot)).then_some((slot, list))
    }

    /// Remembers that an endpoint which a cluster has left has an object of it.
    fn ignore(&mut self, endpoint: &EndpointId, cluster: &ClusterName) {
        let slot = self.endpoint(endpoint).slot;
        if let Some(home) = self.homes.get_mut(cluster)
            && !home.ignored.contains(&slot)
        {
            home.ignored.push(slot);
        }
    }

    /// Panics of index functions since the last call.
    pub(super) fn take_panics(&mut self) -> Vec<Panicked> {
        std::mem::take(&mut self.panics)
    }

    fn add_to_indexes(&mut self, key: &Key, item: &K) {
        for (name, index) in &mut self.indexes {
            if let Err(message) = index.add(key, item) {
                self.panics.push(panicked(name, key, message));
            }
        }
    }

    /// Notes that an object of a cluster comes from another endpoint than before.
    fn deliver(&mut self, cluster: &ClusterName, before: Option<Slot>, now: Option<Slot>) {
        if before == now {
            return;
        }
        if let Some(now) = now {
            *self.concerns.entry(now).or_default().delivered.entry(cluster.clone()).or_default() += 1;
        }
        if let Some(before) = before
            && let Some(concerns) = self.concerns.get_mut(&before)
            && let Some(count) = concerns.delivered.get_mut(cluster)
        {
            *count -= 1;
            if *count == 0 {
                concerns.delivered.remove(cluster);
            }
            self.tidy(before);
        }
    }

    fn leave_home(&mut self, cluster: &str) -> Option<Home> {
        let home = self.homes.remove(cluster)?;
        if let Some(concerns) = self.concerns.get_mut(&home.slot) {
            concerns.settled.remove(cluster);
        }
        self.tidy(home.slot);
        Some(home)
    }

    fn tidy(&mut self, slot: Slot) {
        let is_empty = |concerns: &Concerns| concerns.settled.is_empty() && concerns.delivered.is_empty();
        if self.concerns.get(&slot).is_some_and(is_empty) {
            self.concerns.remove(&slot);
        }
    }

    /// Keys of all objects that match, of the clusters of an endpoint; the function gets the home of their cluster too.
    fn find(&self, slot: Slot, wanted: impl Fn(Option<&Home>, &Stored<K>) -> bool) -> Vec<Key> {
        let mut keys = Vec::new();
        let Some(Concerns { settled, delivered }) = self.concerns.get(&slot) else { return keys };
        let others = delivered.keys().filter(|cluster| !settled.contains(*cluster));
        for cluster in settled.iter().chain(others) {
            let Some(namespaces) = self.clusters.get(cluster) else { continue };
            let home = self.homes.get(cluster);
            for (namespace, names) in namespaces {
                #[cfg(test)]
                self.visited.fetch_add(names.len(), std::sync::atomic::Ordering::Relaxed);
                for (name, _) in names.iter().filter(|(_, stored)| wanted(home, stored)) {
                    keys.push(Key::new(cluster.clone(), namespace.clone(), name.clone()));
                }
            }
        }
        keys
    }

    /// One copy of each cluster and namespace name instead of one per object.
    fn intern(&self, key: &mut Key) {
        let Some((cluster, namespaces)) = self.clusters.get_key_value(&key.cluster) else { return };
        key.cluster = cluster.clone();
        if let Some((namespace, _)) = namespaces.get_key_value(&key.namespace) {
            key.namespace = namespace.clone();
        }
    }

    fn take(&mut self, key: &Key) -> Option<Arc<K>> {
        let namespaces = self.clusters.get_mut(&key.cluster)?;
        let names = namespaces.get_mut(&key.namespace)?;
        let Stored { item, endpoint, kept, .. } = names.remove(&key.name)?;
        if names.is_empty() {
            namespaces.remove(&key.namespace);
        }
        if namespaces.is_empty() {
            self.clusters.remove(&key.cluster);
        }
        self.len -= 1;
        self.count(&key.cluster, kept + OVERHEAD, 0);
        self.deliver(&key.cluster, Some(endpoint), None);
        for index in self.indexes.values_mut() {
            index.remove(key, &item);
        }
        Some(item)
    }
}

fn panicked(index: &str, key: &Key, message: String) -> Panicked {
    Panicked { callback: Callback::Index(index.to_owned()), over: Some(key.to_string()), message }
}

fn digest(object: &Object) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.uid.hash(&mut hasher);
    object.resource_version.hash(&mut hasher);
    object.bytes().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The list of an endpoint: an object of each of these clusters.
    fn list(state: &mut StoreState<()>, endpoint: &EndpointId, clusters: &[String]) -> usize {
        state.begin(endpoint);
        for cluster in clusters {
            let object = Object::from_value(&json!({"metadata": {"name": "x", "uid": cluster}})).unwrap();
            let key = Key::new(cluster.parse().unwrap(), "", "x");
            state.upsert(endpoint, key, &object, (Arc::new(()), 0), true);
        }
        state.finish(endpoint).len()
    }

    #[test]
    fn a_finished_list_looks_at_nothing_but_what_its_endpoint_has_to_do_with() {
        let mut state = StoreState::default();
        let endpoint = |number: usize| EndpointId::from(&*format!("e{number}"));
        let cluster = |number: usize| [format!("c{number}")];
        for number in 0..1_000 {
            state.settle(&cluster(number)[0].parse().unwrap(), &endpoint(number));
            list(&mut state, &endpoint(number), &cluster(number));
        }
        *state.visited.get_mut() = 0;
        for number in 0..10 {
            assert_eq!(list(&mut state, &endpoint(number), &cluster(number)), 0);
        }
        assert_eq!(*state.visited.get_mut(), 10, "ten objects were listed");
        assert_eq!(list(&mut state, &endpoint(7), &[]), 1, "what a list leaves out is gone");
        *state.visited.get_mut() = 0;
        assert_eq!(state.forget_endpoint(&endpoint(8)), 1);
        assert_eq!(*state.visited.get_mut(), 1);
        assert_eq!(state.len(), 998);
    }

    #[test]
    fn nothing_is_remembered_about_endpoints_without_clusters() {
        let mut state = StoreState::default();
        let (a, b) = (EndpointId::from("a"), EndpointId::from("b"));
        let c = "c".parse().unwrap();
        state.settle(&c, &a);
        list(&mut state, &a, &["c".to_owned(), "unsettled".to_owned()]);
        assert!(state.settle(&c, &b), "objects of another endpoint are there");
        state.expect_everything(&b);
        assert_eq!(list(&mut state, &b, &[]), 1, "what did not move along is gone");
        assert_eq!(list(&mut state, &a, &[]), 1, "clusters that settled nowhere count too");
        state.unsettle(&c);
        assert!(state.concerns.is_empty() && state.len() == 0);
    }
}
