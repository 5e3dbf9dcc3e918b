//! Clusters that objects of a hub cluster represent.
//!
//! ```text
//!   watch of a kind on the hub ──▶ ready? ──▶ fetch the kubeconfig ──▶ endpoint and cluster
//!                                                │ fails                ▲ another server: engaged again
//!                                                ▼                      │
//!                                             Failing, tried again ─────┘
//! ```

mod progress;

use std::collections::VecDeque;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, Object, Resource, Server};
use futures::future::BoxFuture;
use futures::stream::{BoxStream, FuturesUnordered};
use futures::{FutureExt, StreamExt};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::engagements::Engagements;
use super::known_objects::{KnownObjects, ObjectId};
use super::servers::{Servers, unusable};
use crate::deadline::after;
use crate::endpoint::{ClusterKey, Endpoint};
use crate::event::{FleetEvent, Gone};
use crate::guard::{caught, panic_message};
use crate::name::{ClusterName, EndpointId};
use crate::provider::Provider;
use progress::{Command, Progress};

/// How long it may take to fetch one kubeconfig.
const FETCH_TIMEOUT: Duration = Duration::from_secs(30);

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type ReadyFn<K> = Arc<dyn Fn(&K) -> bool + Send + Sync>;
type KubeconfigFn<K> = Arc<dyn Fn(K, kube::Client) -> BoxFuture<'static, Result<String, BoxError>> + Send + Sync>;

/// Every object of a kind on a hub cluster represents a cluster, whose kubeconfig a function fetches.
///
/// Clusters are called `<namespace>/<name>` after their objects, or just by name. A kubeconfig that cannot be fetched or used affects no other
/// cluster: it is reported with [`FleetEvent::Failing`] and tried again, and so is an object for which a function panics. An object that was
/// ready once stays engaged until it is deleted. A kubeconfig for another server engages the cluster again; other credentials for the same server,
/// such as a token that is minted for every kubeconfig, are used from then on without a new list.
///
/// ```
/// # use carrick_multicluster::providers::FromObjects;
/// # use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
/// # fn provider(hub: kube::Client) -> FromObjects<DynamicObject> {
/// let shoots = ApiResource::from_gvk(&GroupVersionKind::gvk("core.gardener.cloud", "v1beta1", "Shoot"));
/// FromObjects::new_with(hub, &shoots, |shoot: DynamicObject, _hub| async move {
///     let kubeconfig = shoot.data["spec"]["kubeconfig"].as_str().ok_or("it has no kubeconfig yet")?;
///     Ok(kubeconfig.to_owned())
/// })
/// .ready(|shoot: &DynamicObject| shoot.data["status"]["lastOperation"]["state"] == "Succeeded")
/// # }
/// ```
pub struct FromObjects<K> {
    hub: Client,
    resource: Resource,
    options: WatchOptions,
    ready: ReadyFn<K>,
    kubeconfig: KubeconfigFn<K>,
    refresh: Option<Duration>,
    bare_names: bool,
}

impl<K: kube::Resource<DynamicType = ()> + DeserializeOwned + 'static> FromObjects<K> {
    /// All objects of a kind, each with its kubeconfig as YAML.
    pub fn new<F>(hub: impl Into<Client>, kubeconfig: impl Fn(K, kube::Client) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<String, BoxError>> + Send + 'static,
    {
        Self::new_with(hub, &(), kubeconfig)
    }
}

impl<K: kube::Resource + DeserializeOwned + 'static> FromObjects<K> {
    /// All objects of a kind that is known only at run time.
    pub fn new_with<F>(
        hub: impl Into<Client>,
        dyntype: &K::DynamicType,
        kubeconfig: impl Fn(K, kube::Client) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<String, BoxError>> + Send + 'static,
    {
        let (group, version, kind) = (K::group(dyntype), K::version(dyntype), K::kind(dyntype));
        Self {
            hub: hub.into(),
            resource: Resource::namespaced(&group, &version, &kind, &K::plural(dyntype)),
            options: WatchOptions::default(),
            ready: Arc::new(|_| true),
            kubeconfig: Arc::new(move |object, hub| kubeconfig(object, hub).boxed()),
            refresh: None,
            bare_names: false,
        }
    }

    /// Only objects of this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.options.namespace = Some(namespace.to_owned());
        self
    }

    /// Only objects with these labels.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.options.select.label_selector = Some(selector.into());
        self
    }

    /// Which objects represent clusters that can be used already; all of them unless said otherwise.
    #[must_use]
    pub fn ready(mut self, ready: impl Fn(&K) -> bool + Send + Sync + 'static) -> Self {
        self.ready = Arc::new(ready);
        self
    }

    /// Fetches kubeconfigs again after this long, for kubeconfigs that change without their objects.
    #[must_use]
    pub fn refresh(mut self, interval: Duration) -> Self {
        self.refresh = Some(interval.max(Duration::from_secs(1)));
        self
    }

    /// Calls clusters by the names of their objects alone. For objects of one namespace only.
    #[must_use]
    pub fn bare_names(mut self) -> Self {
        self.bare_names = true;
        self
    }
}

impl<K> Clone for FromObjects<K> {
    fn clone(&self) -> Self {
        Self {
            hub: self.hub.clone(),
            resource: self.resource.clone(),
            options: self.options.clone(),
            ready: self.ready.clone(),
            kubeconfig: self.kubeconfig.clone(),
            refresh: self.refresh,
            bare_names: self.bare_names,
        }
    }
}

impl<K> fmt::Debug for FromObjects<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromObjects").field("hub", &self.hub).field("resource", &self.resource).finish_non_exhaustive()
    }
}

impl<K: DeserializeOwned + Send + 'static> Provider for FromObjects<K> {
    fn events(&self) -> BoxStream<'static, FleetEvent> {
        let objects = watch(self.hub.clone(), self.resource.clone(), self.options.clone()).boxed();
        let events = Events {
            provider: self.clone(),
            start: Instant::now(),
            objects,
            fetches: FuturesUnordered::new(),
            known: KnownObjects::default(),
            progress: Progress::new(self.refresh),
            engagements: Engagements::default(),
            servers: Servers::default(),
            pending: VecDeque::new(),
        };
        futures::stream::unfold(events, |mut events| async move {
            let event = events.next().await?;
            Some((event, events))
        })
        .boxed()
    }
}

/// The end of a fetch: which object, which fetch, and the kubeconfig or why there is none.
type Fetched = (ObjectId, u64, Result<Arc<str>, String>);

/// What comes next on the stream of the provider.
struct Events<K> {
    provider: FromObjects<K>,
    start: Instant,
    objects: BoxStream<'static, Event>,
    fetches: FuturesUnordered<BoxFuture<'static, Fetched>>,
    known: KnownObjects,
    progress: Progress,
    engagements: Engagements,
    servers: Servers,
    pending: VecDeque<FleetEvent>,
}

impl<K: DeserializeOwned + Send + 'static> Events<K> {
    async fn next(&mut self) -> Option<FleetEvent> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            let due = self.progress.next_due().map(|at| after(self.start, at));
            let commands = tokio::select! {
                event = self.objects.next() => self.on_event(event?),
                Some((id, number, fetched)) = self.fetches.next() => {
                    self.progress.on_fetched(&id, number, fetched, self.start.elapsed())
                }
                () = sleep_until(due) => self.progress.on_time(self.start.elapsed()),
            };
            for command in commands {
                self.execute(command);
            }
        }
    }

    fn on_event(&mut self, event: Event) -> Vec<Command> {
        let source = || format!("{} of {}", self.provider.resource, self.provider.hub.url()).into();
        match event {
            Event::Failing(error) => self.pending.push_back(FleetEvent::Failing { source: source(), error }),
            Event::Recovered => self.pending.push_back(FleetEvent::Recovered { source: source() }),
            event => {
                let ready = self.provider.ready.clone();
                // An object that cannot be read, or makes the function panic, counts as ready: the fetch then reports what is wrong with it.
                let ready = |object: &Object| {
                    let answer = caught(|| object.decode::<K>().map(|object| ready(&object)));
                    !matches!(answer, Ok(Ok(false)))
                };
                let changes = self.known.apply(event);
                return changes.into_iter().flat_map(|change| self.progress.on_change(change, ready)).collect();
            }
        }
        Vec::new()
    }

    fn execute(&mut self, command: Command) {
        match command {
            Command::FetchKubeconfig { id, number, object } => {
                let fetch = fetch(&self.provider, &object);
                self.fetches.push(async move { (id, number, fetch.await) }.boxed());
            }
            Command::Engage { id, kubeconfig } => {
                let Some(name) = self.name(&id) else { return };
                match self.servers.open(&name, &kubeconfig) {
                    // The same server with other credentials, which are in use by now.
                    Ok(None) => {}
                    Ok(Some(server)) => {
                        let (client, endpoint) = (server.client(), EndpointId::new(name.to_arc()));
                        let key = ClusterKey::Fixed(name.clone());
                        let up = Endpoint { id: endpoint.clone(), client: client.clone(), key };
                        self.pending.push_back(FleetEvent::EndpointUp(up));
                        let engaged = self.engagements.engage(name, endpoint, client, None);
                        self.pending.push_back(engaged);
                    }
                    // Checked before, unless a file it names has changed in between.
                    Err(error) => {
                        let now = self.start.elapsed();
                        if let Some(command) = self.progress.on_unusable(&id, error.to_string(), now) {
                            self.execute(command);
                        }
                    }
                }
            }
            Command::Disengage { id } => {
                let Some(name) = self.name(&id) else { return };
                self.servers.forget(&name);
                if let Some(event) = self.engagements.disengage(&name, Gone::Removed) {
                    self.pending.push_back(event);
                    self.pending.push_back(FleetEvent::EndpointDown(EndpointId::new(name.to_arc())));
                }
            }
            Command::ReportFailing { id, problem } => self.report_failing(&id, &problem),
            Command::ReportRecovered { id } => {
                self.pending.push_back(FleetEvent::Recovered { source: self.description(&id) });
            }
            Command::ReportSynced => self.pending.push_back(FleetEvent::Synced),
        }
    }

    fn report_failing(&mut self, id: &ObjectId, problem: &str) {
        let source = self.description(id);
        let error = unusable(&source, &problem);
        self.pending.push_back(FleetEvent::Failing { source, error });
    }

    fn name(&self, (namespace, name): &ObjectId) -> Option<ClusterName> {
        let bare = self.provider.bare_names || namespace.is_empty();
        if bare { ClusterName::new(name.clone()).ok() } else { ClusterName::new(format!("{namespace}/{name}")).ok() }
    }

    fn description(&self, (namespace, name): &ObjectId) -> Arc<str> {
        let kind = &self.provider.resource.kind;
        if namespace.is_empty() { format!("{kind} {name}").into() } else { format!("{kind} {namespace}/{name}").into() }
    }
}

/// Fetches the kubeconfig of an object and checks whether it can be used.
fn fetch<K: DeserializeOwned + Send + 'static>(
    provider: &FromObjects<K>,
    object: &Object,
) -> impl Future<Output = Result<Arc<str>, String>> + Send + 'static {
    let (ready, kubeconfig, hub) = (provider.ready.clone(), provider.kubeconfig.clone(), provider.hub.kube());
    let object = caught(|| object.decode::<K>().map_err(|error| format!("cannot be read: {error}")));
    async move {
        let object = object.map_err(|message| format!("cannot be read: its decoder panicked: {message}"))??;
        caught(|| ready(&object))
            .map_err(|message| format!("the function that decides whether it is ready panicked: {message}"))?;
        // Called inside, so that a panic before its first await is caught as well.
        let fetch = AssertUnwindSafe(async move { kubeconfig(object, hub).await }).catch_unwind();
        let answer = tokio::time::timeout(FETCH_TIMEOUT, fetch).await;
        let answer = answer.map_err(|_| format!("no kubeconfig within {} s", FETCH_TIMEOUT.as_secs()))?;
        let answer = answer.map_err(|panic| {
            format!("the function that fetches its kubeconfig panicked: {}", panic_message(&*panic))
        })?;
        let kubeconfig = answer.map_err(|error| error.to_string())?;
        Server::from_kubeconfig_yaml(&kubeconfig).map_err(|error| error.to_string())?;
        Ok(kubeconfig.into())
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => futures::future::pending().await,
    }
}
