//! How a fleet is made, and the tasks that keep it going.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::Error;
use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::roster::Roster;
use super::{Fleet, Inner, State};
use crate::cluster::Cluster;
use crate::coordination::{All, Coordinator, Ownership};
use crate::event::{FleetEvent, Gone};
use crate::guard::{caught, words};
use crate::informer::Habits;
use crate::name::{ClusterName, EndpointId};
use crate::provider::Provider;

const MOVE_GRACE: Duration = Duration::from_secs(5);
/// How long a cluster keeps a client that nobody asks for.
const IDLE: Duration = Duration::from_mins(5);

/// Pauses before a provider or coordinator that panicked is tried again: the first one, doubled from try to try up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Prepares a [`Fleet`].
pub struct FleetBuilder {
    provider: Arc<dyn Provider>,
    coordinator: Arc<dyn Coordinator>,
    habits: Habits,
}

impl FleetBuilder {
    pub(super) fn new(provider: Arc<dyn Provider>) -> Self {
        let habits = Habits { move_grace: MOVE_GRACE, quiet: false };
        Self { provider, coordinator: Arc::new(All::default()), habits }
    }

    /// Shares the clusters with other processes.
    #[must_use]
    pub fn coordinator(mut self, coordinator: impl Coordinator) -> Self {
        self.coordinator = Arc::new(coordinator);
        self
    }

    /// How long the objects of a cluster that has moved to another endpoint may take to follow; 5 s if not set. What is
    /// not there by then counts as deleted.
    #[must_use]
    pub fn move_grace(mut self, grace: Duration) -> Self {
        self.habits.move_grace = grace;
        self
    }

    /// Keeps failures of the provider and of watches out of the log, which otherwise has one warning for each outage: for programs that tell
    /// of them in their own words. [`Fleet::health`], [`Fleet::subscribe`] and the streams of controllers tell them in any case.
    #[must_use]
    pub fn quiet(mut self) -> Self {
        self.habits.quiet = true;
        self
    }

    /// Starts to follow the provider. Must be called inside a tokio runtime.
    pub fn build(self) -> Fleet {
        let ownership = self.coordinator.ownership();
        let state = State {
            roster: Roster::default(),
            ownership: ownership.borrow().clone(),
            informers: HashMap::new(),
            watched: HashSet::new(),
            subscribers: Vec::new(),
            controllers: HashMap::new(),
            next_controller: 0,
            drained: 0,
            cut_off: false,
        };
        let coordinator = self.coordinator;
        let inner = Arc::new(Inner {
            coordinator: coordinator.clone(),
            habits: self.habits,
            state: Mutex::new(state),
            changes: watch::Sender::new(0),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(follow_provider(inner.clone(), self.provider));
        tasks.spawn(follow_ownership(inner.clone(), ownership));
        tasks.spawn(drop_idle_clients(inner.clone()));
        tasks.spawn(coordinate(inner.clone(), coordinator));
        Fleet { inner, _tasks: Arc::new(tasks) }
    }
}

/// What fails when a provider, or a coordinator, panics.
const PROVIDER: &str = "the provider";
const COORDINATOR: &str = "the coordinator";

/// Follows the provider. One that panics is told as failing and asked anew: its next stream tells the whole fleet, and what it leaves out has
/// left meanwhile.
async fn follow_provider(inner: Arc<Inner>, provider: Arc<dyn Provider>) {
    let mut before = Before::default();
    let mut pause = FIRST_PAUSE;
    loop {
        let message = match caught(|| provider.events()) {
            Ok(events) => {
                let mut events = AssertUnwindSafe(events).catch_unwind();
                loop {
                    match events.next().await {
                        Some(Ok(event)) => {
                            for event in before.told(event) {
                                inner.event(event);
                            }
                        }
                        Some(Err(panic)) => break words(&*panic),
                        None => return,
                    }
                }
            }
            Err(message) => message,
        };
        inner.event(fails(PROVIDER, &message));
        before.note(&inner.state.lock().roster);
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Runs the coordinator; again if it panics. What it owns lapses meanwhile, as if the process were cut off.
async fn coordinate(inner: Arc<Inner>, coordinator: Arc<dyn Coordinator>) {
    let mut pause = FIRST_PAUSE;
    loop {
        // Called inside, so that a panic before its first await is caught as well.
        let run = AssertUnwindSafe(async { coordinator.clone().run().await }).catch_unwind();
        let Err(panic) = run.await else { return };
        inner.event(fails(COORDINATOR, &words(&*panic)));
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        inner.event(FleetEvent::Recovered { source: COORDINATOR.into() });
    }
}

fn fails(what: &str, message: &str) -> FleetEvent {
    let error = Error::Request { request: format!("{what} of the fleet"), problem: format!("it panicked: {message}") };
    FleetEvent::Failing { source: what.into(), error }
}

/// What a provider told before it panicked.
#[derive(Default)]
struct Before {
    clusters: HashMap<ClusterName, u64>,
    endpoints: HashSet<EndpointId>,
    panicked: bool,
}

impl Before {
    fn note(&mut self, roster: &Roster) {
        self.clusters = roster.clusters().map(|cluster| (cluster.name().clone(), cluster.epoch())).collect();
        self.endpoints = roster.endpoints().map(|endpoint| endpoint.id.clone()).collect();
        self.panicked = true;
    }

    /// What an event of the stream after that means.
    fn told(&mut self, event: FleetEvent) -> Vec<FleetEvent> {
        match &event {
            FleetEvent::EndpointUp(endpoint) => drop(self.endpoints.remove(&endpoint.id)),
            FleetEvent::Engage(cluster) => drop(self.clusters.remove(cluster.name())),
            FleetEvent::Synced if std::mem::take(&mut self.panicked) => {
                let leave = |(name, epoch)| FleetEvent::Disengage { name, epoch, why: Gone::Removed };
                let mut events: Vec<FleetEvent> = self.clusters.drain().map(leave).collect();
                events.extend(self.endpoints.drain().map(FleetEvent::EndpointDown));
                events.push(FleetEvent::Recovered { source: PROVIDER.into() });
                events.push(event);
                return events;
            }
            _ => {}
        }
        vec![event]
    }
}

async fn follow_ownership(inner: Arc<Inner>, mut ownership: watch::Receiver<Ownership>) {
    loop {
        let latest = ownership.borrow_and_update().clone();
        let known = inner.state.lock().ownership.version();
        if latest.version() != known {
            inner.own(latest);
        }
        if ownership.changed().await.is_err() {
            return;
        }
    }
}

/// Clients cost a task each, and most clusters are calm most of the time.
async fn drop_idle_clients(inner: Arc<Inner>) {
    loop {
        tokio::time::sleep(IDLE).await;
        let clusters: Vec<Cluster> = inner.state.lock().roster.clusters().cloned().collect();
        for cluster in clusters {
            cluster.drop_idle(IDLE);
        }
    }
}

/// Says what happens: failures to everybody, the rest to those who look closely.
pub(super) fn log(event: &FleetEvent, quiet: bool) {
    match event {
        FleetEvent::EndpointUp(endpoint) => tracing::debug!(endpoint = %endpoint.id, "endpoint up"),
        FleetEvent::EndpointDown(endpoint) => tracing::debug!(%endpoint, "endpoint down"),
        FleetEvent::Engage(cluster) => {
            let path = cluster.path();
            tracing::debug!(cluster = %cluster.name(), path = path.as_deref(), endpoint = %cluster.endpoint(), "cluster engaged");
        }
        FleetEvent::Disengage { name, why, .. } => tracing::debug!(cluster = %name, %why, "cluster disengaged"),
        FleetEvent::Failing { source, error } if quiet => {
            tracing::debug!(source = &**source, %error, "cannot follow the fleet");
        }
        FleetEvent::Failing { source, error } => {
            tracing::warn!(source = &**source, %error, "The fleet cannot be followed; trying on.");
        }
        FleetEvent::Recovered { source } if quiet => tracing::debug!(source = &**source, "following the fleet again"),
        FleetEvent::Recovered { source } => tracing::info!(source = &**source, "The fleet can be followed again."),
        FleetEvent::Path { .. } | FleetEvent::ApisChanged { .. } | FleetEvent::Synced => {}
    }
}
