//! One syncer: all objects of one PublishedResource.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use carrick_client::watch::WatchOptions;
use carrick_client::{Object, Resource};
use carrick_multicluster::{
    Action, ClusterName, Config, Context as Reconcile, EndpointId, FleetStore, Informer, Key, MultiClusterController,
    Request, WatchState,
};
use futures::{Stream, StreamExt};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::execute::Namespaces;
use super::fleet::Fleets;
use super::journey::Journeys;
use super::kinds::resource;
use super::reach::Reach;
use super::reconcile::ReconcileError;
use super::related::{RelatedWatches, User};
use super::states::States;
use super::uses::Told;
use super::{CONTROLLER, Context, copies, reconcile, report};
use crate::agent::health::Part;
use crate::agent::metrics::{Shown, family};
use crate::api::AGENT_NAME;
use crate::decide::{Next, Other, Place, Record, Side};
use crate::rules::metadata::SourceKey;
use crate::rules::{Duty, Rules};

const FIRST_RETRY: Duration = Duration::from_millis(5);
const LONGEST_RETRY: Duration = Duration::from_mins(1);
/// How long running work may take to come to its end.
const GRACE: Duration = Duration::from_secs(30);

/// A running syncer.
pub(super) struct Syncer {
    shared: Arc<Shared>,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    copies: Informer<Object>,
    _shown: Shown,
}

/// What a consumer was warned of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Warned {
    /// In these words.
    pub message: String,
    /// Whether another object is in the place of the copy.
    pub taken: bool,
}

/// What the tasks of a syncer share.
pub(super) struct Shared {
    pub context: Arc<Context>,
    pub states: Arc<States>,
    pub sources: FleetStore<Object>,
    pub copies: FleetStore<Object>,
    /// Namespaces in consumers' workspaces, if the rules filter by them.
    pub consumer_namespaces: Option<FleetStore<Object>>,
    pub related: Arc<RelatedWatches>,
    pub fleets: Fleets,
    pub namespaces: Namespaces,
    /// What is out of reach in consumers' workspaces.
    pub reach: Reach,
    /// Workspace paths by cluster.
    pub paths: Mutex<HashMap<ClusterName, String>>,
    /// What could not be cleaned up, by order.
    pub losses: Mutex<BTreeMap<String, String>>,
    /// Objects that were let go.
    let_go: Mutex<HashSet<Key>>,
    /// Sources that do not exist although they have copies.
    orphaned: Mutex<HashSet<Key>>,
    /// Objects that failed when they were last looked at.
    failing: Mutex<HashSet<Key>>,
    /// What consumers were told about what does not end by itself soon.
    told: Mutex<HashMap<Key, Warned>>,
    rules: watch::Sender<Arc<Rules>>,
    /// Objects to look at although they have not changed themselves.
    looks: mpsc::UnboundedSender<Key>,
}

impl Syncer {
    /// Starts watches and workers.
    pub fn start(
        context: Arc<Context>,
        states: Arc<States>,
        fleets: &Fleets,
        related: Arc<RelatedWatches>,
        rules: Arc<Rules>,
        stop: &CancellationToken,
    ) -> Self {
        let (remote, rules_resource) = (resource(&rules.remote), rules.remote.resource());
        // Virtual workspaces of some kcp versions never finish a streaming list.
        let paged = WatchOptions { streaming_lists: false, ..WatchOptions::default() };
        let sources = fleets.consumers.informer_compact(remote.clone(), paged.clone());
        let labelled = WatchOptions::labels(format!("{AGENT_NAME}={}", rules.agent_name));
        let service = if rules.blind { &fleets.nowhere } else { &fleets.service };
        let copies = service.informer_compact(resource(&rules.local), labelled);
        copies::index(copies.store());
        let spaces = rules.filters_by_namespace().then(|| {
            let namespaces = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
            fleets.consumers.informer_compact(namespaces, paged.clone())
        });
        let (looks, to_look_at) = mpsc::unbounded_channel();
        related.primaries.add(&rules, sources.store().clone());
        related.join(&rules.name, looks.clone());
        let shared = Arc::new(Shared {
            context,
            states,
            sources: sources.store().clone(),
            copies: copies.store().clone(),
            consumer_namespaces: spaces.as_ref().map(|informer| informer.store().clone()),
            related,
            fleets: fleets.clone(),
            namespaces: Namespaces::default(),
            reach: Reach::default(),
            paths: Mutex::default(),
            losses: Mutex::default(),
            let_go: Mutex::default(),
            orphaned: Mutex::default(),
            failing: Mutex::default(),
            told: Mutex::default(),
            rules: watch::Sender::new(rules),
            looks,
        });
        let config = Config::default().concurrency(0).paced_by(shared.context.pace.clone()).per_cluster(0);
        let stop = stop.child_token();
        let mut tasks = JoinSet::new();
        let mut controller = MultiClusterController::compact(&fleets.consumers, paged, remote.clone())
            .named(CONTROLLER)
            .with_config(config.backoff(FIRST_RETRY, LONGEST_RETRY).grace(GRACE))
            .trigger(requests(to_look_at, remote.clone()))
            .watches_informer_from(service.clone(), copies.clone(), {
                let remote = remote.clone();
                let resource = rules_resource.clone();
                move |_, copy: &Object| {
                    copies::source_of(copy, &resource).map(|key| Request::from_key(&key, remote.clone()))
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
        let reports = controller.run_keyed(look, |_, error, _| again(error), shared.clone());
        tasks.spawn(report::follow(shared.clone(), reports));
        tasks.spawn(until(stop.clone(), follow_watches(shared.clone(), sources, "objects", Side::Kcp)));
        tasks.spawn(until(stop.clone(), follow_watches(shared.clone(), copies.clone(), "copies", Side::Service)));
        if let Some(spaces) = spaces {
            tasks.spawn(until(stop.clone(), follow_watches(shared.clone(), spaces, "namespaces", Side::Kcp)));
        }
        let (name, sources, placed) = (shared.rules().name.clone(), shared.sources.clone(), shared.copies.clone());
        let journeys = Journeys { sources: sources.clone(), copies: placed.clone(), resource: rules_resource.clone() };
        shared.context.metrics.lookout.lend(&name, journeys);
        let shown = shared.context.metrics.show(move |page| {
            page.sample(&family::SOURCE_OBJECTS, &[&name], sources.len());
            page.sample(&family::SYNCED_OBJECTS, &[&name], copies::count(&placed, &rules_resource));
        });
        Self { shared, stop, tasks, copies, _shown: shown }
    }

    /// The rules of this moment.
    pub fn rules(&self) -> Arc<Rules> {
        self.shared.rules()
    }

    /// Whether these rules can be swapped in: what is watched stays the same.
    pub fn fits(&self, rules: &Rules) -> bool {
        let old = self.shared.rules();
        old.blind == rules.blind
            && old.local == rules.local
            && old.remote == rules.remote
            && old.filters_by_namespace() == rules.filters_by_namespace()
    }

    /// Swaps the rules and looks at every object again.
    pub fn set_rules(&self, rules: &Arc<Rules>) {
        if Arc::ptr_eq(&self.shared.rules(), rules) {
            return;
        }
        self.shared.rules.send_replace(rules.clone());
        self.shared.related.primaries.set_rules(rules);
        let sources = self.shared.sources.list_all().into_iter().map(|(key, _)| key);
        let copies = self.shared.copies.list(copies::SERVICE);
        let resource = rules.remote.resource();
        let linked = copies.iter().filter_map(|copy| copies::source_of(copy, &resource));
        for key in sources.chain(linked).collect::<HashSet<_>>() {
            self.shared.look_at(key);
        }
    }

    /// The consumers' objects that are known.
    pub fn keys(&self) -> Vec<Key> {
        self.shared.sources.list_all().into_iter().map(|(key, _)| key).collect()
    }

    /// Whether the watch of copies works.
    pub fn sees_copies(&self) -> bool {
        self.copies.health().values().all(|watch| matches!(watch.state, WatchState::Live))
    }

    /// Looks again at what failed, without waiting for the end of its pause.
    pub fn try_again(&self) {
        let failing: Vec<Key> = self.shared.failing.lock().iter().cloned().collect();
        for key in failing {
            self.shared.look_at(key);
        }
    }

    /// Stops watching and lets running work come to its end.
    pub async fn stop(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
        self.shared.related.leave(&self.shared.rules().name);
        self.shared.context.metrics.set_orphans(&self.shared.rules().name, 0);
        self.shared.context.metrics.lookout.take_back(&self.shared.rules().name);
    }
}

impl Shared {
    /// The rules of this moment.
    pub fn rules(&self) -> Arc<Rules> {
        self.rules.borrow().clone()
    }

    /// Whether an object was let go.
    pub fn was_let_go(&self, key: &Key) -> bool {
        self.let_go.lock().contains(key)
    }

    /// Whether another object was in the place of the copy when it was last looked at.
    pub fn was_taken(&self, key: &Key) -> bool {
        self.told.lock().get(key).is_some_and(|told| told.taken)
    }

    /// Notes what is to be told, if anything is, and says whether it is news.
    pub fn note_told(&self, key: &Key, told: Option<Warned>) -> bool {
        let mut all = self.told.lock();
        let Some(told) = told else { return all.remove(key).is_some() };
        all.insert(key.clone(), told.clone()).is_none_or(|before| before != told)
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

    /// Notes whether an object failed. If that was for want of a right, somebody finds out which one.
    pub fn note_failure(&self, key: &Key, error: Option<&ReconcileError>) {
        match error {
            Some(error) => {
                if error.is_forbidden() {
                    // Nobody listens where nothing is granted or refused, as when plans are only told.
                    let _ = self.context.refused.send(self.rules().name.clone());
                }
                self.failing.lock().insert(key.clone());
            }
            None => drop(self.failing.lock().remove(key)),
        }
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

    /// A primary as the watches of related objects know it.
    pub fn user(&self, key: &Key) -> User {
        (self.rules().name.as_str().into(), key.clone())
    }

    /// Other primaries that use the same original or the same copy, and stay.
    pub fn others(&self, rules: &Rules, key: &SourceKey, record: &Record) -> Vec<Other> {
        let told = self.states.others(&rules.remote, key, record);
        let used = |(told, other): (Told, Other)| self.related.primaries.uses(&self.fleets.consumers, &told, other);
        told.into_iter().filter_map(used).collect()
    }

    /// Another original that another primary, which stays, has the same copy made of.
    pub fn rival(&self, rules: &Rules, key: &SourceKey, record: &Record) -> Option<String> {
        let rival = self.states.rival(&rules.remote, key, record)?;
        self.others(rules, key, record).iter().any(|other| other.copy).then_some(rival)
    }

    /// Whether another primary needs an object in kcp that a primary is about to let go.
    pub fn is_needed(&self, rules: &Rules, key: &SourceKey, at: &Place) -> bool {
        let record = Record { identifier: String::new(), origin: at.clone(), copy: at.clone(), uid: None };
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
    let next = reconcile::reconcile(&context.data, &request.key(), source, &context.cluster, context.since).await?;
    Ok(match next {
        Next::OnChange => Action::await_change(),
        Next::Soon => Action::requeue(context.data.context.timing.requeue),
        Next::Later => Action::requeue(context.data.context.timing.resync),
        Next::Now => Action::requeue(Duration::ZERO),
    })
}

/// When an object that failed is looked at again.
fn again(error: &ReconcileError) -> Action {
    if matches!(error, ReconcileError::Notices(_)) { Action::await_change() } else { Action::backoff() }
}

/// Lets readiness follow the watches of one side, as long as there is somebody to serve: what is not published any more is let go where it can be
/// seen, and nobody waits for it.
async fn follow_watches(shared: Arc<Shared>, informer: Informer<Object>, what: &'static str, side: Side) {
    let name = shared.rules().name.clone();
    let part = |endpoint: &EndpointId| {
        shared.context.health.part(match side {
            Side::Kcp => format!("{what} of PublishedResource {name} at {endpoint}"),
            Side::Service => format!("{what} of PublishedResource {name}"),
        })
    };
    let place = if side == Side::Kcp { "consumers' workspaces" } else { "the service cluster" };
    let (mut changes, mut rules) = (informer.health_changes(), shared.rules.subscribe());
    let mut parts: BTreeMap<EndpointId, Part> = BTreeMap::new();
    loop {
        changes.borrow_and_update();
        let served = rules.borrow_and_update().duty == Duty::Sync;
        let health = if served { informer.health() } else { BTreeMap::default() };
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
        let changed = tokio::select! {
            changed = changes.changed() => changed,
            changed = rules.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
    }
}
