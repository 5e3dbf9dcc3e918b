//! Reconcilers over many clusters.
//!
//! ```text
//!   watches ─▶ sources ─▶ intake ─▶ queue ─▶ workers ─▶ reports
//!                           ▲         ▲        ▲
//!              open, close  │   purge │  abort │
//!   fleet events ─▶ gate ───┴─────────┴────────┘
//! ```

mod config;
mod context;
mod driver;
mod gate;
mod intake;
mod run;
mod source;
mod work;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use carrick_client::{Object, Resource};
use futures::future::BoxFuture;
use futures::stream::SelectAll;
use futures::{FutureExt, Stream, StreamExt};
use kube::runtime::Predicate;
use kube::runtime::reflector::{Lookup, ObjectRef};
use serde::de::DeserializeOwned;

use crate::cluster::Cluster;
use crate::fleet::Fleet;
use crate::guard::panic_message;
use crate::informer::{Informer, WatchConfig};
use crate::name::ClusterName;
use crate::request::{Key, Request};
use crate::store::FleetStore;
use driver::{Filter, Trigger};
use intake::Intake;
use source::{Foreign, Mapped, Owners, Property, Scope, Source};

pub use config::Config;
pub use context::Context;

/// Sets up a source once the controller runs; sources are numbered.
type Setup = Box<dyn FnOnce(usize, &Arc<Intake>) -> Arc<dyn Source> + Send>;

/// Reconciles objects of kind `K` in all clusters of a fleet: the counterpart of [`kube::runtime::Controller`].
///
/// Functions handed in here may panic: mappers, predicates, filters, triggers, decoders, indexes and reconcilers. Only the object at hand
/// is affected, the stream of the controller reports it, and everything else goes on. Failing watches and providers are reported there too, once
/// per outage.
///
/// ```no_run
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use carrick_multicluster::providers::KubeconfigFiles;
/// use carrick_multicluster::{Action, Config, Context, MultiClusterController};
/// use futures::StreamExt;
/// use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
/// use kube::runtime::{predicates, watcher};
///
/// async fn reconcile(deployment: Arc<Deployment>, context: Context<()>) -> Result<Action, kube::Error> {
///     Ok(Action::requeue(Duration::from_secs(300)))
/// }
///
/// # async fn example() {
/// MultiClusterController::<Deployment>::new(KubeconfigFiles::infer(), watcher::Config::default().labels("app=shop"))
///     .owns::<ReplicaSet>(watcher::Config::default())
///     .predicate(predicates::generation)
///     .clusters(|cluster| cluster.name().ends_with("-eu"))
///     .with_config(Config::default().concurrency(32).per_cluster(4))
///     .shutdown_on_signal()
///     .run(reconcile, |_deployment, error, _context| { eprintln!("{error}"); Action::backoff() }, Arc::new(()))
///     .for_each(|_report| async {})
///     .await;
/// # }
/// ```
pub struct MultiClusterController<K: Lookup + 'static> {
    fleet: Fleet,
    informer: Informer<K>,
    dyntype: K::DynamicType,
    name: Option<Arc<str>>,
    config: Config,
    properties: Vec<Property<K>>,
    filters: Vec<Filter>,
    setups: Vec<Setup>,
    triggers: SelectAll<Trigger<K>>,
    shutdown: Vec<BoxFuture<'static, ()>>,
    force: Option<BoxFuture<'static, ()>>,
}

impl<K> MultiClusterController<K>
where
    K: Lookup<DynamicType: Default + Clone + Send + Sync> + DeserializeOwned + Send + Sync + 'static,
{
    /// A controller over the clusters of a provider, or of a fleet. Must be called inside a tokio runtime.
    pub fn new(fleet: impl Into<Fleet>, config: impl Into<WatchConfig>) -> Self {
        Self::new_with(fleet, config, K::DynamicType::default())
    }

    /// A controller on a fleet that others use too: each kind is watched once for all of them.
    pub fn on(fleet: &Fleet, config: impl Into<WatchConfig>) -> Self {
        Self::new(fleet, config)
    }
}

impl<K> MultiClusterController<K>
where
    K: Lookup<DynamicType: Clone + Send + Sync> + DeserializeOwned + Send + Sync + 'static,
{
    /// A controller of a kind that is known at run time only.
    pub fn new_with(fleet: impl Into<Fleet>, config: impl Into<WatchConfig>, dyntype: K::DynamicType) -> Self {
        let fleet = fleet.into();
        let informer = fleet.informer_with(&dyntype, config);
        Self::from_informer(fleet, informer, dyntype)
    }
}

impl MultiClusterController<Object> {
    /// A controller of objects that are kept as compact bytes and decoded on use.
    pub fn compact(fleet: impl Into<Fleet>, config: impl Into<WatchConfig>, resource: Resource) -> Self {
        let fleet = fleet.into();
        let informer = fleet.informer_compact(resource.clone(), config);
        Self::from_informer(fleet, informer, resource)
    }
}

impl<K> MultiClusterController<K>
where
    K: Lookup<DynamicType: Clone + Send + Sync> + Send + Sync + 'static,
{
    fn from_informer(fleet: Fleet, informer: Informer<K>, dyntype: K::DynamicType) -> Self {
        Self {
            fleet,
            informer,
            dyntype,
            name: None,
            config: Config::default(),
            properties: Vec::new(),
            filters: Vec::new(),
            setups: Vec::new(),
            triggers: SelectAll::new(),
            shutdown: Vec::new(),
            force: None,
        }
    }

    /// Names the controller in logs and metrics; its kind if not set.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets how the controller runs.
    #[must_use]
    pub fn with_config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// All objects of the kind.
    pub fn store(&self) -> FleetStore<K> {
        self.informer.store().clone()
    }

    /// The fleet.
    pub fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// Watches a kind whose objects are owned by objects of kind `K`: when one changes, its controlling owner in the same
    /// cluster is reconciled.
    #[must_use]
    pub fn owns<O>(self, config: impl Into<WatchConfig>) -> Self
    where
        K: kube::Resource<DynamicType = <K as Lookup>::DynamicType, Scope: 'static>,
        O: kube::Resource<DynamicType: Default> + DeserializeOwned + Send + Sync + 'static,
    {
        self.owns_with::<O>(&O::DynamicType::default(), config, false)
    }

    /// Like [`MultiClusterController::owns`], but every owner is reconciled, not just the controlling one.
    #[must_use]
    pub fn owns_every<O>(self, config: impl Into<WatchConfig>) -> Self
    where
        K: kube::Resource<DynamicType = <K as Lookup>::DynamicType, Scope: 'static>,
        O: kube::Resource<DynamicType: Default> + DeserializeOwned + Send + Sync + 'static,
    {
        self.owns_with::<O>(&O::DynamicType::default(), config, true)
    }

    /// Like [`MultiClusterController::owns`], for a kind that is known at run time only.
    #[must_use]
    pub fn owns_with<O>(
        self,
        dyntype: &<O as kube::Resource>::DynamicType,
        config: impl Into<WatchConfig>,
        every_owner: bool,
    ) -> Self
    where
        K: kube::Resource<DynamicType = <K as Lookup>::DynamicType, Scope: 'static>,
        O: kube::Resource + DeserializeOwned + Send + Sync + 'static,
    {
        let owners = Owners {
            group: <K as Lookup>::group(&self.dyntype).into_owned(),
            kind: <K as Lookup>::kind(&self.dyntype).into_owned(),
            scope: Scope::of::<K>(),
            every: every_owner,
            store: self.store(),
        };
        let informer = self.fleet.informer_with::<O>(dyntype, config);
        self.source(move |number, intake| {
            Mapped::attach(number, intake.clone(), informer, Box::new(move |key, object| owners.of(key, object)))
        })
    }

    /// Watches another kind: the function says which objects of the same cluster to reconcile when one changes.
    #[must_use]
    pub fn watches<O, I>(
        self,
        config: impl Into<WatchConfig>,
        map: impl Fn(&ClusterName, &O) -> I + Send + Sync + 'static,
    ) -> Self
    where
        O: Lookup<DynamicType: Default> + DeserializeOwned + Send + Sync + 'static,
        I: IntoIterator<Item = ObjectRef<K>>,
    {
        let informer = self.fleet.informer::<O>(config);
        self.watches_informer(informer, map)
    }

    /// Like [`MultiClusterController::watches`], for a kind that is known at run time only.
    #[must_use]
    pub fn watches_with<O, I>(
        self,
        dyntype: &O::DynamicType,
        config: impl Into<WatchConfig>,
        map: impl Fn(&ClusterName, &O) -> I + Send + Sync + 'static,
    ) -> Self
    where
        O: Lookup + DeserializeOwned + Send + Sync + 'static,
        I: IntoIterator<Item = ObjectRef<K>>,
    {
        let informer = self.fleet.informer_with::<O>(dyntype, config);
        self.watches_informer(informer, map)
    }

    /// Like [`MultiClusterController::watches`], for a kind this fleet watches already: see [`Fleet::informer`].
    #[must_use]
    pub fn watches_informer<O, I>(
        self,
        informer: Informer<O>,
        map: impl Fn(&ClusterName, &O) -> I + Send + Sync + 'static,
    ) -> Self
    where
        O: Send + Sync + 'static,
        I: IntoIterator<Item = ObjectRef<K>>,
    {
        let map = move |key: &Key, object: &O| {
            let concerned = map(&key.cluster, object).into_iter();
            concerned.map(|obj| Request::new(key.cluster.clone(), obj).key()).collect()
        };
        self.source(move |number, intake| Mapped::attach(number, intake.clone(), informer, Box::new(map)))
    }

    /// Watches a kind in the clusters of another provider or fleet: the function says which objects of any cluster of
    /// this controller's fleet to reconcile when one changes.
    ///
    /// Nothing is reconciled before everything of that kind is known. Clusters of that fleet that fail are reported and
    /// [waited for](Config::wait_for_failing) for a while, then work begins without them, and what they have counts as soon as they are
    /// there. If all of them fail nothing is known, so nothing is reconciled.
    #[must_use]
    pub fn watches_from<O, I>(
        self,
        fleet: impl Into<Fleet>,
        config: impl Into<WatchConfig>,
        map: impl Fn(&ClusterName, &O) -> I + Send + Sync + 'static,
    ) -> Self
    where
        O: Lookup<DynamicType: Default> + DeserializeOwned + Send + Sync + 'static,
        I: IntoIterator<Item = Request<K>>,
    {
        let fleet = fleet.into();
        let informer = fleet.informer::<O>(config);
        self.watches_informer_from(fleet, informer, map)
    }

    /// Like [`MultiClusterController::watches_from`], for a kind that fleet watches already: see [`Fleet::informer`].
    #[must_use]
    pub fn watches_informer_from<O, I>(
        self,
        fleet: Fleet,
        informer: Informer<O>,
        map: impl Fn(&ClusterName, &O) -> I + Send + Sync + 'static,
    ) -> Self
    where
        O: Send + Sync + 'static,
        I: IntoIterator<Item = Request<K>>,
    {
        let map = move |cluster: &ClusterName, object: &O| {
            map(cluster, object).into_iter().map(|request| request.key()).collect()
        };
        self.source(move |_, intake| Foreign::attach(intake.clone(), fleet, informer, Box::new(map)))
    }

    /// Reconciles what a stream yields. Requests of clusters that the controller does not work on are dropped.
    #[must_use]
    pub fn trigger(mut self, requests: impl Stream<Item = Request<K>> + Send + 'static) -> Self {
        let requests = AssertUnwindSafe(requests).catch_unwind();
        self.triggers.push(requests.map(|request| request.map_err(|panic| panic_message(&*panic))).boxed());
        self
    }

    /// Ignores changes of an object that leave a property as it was; kube's [predicates](kube::runtime::predicates) can be
    /// used. New and deleted objects always count. Given several, all properties must change.
    #[must_use]
    pub fn predicate(mut self, predicate: impl Predicate<K> + Send + Sync + 'static) -> Self {
        self.properties.push(Box::new(move |object| predicate.hash_property(object)));
        self
    }

    /// Works only on some clusters. The function is called once per engagement; the path may not be known by then.
    #[must_use]
    pub fn clusters(mut self, filter: impl Fn(&Cluster) -> bool + Send + Sync + 'static) -> Self {
        self.filters.push(Box::new(filter));
        self
    }

    /// Stops when the future ends: nothing new is started, running reconciles learn of it through [`Context::stop`] and come to their end,
    /// then the stream ends. Those that have not ended after [`Config::shutdown_grace`] are aborted and reported as [`Error::Aborted`].
    ///
    /// [`Error::Aborted`]: crate::Error::Aborted
    #[must_use]
    pub fn graceful_shutdown_on(mut self, trigger: impl Future<Output = ()> + Send + 'static) -> Self {
        self.shutdown.push(trigger.boxed());
        self
    }

    /// Stops on Ctrl-C or SIGTERM. A second signal aborts what runs.
    #[must_use]
    pub fn shutdown_on_signal(mut self) -> Self {
        self.force = Some(asked_to_end().boxed());
        self.graceful_shutdown_on(asked_to_end())
    }

    fn source(mut self, setup: impl FnOnce(usize, &Arc<Intake>) -> Arc<dyn Source> + Send + 'static) -> Self {
        self.setups.push(Box::new(setup));
        self
    }
}

async fn asked_to_end() {
    let interrupted = async {
        if tokio::signal::ctrl_c().await.is_err() {
            futures::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => futures::future::pending::<()>().await,
        }
    };
    #[cfg(not(unix))]
    let terminated = futures::future::pending::<()>();
    tokio::select! {
        () = interrupted => {}
        () = terminated => {}
    }
}
