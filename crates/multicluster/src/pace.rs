//! How many reconciles may run at once, found by measuring how fast servers answer.

mod share;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::future::pending;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::name::ClusterName;
use crate::priority::Priority;
use crate::queue::{Lease, Pick, Queue};
use crate::request::HasCluster;
use share::Shares;

/// The first limit: small, so that the answer times of idle servers are measured.
const FIRST: f64 = 4.0;
/// How many times longer than on an idle server, and how much longer in total, an answer may take before the limit is too high.
const TOLERATED: f64 = 6.0;
const TOLERATED_ANYWAY: f64 = 0.002;
/// The weight of one answer in the moving average.
const WEIGHT: f64 = 0.1;
/// With at most this many running, servers count as idle.
const AT_REST: usize = 2;
/// Which part of the limit urgent requests may use, so that servers answer them soon.
const URGENT: usize = 4;
/// Which part of that is left to requests of low priority meanwhile.
const BACKGROUND: usize = 32;
/// Whatever runs for longer waits for a slow server, and keeps no first key of another cluster waiting.
const SLOW: Duration = Duration::from_millis(250);
/// For how long after an urgent request another one is expected.
const EXPECTED: Duration = Duration::from_secs(1);

/// How many reconciles may run at once: as many as servers can bear.
///
/// The limit is learned from how long servers take to answer: report that with [`Pace::answered`] and [`Pace::refused`]. At the limit the
/// throughput is best, but every single answer takes long. So as soon as somebody creates, changes or deletes an object, work of
/// [`Priority::Low`] (first lists, relists) makes room and fewer reconciles run until the changes end; a small share is always left to it.
/// Clusters that have had very many turns lately make room, too, while others change something: one of their keys runs at a time.
/// Controllers with the same pace share its limit. Cloning is cheap.
///
/// ```
/// use std::time::Duration;
/// use carrick_multicluster::{Config, Pace};
///
/// let pace = Pace::between(4, 128);
/// let config = Config::default().paced_by(pace.clone());
/// // in the reconciler, after each write to server 0:
/// pace.answered(0, Duration::from_millis(5));
/// ```
#[derive(Clone, Debug)]
pub struct Pace {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    course: Mutex<Course>,
    /// Notified when another one may run.
    room: Notify,
}

impl Pace {
    /// A pace whose limit stays between these numbers.
    pub fn between(fewest: usize, most: usize) -> Self {
        let course = Mutex::new(Course::between(fewest, most));
        Self { inner: Arc::new(Inner { course, room: Notify::new() }) }
    }

    /// No more of one cluster at once than this, over all controllers that share the pace, so that no cluster can take all places. Whatever
    /// exceeds it waits, and keeps nobody of another cluster waiting.
    #[must_use]
    pub fn per_cluster(self, most: usize) -> Self {
        self.inner.course.lock().per_cluster = most.max(1);
        self
    }

    /// How many may run while nothing is urgent.
    pub fn limit(&self) -> usize {
        self.inner.course.lock().limit()
    }

    /// A server has answered a request, after this time. Each server has a number.
    pub fn answered(&self, server: usize, took: Duration) {
        if self.inner.course.lock().answered(server, took.as_secs_f64()) {
            self.inner.room.notify_waiters();
        }
    }

    /// A server has answered that it is overloaded, or has not answered in time.
    pub fn refused(&self) {
        self.inner.course.lock().refused();
    }

    /// Waits until at most half of the limit is in use: the right time for work that is not urgent.
    pub async fn calm(&self) {
        self.until(|course| course.running * 2 <= course.limit()).await;
    }

    /// The next key of a queue that may run; `None` if the queue is closed.
    pub(crate) async fn next<K: HasCluster + Eq + Hash + Clone>(&self, queue: &Queue<K>) -> Option<Lease<K>> {
        loop {
            let notified = self.inner.room.notified();
            let (Admission { lowest, idle, until }, (full, less)) = {
                let (course, now) = (self.inner.course.lock(), Instant::now());
                (course.admission(now), course.full(now))
            };
            let (pick, until) = (Pick { idle, full }, until.into_iter().chain(less).min());
            let next = async {
                match lowest {
                    Some(lowest) => queue.next_with(lowest, &pick).await,
                    None => pending().await,
                }
            };
            let over = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                lease = next => return lease,
                () = notified => {}
                () = over => {}
            }
        }
    }

    async fn until(&self, wanted: impl Fn(&Course) -> bool) {
        loop {
            let notified = self.inner.room.notified();
            if wanted(&self.inner.course.lock()) {
                return;
            }
            notified.await;
        }
    }

    /// Counts a reconcile as running until the guard is dropped.
    pub(crate) fn begin(&self, cluster: &ClusterName, priority: Priority) -> PaceGuard {
        let number = self.inner.course.lock().begin(cluster, priority, Instant::now());
        // Others that wait for anything may have to wait for something urgent from now on.
        self.inner.room.notify_waiters();
        PaceGuard { pace: self.clone(), number }
    }
}

/// A running reconcile.
#[derive(Debug)]
pub(crate) struct PaceGuard {
    pace: Pace,
    number: u64,
}

impl Drop for PaceGuard {
    fn drop(&mut self) {
        self.pace.inner.course.lock().end(self.number);
        self.pace.inner.room.notify_waiters();
    }
}

/// The pace without locks and timers.
#[derive(Debug)]
struct Course {
    fewest: f64,
    most: f64,
    limit: f64,
    running: usize,
    /// How many of those are more urgent than [`Priority::Low`].
    urgent: usize,
    /// Those that run, in the order in which they have begun.
    begun: BTreeMap<u64, Begun>,
    /// How many of each cluster run, and how many may.
    clusters: HashMap<ClusterName, usize>,
    per_cluster: usize,
    /// Who has had more turns than others.
    shares: Shares,
    numbers: u64,
    /// Until when somebody is expected to wait for something.
    busy_until: Option<Instant>,
    /// Nobody has waited so far: it may grow fast.
    probing: bool,
    /// Answers that count for the next decision.
    answers: f64,
    servers: Vec<Option<Server>>,
}

/// One that runs.
#[derive(Debug)]
struct Begun {
    since: Instant,
    priority: Priority,
    cluster: ClusterName,
}

/// What may begin now.
#[derive(Debug, PartialEq)]
struct Admission {
    /// The least urgent that may; nothing if `None`.
    lowest: Option<Priority>,
    /// Only if nothing of its cluster runs.
    idle: bool,
    /// Until when that is true, if nothing begins or ends.
    until: Option<Instant>,
}

/// How long a server takes, in seconds.
#[derive(Debug, Clone, Copy)]
struct Server {
    at_rest: f64,
    now: f64,
}

impl Course {
    fn between(fewest: usize, most: usize) -> Self {
        let number = |count: usize| f64::from(u16::try_from(count.max(1)).unwrap_or(u16::MAX));
        let (fewest, most) = (number(fewest), number(most.max(fewest)));
        let limit = FIRST.clamp(fewest, most);
        let servers = Vec::new();
        Self {
            fewest,
            most,
            limit,
            running: 0,
            urgent: 0,
            begun: BTreeMap::new(),
            clusters: HashMap::new(),
            per_cluster: usize::MAX,
            shares: Shares::default(),
            numbers: 0,
            busy_until: None,
            probing: true,
            answers: 0.0,
            servers,
        }
    }

    fn begin(&mut self, cluster: &ClusterName, priority: Priority, now: Instant) -> u64 {
        self.numbers += 1;
        self.begun.insert(self.numbers, Begun { since: now, priority, cluster: cluster.clone() });
        *self.clusters.entry(cluster.clone()).or_default() += 1;
        self.running += 1;
        self.urgent += usize::from(priority != Priority::Low);
        self.shares.begin(cluster, priority, now);
        if priority == Priority::High {
            self.busy_until = Some(now + EXPECTED);
        }
        self.numbers
    }

    fn end(&mut self, number: u64) {
        let Some(Begun { priority, cluster, .. }) = self.begun.remove(&number) else { return };
        self.running -= 1;
        self.urgent -= usize::from(priority != Priority::Low);
        if let Some(count) = self.clusters.get_mut(&cluster) {
            *count -= 1;
            if *count == 0 {
                self.clusters.remove(&cluster);
            }
        }
    }

    /// Clusters of which no more may begin, and until when at most, if that ends by itself.
    fn full(&self, now: Instant) -> (Vec<ClusterName>, Option<Instant>) {
        let full = self.clusters.iter().filter(|(_, running)| **running >= self.per_cluster);
        let mut full: Vec<ClusterName> = full.map(|(cluster, _)| cluster.clone()).collect();
        if !self.clusters.keys().any(|cluster| self.shares.is_greedy(cluster, now)) {
            return (full, None);
        }
        let (making_room, until) = self.shares.making_room(now);
        full.extend(making_room);
        (full, until)
    }

    fn admission(&self, now: Instant) -> Admission {
        let busy = self.busy_until.filter(|until| *until > now);
        let lowest = self.lowest(busy.is_some(), self.running, self.urgent);
        if lowest.is_some() {
            return Admission { lowest, idle: false, until: busy };
        }
        // They have begun one after the other.
        let slow = self.begun.values().take_while(|begun| begun.since + SLOW <= now);
        let (mut running, mut urgent) = (self.running, self.urgent);
        for Begun { priority, .. } in slow {
            running -= 1;
            urgent -= usize::from(*priority != Priority::Low);
        }
        let is_bearable = self.running < whole(self.most);
        let lowest = self.lowest(busy.is_some(), running, urgent).filter(|_| is_bearable);
        let next = self.begun.values().map(|begun| begun.since + SLOW).find(|at| *at > now);
        let until = busy.into_iter().chain(next.filter(|_| lowest.is_none())).min();
        Admission { lowest, idle: true, until }
    }

    /// The least urgent that may begin while so many run.
    fn lowest(&self, busy: bool, running: usize, urgent: usize) -> Option<Priority> {
        let limit = self.limit();
        let is_calm = !busy || running - urgent < (limit / BACKGROUND).max(1);
        if is_calm && running < limit {
            Some(Priority::Low)
        } else if urgent < (limit / URGENT).max(self.fewest()) {
            Some(Priority::Normal)
        } else {
            None
        }
    }

    fn limit(&self) -> usize {
        whole(self.limit)
    }

    fn fewest(&self) -> usize {
        whole(self.fewest)
    }

    /// Learns from an answer; true if more may run now.
    fn answered(&mut self, server: usize, took: f64) -> bool {
        if self.servers.len() <= server {
            self.servers.resize(server + 1, None);
        }
        let known = self.servers[server].get_or_insert(Server { at_rest: took, now: took });
        known.now += (took - known.now) * WEIGHT;
        if self.running <= AT_REST || took < known.at_rest {
            known.at_rest += (took - known.at_rest) * WEIGHT;
        }
        self.answers += 1.0;
        if self.answers < self.limit {
            return false;
        }
        // Every one of those running has been answered about once since the last change.
        self.answers = 0.0;
        let late = |server: &Server| server.now > server.at_rest * TOLERATED + TOLERATED_ANYWAY;
        if self.servers.iter().flatten().any(late) {
            self.probing = false;
            self.set(self.limit * 0.8);
            return false;
        }
        // Without having been needed, a limit says nothing.
        if self.running < self.limit() {
            return false;
        }
        self.set(if self.probing { self.limit * 1.5 } else { self.limit + 1.0 });
        true
    }

    fn refused(&mut self) {
        self.probing = false;
        // One refusal of many at once is enough.
        if self.answers > 0.0 {
            self.answers = 0.0;
            self.set(self.limit * 0.5);
        }
    }

    fn set(&mut self, limit: f64) {
        self.limit = limit.clamp(self.fewest, self.most);
    }
}

/// A limit, which is between 1 and 65535, as a number of something.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(limit: f64) -> usize {
    limit as usize
}
