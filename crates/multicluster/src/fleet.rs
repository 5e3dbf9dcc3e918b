//! All clusters of a provider, and everything that is watched in them.
//!
//! ```text
//!   Provider ──FleetEvent──▶ roster ──▶ informers: watch endpoints as they come and go
//!                              │
//!   Coordinator ──Ownership──▶ └──────▶ controllers and subscribers: the same events, in the same order
//! ```
//!
//! Events only change maps and start or stop tasks, so nothing here can block: an endpoint that is slow or dead delays
//! nobody but its own clusters.

mod builder;
mod health;
mod roster;

use std::any::{Any, TypeId};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use carrick_client::{Error, Object, Resource};
use futures::StreamExt;
use futures::stream::BoxStream;
use kube::runtime::reflector::Lookup;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::cluster::Cluster;
use crate::coordination::{Coordinator, Ownership};
use crate::endpoint::{ClusterKey, Endpoint};
use crate::error::ClusterError;
use crate::event::FleetEvent;
use crate::guard::Panicked;
use crate::informer::{AnyInformer, Informer, InformerSettings, Inner as InformerInner, WatchConfig, resource_of};
use crate::name::EndpointId;
use crate::provider::Provider;
use crate::stats::ControllerStats;
use crate::store::{FleetStore, Ledger, Undecodable};
use roster::Roster;

pub use builder::FleetBuilder;
pub use health::{EndpointHealth, Health};

/// All clusters of a provider. Cloning shares the fleet; it ends with the last clone.
///
/// Controllers on one fleet share its watches: each kind is watched once per endpoint, whoever uses it.
///
/// ```no_run
/// use std::time::Duration;
///
/// use carrick_multicluster::{Fleet, MultiClusterController};
/// use carrick_multicluster::providers::KubeconfigFiles;
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use kube::runtime::watcher;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let fleet = Fleet::builder(KubeconfigFiles::infer()).build();
/// let maps = MultiClusterController::<ConfigMap>::on(&fleet, watcher::Config::default());
/// let secrets = MultiClusterController::<Secret>::on(&fleet, watcher::Config::default()).owns::<ConfigMap>(watcher::Config::default());
/// // Outside of a controller:
/// let client = fleet.wait_cluster("prod-eu", Duration::from_secs(10)).await?.client();
/// println!("{}", fleet.health());
/// # drop((maps, secrets, client));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Fleet {
    inner: Arc<Inner>,
    /// Follows the provider and the coordinator; ends with the last handle.
    _tasks: Arc<JoinSet<()>>,
}

struct Inner {
    coordinator: Arc<dyn Coordinator>,
    settings: InformerSettings,
    /// How much of each cluster compact stores keep, if that is limited.
    ledger: Option<Arc<Ledger>>,
    state: Mutex<FleetState>,
    /// Grows with every change, for those who wait for one.
    changes: watch::Sender<u64>,
}

struct FleetState {
    roster: Roster,
    ownership: Ownership,
    informers: HashMap<InformerKey, Weak<dyn AnyInformer>>,
    /// Endpoints that are watched: those that concern this process.
    watched: HashSet<EndpointId>,
    subscribers: Vec<mpsc::UnboundedSender<FleetEvent>>,
    controllers: HashMap<u64, Controller>,
    next_controller: u64,
    /// The version that was last reported to the coordinator as drained.
    drained: u64,
    /// Whether a reconcile was aborted when its controller ended.
    cut_off: bool,
}

/// A controller on the fleet.
struct Controller {
    events: mpsc::UnboundedSender<ControllerEvent>,
    #[cfg_attr(not(feature = "metrics"), allow(dead_code))] // shown by the feature only
    stats: Arc<ControllerStats>,
    /// The ownership it has followed: nothing else is worked on any more.
    drained: u64,
}

/// An informer: its Rust type, its kind and its watch configuration.
type InformerKey = (TypeId, Resource, WatchConfig);

/// What a fleet and its watches report to a controller.
pub(crate) enum ControllerEvent {
    /// The fleet changed.
    Fleet(FleetEvent),
    /// This process owns other clusters than before.
    Ownership(Ownership),
    /// A source of the controller has been listed at an endpoint.
    Listed { source: usize, endpoint: EndpointId },
    /// A source of another fleet is complete.
    ForeignReady { source: usize },
    /// An object cannot be read.
    Undecodable(Undecodable),
    /// A function of the user has panicked.
    Panicked(Panicked),
    /// A watch fails.
    WatchFails { resource: Resource, endpoint: EndpointId, error: Arc<Error> },
    /// The provider of another fleet fails.
    ProviderFails { what: Arc<str>, error: Error },
    /// An endpoint is not watched any more, though it is there.
    Unwatched(EndpointId),
}

impl ControllerEvent {
    pub(crate) fn watch_fails(resource: &Resource, endpoint: &EndpointId, error: &Arc<Error>) -> Self {
        Self::WatchFails { resource: resource.clone(), endpoint: endpoint.clone(), error: error.clone() }
    }
}

impl Fleet {
    /// A fleet of the clusters of a provider.
    pub fn builder(provider: impl Provider) -> FleetBuilder {
        FleetBuilder::new(Arc::new(provider))
    }

    /// A cluster by name, or else by path.
    pub fn cluster(&self, name: &str) -> Result<Cluster, ClusterError> {
        self.inner.state.lock().roster.find(name)
    }

    /// A cluster by name or path, as soon as it is there; after the timeout, the reason why it is not.
    pub async fn wait_cluster(&self, name: &str, timeout: Duration) -> Result<Cluster, ClusterError> {
        let mut changes = self.inner.changes.subscribe();
        let found = async {
            loop {
                if let Ok(cluster) = self.cluster(name) {
                    return cluster;
                }
                if changes.changed().await.is_err() {
                    futures::future::pending::<()>().await;
                }
            }
        };
        match tokio::time::timeout(timeout, found).await {
            Ok(cluster) => Ok(cluster),
            Err(_) => self.cluster(name),
        }
    }

    /// A cluster by its workspace path, such as `root:org:team`.
    pub fn by_path(&self, path: &str) -> Result<Cluster, ClusterError> {
        let cluster = self.cluster(path)?;
        let found = cluster.path().is_some_and(|found| &*found == path);
        if found { Ok(cluster) } else { Err(ClusterError::Unknown { cluster: path.to_owned() }) }
    }

    /// All engaged clusters, sorted by name.
    pub fn clusters(&self) -> Vec<Cluster> {
        self.inner.state.lock().roster.clusters().cloned().collect()
    }

    /// Whether the provider has reported everything that existed at the start.
    pub fn is_synced(&self) -> bool {
        self.inner.state.lock().roster.is_synced()
    }

    /// The fleet as it is, then every change.
    pub fn subscribe(&self) -> BoxStream<'static, FleetEvent> {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let mut state = self.inner.state.lock();
        let replay = state.roster.replay();
        state.subscribers.push(sender);
        drop(state);
        let changes = futures::stream::poll_fn(move |context| receiver.poll_recv(context));
        futures::stream::iter(replay).chain(changes).boxed()
    }

    /// Watches a kind, or joins those who watch it already. The watches end with the last handle.
    pub fn informer<K>(&self, config: impl Into<WatchConfig>) -> Informer<K>
    where
        K: Lookup<DynamicType: Default> + DeserializeOwned + Send + Sync + 'static,
    {
        self.informer_with(&K::DynamicType::default(), config)
    }

    /// Watches a kind that is known at run time only.
    pub fn informer_with<K>(&self, dyntype: &K::DynamicType, config: impl Into<WatchConfig>) -> Informer<K>
    where
        K: Lookup + DeserializeOwned + Send + Sync + 'static,
    {
        self.watch(resource_of::<K>(dyntype), config.into(), FleetStore::typed)
    }

    /// Watches a kind whose objects are kept as compact bytes and decoded on use.
    pub fn informer_compact(&self, resource: Resource, config: impl Into<WatchConfig>) -> Informer<Object> {
        let ledger = self.inner.ledger.clone();
        self.watch(resource, config.into(), || FleetStore::compact_within(ledger))
    }

    /// The objects of a kind that is watched, by a controller or through [`Fleet::informer`]. If it is watched in several
    /// ways, with different selectors for example, it is any one of them.
    pub fn store<K: Send + Sync + 'static>(&self) -> Option<FleetStore<K>> {
        let state = self.inner.state.lock();
        let mut informers = state.informers.iter().filter(|((kind, ..), _)| *kind == TypeId::of::<K>());
        informers.find_map(|(_, informer)| Some(downcast::<K>(informer)?.store().clone()))
    }

    /// How the fleet is doing.
    pub fn health(&self) -> Health {
        let mut state = self.inner.state.lock();
        let mut endpoints: std::collections::BTreeMap<EndpointId, EndpointHealth> =
            state.roster.endpoints().map(|endpoint| (endpoint.id.clone(), EndpointHealth::default())).collect();
        let mut clusters = 0;
        for cluster in state.roster.clusters() {
            clusters += 1;
            if let Some(endpoint) = endpoints.get_mut(cluster.endpoint()) {
                endpoint.clusters += 1;
            }
        }
        for (id, watch) in state.informers().iter().flat_map(|informer| informer.health()) {
            if let Some(endpoint) = endpoints.get_mut(&id) {
                endpoint.watches.push(watch);
            }
        }
        let failing =
            state.roster.failing().iter().map(|(source, error)| (source.clone(), error.to_string())).collect();
        let synced = state.roster.is_synced();
        Health { synced, clusters, endpoints, failing }
    }

    /// Changes whenever the fleet does.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    /// The endpoints that are up and watched.
    pub(crate) fn watched(&self) -> Vec<EndpointId> {
        self.inner.state.lock().watched.iter().cloned().collect()
    }

    /// Whether the provider cannot see all changes.
    pub(crate) fn is_failing(&self) -> bool {
        !self.inner.state.lock().roster.failing().is_empty()
    }

    /// Releases everything this process owns, after its controllers have ended, so that others can take over at once.
    ///
    /// If a reconcile had to be aborted, nothing is released: its last write may still arrive. Others take over when the Leases have
    /// expired, after the end of this process.
    pub async fn release(&self) {
        if self.inner.state.lock().cut_off {
            tracing::warn!("A reconcile was aborted, so nothing is released: its last write may still arrive.");
            return;
        }
        self.inner.coordinator.release().await;
    }

    /// Statistics of the controllers on this fleet.
    #[cfg(feature = "metrics")]
    pub(crate) fn stats(&self) -> Vec<Arc<ControllerStats>> {
        let state = self.inner.state.lock();
        let mut all: Vec<_> = state.controllers.values().map(|controller| controller.stats.clone()).collect();
        all.sort_by(|a, b| a.name().cmp(b.name()));
        all
    }

    fn watch<K: Send + Sync + 'static>(
        &self,
        resource: Resource,
        config: WatchConfig,
        store: impl FnOnce() -> FleetStore<K>,
    ) -> Informer<K> {
        let mut state = self.inner.state.lock();
        let key = (TypeId::of::<K>(), resource.clone(), config.clone());
        if let Some(informer) = state.informers.get(&key).and_then(downcast::<K>) {
            return informer;
        }
        let informer = Informer::new(resource, config, store(), self.inner.settings);
        for cluster in state.roster.clusters() {
            informer.inner().engage(cluster);
        }
        for endpoint in state.roster.endpoints().filter(|endpoint| state.watched.contains(&endpoint.id)) {
            informer.inner().endpoint_up(endpoint);
        }
        let erased: Arc<dyn AnyInformer> = informer.inner().clone();
        state.informers.insert(key, Arc::downgrade(&erased));
        informer
    }

    /// Registers a controller: it gets the fleet as it is, then every change.
    pub(crate) fn register(
        &self,
        events: mpsc::UnboundedSender<ControllerEvent>,
        numbers: Arc<ControllerStats>,
    ) -> Registration {
        let mut state = self.inner.state.lock();
        let _ = events.send(ControllerEvent::Ownership(state.ownership.clone()));
        for event in state.roster.replay() {
            let _ = events.send(ControllerEvent::Fleet(event));
        }
        state.next_controller += 1;
        let id = state.next_controller;
        let drained = state.ownership.version();
        state.controllers.insert(id, Controller { events, stats: numbers, drained });
        Registration { inner: self.inner.clone(), id }
    }
}

impl<P: Provider> From<P> for Fleet {
    /// A fleet of the clusters of a provider. Must be called inside a tokio runtime.
    fn from(provider: P) -> Self {
        Self::builder(provider).build()
    }
}

impl From<&Fleet> for Fleet {
    fn from(fleet: &Fleet) -> Self {
        fleet.clone()
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fleet({})", self.health())
    }
}

/// The registration of a controller; it ends when dropped.
pub(crate) struct Registration {
    inner: Arc<Inner>,
    id: u64,
}

impl Registration {
    /// Reports that nothing is worked on any more that this version does not own.
    pub(crate) fn drained(&self, version: u64) {
        let mut state = self.inner.state.lock();
        if let Some(controller) = state.controllers.get_mut(&self.id) {
            controller.drained = version;
        }
        self.inner.report_drained(&mut state);
    }

    /// Reports that a reconcile was aborted, whose writes may still take effect.
    pub(crate) fn cut_off(&self) {
        self.inner.state.lock().cut_off = true;
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut state = self.inner.state.lock();
        state.controllers.remove(&self.id);
        self.inner.report_drained(&mut state);
    }
}

impl Inner {
    fn event(&self, event: FleetEvent) {
        let mut state = self.state.lock();
        for event in state.roster.apply(event) {
            builder::log(&event, self.settings.quiet);
            match &event {
                // One that is watched already is watched again with another client.
                FleetEvent::EndpointUp(endpoint) => drop(state.watched.remove(&endpoint.id)),
                FleetEvent::EndpointDown(id) => drop(state.watched.remove(id)),
                _ => {}
            }
            if let FleetEvent::EndpointUp(Endpoint { id, .. }) = &event {
                state.watch_if_wanted(id);
            }
            if let FleetEvent::Engage(cluster) = &event {
                state.watch_if_wanted(cluster.endpoint());
            }
            let informers = state.informers();
            for informer in &informers {
                match &event {
                    FleetEvent::EndpointDown(id) => informer.endpoint_down(id),
                    FleetEvent::Engage(cluster) => informer.engage(cluster),
                    FleetEvent::Disengage { name, .. } => informer.disengage(name),
                    FleetEvent::ApisChanged { name } => {
                        if let Ok(cluster) = state.roster.find(name) {
                            informer.apis_changed(cluster.endpoint());
                        }
                    }
                    _ => {}
                }
            }
            for controller in state.controllers.values() {
                let _ = controller.events.send(ControllerEvent::Fleet(event.clone()));
            }
            state.subscribers.retain(|subscriber| subscriber.send(event.clone()).is_ok());
        }
        drop(state);
        self.changes.send_modify(|changes| *changes += 1);
    }

    fn own(&self, ownership: Ownership) {
        let mut state = self.state.lock();
        for controller in state.controllers.values() {
            let _ = controller.events.send(ControllerEvent::Ownership(ownership.clone()));
        }
        state.ownership = ownership;
        let endpoints: Vec<EndpointId> = state.roster.endpoints().map(|endpoint| endpoint.id.clone()).collect();
        for id in &endpoints {
            state.watch_if_wanted(id);
        }
        self.report_drained(&mut state);
        drop(state);
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Reports to the coordinator what all controllers have drained.
    fn report_drained(&self, state: &mut FleetState) {
        let current = state.ownership.version();
        let drained = state.controllers.values().map(|controller| controller.drained).min().unwrap_or(current);
        if drained > state.drained {
            state.drained = drained;
            self.coordinator.drained(drained);
        }
        // Not before: what still runs may look into the stores.
        if drained >= current {
            state.unwatch_others();
        }
    }
}

impl FleetState {
    /// Whether an endpoint concerns this process.
    fn is_wanted(&self, id: &EndpointId) -> bool {
        let ownership = &self.ownership;
        // To work on one cluster of such an endpoint, all of them have to be watched; when another one is taken over, its objects and deletions are known.
        let is_shared = |endpoint: &Endpoint| !matches!(endpoint.key, ClusterKey::Fixed(_));
        ownership.watches_all()
            || self.roster.endpoint(id).is_some_and(is_shared)
            || self.roster.clusters_at(id).any(|cluster| ownership.watches(cluster))
    }

    /// Begins to watch an endpoint, if it concerns this process and is not watched yet.
    fn watch_if_wanted(&mut self, id: &EndpointId) {
        if self.watched.contains(id) || !self.is_wanted(id) {
            return;
        }
        let Some(endpoint) = self.roster.endpoint(id).cloned() else { return };
        self.watched.insert(id.clone());
        for informer in self.informers() {
            informer.endpoint_up(&endpoint);
        }
    }

    /// Ends the watches of endpoints that do not concern this process.
    fn unwatch_others(&mut self) {
        let unwanted: Vec<EndpointId> = self.watched.iter().filter(|id| !self.is_wanted(id)).cloned().collect();
        for id in unwanted {
            self.watched.remove(&id);
            for informer in self.informers() {
                informer.endpoint_down(&id);
            }
            for controller in self.controllers.values() {
                let _ = controller.events.send(ControllerEvent::Unwatched(id.clone()));
            }
        }
    }

    /// The informers that are in use.
    fn informers(&mut self) -> Vec<Arc<dyn AnyInformer>> {
        self.informers.retain(|_, informer| informer.strong_count() > 0);
        self.informers.values().filter_map(Weak::upgrade).collect()
    }
}

fn downcast<K: Send + Sync + 'static>(informer: &Weak<dyn AnyInformer>) -> Option<Informer<K>> {
    let informer: Arc<dyn Any + Send + Sync> = informer.upgrade()?;
    Some(Informer::from_inner(informer.downcast::<InformerInner<K>>().ok()?))
}
