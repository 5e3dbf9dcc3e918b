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
use super::{Fleet, FleetState, Inner};
use crate::cluster::Cluster;
use crate::coordination::{All, Coordinator, Ownership};
use crate::event::FleetEvent;
use crate::guard::panic_message;
use crate::informer::InformerSettings;
use crate::provider::{Provider, guarded};
use crate::store::Ledger;

const MOVE_GRACE: Duration = Duration::from_secs(5);
/// How long a cluster keeps a client that nobody asks for.
const IDLE: Duration = Duration::from_mins(5);

/// Pauses before a coordinator that panicked is tried again: the first one, doubled each time up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Prepares a [`Fleet`].
pub struct FleetBuilder {
    provider: Arc<dyn Provider>,
    coordinator: Arc<dyn Coordinator>,
    settings: InformerSettings,
    ledger: Option<Arc<Ledger>>,
}

impl FleetBuilder {
    pub(super) fn new(provider: Arc<dyn Provider>) -> Self {
        let settings = InformerSettings { move_grace: MOVE_GRACE, quiet: false };
        Self { provider, coordinator: Arc::new(All::default()), settings, ledger: None }
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
        self.settings.move_grace = grace;
        self
    }

    /// How many bytes of one cluster [compact](Fleet::informer_compact) informers keep, of all kinds together; any number if not set. Of objects
    /// beyond that there is only [metadata](carrick_client::Object::left_out), so that no cluster can fill the memory.
    #[must_use]
    pub fn cached_bytes_per_cluster(mut self, most: usize) -> Self {
        self.ledger = Some(Arc::new(Ledger::new(most)));
        self
    }

    /// Keeps failures of the provider and of watches out of the log, which otherwise has one warning for each outage: for programs that
    /// report them in another way. [`Fleet::health`], [`Fleet::subscribe`] and the streams of controllers report them in any case.
    #[must_use]
    pub fn quiet(mut self) -> Self {
        self.settings.quiet = true;
        self
    }

    /// Starts to follow the provider. Must be called inside a tokio runtime.
    pub fn build(self) -> Fleet {
        let ownership = self.coordinator.ownership();
        let state = FleetState {
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
            settings: self.settings,
            ledger: self.ledger,
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

/// What fails when a coordinator panics.
const COORDINATOR: &str = "the coordinator";

async fn follow_provider(inner: Arc<Inner>, provider: Arc<dyn Provider>) {
    let mut events = guarded(provider);
    while let Some(event) = events.next().await {
        inner.event(event);
    }
}

/// Runs the coordinator; again if it panics. What it owns lapses meanwhile, as if the process had lost its connection.
async fn coordinate(inner: Arc<Inner>, coordinator: Arc<dyn Coordinator>) {
    let mut pause = FIRST_PAUSE;
    loop {
        // Called inside, so that a panic before its first await is caught as well.
        let run = AssertUnwindSafe(async { coordinator.clone().run().await }).catch_unwind();
        let Err(panic) = run.await else { return };
        let problem = format!("it panicked: {}", panic_message(&*panic));
        let error = Error::Request { request: COORDINATOR.to_owned(), problem };
        inner.event(FleetEvent::Failing { source: COORDINATOR.into(), error });
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        inner.event(FleetEvent::Recovered { source: COORDINATOR.into() });
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

/// Logs what happens: failures as warnings, the rest for debugging.
pub(super) fn log(event: &FleetEvent, quiet: bool) {
    match event {
        FleetEvent::EndpointUp(endpoint) => tracing::debug!(endpoint = %endpoint.id, "endpoint up"),
        FleetEvent::EndpointDown(endpoint) => tracing::debug!(%endpoint, "endpoint down"),
        FleetEvent::Engage(cluster) => {
            let path = cluster.path();
            tracing::debug!(cluster = %cluster.name(), path = path.as_deref(), endpoint = %cluster.endpoint(), "cluster engaged");
        }
        FleetEvent::Disengage { name, why, .. } => tracing::debug!(cluster = %name, %why, "cluster disengaged"),
        FleetEvent::Waiting { source, lacks } if quiet => {
            tracing::debug!(source = &**source, reason = %lacks, "nothing to follow yet");
        }
        FleetEvent::Waiting { source, lacks } => {
            tracing::warn!(source = &**source, reason = %lacks, "No cluster takes part yet; waiting.");
        }
        FleetEvent::ClaimsOpen { name, claims } if quiet => {
            tracing::debug!(cluster = %name, claims = &**claims, "claims are not accepted");
        }
        FleetEvent::ClaimsOpen { name, claims } => {
            tracing::warn!(cluster = %name, claims = &**claims, "A consumer has not accepted claims of the export; nothing of these resources is seen there.");
        }
        FleetEvent::Failing { source, error } if quiet => {
            tracing::debug!(source = &**source, %error, "cannot see changes of the fleet");
        }
        FleetEvent::Failing { source, error } => {
            tracing::warn!(source = &**source, %error, "Cannot see changes of the fleet; retrying.");
        }
        FleetEvent::Recovered { source } if quiet => tracing::debug!(source = &**source, "following the fleet again"),
        FleetEvent::Recovered { source } => tracing::info!(source = &**source, "Changes of the fleet are seen again."),
        FleetEvent::Path { .. } | FleetEvent::ApisChanged { .. } | FleetEvent::Synced => {}
    }
}
