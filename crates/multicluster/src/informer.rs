//! One kind, watched over the whole fleet.
//!
//! ```text
//!   endpoint a ──▶ follower ──┐
//!   endpoint b ──▶ follower ──┼──▶ FleetStore ──▶ routes: one per controller that uses the kind
//!   endpoint c ──▶ follower ──┘
//! ```
//!
//! There is one informer per kind and watch configuration on a fleet, and one follower, hence one watch, per endpoint.

mod follower;
mod state;

use std::any::Any;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use carrick_client::watch::{Event, WatchOptions};
use carrick_client::{Error, Resource};
use kube::runtime::reflector::Lookup;
use kube::runtime::watcher::{Config, InitialListStrategy};
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::endpoint::Endpoint;
use crate::guard::{Callback, Panicked, caught};
use crate::name::{ClusterName, EndpointId};
use crate::store::{FleetStore, Undecodable, Update};
use follower::Follower;
use state::Progress;

pub use state::WatchState;

/// How long changes of clusters' APIs are collected before objects are listed again.
const NEW_APIS: Duration = Duration::from_secs(1);

/// How long the returns of clusters to an endpoint are collected before objects are listed again.
const RETURNED: Duration = Duration::from_secs(1);

/// What to watch, and how. Made from kube's [`Config`] or from our own [`WatchOptions`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WatchConfig(WatchOptions);

impl Default for WatchConfig {
    /// Everything, listed page by page: virtual workspaces of some kcp versions never finish a streaming list.
    fn default() -> Self {
        Self(WatchOptions { streaming_lists: false, ..WatchOptions::default() })
    }
}

impl From<WatchOptions> for WatchConfig {
    fn from(options: WatchOptions) -> Self {
        Self(options)
    }
}

impl From<Config> for WatchConfig {
    fn from(config: Config) -> Self {
        let mut options = WatchOptions {
            streaming_lists: matches!(config.initial_list_strategy, InitialListStrategy::StreamingList),
            ..WatchOptions::default()
        };
        options.select.label_selector = config.label_selector;
        options.select.field_selector = config.field_selector;
        if let Some(seconds) = config.timeout {
            options.timeout = Duration::from_secs(seconds.into());
        }
        if let Some(size) = config.page_size {
            options.page_size = size;
        }
        Self(options)
    }
}

/// A receiver of changes. Called by the watch itself, so it must be quick and must not block.
pub(crate) trait Route<K>: Send + Sync {
    /// An object changed.
    fn update(&self, update: &Update<K>);
    /// An endpoint has been listed completely. May be called more than once.
    fn listed(&self, endpoint: &EndpointId);
    /// An object cannot be read.
    fn undecodable(&self, object: &Undecodable);
    /// A function of the user has panicked.
    fn panicked(&self, panic: &Panicked);
    /// The watch of an endpoint fails; called once per outage.
    fn failing(&self, resource: &Resource, endpoint: &EndpointId, error: &Arc<Error>);
}

/// An informer without its type, as a fleet uses it.
pub(crate) trait AnyInformer: Any + Send + Sync {
    /// Begins to watch an endpoint, or watches it again with another client.
    fn endpoint_up(&self, endpoint: &Endpoint);
    /// Ends the watch of an endpoint.
    fn endpoint_down(&self, id: &EndpointId);
    /// A cluster is served by an endpoint from now on.
    fn engage(&self, cluster: &Cluster);
    /// A cluster has left.
    fn disengage(&self, cluster: &ClusterName);
    /// Objects of an endpoint may look different now.
    fn apis_changed(&self, endpoint: &EndpointId);
    /// How the watches are doing.
    fn health(&self) -> Vec<(EndpointId, WatchHealth)>;
}

/// What all informers of a fleet have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InformerSettings {
    /// How long objects of a cluster that has moved may take to follow.
    pub(crate) move_grace: Duration,
    /// Whether to keep failures out of the log, because the program reports them.
    pub(crate) quiet: bool,
}

/// How one watch is doing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WatchHealth {
    /// What is watched, such as `widgets.v1.example.com`.
    pub resource: Resource,
    /// How it is going.
    pub state: WatchState,
    /// How often everything was listed again.
    pub restarts: u64,
}

/// A kind watched over the whole fleet. Cloning shares it; the watches end with the last clone.
pub struct Informer<K: 'static>(Arc<Inner<K>>);

pub(crate) struct Inner<K: 'static> {
    shared: Arc<Shared<K>>,
    followers: Mutex<HashMap<EndpointId, Follower>>,
}

/// What the followers of an informer share.
pub(crate) struct Shared<K> {
    resource: Resource,
    options: WatchOptions,
    store: FleetStore<K>,
    /// How long objects of a cluster that has moved may take to follow.
    move_grace: Duration,
    /// Whether to keep failures out of the log, because the program reports them.
    quiet: bool,
    routes: RwLock<Vec<Weak<dyn Route<K>>>>,
    /// Functions whose panics have been logged.
    warned: Mutex<HashSet<Callback>>,
    /// Grows with every change of a state.
    changes: watch::Sender<u64>,
}

impl<K: Send + Sync + 'static> Informer<K> {
    pub(crate) fn new(
        resource: Resource,
        config: WatchConfig,
        store: FleetStore<K>,
        settings: InformerSettings,
    ) -> Self {
        let shared = Shared {
            resource,
            options: config.0,
            store,
            move_grace: settings.move_grace,
            quiet: settings.quiet,
            routes: RwLock::default(),
            warned: Mutex::default(),
            changes: watch::Sender::new(0),
        };
        Self(Arc::new(Inner { shared: Arc::new(shared), followers: Mutex::default() }))
    }

    /// All objects.
    pub fn store(&self) -> &FleetStore<K> {
        &self.0.shared.store
    }

    /// What is watched.
    pub fn resource(&self) -> &Resource {
        &self.0.shared.resource
    }

    /// How the watch of each endpoint is doing.
    pub fn health(&self) -> BTreeMap<EndpointId, WatchHealth> {
        AnyInformer::health(&*self.0).into_iter().collect()
    }

    /// Changes whenever [`Informer::health`] does.
    pub fn health_changes(&self) -> watch::Receiver<u64> {
        self.0.shared.changes.subscribe()
    }

    /// Adds a route, to which the endpoints that have been listed before and those that fail are reported at once. It learns nothing about objects that
    /// are in the store already.
    pub(crate) fn add_route(&self, route: &Arc<dyn Route<K>>) {
        let shared = &self.0.shared;
        let mut routes = shared.routes.write();
        routes.retain(|route| route.strong_count() > 0);
        routes.push(Arc::downgrade(route));
        drop(routes);
        let endpoints: Vec<EndpointId> = self.0.followers.lock().keys().cloned().collect();
        for endpoint in endpoints.iter().filter(|endpoint| shared.store.is_synced(endpoint)) {
            route.listed(endpoint);
        }
        for (endpoint, watch) in self.health() {
            if let WatchState::Failing { error, .. } = &watch.state {
                route.failing(&shared.resource, &endpoint, error);
            }
        }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner<K>> {
        &self.0
    }

    pub(crate) fn from_inner(inner: Arc<Inner<K>>) -> Self {
        Self(inner)
    }
}

impl<K: 'static> Clone for Informer<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K> fmt::Debug for Informer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Informer({})", self.0.shared.resource)
    }
}

impl<K: Send + Sync + 'static> AnyInformer for Inner<K> {
    fn endpoint_up(&self, endpoint: &Endpoint) {
        let follower = Follower::start(self.shared.clone(), endpoint.clone());
        self.followers.lock().insert(endpoint.id.clone(), follower);
        self.shared.changed();
    }

    fn endpoint_down(&self, id: &EndpointId) {
        // Dropped before the objects are: no late event brings them back.
        drop(self.followers.lock().remove(id));
        self.shared.store.forget_endpoint(id);
        self.shared.changed();
    }

    fn engage(&self, cluster: &Cluster) {
        let endpoint = cluster.endpoint();
        let returned = self.shared.store.has_left(cluster.name(), endpoint);
        let moved = self.shared.store.settle(cluster.name(), endpoint);
        let followers = self.followers.lock();
        let Some(follower) = followers.get(endpoint) else { return };
        if returned {
            // What the endpoint said about it before this was known was ignored.
            follower.relist_in(RETURNED);
        }
        if moved {
            // What the old endpoint had is compared with a list of the new one, once it has had time to arrive there.
            follower.compare_in(self.shared.move_grace);
        }
        if !self.shared.store.is_synced(endpoint) {
            // The cluster may be the first to serve the API: do not wait for the next attempt of a refused watch.
            follower.try_again();
        }
    }

    fn disengage(&self, cluster: &ClusterName) {
        let ignored = self.shared.store.ignored(cluster);
        self.shared.store.unsettle(cluster);
        let followers = self.followers.lock();
        for follower in ignored.iter().filter_map(|endpoint| followers.get(endpoint)) {
            // It has returned there before its leaving was known.
            follower.relist_in(RETURNED);
        }
    }

    fn apis_changed(&self, endpoint: &EndpointId) {
        if let Some(follower) = self.followers.lock().get(endpoint) {
            follower.relist_in(NEW_APIS);
        }
    }

    fn health(&self) -> Vec<(EndpointId, WatchHealth)> {
        let followers = self.followers.lock();
        let health = |follower: &Follower| {
            let (state, lists) = follower.progress();
            WatchHealth { resource: self.shared.resource.clone(), state, restarts: lists.saturating_sub(1) }
        };
        followers.iter().map(|(endpoint, follower)| (endpoint.clone(), health(follower))).collect()
    }
}

impl<K: Send + Sync> Shared<K> {
    /// Applies one event of one watch. The watch goes on, whatever happens.
    fn take(&self, endpoint: &Endpoint, progress: &Mutex<Progress>, event: Event) {
        // Panics of users' functions are caught where these are called; this is for everything else.
        if let Err(message) = caught(|| self.take_in(endpoint, progress, event)) {
            tracing::error!(endpoint = %endpoint.id, resource = %self.resource, message, "An event could not be taken in.");
        }
    }

    /// Applies one event of one watch, unless that has ended.
    fn take_in(&self, endpoint: &Endpoint, progress: &Mutex<Progress>, event: Event) {
        let mut progress = progress.lock();
        if progress.ended {
            return;
        }
        let listed = matches!(event, Event::Synced);
        let failed = progress.is_failing();
        let changed = progress.take(&event, Instant::now());
        let applied = self.store.apply(&endpoint.id, &endpoint.key, event);
        let state = changed.then(|| progress.state.clone());
        drop(progress);
        if let Some(state) = &state {
            self.log(endpoint, state, failed);
            self.changed();
        }
        for panic in &applied.panics {
            if self.warned.lock().insert(panic.callback.clone()) {
                tracing::warn!(resource = %self.resource, %panic, "A function panicked; later panics of it are not logged.");
            }
        }
        if applied.unkeyed {
            tracing::debug!(endpoint = %endpoint.id, resource = %self.resource, "skipping an object of no cluster");
        }
        if let Some(object) = &applied.undecodable {
            tracing::debug!(cluster = %object.key.cluster, object = %object.key, resource = %self.resource,
                problem = object.problem, "skipping an object that cannot be understood");
        }
        for route in self.routes.read().iter().filter_map(Weak::upgrade) {
            for update in &applied.updates {
                route.update(update);
            }
            if let Some(object) = &applied.undecodable {
                route.undecodable(object);
            }
            for panic in &applied.panics {
                route.panicked(panic);
            }
            if let Some(WatchState::Failing { error, .. }) = &state {
                route.failing(&self.resource, &endpoint.id, error);
            }
            if listed {
                route.listed(&endpoint.id);
            }
        }
    }

    fn log(&self, endpoint: &Endpoint, state: &WatchState, failed: bool) {
        let (endpoint, resource) = (&endpoint.id, &self.resource);
        match state {
            WatchState::Failing { error, .. } if self.quiet => {
                tracing::debug!(%endpoint, %resource, %error, "watch fails, retrying");
            }
            WatchState::Failing { error, .. } => {
                tracing::warn!(%endpoint, %resource, %error, "A watch fails; retrying.");
            }
            WatchState::Live if failed && !self.quiet => {
                tracing::info!(%endpoint, %resource, "A watch works again.");
            }
            state => tracing::debug!(%endpoint, %resource, state = state.as_str(), "watch"),
        }
    }

    fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }
}

/// The client's name for a kind of kube.
pub(crate) fn resource_of<K: Lookup>(dyntype: &K::DynamicType) -> Resource {
    let (group, version) = (K::group(dyntype), K::version(dyntype));
    // The scope matters only for paths with a namespace, which watches of all namespaces do not have.
    Resource::namespaced(&group, &version, &K::kind(dyntype), &K::plural(dyntype))
}
