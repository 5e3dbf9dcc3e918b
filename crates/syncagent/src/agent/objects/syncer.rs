//! One syncer: all objects of one PublishedResource.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, Object};
use carrick_multicluster::{ClusterKey, ClusterName, EndpointId, FleetStore, Key, Queue, QueueConfig};
use futures::StreamExt;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch as channel};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::execute::Namespaces;
use super::fleet::Fleet;
use super::kinds::{Kinds, resource};
use super::related::{SharedInterest, owner, watched};
use super::states::States;
use super::{CONTROLLER, Context, copies, reconcile};
use crate::agent::backoff::Backoff;
use crate::agent::health::Part;
use crate::agent::metrics::Outcome;
use crate::api::{AGENT_NAME, Origin};
use crate::decide::{Next, Side};
use crate::rules::Rules;
use crate::rules::related::{Gvr, RelatedWatch};

/// How many objects of one PublishedResource are worked on at once.
const WORKERS: usize = 32;
/// When an object is looked at again although no watch reported anything.
const REQUEUE: Duration = Duration::from_secs(5);
/// How long changes of consumers' APIs are collected before objects are listed anew.
const NEW_APIS: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_mins(1);

/// A running syncer.
pub(super) struct Syncer {
    shared: Arc<Shared>,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

/// What the tasks of a syncer share.
pub(super) struct Shared {
    pub context: Arc<Context>,
    pub states: Arc<States>,
    pub fleet: Fleet,
    pub sources: FleetStore<Object>,
    pub copies: FleetStore<Object>,
    pub kinds: Kinds,
    pub interest: SharedInterest,
    pub namespaces: Namespaces,
    /// Wakes whoever waits for a cache to catch up.
    pub seen: Notify,
    /// Workspace paths by cluster.
    pub paths: Mutex<HashMap<ClusterName, String>>,
    /// What was said last about each object that fails, so that it is said once.
    told: Mutex<HashMap<Key, String>>,
    rules: Mutex<Arc<Rules>>,
    queue: Queue<Key>,
    /// Endpoint of each cluster, and the client for it.
    homes: Mutex<HashMap<Arc<str>, Home>>,
}

/// Where a cluster is served.
struct Home {
    endpoint: Arc<str>,
    client: Client,
}

impl Syncer {
    /// Starts watches and workers.
    pub fn start(
        context: Arc<Context>,
        states: Arc<States>,
        fleet: Fleet,
        rules: Arc<Rules>,
        stop: &CancellationToken,
    ) -> Self {
        let shared = Arc::new(Shared {
            context,
            states,
            fleet,
            sources: FleetStore::compact(),
            copies: copies::store(),
            kinds: Kinds::default(),
            interest: SharedInterest::default(),
            namespaces: Namespaces::default(),
            seen: Notify::new(),
            paths: Mutex::default(),
            told: Mutex::default(),
            queue: Queue::new(QueueConfig { longest_retry: LONGEST_RETRY, ..QueueConfig::default() }),
            homes: Mutex::default(),
            rules: Mutex::new(rules),
        });
        let stop = stop.child_token();
        let mut tasks = JoinSet::new();
        let (synced, ready) = channel::channel(false);
        tasks.spawn(until(stop.clone(), watch_copies(shared.clone(), synced)));
        tasks.spawn(until(stop.clone(), watch_endpoints(shared.clone())));
        for gvr in watched(&shared.rules().related, Origin::Service) {
            let client = shared.context.local.clone();
            tasks.spawn(until(stop.clone(), watch_related(shared.clone(), client, Side::Service, gvr)));
        }
        for _ in 0..WORKERS {
            tasks.spawn(work(shared.clone(), ready.clone(), stop.clone()));
        }
        Self { shared, stop, tasks }
    }

    /// Whether these rules can be swapped in: what is watched stays the same.
    pub fn fits(&self, rules: &Rules) -> bool {
        let old = self.shared.rules();
        let same_related = |origin| watched(&old.related, origin) == watched(&rules.related, origin);
        old.local == rules.local
            && old.remote == rules.remote
            && same_related(Origin::Kcp)
            && same_related(Origin::Service)
    }

    /// Swaps the rules and looks at every object again.
    pub fn set_rules(&self, rules: &Arc<Rules>) {
        if Arc::ptr_eq(&self.shared.rules(), rules) {
            return;
        }
        *self.shared.rules.lock() = rules.clone();
        for (key, _) in self.shared.sources.list_all() {
            self.shared.queue.add(key);
        }
    }

    /// Stops watching and lets running work come to its end.
    pub async fn stop(mut self) {
        self.stop.cancel();
        self.shared.queue.close();
        while self.tasks.join_next().await.is_some() {}
    }
}

impl Shared {
    /// The rules of this moment.
    pub fn rules(&self) -> Arc<Rules> {
        self.rules.lock().clone()
    }

    /// A client for the workspace of a cluster; none while no endpoint serves it.
    pub fn client(&self, cluster: &str) -> Option<Client> {
        self.homes.lock().get(cluster).map(|home| home.client.clone())
    }

    /// Takes note of the endpoint that serves a cluster.
    fn settle(&self, cluster: &Arc<str>, endpoint: &Arc<str>) {
        let mut homes = self.homes.lock();
        if homes.get(cluster).is_some_and(|home| home.endpoint == *endpoint) {
            return;
        }
        match self.fleet.client(endpoint, cluster) {
            Ok(client) => drop(homes.insert(cluster.clone(), Home { endpoint: endpoint.clone(), client })),
            Err(error) => tracing::error!(cluster = &**cluster, %error, "Cannot reach a workspace."),
        }
    }
}

/// Runs a task until told to stop.
async fn until(stop: CancellationToken, task: impl Future<Output = ()>) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = task => {}
    }
}

/// Feeds the store of copies and queues the sources of changed copies.
async fn watch_copies(shared: Arc<Shared>, synced: channel::Sender<bool>) {
    let rules = shared.rules();
    let part = shared.context.health.part(format!("copies of PublishedResource {}", rules.name));
    let options = WatchOptions::labels(format!("{AGENT_NAME}={}", rules.agent_name));
    let mut events = pin!(watch(shared.context.local.clone(), resource(&rules.local), options));
    let endpoint = EndpointId::new(copies::SERVICE);
    let Ok(service) = ClusterName::new(copies::SERVICE) else { return };
    let service = ClusterKey::Fixed(service);
    while let Some(event) = events.next().await {
        note(&part, &event, "the service cluster");
        for update in shared.copies.apply(&endpoint, &service, event).updates {
            if let Some(source) = copies::source_of(&update.change.object().value()) {
                shared.queue.add(source);
            }
        }
        shared.seen.notify_waiters();
        if shared.copies.is_synced(&endpoint) {
            synced.send_replace(true);
        }
    }
}

/// Keeps one watch of the sources, and of related kinds whose truth is in kcp, for every endpoint.
async fn watch_endpoints(shared: Arc<Shared>) {
    let mut news = shared.fleet.subscribe();
    let mut running: HashMap<Arc<str>, JoinSet<()>> = HashMap::new();
    let (mut joined, mut apis) = (0, 0);
    let mut refresh = None;
    loop {
        let endpoints = news.borrow_and_update().clone();
        running.retain(|url, _| {
            let stays = endpoints.urls.contains(url);
            if !stays {
                shared.sources.forget_endpoint(&url.clone().into());
                shared.homes.lock().retain(|_, home| home.endpoint != *url);
            }
            stays
        });
        // A workspace that has just joined may be the first to serve the API: do not wait for the next attempt.
        if std::mem::replace(&mut joined, endpoints.joined) != endpoints.joined {
            running.retain(|url, _| shared.sources.is_synced(&url.clone().into()));
        }
        // kcp goes on serving a watch under the schema it began with, so a new schema needs a new list and watch.
        if std::mem::replace(&mut apis, endpoints.apis) != endpoints.apis {
            refresh = Some(Instant::now() + NEW_APIS);
        }
        for url in &endpoints.urls {
            running.entry(url.clone()).or_insert_with(|| watch_endpoint(&shared, url));
        }
        tokio::select! {
            changed = news.changed() => if changed.is_err() { return },
            () = tokio::time::sleep_until(refresh.unwrap_or_else(Instant::now)), if refresh.is_some() => {
                refresh = None;
                running.clear();
            }
        }
    }
}

fn watch_endpoint(shared: &Arc<Shared>, url: &Arc<str>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    match shared.fleet.client(url, "*") {
        Ok(client) => {
            for gvr in watched(&shared.rules().related, Origin::Kcp) {
                tasks.spawn(watch_related(shared.clone(), client.clone(), Side::Kcp, gvr));
            }
            tasks.spawn(watch_sources(shared.clone(), client, url.clone()));
        }
        Err(error) => tracing::error!(endpoint = &**url, %error, "Cannot use an endpoint of the APIExport."),
    }
    tasks
}

/// Feeds the store of sources and queues changed ones.
async fn watch_sources(shared: Arc<Shared>, client: Client, endpoint: Arc<str>) {
    let rules = shared.rules();
    let part = shared.context.health.part(format!("objects of PublishedResource {} at {endpoint}", rules.name));
    // Virtual workspaces of some kcp versions never finish a streaming list.
    let options = WatchOptions { streaming_lists: false, ..WatchOptions::default() };
    let mut events = pin!(watch(client, resource(&rules.remote), options));
    let id = EndpointId::new(endpoint.clone());
    while let Some(event) = events.next().await {
        note(&part, &event, "consumers' workspaces");
        if let Event::Listed(object) | Event::Applied(object) = &event {
            shared.settle(&object.cluster, &endpoint);
        }
        for update in shared.sources.apply(&id, &ClusterKey::KCP, event).updates {
            shared.queue.add(update.key);
        }
        shared.seen.notify_waiters();
    }
}

/// Queues primaries whose related objects change on their origin side.
async fn watch_related(shared: Arc<Shared>, client: Client, side: Side, gvr: Gvr) {
    let mut backoff = Backoff::for_servers();
    let kind = loop {
        match shared.kinds.find(side, &client, &gvr).await {
            Ok(Some(kind)) => break kind,
            Ok(None) => {}
            Err(error) => tracing::debug!(resource = gvr.resource, %error, "Cannot look up a related resource."),
        }
        tokio::time::sleep(backoff.pause()).await;
    };
    let options = WatchOptions { streaming_lists: side == Side::Service, ..WatchOptions::default() };
    let mut events = pin!(watch(client, resource(&kind), options));
    while let Some(event) = events.next().await {
        match event {
            Event::Listed(object) | Event::Applied(object) | Event::Deleted(object) => {
                related_changed(&shared, side, &gvr, &object);
            }
            Event::Failing(error) => {
                tracing::warn!(resource = gvr.resource, %error, "Cannot watch related objects, changes arrive late until this works…");
            }
            Event::Recovered => tracing::info!(resource = gvr.resource, "Watching related objects again."),
            Event::Begin | Event::Synced => {}
        }
    }
}

fn related_changed(shared: &Shared, side: Side, gvr: &Gvr, object: &Object) {
    for primary in shared.interest.primaries(gvr, object) {
        shared.queue.add(primary);
    }
    let rules = shared.rules();
    let origin = if side == Side::Kcp { Origin::Kcp } else { Origin::Service };
    for related in rules.related.iter().filter(|r| r.origin == origin && r.source == *gvr) {
        match (&related.watch, side) {
            (None, _) => {}
            (Some(RelatedWatch::ByOwner), Side::Kcp) => {
                let name = owner(&object.value(), &rules.remote.group, &rules.remote.kind);
                if let (Some(name), Ok(cluster)) = (name, ClusterName::new(object.cluster.clone())) {
                    shared.queue.add(Key::new(cluster, object.namespace.clone(), name));
                }
            }
            (Some(RelatedWatch::ByOwner), Side::Service) => {
                let name = owner(&object.value(), &rules.local.group, &rules.local.kind);
                let copy = name.and_then(|name| shared.copies.get(copies::SERVICE, &object.namespace, &name));
                if let Some(source) = copy.and_then(|copy| copies::source_of(&copy.value())) {
                    shared.queue.add(source);
                }
            }
            (Some(RelatedWatch::BySelector(selector)), Side::Kcp) => {
                let Ok(cluster) = ClusterName::new(object.cluster.clone()) else { continue };
                for (key, source) in shared.sources.entries(&cluster) {
                    if selector.matches(&source.labels()) {
                        shared.queue.add(key);
                    }
                }
            }
            (Some(RelatedWatch::BySelector(selector)), Side::Service) => {
                for copy in shared.copies.list(copies::SERVICE).iter().filter(|copy| selector.matches(&copy.labels())) {
                    if let Some(source) = copies::source_of(&copy.value()) {
                        shared.queue.add(source);
                    }
                }
            }
        }
    }
}

/// Says once that a watch fails, and once that it works again.
fn note(part: &Part, event: &Event, place: &str) {
    match event {
        Event::Failing(error) if error.is_not_found() => part.waits(&format!("the API is not served in {place} yet")),
        Event::Failing(error) => part.fails(error),
        Event::Synced | Event::Recovered => part.works(),
        _ => {}
    }
}

/// Works on one object after the other, once all copies are known.
async fn work(shared: Arc<Shared>, mut ready: channel::Receiver<bool>, stop: CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => return,
        known = ready.wait_for(|ready| *ready) => if known.is_err() { return },
    }
    while let Some(lease) = shared.queue.next().await {
        let request = lease.key().clone();
        match reconcile::reconcile(&shared, &request).await {
            Ok(next) => {
                shared.context.metrics.reconciled(CONTROLLER, Outcome::Success);
                shared.told.lock().remove(&request);
                shared.queue.forget(&request);
                drop(lease);
                match next {
                    Next::OnChange => {}
                    Next::Soon => shared.queue.add_after(request, REQUEUE),
                    Next::Now => shared.queue.add(request),
                }
            }
            Err(error) => {
                let pause = lease.retry();
                if error.is_race() {
                    tracing::debug!(%request, %error, "Somebody else was faster, trying again.");
                    continue;
                }
                shared.context.metrics.reconciled(CONTROLLER, Outcome::Error);
                let text = error.to_string();
                if shared.told.lock().insert(request.clone(), text.clone()).as_ref() == Some(&text) {
                    tracing::debug!(object = %request, %error, retry = ?pause, "Failed to process object again.");
                } else {
                    tracing::error!(object = %request, %error, retry = ?pause, "Failed to process object.");
                }
            }
        }
    }
}
