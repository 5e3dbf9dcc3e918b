//! All objects of one kind over the whole fleet.
//!
//! ```text
//!   watch events of each endpoint ──apply──▶ clusters ─▶ namespaces ─▶ names ─▶ object
//!                                               │                         │
//!                                        home endpoint              indexes: name ─▶ value ─▶ cluster ─▶ objects
//! ```
//!
//! The store is one map for all endpoints. It survives relists without a second copy, finds deletes that a broken watch
//! missed, and lets a cluster move from one endpoint to another without a gap.

mod index;
mod ledger;
mod state;

use std::fmt;
use std::sync::Arc;

use carrick_client::watch::Event;
use carrick_client::{Object, Packer};
use parking_lot::RwLock;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::endpoint::ClusterKey;
use crate::guard::{Callback, Panicked, caught};
use crate::name::{ClusterName, EndpointId};
use crate::priority::Priority;
use crate::request::Key;
pub(crate) use ledger::Ledger;
use state::StoreState;

/// What a watch event changed in the store.
#[derive(Debug)]
pub enum Change<K> {
    /// An object that was not there before.
    Added(Arc<K>),
    /// An object in another version than before.
    Changed {
        /// The version before.
        old: Arc<K>,
        /// The version now.
        new: Arc<K>,
    },
    /// An object that is gone, in its last known state.
    Deleted(Arc<K>),
}

impl<K> Change<K> {
    /// The object as it is now, or was last.
    pub fn object(&self) -> &Arc<K> {
        match self {
            Self::Added(object) | Self::Deleted(object) | Self::Changed { new: object, .. } => object,
        }
    }
}

/// One change of one object.
#[derive(Debug)]
pub struct Update<K> {
    /// Which object.
    pub key: Key,
    /// What happened to it.
    pub change: Change<K>,
    /// How urgent that is.
    pub priority: Priority,
}

/// An object that cannot be read as the kind it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot understand {key}: {problem}; correct the object, or the type it is read as")]
pub struct Undecodable {
    /// Which object.
    pub key: Key,
    /// What is wrong with it.
    pub problem: String,
}

/// Everything that one watch event changed.
#[derive(Debug)]
pub struct Applied<K> {
    /// Changes of objects.
    pub updates: Vec<Update<K>>,
    /// An object that was left as it was, because its new version cannot be read.
    pub undecodable: Option<Undecodable>,
    /// Whether the object belongs to no cluster and was left out.
    pub unkeyed: bool,
    /// Functions of the user that panicked: those of indexes, and the one that finds the cluster of an object.
    pub panics: Vec<Panicked>,
}

impl<K> Default for Applied<K> {
    fn default() -> Self {
        Self { updates: Vec::new(), undecodable: None, unkeyed: false, panics: Vec::new() }
    }
}

/// How many times smaller an object may become in a store.
const SMALLER: usize = 8;

/// What is kept of an object, and how many bytes that takes.
type Decode<K> = dyn Fn(&Object) -> Result<(K, usize), serde_json::Error> + Send + Sync;

/// All objects of one kind, by cluster, namespace and name, fed by one watch per endpoint. Cloning shares the store.
///
/// ```
/// # use carrick_multicluster::MultiClusterController;
/// # use k8s_openapi::api::core::v1::Pod;
/// # fn example(controller: &MultiClusterController<Pod>) {
/// let pods = controller.store();
/// pods.index("node", |pod| pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect());
/// let here = pods.by_index("prod-eu", "node", "node-1");
/// let everywhere = pods.by_index_all("node", "node-1");
/// # drop((here, everywhere));
/// # }
/// ```
pub struct FleetStore<K> {
    decode: Arc<Decode<K>>,
    state: Arc<RwLock<StoreState<K>>>,
    /// How much may be kept of each cluster, if that is limited.
    ledger: Option<Arc<Ledger>>,
    /// Grows with every event, for those who wait for one.
    events: Arc<watch::Sender<u64>>,
}

impl<K> Clone for FleetStore<K> {
    fn clone(&self) -> Self {
        Self {
            decode: self.decode.clone(),
            state: self.state.clone(),
            ledger: self.ledger.clone(),
            events: self.events.clone(),
        }
    }
}

impl<K: DeserializeOwned + 'static> FleetStore<K> {
    /// An empty store of objects that are decoded when they arrive.
    pub fn typed() -> Self {
        Self::with(Object::decode)
    }
}

impl FleetStore<Object> {
    /// An empty store of objects that are kept as compact bytes and decoded on use.
    pub fn compact() -> Self {
        Self::compact_within(None)
    }

    /// The same, with as much of each cluster as a ledger has room for. Of what exceeds that there is only
    /// [metadata](Object::left_out).
    pub(crate) fn compact_within(ledger: Option<Arc<Ledger>>) -> Self {
        let packer = Packer::default();
        let pack = move |object: &Object| {
            let packed = packer.pack(object);
            let kept = packed.kept();
            Ok((packed, kept))
        };
        Self::new(pack, ledger)
    }

    /// How many bytes more may be kept of a cluster; `None` if that is not limited.
    pub fn room(&self, cluster: &str) -> Option<usize> {
        self.ledger.as_ref().map(|ledger| ledger.room(cluster))
    }

    /// Keeps the whole of an object that was left out for want of room, if there is room by now and it is the same version.
    pub fn complete(&self, key: &Key, mut whole: Object) -> bool {
        let Some(known) = self.lookup(key).filter(|known| known.left_out().is_some()) else { return false };
        let is_same = known.uid == whole.uid && known.resource_version == whole.resource_version;
        whole.cluster = key.cluster.to_arc();
        let Ok((item, kept)) = self.decoded(&whole) else { return false };
        let fits = self.ledger.as_ref().is_none_or(|ledger| kept <= ledger.room(&key.cluster));
        is_same && fits && self.state.write().swap(key, &known, &Arc::new(item), kept)
    }
}

impl<K> FleetStore<K> {
    /// An empty store of whatever a function makes of objects.
    pub fn with(decode: impl Fn(&Object) -> Result<K, serde_json::Error> + Send + Sync + 'static) -> Self {
        Self::new(move |object| Ok((decode(object)?, object.kept())), None)
    }

    fn new(
        decode: impl Fn(&Object) -> Result<(K, usize), serde_json::Error> + Send + Sync + 'static,
        ledger: Option<Arc<Ledger>>,
    ) -> Self {
        let state = Arc::new(RwLock::new(StoreState::counted_by(ledger.clone())));
        Self { decode: Arc::new(decode), state, ledger, events: Arc::new(watch::Sender::new(0)) }
    }

    /// Applies one event of the watch of an endpoint and returns what changed.
    ///
    /// A list that leaves an object out deletes it, so deletions missed between two watches are found. An object
    /// that arrives unchanged is no change. Of an object that cannot be decoded, or whose decoder panics, the last good version is kept.
    pub fn apply(&self, endpoint: &EndpointId, key: &ClusterKey, event: Event) -> Applied<K> {
        let mut applied = Applied::default();
        match event {
            Event::Begin => self.state.write().begin(endpoint),
            Event::Synced => applied.updates = self.state.write().finish(endpoint),
            Event::Listed(object) => self.upsert(endpoint, key, object, true, &mut applied),
            Event::Applied(object) => self.upsert(endpoint, key, object, false, &mut applied),
            Event::Deleted(object) => {
                if let Some((key, object)) = keyed(endpoint, key, object, &mut applied) {
                    let last = self.decoded(&object).ok().map(|(last, _)| Arc::new(last));
                    applied.updates.extend(self.state.write().remove(endpoint, key, last));
                }
            }
            Event::Failing(_) | Event::Recovered | Event::WentBack { .. } => {}
        }
        self.events.send_modify(|events| *events += 1);
        applied
    }

    /// Waits until the store meets a condition: until it shows what was just written, for example. Best with a time limit.
    pub async fn wait_until(&self, mut condition: impl FnMut(&Self) -> bool) {
        let mut events = self.events.subscribe();
        while !condition(self) {
            if events.changed().await.is_err() {
                futures::future::pending::<()>().await;
            }
        }
    }

    fn upsert(&self, endpoint: &EndpointId, key: &ClusterKey, object: Object, listed: bool, applied: &mut Applied<K>) {
        let Some((key, object)) = keyed(endpoint, key, object, applied) else { return };
        // Decoding is the expensive part; it must not hold up readers.
        match self.fitting(&key, &object) {
            Ok((item, kept)) => {
                let mut state = self.state.write();
                applied.updates.extend(state.upsert(endpoint, key, &object, (Arc::new(item), kept), listed));
                applied.panics.append(&mut state.take_panics());
            }
            Err(problem) => {
                self.state.write().touch(endpoint, &key);
                applied.undecodable = Some(Undecodable { key, problem });
            }
        }
    }

    /// What is kept of an object: without its content, if there is no room for that. Small ones are kept in any case.
    fn fitting(&self, key: &Key, object: &Object) -> Result<(K, usize), String> {
        let limited = self.ledger.as_ref().filter(|_| object.length() > ledger::OVERHEAD);
        let Some(ledger) = limited else { return self.decoded(object) };
        let room = ledger.room(&key.cluster) + self.state.read().kept(key);
        // Hardly anything becomes that small: it need not be tried, and nobody else has to wait for that.
        if object.length() / SMALLER > room {
            return self.decoded(&object.without_content_of(object.length()));
        }
        let (item, kept) = self.decoded(object)?;
        if kept <= room { Ok((item, kept)) } else { self.decoded(&object.without_content_of(kept)) }
    }

    fn decoded(&self, object: &Object) -> Result<(K, usize), String> {
        match caught(|| (self.decode)(object)) {
            Ok(decoded) => decoded.map_err(|problem| problem.to_string()),
            Err(message) => Err(format!("the decoder panicked: {message}")),
        }
    }

    /// Sets which endpoint serves a cluster from now on; events of earlier endpoints are ignored for this cluster.
    ///
    /// Returns whether there are objects from another endpoint. They stay until [`FleetStore::expect_everything`], since
    /// they may arrive at the new endpoint a while after the cluster does.
    pub fn settle(&self, cluster: &ClusterName, endpoint: &EndpointId) -> bool {
        self.state.write().settle(cluster, endpoint)
    }

    /// Whether a cluster has left an endpoint, whose events about it are ignored since then.
    pub(crate) fn has_left(&self, cluster: &ClusterName, endpoint: &EndpointId) -> bool {
        self.state.read().has_left(cluster, endpoint)
    }

    /// Endpoints that a cluster has left and that have objects of it again, which were ignored. Once it is not settled any more they must be
    /// listed: nobody else says what was ignored.
    pub(crate) fn ignored(&self, cluster: &ClusterName) -> Vec<EndpointId> {
        self.state.read().ignored(cluster)
    }

    /// States that everything of the clusters that have settled at an endpoint is there by now: what its next list does not
    /// have is reported as deleted.
    pub fn expect_everything(&self, endpoint: &EndpointId) {
        self.state.write().expect_everything(endpoint);
    }

    /// Undoes [`FleetStore::settle`]: events of every endpoint count again for this cluster.
    pub fn unsettle(&self, cluster: &ClusterName) {
        self.state.write().unsettle(cluster);
    }

    /// Drops everything of an endpoint that is gone, and returns how many objects that were. Nothing counts as deleted, and
    /// clusters that have settled elsewhere keep their objects.
    pub fn forget_endpoint(&self, endpoint: &EndpointId) -> usize {
        self.state.write().forget_endpoint(endpoint)
    }

    /// Drops everything of a cluster, and returns how many objects that were. Nothing counts as deleted.
    pub fn forget_cluster(&self, cluster: &str) -> usize {
        self.state.write().forget_cluster(cluster)
    }

    /// Whether an endpoint has been listed completely.
    pub fn is_synced(&self, endpoint: &EndpointId) -> bool {
        self.state.read().is_synced(endpoint)
    }

    /// Whether every endpoint that has reported anything was listed completely; false before the first one.
    pub fn is_listed(&self) -> bool {
        self.state.read().is_listed()
    }

    /// One object.
    pub fn get(&self, cluster: &str, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.state.read().get(cluster, namespace, name).cloned()
    }

    /// The object of a key.
    pub fn lookup(&self, key: &Key) -> Option<Arc<K>> {
        self.get(&key.cluster, &key.namespace, &key.name)
    }

    /// All objects of one cluster.
    pub fn list(&self, cluster: &str) -> Vec<Arc<K>> {
        self.state.read().items(cluster).map(|(_, _, item)| item.clone()).collect()
    }

    /// All objects of one namespace of one cluster.
    pub fn list_ns(&self, cluster: &str, namespace: &str) -> Vec<Arc<K>> {
        self.state.read().namespace(cluster, namespace).cloned().collect()
    }

    /// All objects of all clusters.
    pub fn list_all(&self) -> Vec<(Key, Arc<K>)> {
        self.state.read().all().collect()
    }

    /// The keys and objects of one cluster.
    pub fn entries(&self, cluster: &ClusterName) -> Vec<(Key, Arc<K>)> {
        let state = self.state.read();
        let entry = |(namespace, name, item): (&Arc<str>, &Arc<str>, &Arc<K>)| {
            (Key::new(cluster.clone(), namespace.clone(), name.clone()), item.clone())
        };
        state.items(cluster).map(entry).collect()
    }

    /// Names of the clusters that have objects.
    pub fn clusters(&self) -> Vec<ClusterName> {
        self.state.read().clusters()
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.state.read().len()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keeps an index under a name; objects already there are indexed now. An index of that name is replaced.
    ///
    /// The function must always give the same values for the same object, and must not use the store. An object for which it panics is
    /// not found by the index; all others are.
    pub fn index(&self, name: impl Into<String>, values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static) {
        let mut state = self.state.write();
        state.add_index(name.into(), Box::new(values));
        let panics = state.take_panics();
        drop(state);
        if let Some(first) = panics.first() {
            tracing::warn!(objects = panics.len(), %first, "An index cannot hold all objects.");
        }
    }

    /// The objects of one cluster with a value in an index; none if there is no such index.
    pub fn by_index(&self, cluster: &str, index: &str, value: &str) -> Vec<Arc<K>> {
        self.state.read().by_index(cluster, index, value).cloned().collect()
    }

    /// The objects of all clusters with a value in an index; none if there is no such index.
    pub fn by_index_all(&self, index: &str, value: &str) -> Vec<(Key, Arc<K>)> {
        self.state.read().by_index_all(index, value).collect()
    }
}

impl<K> fmt::Debug for FleetStore<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetStore").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// The key of an object, and the object with the right cluster in it.
fn keyed<K>(
    endpoint: &EndpointId,
    key: &ClusterKey,
    mut object: Object,
    applied: &mut Applied<K>,
) -> Option<(Key, Object)> {
    let cluster = caught(|| key.of(&object)).unwrap_or_else(|message| {
        let over = format!("{}/{} at endpoint {endpoint}", object.namespace, object.name);
        applied.panics.push(Panicked { callback: Callback::ClusterKey, over: Some(over), message });
        None
    });
    let Some(cluster) = cluster else {
        applied.unkeyed = true;
        return None;
    };
    object.cluster = cluster.to_arc();
    Some((Key::new(cluster, object.namespace.clone(), object.name.clone()), object))
}
