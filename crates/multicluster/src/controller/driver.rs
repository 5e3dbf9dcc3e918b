//! The controller at work: what it receives and does, one step at a time.

use std::collections::{HashMap, HashSet, VecDeque};
use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{BoxStream, SelectAll};
use futures::{FutureExt, StreamExt};
use kube::runtime::reflector::Lookup;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::config::Config;
use super::gate::{Gate, GateChange};
use super::intake::Intake;
use super::source::Source;
use super::work::{Done, Outcome, Task, Work, perform};
use crate::action::Action;
use crate::cluster::Cluster;
use crate::deadline::after;
use crate::error::Error;
use crate::event::FleetEvent;
use crate::fleet::{ControllerEvent, Fleet, Registration};
use crate::guard::{Callback, Panicked, caught};
use crate::name::ClusterName;
use crate::pace::PaceGuard;
use crate::priority::Priority;
use crate::queue::{Lease, Queue, Reason};
use crate::request::{Key, Request};
use crate::stats::{ControllerStats, Ended};
use crate::store::FleetStore;

/// Decides whether a cluster concerns the controller at all.
pub(crate) type Filter = Box<dyn Fn(&Cluster) -> bool + Send + Sync>;

/// Requests of the user, or what the stream of them panicked with.
pub(crate) type Trigger<K> = BoxStream<'static, Result<Request<K>, String>>;

/// What a controller reports.
pub(crate) type Report<K, E> = Result<(Request<K>, Action), Error<K, E>>;

/// All a driver is made of.
pub(crate) struct Parts<K: Lookup, E> {
    pub(crate) fleet: Fleet,
    pub(crate) registration: Registration,
    pub(crate) store: FleetStore<K>,
    pub(crate) dyntype: K::DynamicType,
    pub(crate) config: Config,
    pub(crate) filters: Vec<Filter>,
    pub(crate) queue: Queue<Key>,
    pub(crate) intake: Arc<Intake>,
    pub(crate) events: mpsc::UnboundedReceiver<ControllerEvent>,
    pub(crate) sources: Vec<Arc<dyn Source>>,
    pub(crate) triggers: SelectAll<Trigger<K>>,
    pub(crate) shutdown: BoxFuture<'static, ()>,
    /// When it ends, a controller that is stopping waits for nothing any more.
    pub(crate) force: BoxFuture<'static, ()>,
    pub(crate) stats: Arc<ControllerStats>,
    pub(crate) work: Work<K, E>,
    /// Called when a cluster is closed.
    pub(crate) closed: Box<dyn Fn(&ClusterName) + Send + Sync>,
}

/// A controller at work.
pub(crate) struct Driver<K: Lookup, E: StdError + 'static> {
    parts: Parts<K, E>,
    gate: Gate,
    open: HashMap<ClusterName, Opening>,
    openings: u64,
    workers: JoinSet<Done<E>>,
    running: HashMap<Id, Running>,
    /// Clusters that were closed while reconciles ran, and when those are aborted.
    closing: HashMap<ClusterName, Instant>,
    /// When whatever still runs is aborted, once the controller has to stop.
    stop_at: Option<Instant>,
    /// Waits for sources of other fleets, and reports their failures.
    _waiting: JoinSet<()>,
    /// Functions whose panics have been logged.
    warned: HashSet<Callback>,
    drained: u64,
    reports: VecDeque<Report<K, E>>,
}

/// A cluster that is worked on.
struct Opening {
    number: u64,
    cluster: Cluster,
    stop: CancellationToken,
}

struct Running {
    key: Key,
    opening: u64,
    abort: AbortHandle,
    _pace: Option<PaceGuard>,
}

impl<K, E> Driver<K, E>
where
    K: Lookup<DynamicType: Clone + Send + Sync> + Send + Sync + 'static,
    E: StdError + Send + 'static,
{
    pub(crate) fn new(parts: Parts<K, E>) -> Self {
        let mut waiting = JoinSet::new();
        let (mut same, mut foreign) = (HashSet::new(), HashSet::new());
        for (number, source) in parts.sources.iter().enumerate() {
            if let Some(troubles) = source.troubles() {
                waiting.spawn(troubles);
            }
            let Some(ready) = source.ready(parts.config.patience) else {
                same.insert(number);
                continue;
            };
            foreign.insert(number);
            let intake = parts.intake.clone();
            waiting.spawn(async move {
                ready.await;
                intake.notify(ControllerEvent::ForeignReady { source: number });
            });
        }
        Self {
            parts,
            gate: Gate::new(same, foreign),
            open: HashMap::new(),
            openings: 0,
            workers: JoinSet::new(),
            running: HashMap::new(),
            closing: HashMap::new(),
            stop_at: None,
            _waiting: waiting,
            warned: HashSet::new(),
            drained: 0,
            reports: VecDeque::new(),
        }
    }

    /// The next report; `None` when the controller has stopped.
    pub(crate) async fn next(&mut self) -> Option<Report<K, E>> {
        loop {
            if let Some(report) = self.reports.pop_front() {
                return Some(report);
            }
            if self.stop_at.is_some() && self.workers.is_empty() {
                return None;
            }
            self.step().await;
        }
    }

    async fn step(&mut self) {
        let limit = self.parts.config.concurrency;
        let stopping = self.stop_at.is_some();
        let may_start = !stopping && (limit == 0 || self.workers.len() < limit);
        let deadline = self.closing.values().copied().chain(self.stop_at).min();
        let (pace, queue) = (&self.parts.config.pace, &self.parts.queue);
        let next = async {
            match pace {
                Some(pace) => pace.next(queue).await,
                None => queue.next().await,
            }
        };
        tokio::select! {
            biased;
            () = &mut self.parts.shutdown, if !stopping => self.stop(),
            () = &mut self.parts.force, if stopping => self.hurry(),
            // Events first: nothing may start in a cluster that has just left.
            Some(event) = self.parts.events.recv() => self.on_event(event),
            Some(joined) = self.workers.join_next_with_id() => self.joined(joined),
            () = tokio::time::sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => self.abort_late(),
            Some(request) = self.parts.triggers.next() => match request {
                Ok(request) => self.parts.intake.push(request.key(), Priority::Normal, Reason::Triggered),
                Err(message) => self.panicked(Panicked { callback: Callback::Trigger, over: None, message }),
            },
            Some(lease) = next, if may_start => self.start(lease),
        }
        self.report_drained();
    }

    fn on_event(&mut self, event: ControllerEvent) {
        let changes = match event {
            ControllerEvent::Fleet(FleetEvent::Engage(cluster)) => {
                let (name, accepted) = (cluster.name().clone(), self.accepts(&cluster));
                let change = self.gate.engage(cluster, accepted);
                if accepted {
                    self.parts.intake.expect(name);
                }
                change.into_iter().collect()
            }
            ControllerEvent::Fleet(FleetEvent::Disengage { name, epoch, .. }) => {
                let change = self.gate.disengage(&name, epoch);
                if !self.gate.takes_part(&name) {
                    self.parts.intake.forget(&name);
                }
                change.into_iter().collect()
            }
            ControllerEvent::Fleet(FleetEvent::EndpointDown(id)) | ControllerEvent::Unwatched(id) => {
                self.gate.endpoint_down(&id);
                Vec::new()
            }
            ControllerEvent::Fleet(FleetEvent::Failing { source: what, error })
            | ControllerEvent::ProviderFails { what, error } => {
                self.reports.push_back(Err(Error::Provider { what, error }));
                Vec::new()
            }
            ControllerEvent::Fleet(_) => Vec::new(),
            ControllerEvent::WatchFails { resource, endpoint, error } => {
                self.reports.push_back(Err(Error::Watch { endpoint, resource, error }));
                Vec::new()
            }
            ControllerEvent::Panicked(panic) => {
                self.panicked(panic);
                Vec::new()
            }
            ControllerEvent::Ownership(ownership) => self.gate.own(ownership),
            // An endpoint may have left, and even come back, since this was sent.
            ControllerEvent::Listed { source, endpoint } if !self.parts.sources[source].is_listed(&endpoint) => {
                Vec::new()
            }
            ControllerEvent::Listed { source, endpoint } => self.gate.listed(source, &endpoint),
            ControllerEvent::ForeignReady { source } => self.gate.foreign_ready(source),
            ControllerEvent::Undecodable(object) => {
                self.parts.stats.count_undecodable();
                self.reports.push_back(Err(Error::Undecodable(object)));
                Vec::new()
            }
        };
        for change in changes {
            match change {
                GateChange::Open(cluster) => self.open(cluster),
                GateChange::Switch(cluster) => {
                    if let Some(opening) = self.open.get_mut(cluster.name()) {
                        opening.cluster = cluster;
                    }
                }
                GateChange::Close(name) => self.close(&name),
            }
        }
        self.parts.stats.set_open(self.open.len());
    }

    fn accepts(&mut self, cluster: &Cluster) -> bool {
        let accepted = caught(|| self.parts.filters.iter().all(|filter| filter(cluster)));
        accepted.unwrap_or_else(|message| {
            let over = Some(format!("cluster {}", cluster.name()));
            self.panicked(Panicked { callback: Callback::ClusterFilter, over, message });
            false
        })
    }

    fn panicked(&mut self, panic: Panicked) {
        // Panics of indexes and the like are logged by the informer, once for all controllers.
        let is_mine = !matches!(panic.callback, Callback::Index(_) | Callback::ClusterKey);
        if is_mine && self.warned.insert(panic.callback.clone()) {
            tracing::warn!(controller = self.parts.stats.name(), %panic, "A function panicked; later panics of it are not logged.");
        }
        self.reports.push_back(Err(Error::Callback(panic)));
    }

    fn open(&mut self, cluster: Cluster) {
        let name = cluster.name().clone();
        tracing::debug!(cluster = %name, "working on a cluster");
        self.openings += 1;
        let opening = Opening { number: self.openings, cluster, stop: CancellationToken::new() };
        self.open.insert(name.clone(), opening);
        // First open, then replay: what changes meanwhile is seen by one of them at least.
        self.parts.intake.open(name.clone());
        for source in &self.parts.sources {
            source.replay(&name);
        }
    }

    fn close(&mut self, name: &ClusterName) {
        tracing::debug!(cluster = %name, "no longer working on a cluster");
        if self.gate.takes_part(name) {
            self.parts.intake.close(name, |key| self.parts.store.lookup(key).is_some());
        } else {
            self.parts.intake.forget(name);
        }
        if let Some(opening) = self.open.remove(name) {
            opening.stop.cancel();
        }
        (self.parts.closed)(name);
        if self.running.values().any(|running| running.key.cluster == *name) {
            self.closing.insert(name.clone(), after(Instant::now(), self.parts.config.grace));
        }
    }

    fn start(&mut self, lease: Lease<Key>) {
        let key = lease.key().clone();
        let Some(opening) = self.open.get(&key.cluster) else { return };
        if !self.gate.may_begin(&opening.cluster) {
            // An event will follow: it drops this request, or the cluster goes on.
            lease.again_after(self.parts.config.later);
            return;
        }
        self.parts.stats.waited.record(lease.waited());
        let task = Task {
            object: self.parts.store.lookup(&key),
            cluster: opening.cluster.clone(),
            fleet: self.parts.fleet.clone(),
            attempt: lease.attempt(),
            reason: lease.reason(),
            since: Instant::now() - lease.waited(),
            stop: opening.stop.clone(),
            key,
        };
        let (key, opening, priority) = (task.key.clone(), opening.number, lease.priority());
        let abort = self.workers.spawn(perform(self.parts.work.clone(), task, lease, opening));
        let pace = self.parts.config.pace.as_ref().map(|pace| pace.begin(&key.cluster, priority));
        self.running.insert(abort.id(), Running { key, opening, abort, _pace: pace });
    }

    fn joined(&mut self, joined: Result<(Id, Done<E>), JoinError>) {
        let id = match &joined {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let Some(Running { key, opening, .. }) = self.running.remove(&id) else { return };
        match joined {
            Ok((_, done)) => self.finish(done),
            // Not worth reporting if the cluster has left; otherwise the controller had to stop.
            Err(_) if self.open.get(&key.cluster).is_some_and(|open| open.number == opening) => {
                self.reports.push_back(Err(Error::Aborted { request: self.request(&key) }));
            }
            Err(_) => {}
        }
        let cluster = key.cluster;
        if self.closing.contains_key(&cluster) && !self.has_leftovers(&cluster) {
            self.closing.remove(&cluster);
        }
    }

    fn finish(&mut self, done: Done<E>) {
        let Done { lease, outcome, epoch, opening, took } = done;
        let key = lease.key().clone();
        let Some(current) = self.open.get(&key.cluster).filter(|current| current.number == opening) else {
            // Its cluster has left meanwhile, so the result does not matter.
            self.parts.stats.count(Ended::Gone);
            return;
        };
        let moved = current.cluster.epoch() != epoch;
        self.parts.stats.took.record(took);
        let queue = &self.parts.queue;
        let ended = match outcome {
            Outcome::Skipped => {
                lease.done();
                return;
            }
            Outcome::Done(action) => {
                let ended = match action {
                    Action::AwaitChange => {
                        lease.done();
                        Ended::Success
                    }
                    Action::Requeue(after) => {
                        queue.add_after(key.clone(), after);
                        lease.done();
                        Ended::Requeue
                    }
                    Action::Backoff => {
                        lease.retry();
                        Ended::Requeue
                    }
                };
                self.reports.push_back(Ok((self.request(&key), action)));
                ended
            }
            // Asked the old endpoint of a cluster that has moved: the new one may know better.
            Outcome::Failed { .. } | Outcome::Gone if moved => {
                drop(lease);
                queue.add_with(key, Priority::Normal, Reason::Retried);
                Ended::Later
            }
            Outcome::Gone => {
                lease.done();
                Ended::Gone
            }
            Outcome::Later => {
                lease.again_after(self.parts.config.later);
                Ended::Later
            }
            Outcome::Failed { error, action, cause } => {
                match (action, cause) {
                    (Action::AwaitChange, _) => drop(lease),
                    (Action::Requeue(after), _) => lease.retry_after(after),
                    (Action::Backoff, Some(cause)) => lease.wait_for(&cause),
                    (Action::Backoff, None) => _ = lease.retry(),
                }
                self.reports.push_back(Err(Error::Reconcile { request: self.request(&key), error }));
                Ended::Error
            }
            Outcome::Panicked(message) => {
                lease.retry();
                self.reports.push_back(Err(Error::Panic { request: self.request(&key), message }));
                Ended::Panic
            }
        };
        self.parts.stats.count(ended);
    }

    /// Begins to stop: nothing new is started, and what runs has some time.
    fn stop(&mut self) {
        self.stop_at = Some(after(Instant::now(), self.parts.config.farewell()));
        for opening in self.open.values() {
            opening.stop.cancel();
        }
    }

    /// Waits no longer for what runs.
    fn hurry(&mut self) {
        self.parts.force = futures::future::pending().boxed();
        self.stop_at = Some(Instant::now());
        self.abort_late();
    }

    /// Aborts reconciles whose grace is over.
    fn abort_late(&mut self) {
        let now = Instant::now();
        let stopping = self.stop_at.is_some_and(|at| at <= now);
        for running in self.running.values() {
            let late = self.closing.get(&running.key.cluster).is_some_and(|at| *at <= now) && self.is_leftover(running);
            if stopping || late {
                running.abort.abort();
            }
            if stopping {
                // Its last write may still take effect.
                self.parts.registration.cut_off();
            }
        }
        // Aborted tasks end at once; they must not keep the timer firing until they are joined.
        let pause = after(now, self.parts.config.grace.max(Duration::from_secs(1)));
        for at in self.closing.values_mut().chain(&mut self.stop_at).filter(|at| **at <= now) {
            *at = pause;
        }
    }

    fn has_leftovers(&self, cluster: &ClusterName) -> bool {
        self.running.values().any(|running| running.key.cluster == *cluster && self.is_leftover(running))
    }

    /// Whether a run belongs to an opening that has ended.
    fn is_leftover(&self, running: &Running) -> bool {
        self.open.get(&running.key.cluster).is_none_or(|opening| opening.number != running.opening)
    }

    fn report_drained(&mut self) {
        let version = self.gate.version();
        if self.closing.is_empty() && self.drained < version {
            self.drained = version;
            self.parts.registration.drained(version);
        }
    }

    fn request(&self, key: &Key) -> Request<K> {
        Request::from_key(key, self.parts.dyntype.clone())
    }
}

impl<K: Lookup, E: StdError + 'static> Drop for Driver<K, E> {
    fn drop(&mut self) {
        if !self.running.is_empty() {
            self.parts.registration.cut_off();
        }
    }
}
