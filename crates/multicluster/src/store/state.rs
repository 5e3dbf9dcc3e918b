//! The store without locks and decoding.

use std::collections::HashMap;
use std::collections::hash_map::Entry as MapEntry;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use carrick_client::Object;

use super::index::{Index, Values};
use super::{Change, Update};
use crate::name::{ClusterName, EndpointId};
use crate::priority::Priority;
use crate::request::Key;

/// Endpoints are known by a small number inside the store: there is one per object.
type Slot = u32;

pub(super) struct State<K> {
    clusters: HashMap<ClusterName, Members<K>>,
    /// Where clusters have settled.
    homes: HashMap<ClusterName, Home>,
    endpoints: HashMap<EndpointId, Endpoint>,
    slots: Slot,
    indexes: HashMap<String, Index<K>>,
    len: usize,
}

/// The endpoint that serves a cluster.
struct Home {
    slot: Slot,
    /// Endpoints it has moved away from: they have nothing to say any more. An endpoint that it will move to may well
    /// speak before anybody knows of the move.
    left: Vec<Slot>,
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
    /// Tells versions apart. The resource version alone does not: after a change of the schema the same version may come
    /// with more or fewer fields.
    digest: u64,
    generation: i64,
    deleting: bool,
}

struct Endpoint {
    slot: Slot,
    list: u64,
    synced: bool,
}

impl<K> Default for State<K> {
    fn default() -> Self {
        Self {
            clusters: HashMap::new(),
            homes: HashMap::new(),
            endpoints: HashMap::new(),
            slots: 0,
            indexes: HashMap::new(),
            len: 0,
        }
    }
}

impl<K> State<K> {
    /// A list of an endpoint begins.
    pub(super) fn begin(&mut self, endpoint: &EndpointId) {
        self.endpoint(endpoint).list += 1;
    }

    /// A list of an endpoint is complete: what it left out is gone.
    pub(super) fn finish(&mut self, endpoint: &EndpointId) -> Vec<Update<K>> {
        let endpoint = self.endpoint(endpoint);
        endpoint.synced = true;
        let (slot, list) = (endpoint.slot, endpoint.list);
        let gone = self.find(|home, stored| match home {
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
        item: Arc<K>,
        listed: bool,
    ) -> Option<Update<K>> {
        let (slot, list) = self.speaker(endpoint, &key.cluster)?;
        self.intern(&mut key);
        let new = Stored {
            item: item.clone(),
            endpoint: slot,
            list,
            digest: digest(object),
            generation: object.generation,
            deleting: object.is_deleting(),
        };
        let namespaces = self.clusters.entry(key.cluster.clone()).or_default();
        match namespaces.entry(key.namespace.clone()).or_default().entry(key.name.clone()) {
            MapEntry::Vacant(place) => {
                place.insert(new);
                self.len += 1;
                for index in self.indexes.values_mut() {
                    index.add(&key, &item);
                }
                let priority = if listed { Priority::Low } else { Priority::High };
                Some(Update { key, change: Change::Added(item), priority })
            }
            MapEntry::Occupied(mut place) => {
                let same = place.get().digest == new.digest;
                let urgent = place.get().generation != new.generation || place.get().deleting != new.deleting;
                if same {
                    let stored = place.get_mut();
                    (stored.endpoint, stored.list) = (slot, list);
                    return None;
                }
                let old = place.insert(new).item;
                for index in self.indexes.values_mut() {
                    index.remove(&key, &old);
                    index.add(&key, &item);
                }
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
            (stored.endpoint, stored.list) = (slot, list);
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

    /// Settles a cluster at an endpoint; true if there are objects of another one.
    pub(super) fn settle(&mut self, cluster: &ClusterName, endpoint: &EndpointId) -> bool {
        let slot = self.endpoint(endpoint).slot;
        let namespaces = self.clusters.get(cluster).into_iter().flat_map(HashMap::values);
        let mut left: Vec<Slot> = namespaces.flat_map(HashMap::values).map(|stored| stored.endpoint).collect();
        left.sort_unstable();
        left.dedup();
        left.retain(|other| *other != slot);
        let moved = !left.is_empty();
        if let Some(old) = self.homes.remove(cluster) {
            left.extend(old.left.into_iter().chain([old.slot]).filter(|other| *other != slot));
        }
        self.homes.insert(cluster.clone(), Home { slot, left, complete_from: None });
        moved
    }

    pub(super) fn expect_everything(&mut self, endpoint: &EndpointId) {
        let &mut Endpoint { slot, list, .. } = self.endpoint(endpoint);
        for home in self.homes.values_mut().filter(|home| home.slot == slot) {
            home.complete_from.get_or_insert(list + 1);
        }
    }

    pub(super) fn unsettle(&mut self, cluster: &ClusterName) {
        self.homes.remove(cluster);
    }

    pub(super) fn forget_endpoint(&mut self, endpoint: &EndpointId) -> usize {
        let Some(Endpoint { slot, .. }) = self.endpoints.remove(endpoint) else { return 0 };
        let gone = self.find(|home, stored| stored.endpoint == slot && home.is_none_or(|home| home.slot == slot));
        self.homes.retain(|_, home| home.slot != slot);
        gone.iter().filter_map(|key| self.take(key)).count()
    }

    pub(super) fn forget_cluster(&mut self, cluster: &str) -> usize {
        self.homes.remove(cluster);
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
        for (key, item) in self.all() {
            index.add(&key, &item);
        }
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

    /// The number and list of an endpoint, if it may speak for a cluster.
    fn speaker(&mut self, endpoint: &EndpointId, cluster: &ClusterName) -> Option<(Slot, u64)> {
        let &mut Endpoint { slot, list, .. } = self.endpoint(endpoint);
        self.homes.get(cluster).is_none_or(|home| !home.left.contains(&slot)).then_some((slot, list))
    }

    /// Keys of all objects that match; the function gets the home of their cluster too.
    fn find(&self, wanted: impl Fn(Option<&Home>, &Stored<K>) -> bool) -> Vec<Key> {
        let mut keys = Vec::new();
        for (cluster, namespaces) in &self.clusters {
            let home = self.homes.get(cluster);
            for (namespace, names) in namespaces {
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
        let item = names.remove(&key.name)?.item;
        if names.is_empty() {
            namespaces.remove(&key.namespace);
        }
        if namespaces.is_empty() {
            self.clusters.remove(&key.cluster);
        }
        self.len -= 1;
        for index in self.indexes.values_mut() {
            index.remove(key, &item);
        }
        Some(item)
    }
}

fn digest(object: &Object) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.uid.hash(&mut hasher);
    object.resource_version.hash(&mut hasher);
    object.bytes().hash(&mut hasher);
    hasher.finish()
}
