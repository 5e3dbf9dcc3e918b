//! One syncer: all objects of one PublishedResource.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, Object, Resource};
use carrick_multicluster::{
    Action, ClusterName, Config, Context as Reconcile, EndpointId, FleetEvent, FleetStore, Informer, Key,
    MultiClusterController, Request, WatchState,
};
use futures::{Stream, StreamExt};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::execute::Namespaces;
use super::fleet::Fleets;
use super::kinds::{Kinds, resource};
use super::primaries::AllPrimaries;
use super::reconcile::ReconcileError;
use super::related::{SharedInterest, owner, watched};
use super::states::States;
use super::uses::Told;
use super::{CONTROLLER, Context, copies, reconcile, report};
use crate::agent::backoff::Backoff;
use crate::agent::health::Part;
use crate::api::{AGENT_NAME, Origin};
use crate::decide::{Next, Other, Place, Record, Side};
use crate::rules::metadata::SourceKey;
use crate::rules::related::{Gvr, RelatedWatch};
use crate::rules::{Duty, Rules};

/// How many objects of one PublishedResource are worked on at once.
const WORKERS: usize = 32;
/// When an object is looked at again although no watch reported anything.
const REQUEUE: Duration = Duration::from_secs(5);
/// How long changes of consumers' APIs are collected before related objects are listed anew.
const NEW_APIS: Duration = Duration::from_secs(1);
const FIRST_RETRY: Duration = Duration::from_millis(5);
const LONGEST_RETRY: Duration = Duration::from_mins(1);
/// How long running work may take to come to its end.
const GRACE: Duration = Duration::from_secs(30);

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
    pub sources: FleetStore<Object>,
    pub copies: FleetStore<Object>,
    /// Namespaces in consumers' workspaces, if the rules filter by them.
    pub consumer_namespaces: Option<FleetStore<Object>>,
    pub kinds: Kinds,
    pub interest: SharedInterest,
    pub primaries: Arc<AllPrimaries>,
    pub fleets: Fleets,
    pub namespaces: Namespaces,
    /// Workspace paths by cluster.
    pub paths: Mutex<HashMap<ClusterName, String>>,
    /// Objects that were let go.
    let_go: Mutex<HashSet<Key>>,
    /// Sources that do not exist although they have copies.
    orphaned: Mutex<HashSet<Key>>,
    rules: Mutex<Arc<Rules>>,
    /// Objects to look at although they have not changed themselves.
    looks: mpsc::UnboundedSender<Key>,
}

impl Syncer {
    /// Starts watches and workers.
    pub fn start(
        context: Arc<Context>,
        states: Arc<States>,
        fleets: &Fleets,
        primaries: Arc<AllPrimaries>,
        rules: Arc<Rules>,
        stop: &CancellationToken,
    ) -> Self {
        let remote = resource(&rules.remote);
        // Virtual workspaces of some kcp versions never finish a streaming list.
        let paged = WatchOptions { streaming_lists: false, ..WatchOptions::default() };
        let sources = fleets.consumers.informer_compact(remote.clone(), paged.clone());
        let labelled = WatchOptions::labels(format!("{AGENT_NAME}={}", rules.agent_name));
        let service = if rules.duty == Duty::LetGoBlindly { &fleets.nowhere } else { &fleets.service };
        let copies = service.informer_compact(resource(&rules.local), labelled);
        copies::index(copies.store());
        primaries.add(&rules.name, &rules.remote, sources.store().clone());
        let spaces = rules.filters_by_namespace().then(|| {
            let namespaces = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
            fleets.consumers.informer_compact(namespaces, paged.clone())
        });
        let (looks, to_look_at) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            context,
            states,
            sources: sources.store().clone(),
            copies: copies.store().clone(),
            consumer_namespaces: spaces.as_ref().map(|informer| informer.store().clone()),
            kinds: Kinds::default(),
            interest: SharedInterest::default(),
            primaries,
            fleets: fleets.clone(),
            namespaces: Namespaces::default(),
            paths: Mutex::default(),
            let_go: Mutex::default(),
            orphaned: Mutex::default(),
            rules: Mutex::new(rules),
            looks,
        });
        let stop = stop.child_token();
        let mut tasks = JoinSet::new();
        let mut controller = MultiClusterController::compact(&fleets.consumers, paged, remote.clone())
            .named(CONTROLLER)
            .with_config(
                Config::default().concurrency(WORKERS).per_cluster(0).backoff(FIRST_RETRY, LONGEST_RETRY).grace(GRACE),
            )
            .trigger(requests(to_look_at, remote.clone()))
            .watches_informer_from(service.clone(), copies.clone(), {
                let remote = remote.clone();
                move |_, copy: &Object| {
                    copies::source_of(&copy.value()).map(|key| Request::from_key(&key, remote.clone()))
                }
            })
            .graceful_shutdown_on(stop.clone().cancelled_owned());
        if let Some(spaces) = &spaces {
            let inside = sources.store().clone();
            controller = controller.watches_informer(spaces.clone(), move |cluster, namespace: &Object| {
                let keys = inside.entries(cluster).into_iter().map(|(key, _)| key);
                let keys = keys.filter(|key| key.namespace == namespace.name);
                keys.map(|key| Request::from_key(&key, remote.clone()).obj).collect::<Vec<_>>()
            });
        }
        let reports = controller.run_keyed(look, |_, _, _| Action::backoff(), shared.clone());
        tasks.spawn(report::follow(shared.clone(), reports));
        tasks.spawn(until(stop.clone(), follow_watches(shared.clone(), sources, "objects", Side::Kcp)));
        tasks.spawn(until(stop.clone(), follow_watches(shared.clone(), copies, "copies", Side::Service)));
        if let Some(spaces) = spaces {
            tasks.spawn(until(stop.clone(), follow_watches(shared.clone(), spaces, "namespaces", Side::Kcp)));
        }
        tasks.spawn(until(stop.clone(), watch_endpoints(shared.clone(), fleets.clone())));
        for gvr in watched(&shared.rules().related, Origin::Service) {
            let client = shared.context.local.clone();
            tasks.spawn(until(stop.clone(), watch_related(shared.clone(), client, Side::Service, gvr)));
        }
        Self { shared, stop, tasks }
    }

    /// The rules of this moment.
    pub fn rules(&self) -> Arc<Rules> {
        self.shared.rules()
    }

    /// Whether these rules can be swapped in: what is watched stays the same.
    pub fn fits(&self, rules: &Rules) -> bool {
        let old = self.shared.rules();
        let same_related = |origin| watched(&old.related, origin) == watched(&rules.related, origin);
        (old.duty == Duty::LetGoBlindly) == (rules.duty == Duty::LetGoBlindly)
            && old.local == rules.local
            && old.remote == rules.remote
            && old.filters_by_namespace() == rules.filters_by_namespace()
            && same_related(Origin::Kcp)
            && same_related(Origin::Service)
    }

    /// Swaps the rules and looks at every object again.
    pub fn set_rules(&self, rules: &Arc<Rules>) {
        if Arc::ptr_eq(&self.shared.rules(), rules) {
            return;
        }
        *self.shared.rules.lock() = rules.clone();
        let sources = self.shared.sources.list_all().into_iter().map(|(key, _)| key);
        let copies = self.shared.copies.list(copies::SERVICE);
        let linked = copies.iter().filter_map(|copy| copies::source_of(&copy.value()));
        for key in sources.chain(linked).collect::<HashSet<_>>() {
            self.shared.look_at(key);
        }
    }

    /// The consumers' objects that are known.
    pub fn keys(&self) -> Vec<Key> {
        self.shared.sources.list_all().into_iter().map(|(key, _)| key).collect()
    }

    /// Stops watching and lets running work come to its end.
    pub async fn stop(mut self) {
        self.shared.primaries.remove(&self.shared.rules().name);
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
        self.shared.context.metrics.set_orphans(&self.shared.rules().name, 0);
    }
}

impl Shared {
    /// The rules of this moment.
    pub fn rules(&self) -> Arc<Rules> {
        self.rules.lock().clone()
    }

    /// Whether an object was let go.
    pub fn was_let_go(&self, key: &Key) -> bool {
        self.let_go.lock().contains(key)
    }

    /// Notes that an object was let go, or is taken care of again.
    pub fn note_let_go(&self, key: &Key, let_go: bool) {
        let mut all = self.let_go.lock();
        if let_go {
            all.insert(key.clone())
        } else {
            all.remove(key)
        };
    }

    /// Notes that a source does not exist although it has a copy; or that it is not so any more. Such a copy is never deleted: its source
    /// may just be out of sight, and if it was deleted, that was while nothing was synchronized.
    pub fn note_orphan(&self, key: &Key, copy: Option<&Arc<Object>>) {
        let mut all = self.orphaned.lock();
        let changed = match copy {
            Some(copy) if all.insert(key.clone()) => {
                tracing::warn!(
                    object = %key,
                    copy = format!("{}/{}", copy.namespace, copy.name),
                    "A copy has no source in kcp and is left alone. Delete it if nobody needs it."
                );
                true
            }
            Some(_) => false,
            None => all.remove(key),
        };
        if changed {
            self.context.metrics.set_orphans(&self.rules().name, all.len());
        }
    }

    /// Other primaries that use the same original or the same copy, and stay.
    pub fn others(&self, rules: &Rules, key: &SourceKey, record: &Record) -> Vec<Other> {
        let told = self.states.others(&rules.remote, key, record);
        let used = |(told, other): (Told, Other)| self.primaries.uses(&self.fleets.consumers, &told, other);
        told.into_iter().filter_map(used).collect()
    }

    /// Whether another primary needs an object in kcp that a primary is about to let go.
    pub fn is_needed(&self, rules: &Rules, key: &SourceKey, at: &Place) -> bool {
        let record = Record { identifier: String::new(), origin: at.clone(), copy: at.clone() };
        self.others(rules, key, &record).iter().any(|other| other.origin)
    }

    /// Has an object looked at soon.
    fn look_at(&self, key: Key) {
        // Nobody listens any more when the syncer has stopped.
        let _ = self.looks.send(key);
    }
}

/// Requests of the objects to look at.
fn requests(
    mut keys: mpsc::UnboundedReceiver<Key>,
    remote: Resource,
) -> impl Stream<Item = Request<Object>> + Send + 'static {
    let keys = futures::stream::poll_fn(move |context| keys.poll_recv(context));
    keys.map(move |key| Request::from_key(&key, remote.clone()))
}

/// Runs a task until told to stop.
async fn until(stop: CancellationToken, task: impl Future<Output = ()>) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = task => {}
    }
}

/// Looks at one object.
async fn look(
    request: Request<Object>,
    source: Option<Arc<Object>>,
    context: Reconcile<Shared>,
) -> Result<Action, ReconcileError> {
    let next = reconcile::reconcile(&context.data, &request.key(), source, &context.cluster).await?;
    Ok(match next {
        Next::OnChange => Action::await_change(),
        Next::Soon => Action::requeue(REQUEUE),
        Next::Now => Action::requeue(Duration::ZERO),
    })
}

/// Lets readiness follow the watches of one side.
async fn follow_watches(shared: Arc<Shared>, informer: Informer<Object>, what: &'static str, side: Side) {
    let name = shared.rules().name.clone();
    let part = |endpoint: &EndpointId| {
        shared.context.health.part(match side {
            Side::Kcp => format!("{what} of PublishedResource {name} at {endpoint}"),
            Side::Service => format!("{what} of PublishedResource {name}"),
        })
    };
    let place = if side == Side::Kcp { "consumers' workspaces" } else { "the service cluster" };
    let mut changes = informer.health_changes();
    let mut parts: BTreeMap<EndpointId, Part> = BTreeMap::new();
    loop {
        changes.borrow_and_update();
        let health = informer.health();
        parts.retain(|endpoint, _| health.contains_key(endpoint));
        for (endpoint, watch) in health {
            let part = parts.entry(endpoint.clone()).or_insert_with(|| part(&endpoint));
            match watch.state {
                WatchState::Failing { error, .. } if error.is_not_found() => {
                    part.waits(&format!("the API is not served in {place} yet"));
                }
                WatchState::Failing { error, .. } => part.fails(&error),
                WatchState::Live => part.works(),
                WatchState::Connecting | WatchState::Listing => {}
            }
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// Keeps one watch of each related kind whose truth is in kcp for every endpoint.
async fn watch_endpoints(shared: Arc<Shared>, fleets: Fleets) {
    let gvrs = watched(&shared.rules().related, Origin::Kcp);
    if gvrs.is_empty() {
        return;
    }
    let watch_all = |client: &Client| {
        let mut tasks = JoinSet::new();
        for gvr in &gvrs {
            tasks.spawn(watch_related(shared.clone(), client.clone(), Side::Kcp, gvr.clone()));
        }
        tasks
    };
    let mut events = fleets.consumers.subscribe();
    let mut running: HashMap<EndpointId, (Client, JoinSet<()>)> = HashMap::new();
    let mut refresh = None;
    loop {
        tokio::select! {
            event = events.next() => match event {
                Some(FleetEvent::EndpointUp(endpoint)) => {
                    let tasks = watch_all(&endpoint.client);
                    running.insert(endpoint.id, (endpoint.client, tasks));
                }
                Some(FleetEvent::EndpointDown(id)) => drop(running.remove(&id)),
                // kcp goes on serving a watch under the schema it began with, so a new schema needs a new list and watch.
                Some(FleetEvent::ApisChanged { .. }) => refresh = Some(Instant::now() + NEW_APIS),
                Some(_) => {}
                None => return,
            },
            () = tokio::time::sleep_until(refresh.unwrap_or_else(Instant::now)), if refresh.is_some() => {
                refresh = None;
                for (client, tasks) in running.values_mut() {
                    *tasks = watch_all(client);
                }
            }
        }
    }
}

/// Queues primaries whose related objects change on their origin side.
async fn watch_related(shared: Arc<Shared>, client: Client, side: Side, gvr: Gvr) {
    let mut backoff = Backoff::for_servers();
    let kind = loop {
        match shared.kinds.find(side, &client, &gvr).await {
            Ok(Some(found)) => break found.kind,
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
        shared.look_at(primary);
    }
    let rules = shared.rules();
    let origin = if side == Side::Kcp { Origin::Kcp } else { Origin::Service };
    for related in rules.related.iter().filter(|r| r.origin == origin && r.source == *gvr) {
        match (&related.watch, side) {
            (None, _) => {}
            (Some(RelatedWatch::ByOwner), Side::Kcp) => {
                let name = owner(&object.value(), &rules.remote.group, &rules.remote.kind);
                if let (Some(name), Ok(cluster)) = (name, ClusterName::new(object.cluster.clone())) {
                    shared.look_at(Key::new(cluster, object.namespace.clone(), name));
                }
            }
            (Some(RelatedWatch::ByOwner), Side::Service) => {
                let name = owner(&object.value(), &rules.local.group, &rules.local.kind);
                let copy = name.and_then(|name| shared.copies.get(copies::SERVICE, &object.namespace, &name));
                if let Some(source) = copy.and_then(|copy| copies::source_of(&copy.value())) {
                    shared.look_at(source);
                }
            }
            (Some(RelatedWatch::BySelector(selector)), Side::Kcp) => {
                let Ok(cluster) = ClusterName::new(object.cluster.clone()) else { continue };
                for (key, source) in shared.sources.entries(&cluster) {
                    if selector.matches(&source.labels()) {
                        shared.look_at(key);
                    }
                }
            }
            (Some(RelatedWatch::BySelector(selector)), Side::Service) => {
                for copy in shared.copies.list(copies::SERVICE).iter().filter(|copy| selector.matches(&copy.labels())) {
                    if let Some(source) = copies::source_of(&copy.value()) {
                        shared.look_at(source);
                    }
                }
            }
        }
    }
}
