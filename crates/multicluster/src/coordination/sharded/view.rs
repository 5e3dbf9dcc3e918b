//! What one process knows about the Leases, and what follows from it. No client and no clock: times are handed in.
//!
//! Two kinds of Leases: that of a process says that it lives, and is renewed; that of a slot says who has it, and is written only when
//! it changes hands. A process that could not renew its own Lease until the deadline has lost everything; only later, when others have
//! seen no change of it for its whole duration, do they take its slots. Every write names the version it was decided on, so decisions
//! on outdated knowledge fail.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::slots;

/// Time since the process started.
pub(super) type Time = Duration;

/// How long things take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// A process whose Lease has not changed for this long is dead to others.
    pub(super) duration: Duration,
    /// A process that could not renew its Lease for this long stops working.
    pub(super) deadline: Duration,
    /// A process renews its Lease this often.
    pub(super) interval: Duration,
}

/// What to do next. Every step but [`LeaseStep::Publish`] ends with a call that reports how it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LeaseStep {
    /// Work on these slots, and on no others, from now on.
    Publish { version: u64, working: Vec<bool> },
    /// Write the Lease of this process.
    Renew,
    /// Write this process into the Lease of a slot, if it is still in this version; `None` if there is no such Lease.
    Take { slot: usize, version: Option<u64>, after: Option<Dead> },
    /// Take this process out of the Lease of a slot, if it is still in this version.
    Release { slot: usize, version: u64 },
    /// Delete the Lease of a process that is long dead, if it is still in this version.
    Forget { process: Arc<str>, version: u64 },
}

/// A process that is dead as far as is known here: to be confirmed by a fresh read before anything is taken from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dead {
    pub(super) process: Arc<str>,
    /// The version of its Lease; `None` if there is none.
    pub(super) version: Option<u64>,
}

/// What a process says about itself in its Lease.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Living {
    pub(super) weight: f64,
    /// Into how many slots it divides the clusters. Processes that disagree must not share the work.
    pub(super) slots: usize,
    /// How long others must have seen no change before it is dead to them.
    pub(super) duration: Duration,
}

/// What one process knows.
#[derive(Debug)]
pub(super) struct View {
    me: Arc<str>,
    timing: Timing,
    processes: BTreeMap<Arc<str>, Process>,
    slots: Vec<Slot>,
    /// Whether all Leases have been seen once.
    synced: bool,
    /// When the last renewal that succeeded was begun.
    renewed: Option<Time>,
    /// When to renew next, unless that is going on.
    renew_at: Option<Time>,
    /// The version published last.
    version: u64,
    /// Grows whenever this process loses everything.
    life: u64,
    /// Whether the slots worked on differ from those published.
    dirty: bool,
}

#[derive(Debug)]
struct Process {
    /// What its Lease said last.
    living: Living,
    /// Version of its Lease; `None` if it has none.
    version: Option<u64>,
    /// When a change of its Lease was seen last.
    changed: Time,
}

#[derive(Debug, Default)]
struct Slot {
    holder: Option<Arc<str>>,
    version: Option<u64>,
    hold: Hold,
    /// Whether a step for this slot is going on.
    busy: bool,
    /// No step before this time, because the last one failed.
    not_before: Time,
}

/// What this process does with a slot whose Lease names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Hold {
    /// Nothing: the Lease was not written in this life, or its release was sent.
    #[default]
    Not,
    /// Works on it.
    Working,
    /// Takes up no more work since this version, and waits for what still runs.
    Stopping(u64),
    /// Nothing runs any more.
    Drained,
}

impl View {
    pub(super) fn new(me: Arc<str>, slots: usize, timing: Timing) -> Self {
        Self {
            me,
            timing,
            processes: BTreeMap::new(),
            slots: std::iter::repeat_with(Slot::default).take(slots).collect(),
            synced: false,
            renewed: None,
            renew_at: Some(Time::ZERO),
            version: 0,
            life: 0,
            dirty: false,
        }
    }

    /// All Leases have been seen once.
    pub(super) fn on_synced(&mut self) {
        self.synced = true;
    }

    /// The Lease of a process as seen now; `None` if it is gone.
    pub(super) fn on_process(&mut self, id: &Arc<str>, version: u64, living: Option<Living>, now: Time) {
        let known = self.processes.get(id);
        if is_old(version, living.is_none(), known.and_then(|known| known.version)) {
            return;
        }
        let last = known.map_or_else(|| self.nobody(), |known| known.living);
        let process = Process { living: living.unwrap_or(last), version: living.map(|_| version), changed: now };
        self.processes.insert(id.clone(), process);
    }

    /// The Lease of a slot as seen now; `None` if it is gone, an empty holder if nobody has the slot.
    pub(super) fn on_slot(&mut self, slot: usize, version: u64, holder: Option<&str>, now: Time) {
        let Some(state) = self.slots.get_mut(slot) else { return };
        if is_old(version, holder.is_none(), state.version) {
            return;
        }
        state.not_before = Time::ZERO;
        state.version = holder.map(|_| version);
        state.holder = holder.filter(|holder| !holder.is_empty()).map(Arc::from);
        if state.holder.as_ref() != Some(&self.me) {
            self.dirty |= state.hold == Hold::Working;
            state.hold = Hold::Not;
        }
        if let Some(holder) = state.holder.clone() {
            // Somebody without a Lease of its own may be about to write it; from now on it has the usual time.
            let unseen = Process { living: self.nobody(), version: None, changed: now };
            self.processes.entry(holder).or_insert(unseen);
        }
    }

    /// The renewal that was begun at that time succeeded.
    pub(super) fn on_renewed(&mut self, begun: Time, now: Time) {
        self.lapse(now);
        self.renewed = Some(begun);
        self.renew_at = Some(begun + self.timing.interval);
    }

    /// The renewal failed.
    pub(super) fn on_not_renewed(&mut self, now: Time) {
        self.renew_at = Some(now + self.timing.interval / 4);
    }

    /// The server has gone back in time: versions that come are not older than those that are known.
    pub(super) fn on_went_back(&mut self) {
        let slots = self.slots.iter_mut().map(|slot| &mut slot.version);
        let processes = self.processes.values_mut().map(|process| &mut process.version);
        slots.chain(processes).flatten().for_each(|version| *version = 0);
    }

    /// The slot was taken in that life, with the version given.
    pub(super) fn on_taken(&mut self, slot: usize, life: u64, version: u64, now: Time) {
        self.lapse(now);
        let me = self.me.clone();
        self.on_slot(slot, version, Some(&me), now);
        let same_life = life == self.life;
        let Some(state) = self.slots.get_mut(slot) else { return };
        state.busy = false;
        // A later change of the Lease may have been seen before the answer to the write.
        if same_life && state.version == Some(version) {
            state.hold = Hold::Working;
            self.dirty = true;
        }
    }

    /// The slot was released, with the version given.
    pub(super) fn on_released(&mut self, slot: usize, version: u64, now: Time) {
        self.on_slot(slot, version, Some(""), now);
        if let Some(state) = self.slots.get_mut(slot) {
            state.busy = false;
        }
    }

    /// A step for a slot failed. The next one waits a little, unless something changes before.
    pub(super) fn on_failed(&mut self, slot: usize, now: Time) {
        let pause = self.timing.interval / 4;
        if let Some(state) = self.slots.get_mut(slot) {
            state.busy = false;
            state.not_before = now + pause;
        }
    }

    /// Nothing runs any more that the published version does not include.
    pub(super) fn on_drained(&mut self, version: u64) {
        for slot in &mut self.slots {
            if matches!(slot.hold, Hold::Stopping(since) if since <= version) {
                slot.hold = Hold::Drained;
            }
        }
    }

    /// Which life of this process it is: what was begun in an earlier one is void.
    pub(super) fn life(&self) -> u64 {
        self.life
    }

    /// Until when this process may work.
    pub(super) fn works_until(&self) -> Option<Time> {
        Some(self.renewed? + self.timing.deadline)
    }

    /// The slots whose Leases name this process, with their versions.
    pub(super) fn held(&self) -> Vec<(usize, u64)> {
        let slots = self.slots.iter().enumerate();
        slots
            .filter(|(_, slot)| slot.holder.as_ref() == Some(&self.me))
            .filter_map(|(n, s)| Some((n, s.version?)))
            .collect()
    }

    /// When to decide again if nothing else happens.
    pub(super) fn next_look(&self, now: Time) -> Time {
        let renewal = self.renew_at.into_iter();
        let lapse = self.works_until().filter(|until| *until > now).into_iter();
        let deaths =
            self.processes.values().map(|process| process.changed + process.living.duration).filter(|at| *at > now);
        let retries = self.slots.iter().map(|slot| slot.not_before).filter(|at| *at > now);
        renewal.chain(lapse).chain(deaths).chain(retries).min().unwrap_or(now + self.timing.interval).max(now)
    }

    /// What to do now.
    pub(super) fn steps(&mut self, now: Time) -> Vec<LeaseStep> {
        let mut steps = Vec::new();
        self.lapse(now);
        if self.renew_at.is_some_and(|at| at <= now) {
            self.renew_at = None;
            steps.push(LeaseStep::Renew);
        }
        if self.synced && self.lives(now) {
            let misfit = self.misfit(now).is_some();
            for slot in 0..self.slots.len() {
                steps.extend(self.step_for(slot, misfit, now));
            }
            steps.extend(self.forget(now));
        }
        if std::mem::take(&mut self.dirty) {
            self.version += 1;
            let working = self.slots.iter().map(|slot| slot.hold == Hold::Working).collect();
            steps.insert(0, LeaseStep::Publish { version: self.version, working });
        }
        steps
    }

    fn step_for(&mut self, slot: usize, misfit: bool, now: Time) -> Option<LeaseStep> {
        let mine = self.owner(slot, now) == Some(&*self.me);
        let state = &self.slots[slot];
        if state.busy || now < state.not_before {
            return None;
        }
        let is_named = state.holder.as_ref() == Some(&self.me);
        let (step, hold) = match (state.hold, mine) {
            (Hold::Working, false) => (None, Hold::Stopping(self.version + 1)),
            (Hold::Stopping(_) | Hold::Drained, true) => (None, Hold::Working),
            // A release that fails here may still arrive: to work on, the slot has to be taken again.
            (Hold::Drained, false) => (Some(LeaseStep::Release { slot, version: state.version? }), Hold::Not),
            (Hold::Not, false) if is_named => (Some(LeaseStep::Release { slot, version: state.version? }), Hold::Not),
            (Hold::Not, true) if !misfit => {
                let after = match state.holder.clone().filter(|_| !is_named) {
                    None => None,
                    Some(holder) => Some(self.dead(holder, now)?),
                };
                (Some(LeaseStep::Take { slot, version: state.version, after }), Hold::Not)
            }
            (hold, _) => (None, hold),
        };
        let state = &mut self.slots[slot];
        self.dirty |= (state.hold == Hold::Working) != (hold == Hold::Working);
        state.hold = hold;
        state.busy = step.is_some();
        step
    }

    /// The process the slot belongs to, of those that live.
    fn owner(&self, slot: usize, now: Time) -> Option<&str> {
        let others = self.processes.iter().filter(|(id, process)| **id != self.me && Self::seems_alive(process, now));
        let me = self.processes.get_key_value(&self.me);
        let all = others.chain(me).filter(|(_, process)| process.version.is_some() && self.fits(process));
        slots::owner(slot, all.map(|(id, process)| (&**id, process.living.weight)))
    }

    fn dead(&self, process: Arc<str>, now: Time) -> Option<Dead> {
        let known = self.processes.get(&process)?;
        (!Self::seems_alive(known, now)).then_some(Dead { version: known.version, process })
    }

    fn seems_alive(process: &Process, now: Time) -> bool {
        now < process.changed + process.living.duration
    }

    /// Whether a process divides the clusters as this one does.
    fn fits(&self, process: &Process) -> bool {
        process.living.slots == self.slots.len()
    }

    /// A process that divides the clusters otherwise and seems alive: nothing can be taken while it may work.
    pub(super) fn misfit(&self, now: Time) -> Option<&Arc<str>> {
        let misfit = |process: &Process| Self::seems_alive(process, now) && !self.fits(process);
        self.processes.iter().find(|(_, process)| misfit(process)).map(|(id, _)| id)
    }

    /// What is assumed of a process without a Lease.
    fn nobody(&self) -> Living {
        Living { weight: 0.0, slots: self.slots.len(), duration: self.timing.duration }
    }

    /// Whether this process may work.
    fn lives(&self, now: Time) -> bool {
        self.works_until().is_some_and(|until| now < until)
    }

    /// Loses everything if the deadline has passed.
    fn lapse(&mut self, now: Time) {
        if self.renewed.is_none() || self.lives(now) {
            return;
        }
        self.renewed = None;
        self.life += 1;
        for slot in &mut self.slots {
            self.dirty |= slot.hold == Hold::Working;
            slot.hold = Hold::Not;
        }
    }

    /// Leases of processes that are long dead and own nothing are deleted by the first living process.
    fn forget(&mut self, now: Time) -> Vec<LeaseStep> {
        let alive = |process: &Process| process.version.is_some() && Self::seems_alive(process, now);
        if self.processes.iter().find(|(_, process)| alive(process)).is_none_or(|(id, _)| *id != self.me) {
            return Vec::new();
        }
        let holds = |id: &Arc<str>| self.slots.iter().any(|slot| slot.holder.as_ref() == Some(id));
        let long_dead = |process: &Process| now >= process.changed + process.living.duration * 4;
        let gone = self.processes.iter().filter(|(id, process)| long_dead(process) && !holds(id));
        let gone: Vec<_> = gone.map(|(id, process)| (id.clone(), process.version)).collect();
        let mut steps = Vec::new();
        for (process, version) in gone {
            self.processes.remove(&process);
            steps.extend(version.map(|version| LeaseStep::Forget { process, version }));
        }
        steps
    }
}

/// Whether an event is older than what is known. The last event of a deleted Lease may have the version it had before.
fn is_old(version: u64, deleted: bool, known: Option<u64>) -> bool {
    known.is_some_and(|known| if deleted { known > version } else { known >= version })
}
