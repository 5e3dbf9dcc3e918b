//! A work queue that is fair between clusters.
//!
//! ```text
//!    add ──▶ queued ──next──▶ running ──drop──▶ idle
//!              ▲                 │ add
//!   add_after  │                 ▼
//!   retry ─▶ timer        running, dirty ──drop──▶ queued
//!   wait_for ─▶ group: one of all keys that wait for the same thing is tried, the others follow
//! ```
//!
//! Three priorities are served 8 : 2 : 1. Inside each, clusters take turns: a cluster with ten thousand waiting keys delays
//! a key of another cluster by one key, and one that was idle comes before those that are busy. A cluster that runs as many
//! keys as it may is skipped. A key that waits is not queued twice, and a key that runs is not handed out a second time
//! before its lease ends.

mod state;
#[cfg(test)]
mod tests;

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::deadline::after;
use crate::name::ClusterName;
use crate::priority::Priority;
use crate::request::HasCluster;
use state::{QueueState, Run, Trigger};

/// How a [`Queue`] shares and retries.
#[derive(Clone, Debug)]
pub struct QueueConfig {
    /// Pause before the first retry of a key; doubled with every further one.
    pub first_retry: Duration,
    /// Longest pause before a retry.
    pub longest_retry: Duration,
    /// How many keys of one cluster may run at once; 0 for any number.
    pub per_cluster: usize,
}

/// Why a key was queued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The object, or one that it depends on, was listed.
    Listed,
    /// The object was created or changed.
    #[default]
    Changed,
    /// The object was deleted.
    Deleted,
    /// An object that it depends on was created, changed or deleted.
    Related,
    /// Its cluster was engaged, or this process has taken it over.
    Engaged,
    /// A trigger of the controller's user fired.
    Triggered,
    /// The last reconcile asked for another one.
    Requeued,
    /// The last reconcile failed.
    Retried,
}

impl Reason {
    /// One word for logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Listed => "listed",
            Self::Changed => "changed",
            Self::Deleted => "deleted",
            Self::Related => "related",
            Self::Engaged => "engaged",
            Self::Triggered => "triggered",
            Self::Requeued => "requeued",
            Self::Retried => "retried",
        }
    }
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self { first_retry: Duration::from_millis(5), longest_retry: Duration::from_secs(1000), per_cluster: 0 }
    }
}

/// How much a [`Queue`] holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueStats {
    /// Keys that wait for a worker.
    pub queued: usize,
    /// Keys that run.
    pub running: usize,
    /// Pending timers.
    pub delayed: usize,
}

/// A fair work queue. Cloning shares the queue.
///
/// ```
/// use carrick_multicluster::{Key, Queue};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let queue = Queue::default();
/// for (cluster, name) in [("busy", "a"), ("busy", "b"), ("calm", "c")] {
///     queue.add(Key::new(cluster.parse()?, "default", name));
/// }
/// // Clusters take turns.
/// let mut order = Vec::new();
/// while order.len() < 3 {
///     let lease = queue.next().await.ok_or("the queue was closed")?;
///     order.push(lease.key().name.to_string());
///     lease.done();
/// }
/// assert_eq!(order, ["a", "c", "b"]);
/// # Ok(())
/// # }
/// ```
pub struct Queue<K: HasCluster + Eq + Hash + Clone> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    state: Mutex<QueueState<K>>,
    wake: Notify,
}

impl<K: HasCluster + Eq + Hash + Clone> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<K: HasCluster + Eq + Hash + Clone> Default for Queue<K> {
    fn default() -> Self {
        Self::new(QueueConfig::default())
    }
}

impl<K: HasCluster + Eq + Hash + Clone> Queue<K> {
    /// An empty queue.
    pub fn new(config: QueueConfig) -> Self {
        Self { shared: Arc::new(Shared { state: Mutex::new(QueueState::new(config)), wake: Notify::new() }) }
    }

    /// Queues a key now, with normal priority. Timers of the key stay.
    pub fn add(&self, key: K) {
        self.add_with(key, Priority::Normal, Reason::Changed);
    }

    /// Queues a key now. A key that waits already keeps its place, unless it becomes more urgent.
    pub fn add_with(&self, key: K, priority: Priority, reason: Reason) {
        self.shared.state.lock().add(key, Trigger { priority, reason, since: Instant::now() });
        self.shared.wake.notify_one();
    }

    /// Queues a key after a delay. It may run earlier for another reason; the timer then stays, unless that run
    /// ends with [`Lease::done`].
    pub fn add_after(&self, key: K, delay: Duration) {
        if delay.is_zero() {
            return self.add_with(key, Priority::Normal, Reason::Requeued);
        }
        self.shared.state.lock().add_at(key, after(Instant::now(), delay), Reason::Requeued);
        self.shared.wake.notify_one();
    }

    /// Queues a key after a delay that doubles with every retry since the last success, and returns the delay. A retry
    /// that was pending is replaced: however often a key fails, it has one retry.
    pub fn retry(&self, key: K) -> Duration {
        let mut state = self.shared.state.lock();
        let delay = state.count_failure(&key);
        state.retry_at(key, after(Instant::now(), delay));
        drop(state);
        self.shared.wake.notify_one();
        delay
    }

    /// Makes the next retry of a key start with the shortest delay again.
    pub fn forget(&self, key: &K) {
        self.shared.state.lock().forget(key);
    }

    /// Drops all waiting keys, timers and retry counts of a cluster, and returns the keys about which something was known, those that
    /// run included. Keys that run end as usual.
    pub fn purge(&self, cluster: &str) -> Vec<K> {
        self.shared.state.lock().purge(cluster)
    }

    /// The next key to work on, as soon as there is one; `None` after [`Queue::close`].
    pub async fn next(&self) -> Option<Lease<K>> {
        self.next_above(Priority::Low).await
    }

    /// The next key of at least this priority, as soon as there is one; `None` after [`Queue::close`].
    pub async fn next_above(&self, lowest: Priority) -> Option<Lease<K>> {
        self.next_with(lowest, &Pick::default()).await
    }

    /// The same, of the clusters that may have a turn.
    pub(crate) async fn next_with(&self, lowest: Priority, pick: &Pick) -> Option<Lease<K>> {
        // Whoever waits for a timer is the only one who knows about it: if it leaves, another must take over.
        let mut baton = Baton { wake: &self.shared.wake, held: true };
        loop {
            let wake = self.shared.wake.notified();
            let next_timer = {
                let mut state = self.shared.state.lock();
                if state.is_closed() {
                    return None;
                }
                if let Some(run) = state.next(Instant::now(), lowest, pick) {
                    // Wake-ups do not add up, so whoever takes a key wakes the next one while there are more.
                    baton.held = state.has_more();
                    return Some(Lease { shared: self.shared.clone(), run, end: End::Open });
                }
                state.next_timer()
            };
            match next_timer {
                Some(at) => {
                    let _ = tokio::time::timeout_at(at, wake).await;
                }
                None => wake.await,
            }
        }
    }

    /// Closes the queue: [`Queue::next`] returns `None` from now on, also where it is being awaited.
    pub fn close(&self) {
        self.shared.state.lock().close();
        self.shared.wake.notify_waiters();
    }

    /// How much the queue holds.
    pub fn stats(&self) -> QueueStats {
        self.shared.state.lock().stats()
    }

    /// How often a key was queued, not counting keys that were waiting already.
    pub fn added(&self) -> u64 {
        self.shared.state.lock().added()
    }

    /// How long the oldest waiting key has waited; zero if none waits.
    pub fn oldest(&self) -> Duration {
        let oldest = self.shared.state.lock().oldest();
        oldest.map(|since| since.elapsed()).unwrap_or_default()
    }

    /// How many keys of a cluster run.
    pub fn running(&self, cluster: &str) -> usize {
        self.shared.state.lock().running(cluster)
    }

    /// The clusters with the longest queues, longest first.
    pub fn longest(&self, count: usize) -> Vec<(ClusterName, usize)> {
        self.shared.state.lock().longest(count)
    }
}

/// Which clusters may have a turn.
#[derive(Debug, Default)]
pub(crate) struct Pick {
    /// Only those of which nothing runs.
    pub(crate) idle: bool,
    /// None of these.
    pub(crate) full: Vec<ClusterName>,
}

struct Baton<'a> {
    wake: &'a Notify,
    held: bool,
}

impl Drop for Baton<'_> {
    fn drop(&mut self) {
        if self.held {
            self.wake.notify_one();
        }
    }
}

/// One key being worked on. Dropping it ends the work; a key added meanwhile is then queued again.
pub struct Lease<K: HasCluster + Eq + Hash + Clone> {
    shared: Arc<Shared<K>>,
    run: Run<K>,
    end: End,
}

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Unknown: timers stay.
    Open,
    /// With success: retries are forgotten, older timers dropped.
    Done,
    /// The key is requeued: earlier timers and retries are dropped.
    Again,
}

impl<K: HasCluster + Eq + Hash + Clone> Lease<K> {
    /// The key.
    pub fn key(&self) -> &K {
        &self.run.key
    }

    /// How many retries there have been since the last success.
    pub fn attempt(&self) -> u32 {
        self.run.attempt
    }

    /// How urgent the key is.
    pub fn priority(&self) -> Priority {
        self.run.priority
    }

    /// Why the key was queued.
    pub fn reason(&self) -> Reason {
        self.run.reason
    }

    /// How long the key waited for a worker.
    pub fn waited(&self) -> Duration {
        self.run.waited
    }

    /// Ends the work with success: retries are forgotten, and timers set before this run are dropped.
    pub fn done(mut self) {
        self.end = End::Done;
    }

    /// Ends the work with neither success nor failure: the key is requeued after this delay, which replaces earlier timers and retries.
    pub fn again_after(mut self, delay: Duration) {
        self.end = End::Again;
        Queue { shared: self.shared.clone() }.add_after(self.run.key.clone(), delay);
    }

    /// Ends the work with failure: the key is requeued after this delay, which replaces earlier timers and retries.
    pub fn retry_after(mut self, delay: Duration) {
        self.end = End::Again;
        let mut state = self.shared.state.lock();
        state.count_failure(&self.run.key);
        state.retry_at(self.run.key.clone(), after(Instant::now(), delay));
    }

    /// Ends the work with failure: the key waits together with all that failed for the same cause, such as a server that is down or a permission
    /// that is missing. After a few attempts of its own, one key of the group is tried now and then; when one no longer fails for that cause, the
    /// others follow.
    pub fn wait_for(mut self, cause: &str) {
        self.end = End::Again;
        self.shared.state.lock().wait_for(&self.run.key, cause, Instant::now());
    }

    /// Ends the work with failure: the key is requeued after a growing delay, which is returned and replaces earlier timers and retries.
    pub fn retry(mut self) -> Duration {
        self.end = End::Again;
        let queue = Queue { shared: self.shared.clone() };
        queue.retry(self.run.key.clone())
    }
}

impl<K: HasCluster + Eq + Hash + Clone> Drop for Lease<K> {
    fn drop(&mut self) {
        self.shared.state.lock().finish(&self.run, self.end, Instant::now());
        self.shared.wake.notify_one();
    }
}
