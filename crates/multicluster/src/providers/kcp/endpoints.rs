//! Fleets behind an object that lists endpoints: the engine of all providers for kcp.
//!
//! ```text
//!   endpoint object ──▶ URLs, one per shard
//!   (a slice, a type)        │ watch <url>/clusters/* for the objects that stand for clusters
//!                            ▼
//!   first one of a cluster that counts ──▶ Engage        last one gone ──▶ Disengage
//! ```

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, ConnectError, Error, Object, Resource};
use carrick_kcp::apis::v1alpha2::ApiBinding;
use carrick_kcp::kinds::VersionedObject;
use carrick_kcp::url::in_endpoint;
use futures::future::BoxFuture;
use futures::stream::{AbortHandle, BoxStream, FuturesUnordered, SelectAll, abortable};
use futures::{FutureExt, StreamExt};
use kube::core::ApiResource;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::engagement::{Engagement, FleetChange, Rules, Stage};
use crate::cluster::Cluster;
use crate::deadline::after;
use crate::endpoint::{ClusterKey, Endpoint};
use crate::event::{FleetEvent, Gone};
use crate::guard::{caught, panic_message};
use crate::name::{ClusterName, EndpointId};
use crate::provider::Provider;

/// How long clusters stay after their endpoint is gone.
pub(super) const GRACE: Duration = Duration::from_secs(5);

type UrlsFn = Arc<dyn Fn(&Value) -> Vec<String> + Send + Sync>;
type RewriteFn = Arc<dyn Fn(&str) -> String + Send + Sync>;
type RulesFn = Arc<dyn Fn() -> Rules + Send + Sync>;
type HookFn = Arc<dyn Fn(Cluster, Object, Stage) -> BoxFuture<'static, ()> + Send + Sync>;

/// What an engine needs, whatever the flavour.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) workspace: Client,
    pub(super) listing: Resource,
    pub(super) name: String,
    pub(super) engaged: Resource,
    /// Whether these are APIBindings, in the newest version that an endpoint serves.
    pub(super) newest: bool,
    pub(super) rules: RulesFn,
    pub(super) rewrite: Option<RewriteFn>,
    pub(super) hook: Option<HookFn>,
    pub(super) grace: Duration,
    /// Whether clusters leave as soon as somebody fires [`Cluster::gone`]: the server will say so later.
    pub(super) may_leave: bool,
}

impl Setup {
    pub(super) fn events(&self) -> BoxStream<'static, FleetEvent> {
        let engine = Engine::new(self.clone());
        futures::stream::unfold(engine, |mut engine| async move {
            let event = engine.next().await?;
            Some((event, engine))
        })
        .boxed()
    }
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workspace, listing, name, .. } = self;
        f.debug_struct("Setup")
            .field("workspace", workspace)
            .field("listing", listing)
            .field("name", name)
            .finish_non_exhaustive()
    }
}

/// Provider of the clusters behind any object that lists virtual-workspace URLs: for endpoint slices of your own.
///
/// The clients must be made from a [`kube::Config`], because the URLs may lead to other hosts.
#[derive(Clone)]
pub struct EndpointObject {
    setup: Setup,
    urls: UrlsFn,
    filter: Arc<dyn Fn(&Value) -> bool + Send + Sync>,
    key: ClusterKey,
}

impl EndpointObject {
    /// The clusters at the URLs in `status.endpoints[].url` of the object of that kind and name, each represented there by objects of
    /// another kind.
    pub fn new(
        workspace: impl Into<Client>,
        kind: &ApiResource,
        name: impl Into<String>,
        engaged: &ApiResource,
    ) -> Self {
        let setup = Setup {
            workspace: workspace.into(),
            listing: resource(kind),
            name: name.into(),
            engaged: resource(engaged),
            newest: false,
            rules: Arc::new(|| super::apiexport::rules(None)),
            rewrite: None,
            hook: None,
            grace: GRACE,
            may_leave: false,
        };
        Self { setup, urls: Arc::new(status_urls), filter: Arc::new(|_| true), key: ClusterKey::KCP }
    }

    /// The same, given the configuration of a client of the object's workspace.
    pub fn from_config(
        config: kube::Config,
        kind: &ApiResource,
        name: impl Into<String>,
        engaged: &ApiResource,
    ) -> Result<Self, ConnectError> {
        Ok(Self::new(Client::try_from(config)?, kind, name, engaged))
    }

    /// How URLs are found in the object.
    #[must_use]
    pub fn urls(mut self, urls: impl Fn(&Value) -> Vec<String> + Send + Sync + 'static) -> Self {
        self.urls = Arc::new(urls);
        self
    }

    /// Which objects at an endpoint make their clusters take part; all, unless said otherwise. Once is enough.
    #[must_use]
    pub fn filter(mut self, filter: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Self {
        self.filter = Arc::new(filter);
        self
    }

    /// How the cluster of an object is found; by annotation `kcp.io/cluster`, unless said otherwise.
    #[must_use]
    pub fn key(mut self, key: ClusterKey) -> Self {
        self.key = key;
        self
    }

    /// Changes URLs before they are used, for servers that publish addresses that do not lead there from here.
    #[must_use]
    pub fn rewrite_url(mut self, rewrite: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        self.setup.rewrite = Some(Arc::new(rewrite));
        self
    }

    /// How long clusters stay after their endpoint is gone; five seconds, unless said otherwise.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.setup.grace = grace;
        self
    }
}

impl fmt::Debug for EndpointObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.setup.fmt(f)
    }
}

impl Provider for EndpointObject {
    fn events(&self) -> BoxStream<'static, FleetEvent> {
        let Self { urls, filter, key, .. } = self.clone();
        let rules = move || {
            let (urls, filter) = (urls.clone(), filter.clone());
            Rules {
                urls: Box::new(move |object| urls(&object.value())),
                counts: Box::new(move |object, _| filter(&object.value())),
                apis: Box::new(|_| String::new()),
                open_claims: Box::new(|_| String::new()),
                key: key.clone(),
                grace: GRACE,
                meet: false,
            }
        };
        Setup { rules: Arc::new(rules), ..self.setup.clone() }.events()
    }
}

/// How often a new endpoint is asked what it serves. kcp publishes one a moment before it serves it.
const QUESTIONS: u32 = 20;

/// APIBindings in the newest version that an endpoint serves. Of one that does not say, the watch has to find out what is wrong; it uses the
/// version that all of them have.
async fn newest_binding(client: &Client) -> Resource {
    for question in 0..QUESTIONS {
        match tokio::time::timeout(GRACE, client.served::<ApiBinding>()).await {
            Ok(Ok(Some(kind))) => return kind.into(),
            Ok(Ok(None)) => tokio::time::sleep(Duration::from_millis(25 << question.min(5))).await,
            Ok(Err(_)) | Err(_) => break,
        }
    }
    ApiBinding::OLDER.into()
}

/// `status.endpoints[].url`.
fn status_urls(object: &Value) -> Vec<String> {
    let endpoints = object.pointer("/status/endpoints").and_then(Value::as_array).into_iter().flatten();
    endpoints.filter_map(|endpoint| endpoint.get("url")?.as_str()).map(str::to_owned).collect()
}

fn resource(kind: &ApiResource) -> Resource {
    Resource::cluster_wide(&kind.group, &kind.version, &kind.kind, &kind.plural)
}

/// Where a watch event came from.
#[derive(Clone)]
enum Source {
    Listing,
    Endpoint(Arc<str>),
}

struct Engine {
    setup: Setup,
    start: Instant,
    watches: SelectAll<BoxStream<'static, (Source, Event)>>,
    endpoints: HashMap<Arc<str>, AbortHandle>,
    clusters: HashMap<ClusterName, Cluster>,
    engagement: Engagement,
    /// Endpoints whose outage has been reported.
    failing: BTreeSet<Arc<str>>,
    hooks: Option<Hooks>,
    /// Engagements that may be ended from here, by name and epoch.
    leaving: FuturesUnordered<BoxFuture<'static, (ClusterName, u64)>>,
    ready: VecDeque<FleetEvent>,
}

/// Runs hooks one after the other, beside everything else.
struct Hooks {
    queue: mpsc::UnboundedSender<(Cluster, Object, Stage)>,
    _task: JoinSet<()>,
}

impl Hooks {
    fn new(hook: HookFn) -> Self {
        let (queue, mut met) = mpsc::unbounded_channel::<(Cluster, Object, Stage)>();
        let mut task = JoinSet::new();
        task.spawn(async move {
            while let Some((cluster, object, stage)) = met.recv().await {
                let name = cluster.name().clone();
                // Called inside, so that a panic before its first await is caught as well.
                let call = AssertUnwindSafe(async { hook(cluster, object, stage).await });
                if let Err(panic) = call.catch_unwind().await {
                    tracing::warn!(cluster = %name, message = panic_message(&*panic), "A hook panicked.");
                }
            }
        });
        Self { queue, _task: task }
    }
}

impl Engine {
    fn new(setup: Setup) -> Self {
        let options = WatchOptions::fields(format!("metadata.name={}", setup.name));
        let listing = watch(setup.workspace.clone(), setup.listing.clone(), options);
        let mut watches = SelectAll::new();
        watches.push(listing.map(|event| (Source::Listing, event)).boxed());
        let mut rules = Rules { grace: setup.grace, meet: setup.hook.is_some(), ..(setup.rules)() };
        if let Some(rewrite) = setup.rewrite.clone() {
            let published = rules.urls;
            rules.urls = Box::new(move |object| published(object).iter().map(|url| rewrite(url)).collect());
        }
        Self {
            start: Instant::now(),
            watches,
            endpoints: HashMap::new(),
            clusters: HashMap::new(),
            engagement: Engagement::new(rules),
            failing: BTreeSet::new(),
            hooks: setup.hook.clone().map(Hooks::new),
            leaving: FuturesUnordered::new(),
            ready: VecDeque::new(),
            setup,
        }
    }

    async fn next(&mut self) -> Option<FleetEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let look = self.engagement.next_look().map(|at| after(self.start, at));
            let reported = tokio::select! {
                event = self.watches.next() => {
                    let (source, event) = event?;
                    self.hear_caught(source, event)
                }
                Some((name, epoch)) = self.leaving.next() => {
                    self.leave(&name, epoch);
                    Vec::new()
                }
                () = tokio::time::sleep_until(look.unwrap_or(self.start)), if look.is_some() => {
                    self.engagement.on_time(self.start.elapsed())
                }
            };
            for reported in reported {
                match self.report(reported) {
                    Ok(event) => self.ready.extend(event),
                    Err((source, error)) => self.fail(source, error),
                }
            }
        }
    }

    /// Processes an event. Functions of the user may panic over an object: that is reported, the object is passed over, and the rest goes on.
    fn hear_caught(&mut self, source: Source, event: Event) -> Vec<FleetChange> {
        let object = match &event {
            Event::Listed(object) | Event::Applied(object) | Event::Deleted(object) => {
                Some((object.cluster.clone(), object.name.clone(), source.clone()))
            }
            _ => None,
        };
        let received = caught(|| self.receive(source, event));
        // What failed is in words; nobody needs them while all is well.
        let Some((cluster, name, source)) = object.filter(|_| received.is_err() || !self.failing.is_empty()) else {
            return received.unwrap_or_default();
        };
        let (kind, place) = match &source {
            Source::Listing => (&self.setup.listing.kind, self.setup.workspace.url()),
            Source::Endpoint(url) => (&self.setup.engaged.kind, &**url),
        };
        let what: Arc<str> = format!("{kind} {name} of {cluster:?} at {place}").into();
        match received {
            Ok(reported) => {
                self.recover(&what);
                reported
            }
            Err(message) => {
                let problem = format!("a function that judges it panicked: {message}");
                let error = Error::Request { request: format!("to follow {what}"), problem };
                self.fail(what, error);
                Vec::new()
            }
        }
    }

    fn receive(&mut self, source: Source, event: Event) -> Vec<FleetChange> {
        match (source, event) {
            (Source::Listing, Event::Failing(error)) => {
                let error = self.explain(error);
                self.fail(self.setup.workspace.url().into(), error);
                Vec::new()
            }
            (Source::Endpoint(url), Event::Failing(error)) => {
                // An endpoint that is not listed any more may well be gone.
                if self.engagement.is_listed(&url) {
                    self.fail(url, error);
                }
                Vec::new()
            }
            (source, Event::Recovered) => {
                let source = match source {
                    Source::Listing => self.setup.workspace.url().into(),
                    Source::Endpoint(url) => url,
                };
                self.recover(&source);
                Vec::new()
            }
            (Source::Listing, event) => self.engagement.on_slice(event, self.start.elapsed()),
            (Source::Endpoint(url), event) => self.engagement.on_binding(&url, event),
        }
    }

    fn fail(&mut self, source: Arc<str>, error: Error) {
        self.failing.insert(source.clone());
        self.ready.push_back(FleetEvent::Failing { source, error });
    }

    fn recover(&mut self, source: &Arc<str>) {
        if self.failing.remove(source) {
            self.ready.push_back(FleetEvent::Recovered { source: source.clone() });
        }
    }

    /// Turns names into clients, and follows endpoints with watches.
    fn report(&mut self, reported: FleetChange) -> Result<Option<FleetEvent>, (Arc<str>, Error)> {
        Ok(match reported {
            FleetChange::Up(url) => {
                let client = self.client(&url, "*")?;
                let source = Source::Endpoint(url.clone());
                let (at, kind, newest) = (client.clone(), self.setup.engaged.clone(), self.setup.newest);
                let kind = async move { if newest { newest_binding(&at).await } else { kind } };
                let at = client.clone();
                let objects =
                    futures::stream::once(kind).flat_map(move |kind| watch(at.clone(), kind, WatchOptions::default()));
                let (objects, handle) = abortable(objects.map(move |event| (source.clone(), event)));
                self.watches.push(objects.boxed());
                self.endpoints.insert(url.clone(), handle);
                Some(FleetEvent::EndpointUp(Endpoint::new(url, client, ClusterKey::KCP)))
            }
            FleetChange::Down(url) => {
                self.recover(&url);
                self.endpoints.remove(&url).map(|handle| {
                    handle.abort();
                    FleetEvent::EndpointDown(url.into())
                })
            }
            FleetChange::Engaged { cluster, endpoint, path } => {
                let Ok(name) = ClusterName::new(cluster) else { return Ok(None) };
                let client = self.client(&endpoint, &name)?;
                let engaged = Cluster::new(name.clone(), EndpointId::new(endpoint), client);
                let engaged = path.into_iter().fold(engaged, Cluster::with_path);
                if self.setup.may_leave {
                    let (gone, left) = (engaged.gone().cancelled_owned(), (name.clone(), engaged.epoch()));
                    self.leaving.push(gone.map(|()| left).boxed());
                }
                self.clusters.insert(name, engaged.clone());
                Some(FleetEvent::Engage(engaged))
            }
            FleetChange::Path { cluster, path } => {
                ClusterName::new(cluster).ok().map(|name| FleetEvent::Path { name, path })
            }
            FleetChange::ApisChanged { cluster } => {
                ClusterName::new(cluster).ok().map(|name| FleetEvent::ApisChanged { name })
            }
            FleetChange::ClaimsOpen { cluster, claims } => {
                ClusterName::new(cluster).ok().map(|name| FleetEvent::ClaimsOpen { name, claims })
            }
            FleetChange::Disengaged { cluster, why } => self
                .clusters
                .remove(&*cluster)
                .map(|cluster| FleetEvent::Disengage { name: cluster.name().clone(), epoch: cluster.epoch(), why }),
            FleetChange::Met { cluster, object, stage } => {
                if let (Some(hooks), Some(cluster)) = (&self.hooks, self.clusters.get(&*cluster)) {
                    // It ends only with the engine.
                    let _ = hooks.queue.send((cluster.clone(), object, stage));
                }
                None
            }
            FleetChange::Waiting(lacks) => {
                let Setup { listing, name, workspace, .. } = &self.setup;
                let source = format!("{} {name} at {}", listing.kind, workspace.url()).into();
                Some(FleetEvent::Waiting { source, lacks })
            }
            FleetChange::Synced => Some(FleetEvent::Synced),
        })
    }

    /// Somebody says that a cluster has left.
    fn leave(&mut self, name: &ClusterName, epoch: u64) {
        if self.clusters.get(name).is_some_and(|cluster| cluster.epoch() == epoch) {
            self.clusters.remove(name);
            self.ready.push_back(FleetEvent::Disengage { name: name.clone(), epoch, why: Gone::Removed });
        }
    }

    fn client(&self, endpoint: &Arc<str>, cluster: &str) -> Result<Client, (Arc<str>, Error)> {
        self.setup.workspace.at_published_url(&in_endpoint(endpoint, cluster)).map_err(|problem| {
            let request = format!("requests to {endpoint}");
            (endpoint.clone(), Error::Request { request, problem: problem.to_string() })
        })
    }

    /// The usual mistake is a kubeconfig that points at what the slice lists, instead of at where the slice is.
    fn explain(&self, error: Error) -> Error {
        let url = self.setup.workspace.url();
        if !url.contains("/services/") {
            return error;
        }
        let Setup { listing, name, .. } = &self.setup;
        let problem = format!(
            "the server URL is that of a virtual workspace; it must be that of the workspace with {} {name}, such as \
             https://<host>/clusters/root:<workspace> ({error})",
            listing.kind
        );
        Error::Request { request: format!("requests for {} to {url}", listing.plural), problem }
    }
}
