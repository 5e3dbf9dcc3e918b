//! One syncer: all objects of one PublishedResource.

mod report;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use carrick_client::watch::WatchOptions;
use carrick_client::{Object, Resource};
use carrick_multicluster::{
    Action, Config, Context as Reconcile, EndpointId, FleetEvent, Informer, MultiClusterController, Request,
    WatchHealth, WatchState,
};
use carrick_sync::executor::refusal::is_unserved;
use futures::{Stream, StreamExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::act::Executor;
use super::context::{CONTROLLER, Context};
use super::deletion::released;
use super::error::ReconcileError;
use super::feedback::progress::Orders;
use super::fleet::Fleets;
use super::related::RelatedWatches;
use super::related::kinds::resource;
use super::shared::{Shared, Stores};
use super::source::{request, source_key};
use super::states::States;
use super::{copies, import, reconcile};
use crate::agent::health::Part;
use crate::agent::metrics::{Shown, family};
use crate::api::AGENT_NAME;
use crate::decide::{Next, Role, Side};
use crate::rules::metadata::{KCP_SIDE, SERVICE_SIDE, SourceKey};
use crate::rules::{Duty, Rules};

const FIRST_RETRY: Duration = Duration::from_millis(5);
const LONGEST_RETRY: Duration = Duration::from_mins(1);
/// How often an order whose workspace has no room for it is reconciled again.
const ROOM: Duration = Duration::from_mins(1);
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

/// What syncers of all PublishedResources are started with.
pub(super) struct Setup {
    pub context: Arc<Context>,
    pub states: Arc<States>,
    pub fleets: Fleets,
    pub related: Arc<RelatedWatches>,
    /// What becomes of plans.
    pub executor: Executor,
    pub stop: CancellationToken,
}

/// What one reconcile is given.
struct Reconciler {
    shared: Arc<Shared>,
    executor: Executor,
}

impl Syncer {
    /// Starts watches and workers.
    pub fn start(setup: &Setup, rules: Arc<Rules>) -> Self {
        let Setup { context, states, fleets, related, executor, stop } = setup;
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
        let (requeued, to_reconcile) = mpsc::unbounded_channel();
        related.primaries.add(&rules, sources.store().clone());
        related.join(&rules.name, requeued.clone());
        let stores = Stores {
            sources: sources.store().clone(),
            copies: copies.store().clone(),
            consumer_namespaces: spaces.as_ref().map(|informer| informer.store().clone()),
        };
        let fleet = (related.clone(), fleets.clone());
        let shared = Arc::new(Shared::new(context.clone(), states.clone(), stores, fleet, rules, requeued));
        let config = Config::default().concurrency(0).paced_by(context.pace.clone()).per_cluster(0);
        let stop = stop.child_token();
        let mut tasks = JoinSet::new();
        let mut controller = MultiClusterController::compact(&fleets.consumers, paged, remote.clone())
            .named(CONTROLLER)
            .with_config(config.backoff(FIRST_RETRY, LONGEST_RETRY).grace(GRACE))
            .trigger(requests(to_reconcile, remote.clone()))
            .watches_informer_from(service.clone(), copies.clone(), {
                let remote = remote.clone();
                let resource = rules_resource.clone();
                move |_, copy: &Object| copies::source_of(copy, &resource).and_then(|key| request(&key, remote.clone()))
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
        let reconciler = Arc::new(Reconciler { shared: shared.clone(), executor: executor.clone() });
        let reports = controller.run_keyed(
            reconcile_one,
            |request, error, context| again(&source_key(&request.key()), error, &context.data.shared),
            reconciler,
        );
        tasks.spawn(report::follow(shared.clone(), executor.clone(), reports));
        tasks.spawn(until(stop.clone(), released::follow(shared.clone(), sources.clone())));
        tasks.spawn(until(stop.clone(), follow_workspaces(shared.clone(), fleets.consumers.subscribe())));
        tasks.spawn(until(stop.clone(), follow_watches(shared.clone(), sources, "objects", KCP_SIDE)));
        tasks.spawn(until(stop.clone(), follow_watches(shared.clone(), copies.clone(), "copies", SERVICE_SIDE)));
        if let Some(spaces) = spaces {
            tasks.spawn(until(stop.clone(), follow_watches(shared.clone(), spaces, "namespaces", KCP_SIDE)));
        }
        if let (Executor::Send, Some(selector)) = (executor, shared.rules().imports()) {
            tasks.spawn(import::policy::follow(shared.clone(), selector.to_owned(), stop.clone()));
        }
        let (name, sources, placed) = (shared.rules().name.clone(), shared.sources.clone(), shared.copies.clone());
        let orders = Orders {
            sources: sources.clone(),
            copies: placed.clone(),
            namespaces: shared.consumer_namespaces.clone(),
            consumers: fleets.consumers.clone(),
            staging_root: context.staging_root.clone(),
            rules: shared.rules_changes(),
            failing: shared.failing.clone(),
            warned: shared.warned.clone(),
            orphans: shared.orphans.clone(),
            paused: shared.paused.clone(),
            drifted: shared.drifted.clone(),
            overwritten: shared.overwritten.clone(),
        };
        context.orders.add(&name, orders.clone());
        let (failing, paused, drifted) = (shared.failing.clone(), shared.paused.clone(), shared.drifted.clone());
        let shown = context.metrics.show(move |page| {
            for (reason, count) in failing.counts() {
                page.sample(&family::FAILING_OBJECTS, &[&name, &reason], count);
            }
            page.sample(&family::SOURCE_OBJECTS, &[&name], sources.len());
            page.sample(&family::CONSUMERS, &[&name], orders.consumers());
            page.sample(&family::PAUSED_OBJECTS, &[&name], paused.len());
            page.sample(&family::DRIFTED_OBJECTS, &[&name], drifted.len());
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
            && old.imports() == rules.imports()
    }

    /// Swaps the rules and requeues every object.
    pub fn set_rules(&self, rules: &Arc<Rules>) {
        if Arc::ptr_eq(&self.shared.rules(), rules) {
            return;
        }
        self.shared.set_rules(rules);
        self.shared.related.primaries.set_rules(rules);
        self.requeue_all();
    }

    /// Requeues every object.
    pub fn requeue_all(&self) {
        let copies = self.shared.copies.list(copies::SERVICE);
        let resource = self.shared.rules().remote.resource();
        let linked = copies.iter().filter_map(|copy| copies::source_of(copy, &resource));
        for key in self.keys().into_iter().chain(linked).collect::<HashSet<_>>() {
            self.shared.requeue(key);
        }
    }

    /// What everything that works on its orders shares.
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The consumers' objects that are known.
    pub fn keys(&self) -> Vec<SourceKey> {
        self.shared.sources.list_all().iter().map(|(key, _)| source_key(key)).collect()
    }

    /// Whether the watch of copies works.
    pub fn sees_copies(&self) -> bool {
        self.copies.health().values().all(|watch| matches!(watch.state, WatchState::Live))
    }

    /// Requeues what failed, without waiting for the end of its pause.
    pub fn retry_failing(&self) {
        for key in self.shared.failing.keys() {
            self.shared.requeue(key);
        }
    }

    /// Stops watching and lets running work come to its end.
    pub async fn stop(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
        let (name, context) = (&self.shared.rules().name, &self.shared.context);
        self.shared.related.leave(name);
        context.metrics.set_orphans(name, 0);
        context.orders.remove(name);
        released::note(&context.released, name, false);
    }
}

/// Requests for the objects that are to be reconciled although they have not changed themselves.
fn requests(
    mut keys: mpsc::UnboundedReceiver<SourceKey>,
    remote: Resource,
) -> impl Stream<Item = Request<Object>> + Send + 'static {
    let keys = futures::stream::poll_fn(move |context| keys.poll_recv(context));
    keys.filter_map(move |key| std::future::ready(request(&key, remote.clone())))
}

/// Forgets the orders of workspaces that leave.
async fn follow_workspaces(shared: Arc<Shared>, mut events: impl Stream<Item = FleetEvent> + Unpin) {
    while let Some(event) = events.next().await {
        if let FleetEvent::Disengage { name, .. } = event {
            shared.forget_workspace(name.as_str());
            shared.count_again.notify_one();
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

/// Reconciles one object.
async fn reconcile_one(
    request: Request<Object>,
    source: Option<Arc<Object>>,
    context: Reconcile<Reconciler>,
) -> Result<Action, ReconcileError> {
    let Reconciler { shared, executor } = &*context.data;
    let (key, since) = (source_key(&request.key()), (&context.cluster, context.since));
    let timing = &shared.context.timing;
    let pause = match reconcile::reconcile(shared, executor, &key, source, since).await? {
        Next::OnChange => None,
        Next::Soon => Some(timing.requeue),
        Next::Later => Some(timing.resync),
        Next::Now => Some(Duration::ZERO),
    };
    // A pause that ends by itself is reported by no watch.
    let ends = shared.paused.left(&key, jiff::Timestamp::now());
    Ok(pause.into_iter().chain(ends).min().map_or_else(Action::await_change, Action::requeue))
}

/// When an object that failed is reconciled again.
fn again(key: &SourceKey, error: &ReconcileError, shared: &Shared) -> Action {
    // The end of a pause is reported by no watch, also where something else is wrong that only a change can mend.
    let ends = || shared.paused.left(key, jiff::Timestamp::now());
    if matches!(error, ReconcileError::NoRoom { .. }) {
        // Other orders of this kind call it when they make room; those of other kinds do not.
        Action::requeue(ROOM)
    } else if matches!(error, ReconcileError::Notices(_)) || error.is_held() {
        ends().map_or_else(Action::await_change, Action::requeue)
    } else if let Some(pause) = error.pause() {
        Action::requeue(pause)
    } else {
        Action::backoff()
    }
}

/// Lets readiness follow the watches of one side, as long as there is somebody to serve: what is no longer published is released where it
/// can be seen, and nobody waits for it.
async fn follow_watches(shared: Arc<Shared>, informer: Informer<Object>, what: &'static str, side: Side) {
    let name = shared.rules().name.clone();
    let part = |endpoint: &EndpointId| {
        shared.context.health.part(match side.role {
            Role::Consumer => format!("{what} of PublishedResource {name} at {endpoint}"),
            Role::Provider => format!("{what} of PublishedResource {name}"),
        })
    };
    let where_to = if side == KCP_SIDE { "consumers' workspaces" } else { "the service cluster" };
    let (mut changes, mut rules) = (informer.health_changes(), shared.rules_changes());
    let mut parts: BTreeMap<EndpointId, Part> = BTreeMap::new();
    loop {
        changes.borrow_and_update();
        let served = rules.borrow_and_update().duty == Duty::Sync;
        let health = informer.health();
        if side == SERVICE_SIDE {
            let is_missing =
                |watch: &WatchHealth| matches!(&watch.state, WatchState::Failing { error, .. } if is_unserved(error));
            shared.no_kind.store(health.values().any(is_missing), Ordering::Relaxed);
            let lost = |watch: &WatchHealth| match &watch.state {
                WatchState::Failing { since, error } if error.is_transient() => Some(*since),
                _ => None,
            };
            *shared.lost_since.lock() = health.values().filter_map(lost).min();
        }
        let health = if served { health } else { BTreeMap::default() };
        parts.retain(|endpoint, _| health.contains_key(endpoint));
        for (endpoint, watch) in health {
            let part = parts.entry(endpoint.clone()).or_insert_with(|| part(&endpoint));
            match watch.state {
                WatchState::Failing { error, .. } if is_unserved(&error) => {
                    part.waits(&format!("the API is not served in {where_to} yet"));
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
