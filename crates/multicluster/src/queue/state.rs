//! The queue without waiting: who is next, given the time.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

use super::{QueueConfig, QueueStats};
use crate::name::ClusterName;
use crate::request::HasCluster;

/// When a timer fires; the number keeps timers of the same instant apart and tells older from newer ones.
type Timer = (Instant, u64);

pub(super) struct State<K> {
    config: QueueConfig,
    lanes: HashMap<ClusterName, Lane<K>>,
    /// Clusters with waiting keys, in the order of their turns.
    turns: VecDeque<ClusterName>,
    timers: BTreeMap<Timer, K>,
    /// Counts timers and runs.
    sequence: u64,
    queued: usize,
    running: usize,
    closed: bool,
}

/// The keys of one cluster.
struct Lane<K> {
    waiting: VecDeque<K>,
    entries: HashMap<K, Entry>,
}

/// What is known about a key. Keys about which nothing is known have none.
struct Entry {
    phase: Phase,
    timers: Vec<Timer>,
    failures: u32,
}

#[derive(Clone, Copy)]
enum Phase {
    Idle,
    Queued {
        since: Instant,
    },
    Running,
    /// Running, and to be queued again afterwards.
    Dirty {
        since: Instant,
    },
}

/// A key that was handed out.
pub(super) struct Run<K> {
    pub(super) key: K,
    pub(super) attempt: u32,
    pub(super) waited: Duration,
    /// Timers with a smaller number were set before the run.
    started: u64,
}

impl<K: HasCluster + Eq + Hash + Clone> State<K> {
    pub(super) fn new(config: QueueConfig) -> Self {
        Self {
            config,
            lanes: HashMap::new(),
            turns: VecDeque::new(),
            timers: BTreeMap::new(),
            sequence: 0,
            queued: 0,
            running: 0,
            closed: false,
        }
    }

    pub(super) fn add(&mut self, key: K, now: Instant) {
        let cluster = key.cluster().clone();
        let lane = self.lanes.entry(cluster.clone()).or_default();
        let entry = lane.entries.entry(key.clone()).or_default();
        match entry.phase {
            Phase::Idle => {
                entry.phase = Phase::Queued { since: now };
                self.queued += 1;
                if lane.waiting.is_empty() {
                    self.turns.push_back(cluster);
                }
                lane.waiting.push_back(key);
            }
            Phase::Running => entry.phase = Phase::Dirty { since: now },
            Phase::Queued { .. } | Phase::Dirty { .. } => {}
        }
    }

    pub(super) fn add_at(&mut self, key: K, at: Instant) {
        let timer = (at, self.next_number());
        let entry = self.entry(&key);
        if entry.timers.iter().any(|(other, _)| *other == at) {
            return;
        }
        entry.timers.push(timer);
        self.timers.insert(timer, key);
    }

    /// Counts a failure and returns the pause that is due.
    pub(super) fn count_failure(&mut self, key: &K) -> Duration {
        let QueueConfig { first_retry, longest_retry } = self.config;
        let entry = self.entry(key);
        let pause = first_retry.saturating_mul(1 << entry.failures.min(31)).min(longest_retry);
        entry.failures = entry.failures.saturating_add(1);
        pause
    }

    pub(super) fn forget(&mut self, key: &K) {
        if let Some(entry) = self.lanes.get_mut(key.cluster()).and_then(|lane| lane.entries.get_mut(key)) {
            entry.failures = 0;
        }
        self.tidy(key);
    }

    pub(super) fn purge(&mut self, cluster: &str) {
        let Some(lane) = self.lanes.get_mut(cluster) else { return };
        self.queued -= lane.waiting.len();
        lane.waiting.clear();
        lane.entries.retain(|_, entry| {
            for timer in entry.timers.drain(..) {
                self.timers.remove(&timer);
            }
            entry.failures = 0;
            let runs = matches!(entry.phase, Phase::Running | Phase::Dirty { .. });
            if runs {
                entry.phase = Phase::Running;
            }
            runs
        });
        if lane.entries.is_empty() {
            self.lanes.remove(cluster);
        }
        self.turns.retain(|turn| &**turn != cluster);
    }

    /// Hands out the next key, if one is due.
    pub(super) fn next(&mut self, now: Instant) -> Option<Run<K>> {
        self.fire_timers(now);
        let cluster = self.turns.pop_front()?;
        let lane = self.lanes.get_mut(&cluster)?;
        let key = lane.waiting.pop_front()?;
        if !lane.waiting.is_empty() {
            self.turns.push_back(cluster);
        }
        let entry = lane.entries.entry(key.clone()).or_default();
        let since = match entry.phase {
            Phase::Queued { since } => since,
            Phase::Idle | Phase::Running | Phase::Dirty { .. } => now,
        };
        entry.phase = Phase::Running;
        let attempt = entry.failures;
        self.queued -= 1;
        self.running += 1;
        Some(Run { key, attempt, waited: now - since, started: self.next_number() })
    }

    /// Ends a run; with success if `done`.
    pub(super) fn finish(&mut self, run: &Run<K>, done: bool, now: Instant) {
        self.running -= 1;
        let Some(entry) = self.lanes.get_mut(run.key.cluster()).and_then(|lane| lane.entries.get_mut(&run.key)) else {
            return;
        };
        if done {
            entry.failures = 0;
            entry.timers.retain(|timer| {
                let set_in_this_run = timer.1 > run.started;
                if !set_in_this_run {
                    self.timers.remove(timer);
                }
                set_in_this_run
            });
        }
        match std::mem::replace(&mut entry.phase, Phase::Idle) {
            Phase::Dirty { since } => self.add(run.key.clone(), since.min(now)),
            Phase::Idle | Phase::Queued { .. } | Phase::Running => self.tidy(&run.key),
        }
    }

    /// When the next timer fires.
    pub(super) fn next_timer(&self) -> Option<Instant> {
        self.timers.first_key_value().map(|((at, _), _)| *at)
    }

    /// Whether anything is left that somebody should wait for.
    pub(super) fn has_more(&self) -> bool {
        self.queued > 0 || !self.timers.is_empty()
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(super) fn stats(&self) -> QueueStats {
        QueueStats { queued: self.queued, running: self.running, delayed: self.timers.len() }
    }

    fn fire_timers(&mut self, now: Instant) {
        while let Some(due) = self.timers.first_entry().filter(|due| due.key().0 <= now) {
            let (timer, key) = due.remove_entry();
            self.entry(&key).timers.retain(|other| *other != timer);
            self.add(key, now);
        }
    }

    fn entry(&mut self, key: &K) -> &mut Entry {
        let lane = self.lanes.entry(key.cluster().clone()).or_default();
        lane.entries.entry(key.clone()).or_default()
    }

    /// Drops the entry of a key about which nothing is left to know.
    fn tidy(&mut self, key: &K) {
        let Some(lane) = self.lanes.get_mut(key.cluster()) else { return };
        let idle = |entry: &Entry| matches!(entry.phase, Phase::Idle) && entry.timers.is_empty() && entry.failures == 0;
        if lane.entries.get(key).is_some_and(idle) {
            lane.entries.remove(key);
        }
        if lane.entries.is_empty() {
            self.lanes.remove(key.cluster());
        }
    }

    fn next_number(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.lanes.values().map(|lane| lane.entries.len()).sum()
    }
}

impl<K> Default for Lane<K> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), entries: HashMap::new() }
    }
}

impl Default for Entry {
    fn default() -> Self {
        Self { phase: Phase::Idle, timers: Vec::new(), failures: 0 }
    }
}
