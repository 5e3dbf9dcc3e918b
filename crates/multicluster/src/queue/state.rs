//! The queue without locks and clock: which key is next at a given time.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{End, Pick, QueueConfig, QueueStats, Reason};
use crate::deadline::after;
use crate::name::ClusterName;
use crate::priority::Priority;
use crate::request::HasCluster;

/// When a timer fires; the number distinguishes timers of the same instant, and older from newer ones.
type Timer = (Instant, u64);

/// How many keys of each priority are handed out in one round, while all have some.
const SHARES: [u32; 3] = [8, 2, 1];
/// How often a key is tried on its own before it waits together with others.
const TRIES: u32 = 4;
/// Pauses between two keys of a group that are tried: the first one, doubled each time up to the longest.
const FIRST_TRY: Duration = Duration::from_millis(100);
const LONGEST_TRY: Duration = Duration::from_secs(2);
/// In a large group every key is tried once in this time, unless that means pauses shorter than the shortest.
const ROUND: Duration = Duration::from_mins(1);
const SHORTEST_TRY: Duration = Duration::from_millis(200);
/// How many keys of a group follow each key that no longer fails.
const FOLLOWERS: usize = 4;
/// How many clusters that were idle go first before a busy one has its turn again.
const FRESH_IN_A_ROW: u32 = 8;

pub(super) struct QueueState<K> {
    config: QueueConfig,
    lanes: HashMap<ClusterName, Lane<K>>,
    /// For each priority the lanes that have waiting keys and may run more, in the order of their turns.
    turns: [Turns; 3],
    /// What is left of each priority's share in this round.
    credit: [u32; 3],
    timers: BTreeMap<Timer, Due<K>>,
    groups: HashMap<Arc<str>, Group<K>>,
    /// Numbers timers, runs, lanes and places in line.
    sequence: u64,
    queued: usize,
    running: usize,
    added: u64,
    closed: bool,
}

/// The order of lanes of one priority. A lane that was idle does not have to wait for all busy ones, however many there are.
#[derive(Default)]
struct Turns {
    fresh: VecDeque<(ClusterName, u64)>,
    busy: VecDeque<(ClusterName, u64)>,
    /// How many fresh lanes had their turn since the last busy one.
    in_a_row: u32,
}

impl Turns {
    fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.busy.is_empty()
    }

    fn next(&mut self) -> Option<(ClusterName, u64)> {
        if self.busy.is_empty() || !self.fresh.is_empty() && self.in_a_row < FRESH_IN_A_ROW {
            self.in_a_row = self.in_a_row.saturating_add(1);
            self.fresh.pop_front()
        } else {
            self.in_a_row = 0;
            self.busy.pop_front()
        }
    }
}

/// The keys of one cluster.
struct Lane<K> {
    /// Distinguishes this lane from an earlier one of the same cluster.
    id: u64,
    /// Places in line for each priority. Keys that became more urgent leave a stale place behind.
    waiting: [VecDeque<(u64, K)>; 3],
    /// Whether the lane has a turn for each priority.
    has_turn: [bool; 3],
    entries: HashMap<K, KeyState>,
    queued: usize,
    running: usize,
}

/// What a timer is for.
enum Due<K> {
    /// A key is queued.
    Key(K, Reason),
    /// A key of a group is tried.
    Group(Arc<str>),
}

/// Keys that failed for the same cause, none of which can succeed before it is gone. One at a time is tried; when one no longer fails for that
/// cause, others follow.
struct Group<K> {
    /// In the order of their turns.
    waiting: BTreeMap<u64, K>,
    /// How many are being tried, or were queued for another reason.
    tried: usize,
    pause: Duration,
    timer: Option<Timer>,
}

/// A key's place in a group.
struct Wait {
    cause: Arc<str>,
    /// None while it is tried.
    place: Option<u64>,
}

/// What is known about a key. Keys about which nothing is known have none.
struct KeyState {
    phase: Phase,
    timers: Vec<Timer>,
    failures: u32,
    wait: Option<Wait>,
}

#[derive(Clone, Copy)]
enum Phase {
    Idle,
    Queued {
        trigger: Trigger,
        place: u64,
    },
    Running,
    /// Running, and to be queued again afterwards.
    Dirty {
        trigger: Trigger,
    },
}

/// Why a key is queued.
#[derive(Clone, Copy)]
pub(super) struct Trigger {
    pub(super) priority: Priority,
    pub(super) reason: Reason,
    pub(super) since: Instant,
}

impl Trigger {
    /// Both at once: the more urgent one counts, since the first.
    fn join(self, other: Self) -> Self {
        let urgent = if other.priority < self.priority { other } else { self };
        Self { since: self.since.min(other.since), ..urgent }
    }
}

/// A key that was handed out.
pub(super) struct Run<K> {
    pub(super) key: K,
    pub(super) attempt: u32,
    pub(super) priority: Priority,
    pub(super) reason: Reason,
    pub(super) waited: Duration,
    /// Timers with a smaller number were set before the run.
    started: u64,
}

impl<K: HasCluster + Eq + Hash + Clone> QueueState<K> {
    pub(super) fn new(config: QueueConfig) -> Self {
        Self {
            config,
            lanes: HashMap::new(),
            turns: Default::default(),
            credit: SHARES,
            timers: BTreeMap::new(),
            groups: HashMap::new(),
            sequence: 0,
            queued: 0,
            running: 0,
            added: 0,
            closed: false,
        }
    }

    pub(super) fn add(&mut self, key: K, trigger: Trigger) {
        let place = self.next_number();
        let cluster = key.cluster().clone();
        let lane = self.lane(&cluster);
        let entry = lane.entries.entry(key.clone()).or_default();
        let trigger = match entry.phase {
            Phase::Idle => {
                lane.queued += 1;
                self.queued += 1;
                self.added += 1;
                trigger
            }
            Phase::Queued { trigger: first, .. } => {
                let joined = first.join(trigger);
                if joined.priority == first.priority {
                    return;
                }
                joined
            }
            Phase::Running => return entry.phase = Phase::Dirty { trigger },
            Phase::Dirty { trigger: first } => return entry.phase = Phase::Dirty { trigger: first.join(trigger) },
        };
        let lane = self.lane(&cluster);
        lane.entries.entry(key.clone()).or_default().phase = Phase::Queued { trigger, place };
        lane.waiting[trigger.priority.index()].push_back((place, key));
        let is_fresh = lane.running == 0 && lane.queued == 1;
        self.line_up(&cluster, is_fresh);
    }

    pub(super) fn add_at(&mut self, key: K, at: Instant, reason: Reason) {
        let timer = (at, self.next_number());
        let entry = self.entry(&key);
        if entry.timers.iter().any(|(other, _)| *other == at) {
            return;
        }
        entry.timers.push(timer);
        self.timers.insert(timer, Due::Key(key, reason));
    }

    /// Requeues a key that failed at that time, instead of when an earlier failure wanted it to.
    pub(super) fn retry_at(&mut self, key: K, at: Instant) {
        let pending = std::mem::take(&mut self.entry(&key).timers);
        let is_retry = |timer: &Timer| matches!(self.timers.get(timer), Some(Due::Key(_, Reason::Retried)));
        let (retries, others): (Vec<Timer>, Vec<Timer>) = pending.into_iter().partition(is_retry);
        for retry in retries {
            self.timers.remove(&retry);
        }
        self.entry(&key).timers = others;
        self.add_at(key, at, Reason::Retried);
    }

    /// Lets a key that failed wait together with all that failed for the same cause. The first failures are retried alone: most are over soon.
    pub(super) fn wait_for(&mut self, key: &K, cause: &str, now: Instant) {
        if self.entry(key).failures < TRIES {
            let pause = self.count_failure(key);
            return self.retry_at(key.clone(), after(now, pause));
        }
        let place = self.next_number();
        let cause = match self.groups.get_key_value(cause) {
            Some((cause, _)) => Arc::clone(cause),
            None => cause.into(),
        };
        let before = self.entry(key).wait.replace(Wait { cause: Arc::clone(&cause), place: Some(place) });
        let group = self.groups.entry(Arc::clone(&cause)).or_default();
        group.waiting.insert(place, key.clone());
        // Only now: a group that is left by its last key is forgotten, with its pauses.
        if let Some(before) = before {
            self.leave(&before);
        }
        self.set_group_timer(&cause, now);
    }

    /// Counts a failure and returns the pause that is due.
    pub(super) fn count_failure(&mut self, key: &K) -> Duration {
        let QueueConfig { first_retry, longest_retry, .. } = self.config;
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

    pub(super) fn purge(&mut self, cluster: &str) -> Vec<K> {
        let members = self.lanes.get(cluster).into_iter().flat_map(|lane| &lane.entries);
        let members: Vec<K> = members.filter(|(_, entry)| entry.wait.is_some()).map(|(key, _)| key.clone()).collect();
        for key in members {
            self.leave_group(&key);
        }
        let Some(lane) = self.lanes.get_mut(cluster) else { return Vec::new() };
        let known = lane.entries.keys().cloned().collect();
        self.queued -= lane.queued;
        lane.queued = 0;
        lane.waiting = Default::default();
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
        known
    }

    /// Hands out the next key, if one is due and its cluster may run more. The turns of those that are passed over stay what they are.
    pub(super) fn next(&mut self, now: Instant, lowest: Priority, pick: &Pick) -> Option<Run<K>> {
        self.fire_timers(now);
        let (limit, mut passed) = (self.limit(), Vec::new());
        let run = self.hand_out(now, lowest, pick, &mut passed);
        for (p, cluster, id) in passed.into_iter().rev() {
            let Some(lane) = self.lanes.get_mut(&cluster).filter(|lane| lane.id == id) else { continue };
            if lane.running < limit && !std::mem::replace(&mut lane.has_turn[p], true) {
                self.turns[p].busy.push_front((cluster, id));
            }
        }
        run
    }

    /// Hands out the next key of a cluster that may run more, and notes whose turns were passed over.
    fn hand_out(
        &mut self,
        now: Instant,
        lowest: Priority,
        pick: &Pick,
        passed: &mut Vec<(usize, ClusterName, u64)>,
    ) -> Option<Run<K>> {
        let limit = if pick.idle { 1 } else { self.limit() };
        loop {
            let priority = self.pick(lowest)?;
            let p = priority.index();
            let (cluster, id) = self.turns[p].next()?;
            // Turns of lanes that are gone, full or empty by now are just dropped: a lane lines up again when it can.
            let Some(lane) = self.lanes.get_mut(&cluster).filter(|lane| lane.id == id) else { continue };
            lane.has_turn[p] = false;
            if lane.running >= limit || pick.full.contains(&cluster) {
                passed.push((p, cluster, id));
                continue;
            }
            let Some((key, trigger, attempt)) = lane.pop(priority) else { continue };
            lane.queued -= 1;
            lane.running += 1;
            self.queued -= 1;
            self.running += 1;
            self.credit[p] = self.credit[p].saturating_sub(1);
            self.line_up(&cluster, false);
            let started = self.next_number();
            return Some(Run { key, attempt, priority, reason: trigger.reason, waited: now - trigger.since, started });
        }
    }

    /// Ends a run.
    pub(super) fn finish(&mut self, run: &Run<K>, end: End, now: Instant) {
        self.running -= 1;
        self.settle_group(run, now);
        let cluster = run.key.cluster();
        let Some(lane) = self.lanes.get_mut(cluster) else { return };
        lane.running -= 1;
        let Some(entry) = lane.entries.get_mut(&run.key) else { return };
        if end == End::Done {
            entry.failures = 0;
        }
        if end != End::Open {
            entry.timers.retain(|timer| {
                let set_in_this_run = timer.1 > run.started;
                if !set_in_this_run {
                    self.timers.remove(timer);
                }
                set_in_this_run
            });
        }
        match std::mem::replace(&mut entry.phase, Phase::Idle) {
            Phase::Dirty { trigger } => self.add(run.key.clone(), trigger),
            Phase::Idle | Phase::Queued { .. } | Phase::Running => self.tidy(&run.key),
        }
        self.line_up(cluster, false);
    }

    /// When the next timer fires.
    pub(super) fn next_timer(&self) -> Option<Instant> {
        self.timers.first_key_value().map(|((at, _), _)| *at)
    }

    /// Whether anything is left that somebody should wait for.
    pub(super) fn has_more(&self) -> bool {
        self.turns.iter().any(|turns| !turns.is_empty()) || !self.timers.is_empty()
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(super) fn stats(&self) -> QueueStats {
        let of_groups = self.groups.values().filter(|group| group.timer.is_some()).count();
        let waiting: usize = self.groups.values().map(|group| group.waiting.len()).sum();
        QueueStats { queued: self.queued, running: self.running, delayed: self.timers.len() - of_groups + waiting }
    }

    pub(super) fn added(&self) -> u64 {
        self.added
    }

    /// Since when the oldest waiting key has waited.
    pub(super) fn oldest(&self) -> Option<Instant> {
        let waiting = |entry: &KeyState| match entry.phase {
            Phase::Queued { trigger, .. } => Some(trigger.since),
            Phase::Idle | Phase::Running | Phase::Dirty { .. } => None,
        };
        self.lanes.values().flat_map(|lane| lane.entries.values()).filter_map(waiting).min()
    }

    /// How many keys of a cluster run.
    pub(super) fn running(&self, cluster: &str) -> usize {
        self.lanes.get(cluster).map_or(0, |lane| lane.running)
    }

    /// Clusters with the longest queues.
    pub(super) fn longest(&self, count: usize) -> Vec<(ClusterName, usize)> {
        let mut all: Vec<_> = self.lanes.iter().map(|(cluster, lane)| (cluster.clone(), lane.queued)).collect();
        all.retain(|(_, queued)| *queued > 0);
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        all.truncate(count);
        all
    }

    /// Whose turn it is among those that have any; new shares are dealt when they are used up.
    fn pick(&mut self, lowest: Priority) -> Option<Priority> {
        let ready = |p: &Priority| *p <= lowest && !self.turns[p.index()].is_empty();
        let with_credit = |p: &Priority| ready(p) && self.credit[p.index()] > 0;
        let first = Priority::ALL.into_iter().find(ready)?;
        if let Some(priority) = Priority::ALL.into_iter().find(with_credit) {
            return Some(priority);
        }
        self.credit = SHARES;
        Some(first)
    }

    fn limit(&self) -> usize {
        if self.config.per_cluster == 0 { usize::MAX } else { self.config.per_cluster }
    }

    /// Gives a lane a turn for each priority it has keys of, unless it is full.
    fn line_up(&mut self, cluster: &ClusterName, is_fresh: bool) {
        let limit = self.limit();
        let Some(lane) = self.lanes.get_mut(cluster) else { return };
        if lane.running >= limit {
            return;
        }
        for p in Priority::ALL.map(Priority::index) {
            if !lane.waiting[p].is_empty() && !std::mem::replace(&mut lane.has_turn[p], true) {
                let turns = &mut self.turns[p];
                let last = if is_fresh { &mut turns.fresh } else { &mut turns.busy };
                last.push_back((cluster.clone(), lane.id));
            }
        }
    }

    fn fire_timers(&mut self, now: Instant) {
        while let Some(due) = self.timers.first_entry().filter(|due| due.key().0 <= now) {
            match due.remove_entry() {
                (timer, Due::Key(key, reason)) => {
                    self.entry(&key).timers.retain(|other| *other != timer);
                    self.add(key, Trigger { priority: Priority::Normal, reason, since: now });
                }
                (_, Due::Group(cause)) => {
                    let Some(group) = self.groups.get_mut(&cause) else { continue };
                    group.timer = None;
                    group.lengthen();
                    self.let_try(&cause, 1, now);
                    self.set_group_timer(&cause, now);
                }
            }
        }
    }

    /// Queues the next keys of a group.
    fn let_try(&mut self, cause: &Arc<str>, count: usize, now: Instant) {
        for _ in 0..count {
            let Some(group) = self.groups.get_mut(cause) else { return };
            let Some((_, key)) = group.waiting.pop_first() else { return };
            group.tried += 1;
            if let Some(wait) = &mut self.entry(&key).wait {
                wait.place = None;
            }
            self.add(key, Trigger { priority: Priority::Normal, reason: Reason::Retried, since: now });
        }
    }

    /// Sets the timer that tries the next key of a group, unless it is set.
    fn set_group_timer(&mut self, cause: &Arc<str>, now: Instant) {
        let number = self.next_number();
        let Some(group) = self.groups.get_mut(cause) else { return };
        if group.timer.is_none() && !group.waiting.is_empty() {
            let timer = (after(now, group.pause), number);
            group.timer = Some(timer);
            self.timers.insert(timer, Due::Group(Arc::clone(cause)));
        }
    }

    /// After a run: if the key no longer fails, others of its group are tried.
    fn settle_group(&mut self, run: &Run<K>, now: Instant) {
        let entry = self.lanes.get(run.key.cluster()).and_then(|lane| lane.entries.get(&run.key));
        let Some(wait) = entry.and_then(|entry| entry.wait.as_ref()) else { return };
        let waits_again = wait.place.is_some_and(|place| place > run.started);
        if !waits_again {
            let cause = Arc::clone(&wait.cause);
            self.leave_group(&run.key);
            self.let_try(&cause, FOLLOWERS, now);
        }
    }

    /// Takes a key out of its group.
    fn leave_group(&mut self, key: &K) {
        let entry = self.lanes.get_mut(key.cluster()).and_then(|lane| lane.entries.get_mut(key));
        if let Some(wait) = entry.and_then(|entry| entry.wait.take()) {
            self.leave(&wait);
        }
    }

    fn leave(&mut self, Wait { cause, place }: &Wait) {
        let Some(group) = self.groups.get_mut(cause) else { return };
        match place {
            Some(place) => drop(group.waiting.remove(place)),
            None => group.tried = group.tried.saturating_sub(1),
        }
        if group.waiting.is_empty() && group.tried == 0 {
            let timer = group.timer;
            self.groups.remove(cause);
            if let Some(timer) = timer {
                self.timers.remove(&timer);
            }
        }
    }

    fn lane(&mut self, cluster: &ClusterName) -> &mut Lane<K> {
        let sequence = &mut self.sequence;
        self.lanes.entry(cluster.clone()).or_insert_with(|| {
            *sequence += 1;
            Lane::new(*sequence)
        })
    }

    fn entry(&mut self, key: &K) -> &mut KeyState {
        self.lane(key.cluster()).entries.entry(key.clone()).or_default()
    }

    /// Drops the entry of a key about which nothing is left to know.
    fn tidy(&mut self, key: &K) {
        let Some(lane) = self.lanes.get_mut(key.cluster()) else { return };
        let idle = |entry: &KeyState| {
            let waits = !entry.timers.is_empty() || entry.wait.is_some();
            matches!(entry.phase, Phase::Idle) && !waits && entry.failures == 0
        };
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

impl<K: Eq + Hash + Clone> Lane<K> {
    fn new(id: u64) -> Self {
        Self { id, waiting: Default::default(), has_turn: [false; 3], entries: HashMap::new(), queued: 0, running: 0 }
    }

    /// Takes the first key in line that still waits there, and makes it run.
    fn pop(&mut self, priority: Priority) -> Option<(K, Trigger, u32)> {
        while let Some((number, key)) = self.waiting[priority.index()].pop_front() {
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            if let Phase::Queued { trigger, place } = entry.phase
                && place == number
            {
                entry.phase = Phase::Running;
                return Some((key, trigger, entry.failures));
            }
        }
        None
    }
}

impl Default for KeyState {
    fn default() -> Self {
        Self { phase: Phase::Idle, timers: Vec::new(), failures: 0, wait: None }
    }
}

impl<K> Default for Group<K> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), tried: 0, pause: FIRST_TRY, timer: None }
    }
}

impl<K> Group<K> {
    /// Makes the pauses longer, up to what suits the size of the group.
    fn lengthen(&mut self) {
        let many = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX).max(1);
        let longest = (ROUND / many).clamp(SHORTEST_TRY, LONGEST_TRY);
        self.pause = (self.pause * 2).min(longest);
    }
}
