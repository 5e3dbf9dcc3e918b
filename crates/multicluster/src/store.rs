//! All objects of one kind over the whole fleet.

use std::collections::hash_map::Entry as MapEntry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use carrick_client::Object;
use carrick_client::watch::Event;
use parking_lot::RwLock;

use crate::request::Request;

/// Where the cluster of an object is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterKey {
    /// In annotation `kcp.io/cluster`; objects without it belong to cluster `""`.
    Annotation,
    /// Every object belongs to this cluster, whatever its annotations say.
    Fixed(Arc<str>),
}

/// What a watch event meant for the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// An object that was not there before.
    Added(Object),
    /// An object in another version than before.
    Changed {
        /// The version before.
        old: Object,
        /// The version now.
        new: Object,
    },
    /// An object that is gone, in its last known state.
    Deleted(Object),
}

impl Change {
    /// The object as it is now, or was last.
    pub fn object(&self) -> &Object {
        match self {
            Self::Added(object) | Self::Deleted(object) | Self::Changed { new: object, .. } => object,
        }
    }
}

/// All objects of one kind, by cluster, namespace and name, fed by one watch per endpoint. Cloning shares the store.
#[derive(Clone)]
pub struct FleetStore {
    key: ClusterKey,
    inner: Arc<RwLock<Inner>>,
}

type KeyFn = dyn Fn(&Object) -> Vec<String> + Send + Sync;

/// The objects of one cluster by namespace and name.
type Namespaces = HashMap<Arc<str>, HashMap<Arc<str>, Stored>>;

#[derive(Default)]
struct Inner {
    clusters: HashMap<Arc<str>, Namespaces>,
    endpoints: HashMap<Arc<str>, Endpoint>,
    indexes: HashMap<String, Index>,
    len: usize,
}

struct Stored {
    object: Object,
    endpoint: Arc<str>,
    /// The list of the endpoint that last held the object.
    generation: u64,
}

#[derive(Default)]
struct Endpoint {
    generation: u64,
    synced: bool,
}

struct Index {
    keys: Box<KeyFn>,
    entries: HashMap<String, HashSet<Request>>,
}

impl FleetStore {
    /// An empty store.
    pub fn new(key: ClusterKey) -> Self {
        Self { key, inner: Arc::default() }
    }

    /// Takes in one event of the watch of an endpoint and says what changed.
    ///
    /// A list that leaves an object out deletes it, so deletions missed between two watches are found. An object
    /// that comes again as it was is no change.
    pub fn apply(&self, endpoint: &str, event: Event) -> Vec<Change> {
        let mut inner = self.inner.write();
        match event {
            Event::Begin => {
                inner.endpoint(endpoint).1.generation += 1;
                Vec::new()
            }
            Event::Listed(object) | Event::Applied(object) => {
                let object = self.keyed(object);
                inner.upsert(endpoint, object).into_iter().collect()
            }
            Event::Deleted(object) => {
                let object = self.keyed(object);
                inner.remove(endpoint, object).into_iter().collect()
            }
            Event::Synced => {
                let (_, state) = inner.endpoint(endpoint);
                state.synced = true;
                let generation = state.generation;
                inner.sweep(|stored| &*stored.endpoint == endpoint && stored.generation < generation)
            }
            Event::Failing(_) | Event::Recovered => Vec::new(),
        }
    }

    /// Drops everything of an endpoint that is gone, and says how many objects that were. Nothing counts as deleted.
    pub fn forget_endpoint(&self, endpoint: &str) -> usize {
        let mut inner = self.inner.write();
        inner.endpoints.remove(endpoint);
        inner.sweep(|stored| &*stored.endpoint == endpoint).len()
    }

    /// Drops everything of a cluster, and says how many objects that were. Nothing counts as deleted.
    pub fn forget_cluster(&self, cluster: &str) -> usize {
        let mut inner = self.inner.write();
        let Some(namespaces) = inner.clusters.remove(cluster) else { return 0 };
        let gone: Vec<Object> = namespaces.into_values().flatten().map(|(_, stored)| stored.object).collect();
        for object in &gone {
            inner.unindex(object);
        }
        inner.len -= gone.len();
        gone.len()
    }

    /// Whether an endpoint has been listed completely.
    pub fn is_synced(&self, endpoint: &str) -> bool {
        self.inner.read().endpoints.get(endpoint).is_some_and(|state| state.synced)
    }

    /// One object.
    pub fn get(&self, cluster: &str, namespace: &str, name: &str) -> Option<Object> {
        let inner = self.inner.read();
        inner.clusters.get(cluster)?.get(namespace)?.get(name).map(|stored| stored.object.clone())
    }

    /// The object a request is about.
    pub fn lookup(&self, request: &Request) -> Option<Object> {
        self.get(&request.cluster, &request.namespace, &request.name)
    }

    /// All objects of all clusters.
    pub fn list(&self) -> Vec<Object> {
        let inner = self.inner.read();
        inner.clusters.values().flat_map(HashMap::values).flat_map(HashMap::values).map(Stored::object).collect()
    }

    /// All objects of one cluster.
    pub fn list_cluster(&self, cluster: &str) -> Vec<Object> {
        let inner = self.inner.read();
        let namespaces = inner.clusters.get(cluster).into_iter().flat_map(HashMap::values);
        namespaces.flat_map(HashMap::values).map(Stored::object).collect()
    }

    /// All objects of one namespace of one cluster.
    pub fn list_namespace(&self, cluster: &str, namespace: &str) -> Vec<Object> {
        let inner = self.inner.read();
        let names = inner.clusters.get(cluster).and_then(|namespaces| namespaces.get(namespace));
        names.into_iter().flat_map(HashMap::values).map(Stored::object).collect()
    }

    /// Names of the clusters that have objects.
    pub fn clusters(&self) -> Vec<Arc<str>> {
        self.inner.read().clusters.keys().cloned().collect()
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.inner.read().len
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keeps an index under a name; objects already there are indexed now. An index of that name is replaced.
    pub fn index(&self, name: impl Into<String>, keys: impl Fn(&Object) -> Vec<String> + Send + Sync + 'static) {
        let mut index = Index { keys: Box::new(keys), entries: HashMap::new() };
        let mut inner = self.inner.write();
        for stored in inner.clusters.values().flat_map(HashMap::values).flat_map(HashMap::values) {
            index.add(&stored.object);
        }
        inner.indexes.insert(name.into(), index);
    }

    /// Keeps an index of the values of one label, under the label's name.
    pub fn index_label(&self, label: &str) {
        let wanted = label.to_owned();
        self.index(label, move |object| object.label(&wanted).into_iter().collect());
    }

    /// All objects with a key in an index; none if there is no such index.
    pub fn by_index(&self, name: &str, key: &str) -> Vec<Object> {
        let inner = self.inner.read();
        let requests = inner.indexes.get(name).and_then(|index| index.entries.get(key));
        requests.into_iter().flatten().filter_map(|request| inner.lookup(request)).map(Stored::object).collect()
    }

    fn keyed(&self, mut object: Object) -> Object {
        if let ClusterKey::Fixed(cluster) = &self.key {
            object.cluster = cluster.clone();
        }
        object
    }
}

/// Whether two sightings of an object are of the same state. The version alone does not tell: after a change of the
/// schema the same version may come with more or fewer fields.
fn same(old: &Object, new: &Object) -> bool {
    old.uid == new.uid
        && old.resource_version == new.resource_version
        && (old.bytes() == new.bytes() || old.value() == new.value())
}

impl Stored {
    fn object(&self) -> Object {
        self.object.clone()
    }
}

impl Inner {
    fn endpoint(&mut self, url: &str) -> (Arc<str>, &mut Endpoint) {
        let url: Arc<str> = self.endpoints.get_key_value(url).map_or_else(|| url.into(), |(url, _)| url.clone());
        let state = self.endpoints.entry(url.clone()).or_default();
        (url, state)
    }

    fn lookup(&self, request: &Request) -> Option<&Stored> {
        self.clusters.get(&request.cluster)?.get(&request.namespace)?.get(&request.name)
    }

    fn upsert(&mut self, endpoint: &str, mut object: Object) -> Option<Change> {
        let (endpoint, state) = self.endpoint(endpoint);
        let generation = state.generation;
        // One copy of each cluster and namespace name instead of one per object.
        if let Some((cluster, _)) = self.clusters.get_key_value(&object.cluster) {
            object.cluster = cluster.clone();
        }
        let namespaces = self.clusters.entry(object.cluster.clone()).or_default();
        if let Some((namespace, _)) = namespaces.get_key_value(&object.namespace) {
            object.namespace = namespace.clone();
        }
        let new = Stored { object: object.clone(), endpoint, generation };
        match namespaces.entry(object.namespace.clone()).or_default().entry(object.name.clone()) {
            MapEntry::Vacant(place) => {
                place.insert(new);
                self.len += 1;
                self.reindex(None, &object);
                Some(Change::Added(object))
            }
            MapEntry::Occupied(mut place) => {
                let old = place.insert(new).object;
                if same(&old, &object) {
                    return None;
                }
                self.reindex(Some(&old), &object);
                Some(Change::Changed { old, new: object })
            }
        }
    }

    /// Removes an object unless it has moved to another endpoint meanwhile.
    fn remove(&mut self, endpoint: &str, last: Object) -> Option<Change> {
        let request = Request::from(&last);
        let stored = self.lookup(&request)?;
        if &*stored.endpoint != endpoint {
            return None;
        }
        self.take(&request);
        Some(Change::Deleted(last))
    }

    /// Removes all objects that match.
    fn sweep(&mut self, gone: impl Fn(&Stored) -> bool) -> Vec<Change> {
        let all = self.clusters.values().flat_map(HashMap::values).flat_map(HashMap::values);
        let requests: Vec<Request> = all.filter(|stored| gone(stored)).map(|stored| (&stored.object).into()).collect();
        requests.iter().filter_map(|request| self.take(request)).map(Change::Deleted).collect()
    }

    fn take(&mut self, request: &Request) -> Option<Object> {
        let namespaces = self.clusters.get_mut(&request.cluster)?;
        let names = namespaces.get_mut(&request.namespace)?;
        let object = names.remove(&request.name)?.object;
        if names.is_empty() {
            namespaces.remove(&request.namespace);
        }
        if namespaces.is_empty() {
            self.clusters.remove(&request.cluster);
        }
        self.len -= 1;
        self.unindex(&object);
        Some(object)
    }

    fn reindex(&mut self, old: Option<&Object>, new: &Object) {
        for index in self.indexes.values_mut() {
            if let Some(old) = old {
                index.remove(old);
            }
            index.add(new);
        }
    }

    fn unindex(&mut self, object: &Object) {
        for index in self.indexes.values_mut() {
            index.remove(object);
        }
    }
}

impl Index {
    fn add(&mut self, object: &Object) {
        for key in (self.keys)(object) {
            self.entries.entry(key).or_default().insert(object.into());
        }
    }

    fn remove(&mut self, object: &Object) {
        for key in (self.keys)(object) {
            if let MapEntry::Occupied(mut requests) = self.entries.entry(key) {
                requests.get_mut().remove(&Request::from(object));
                if requests.get().is_empty() {
                    requests.remove();
                }
            }
        }
    }
}
