//! Many processes, one server, and everything that can go wrong between them: lost requests, lost answers, late events, clocks of
//! different speed, processes that pause or die at any moment.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::slots;
use super::view::{Dead, LeaseStep, Living, Time, Timing, View};

const TIMING: Timing =
    Timing { duration: Duration::from_secs(15), deadline: Duration::from_secs(10), interval: Duration::from_secs(3) };
const SLOTS: usize = 5;
const LIVING: Living = Living { weight: 1.0, slots: SLOTS, duration: TIMING.duration };

/// How a process fares for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Well,
    /// Its watch is silent.
    Deaf,
    /// Its requests do not reach the server.
    Mute,
    /// Its requests reach the server, the answers do not come back.
    Unheard,
    /// Its requests are on their way for a long time.
    SlowRequests,
    /// Its answers are on their way for a long time.
    SlowAnswers,
    /// Its work does not end when it should.
    Busy,
    /// It stands still; what it sent before goes its way.
    Paused,
}

/// What happens next: some time passes, and perhaps a process fares otherwise from now on, or is killed and replaced.
#[derive(Clone, Debug)]
struct Happens {
    passed: u64,
    mood: Option<(usize, Mood)>,
    killed: Option<usize>,
    /// Who comes first.
    first: usize,
    /// How many requests and answers of each process travel at most.
    traffic: usize,
}

fn happens() -> impl Strategy<Value = Happens> {
    let mood = prop_oneof![
        4 => Just(Mood::Well),
        1 => Just(Mood::Deaf),
        1 => Just(Mood::Mute),
        1 => Just(Mood::Unheard),
        1 => Just(Mood::SlowRequests),
        1 => Just(Mood::SlowAnswers),
        1 => Just(Mood::Busy),
        1 => Just(Mood::Paused),
    ];
    let passed = prop_oneof![20 => 0_u64..900, 1 => 900_u64..16_000];
    let mood = prop::option::weighted(0.2, (0_usize..4, mood));
    let killed = prop::option::weighted(0.02, 0_usize..4);
    (passed, mood, killed, 0_usize..4, prop_oneof![1_usize..4, Just(100)])
        .prop_map(|(passed, mood, killed, first, traffic)| Happens { passed, mood, killed, first, traffic })
}

/// How long a process waits for an answer.
const PATIENCE: Time = Duration::from_secs(5);

/// A Lease on the server: of a process or of a slot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Process(Arc<str>),
    Slot(usize),
}

/// What is written where, if it has the version given (a process writes its own Lease without asking).
#[derive(Clone, Debug)]
enum Write {
    Renew,
    Take { slot: usize, version: Option<u64>, after: Option<Dead>, life: u64 },
    Release { slot: usize, version: u64 },
    Forget { process: Arc<str>, version: u64 },
}

enum Answer {
    Renewed { begun: Time, version: u64 },
    NotRenewed,
    Taken { slot: usize, life: u64, version: u64 },
    Released { slot: usize, version: u64 },
    Failed { slot: usize },
}

struct Event {
    key: Key,
    version: u64,
    /// Holder of a slot, anything for a process; `None` if deleted.
    holder: Option<Arc<str>>,
}

struct Process {
    id: Arc<str>,
    view: View,
    /// Percent of the speed of real time.
    speed: u64,
    mood: Mood,
    events: VecDeque<Event>,
    requests: VecDeque<Request>,
    answers: VecDeque<Answer>,
    published: u64,
    /// What is worked on, and in which life that began.
    work: [Work; SLOTS],
    life: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Work {
    #[default]
    Not,
    GoesOn,
    /// Nothing new is begun, but something still runs.
    Ends,
}

struct Request {
    write: Write,
    begun: Time,
    /// Nobody waits for the answer any more.
    given_up: bool,
}

struct World {
    now: u64,
    revision: u64,
    leases: BTreeMap<Key, (u64, Arc<str>)>,
    processes: Vec<Process>,
    born: usize,
}

impl World {
    fn new(speeds: &[u64]) -> Self {
        let mut world = Self { now: 0, revision: 0, leases: BTreeMap::new(), processes: Vec::new(), born: 0 };
        for speed in speeds {
            let process = world.process(*speed);
            world.processes.push(process);
        }
        world
    }

    /// A new process; it learns at once what there is.
    fn process(&mut self, speed: u64) -> Process {
        self.born += 1;
        let id: Arc<str> = format!("p{}", self.born).into();
        let mut process = Process {
            view: View::new(id.clone(), SLOTS, TIMING),
            id,
            speed,
            mood: Mood::Well,
            events: VecDeque::new(),
            requests: VecDeque::new(),
            answers: VecDeque::new(),
            published: 0,
            work: [Work::Not; SLOTS],
            life: 0,
        };
        let leases = self.leases.iter();
        process.events.extend(leases.map(|(key, (version, holder))| Event {
            key: key.clone(),
            version: *version,
            holder: Some(holder.clone()),
        }));
        let now = process.now(self.now);
        process.take_in(usize::MAX, now);
        process.view.on_synced();
        process
    }

    fn put(&mut self, key: &Key, holder: Option<&Arc<str>>) -> u64 {
        self.revision += 1;
        match holder {
            Some(holder) => self.leases.insert(key.clone(), (self.revision, holder.clone())),
            None => self.leases.remove(key),
        };
        for process in &mut self.processes {
            process.events.push_back(Event { key: key.clone(), version: self.revision, holder: holder.cloned() });
        }
        self.revision
    }

    fn version(&self, key: &Key) -> Option<u64> {
        self.leases.get(key).map(|(version, _)| *version)
    }

    /// What the server makes of a request.
    fn serve(&mut self, who: usize, write: &Write, begun: Time) -> Option<Answer> {
        let id = self.processes[who].id.clone();
        match write {
            Write::Renew => {
                let version = self.put(&Key::Process(id.clone()), Some(&id));
                Some(Answer::Renewed { begun, version })
            }
            Write::Take { slot, version, after, life } => {
                if let Some(dead) = after {
                    if self.version(&Key::Process(dead.process.clone())) != dead.version {
                        return Some(Answer::Failed { slot: *slot });
                    }
                    // The write is a request of its own.
                    let write = Write::Take { slot: *slot, version: *version, after: None, life: *life };
                    self.processes[who].requests.push_back(Request { write, begun, given_up: false });
                    return None;
                }
                if self.version(&Key::Slot(*slot)) != *version {
                    return Some(Answer::Failed { slot: *slot });
                }
                let version = self.put(&Key::Slot(*slot), Some(&id));
                Some(Answer::Taken { slot: *slot, life: *life, version })
            }
            Write::Release { slot, version } => {
                if self.version(&Key::Slot(*slot)) != Some(*version) {
                    return Some(Answer::Failed { slot: *slot });
                }
                let version = self.put(&Key::Slot(*slot), Some(&"".into()));
                Some(Answer::Released { slot: *slot, version })
            }
            Write::Forget { process, version } => {
                let key = Key::Process(process.clone());
                if self.version(&key) == Some(*version) {
                    self.put(&key, None);
                }
                None
            }
        }
    }

    fn happen(&mut self, what: &Happens) {
        self.now += what.passed;
        self.check();
        let count = self.processes.len();
        if let Some((who, mood)) = what.mood {
            self.processes[who % count].mood = mood;
        }
        if let Some(who) = what.killed {
            let speed = self.processes[who % count].speed;
            self.processes[who % count] = self.process(speed);
        }
        for who in 0..count {
            self.go_on((who + what.first) % count, what.traffic);
        }
    }

    /// A process does what it can do.
    fn go_on(&mut self, who: usize, traffic: usize) {
        let process = &mut self.processes[who];
        let (now, mood) = (process.now(self.now), process.mood);
        if mood != Mood::Paused {
            if mood != Mood::Deaf {
                process.take_in(traffic * 3, now);
            }
            process.give_up(now);
            // Whatever comes first.
            if traffic.is_multiple_of(2) {
                process.decide(now);
            }
        }
        self.check();
        for _ in 0..if mood == Mood::SlowRequests { 0 } else { traffic } {
            self.arrive(who);
        }
        self.check();
        let process = &mut self.processes[who];
        if matches!(mood, Mood::Paused | Mood::SlowAnswers) {
            return;
        }
        for _ in 0..traffic {
            process.answered(now);
        }
        if mood != Mood::Busy {
            process.drained();
        }
        process.decide(now);
        self.check();
    }

    fn arrive(&mut self, who: usize) {
        let Some(Request { write, begun, given_up }) = self.processes[who].requests.pop_front() else { return };
        let mood = self.processes[who].mood;
        let answer = if mood == Mood::Mute { None } else { self.serve(who, &write, begun) };
        if given_up {
            return;
        }
        let answer = if matches!(mood, Mood::Mute | Mood::Unheard) { failure(&write) } else { answer };
        self.processes[who].answers.extend(answer);
    }

    /// The promise: nobody works where another one does.
    fn check(&self) {
        for slot in 0..SLOTS {
            let at_work = self.processes.iter().filter(|process| process.works_on(slot, self.now));
            let names: Vec<&str> = at_work.map(|process| &*process.id).collect();
            assert!(names.len() < 2, "{names:?} all work on slot {slot} at {} ms", self.now);
        }
    }

    /// Nothing goes wrong any more for a while.
    fn calm_down(&mut self) {
        for process in &mut self.processes {
            process.mood = Mood::Well;
        }
        for _ in 0..400 {
            self.happen(&Happens { passed: 150, mood: None, killed: None, first: 0, traffic: 100 });
        }
    }

    /// The other promise: no slot is left alone, and each is where it belongs.
    fn check_owners(&self) {
        for slot in 0..SLOTS {
            let at_work = self.processes.iter().filter(|process| process.works_on(slot, self.now));
            let names: Vec<&str> = at_work.map(|process| &*process.id).collect();
            let owner = slots::owner(slot, self.processes.iter().map(|process| (&*process.id, 1.0)));
            assert_eq!(names, Vec::from_iter(owner), "slot {slot}");
        }
    }
}

impl Process {
    fn now(&self, real: u64) -> Time {
        Duration::from_millis(real * self.speed / 100)
    }

    fn take_in(&mut self, count: usize, now: Time) {
        for _ in 0..count.min(self.events.len()) {
            let Some(event) = self.events.pop_front() else { return };
            match event.key {
                Key::Process(id) => self.view.on_process(&id, event.version, event.holder.map(|_| LIVING), now),
                Key::Slot(slot) => self.view.on_slot(slot, event.version, event.holder.as_deref(), now),
            }
        }
    }

    /// Whether anything runs for a slot: nothing does after the deadline.
    fn works_on(&self, slot: usize, real: u64) -> bool {
        let lives =
            self.view.life() == self.life && self.view.works_until().is_some_and(|until| self.now(real) < until);
        lives && self.work[slot] != Work::Not
    }

    fn publish(&mut self, version: u64, working: &[bool]) {
        self.published = version;
        if self.life != self.view.life() {
            self.life = self.view.life();
            self.work = [Work::Not; SLOTS];
        }
        for (work, working) in self.work.iter_mut().zip(working) {
            *work = match (*working, *work) {
                (true, _) => Work::GoesOn,
                (false, Work::Not) => Work::Not,
                (false, _) => Work::Ends,
            };
        }
    }

    fn drained(&mut self) {
        self.view.on_drained(self.published);
        for work in self.work.iter_mut().filter(|work| **work == Work::Ends) {
            *work = Work::Not;
        }
    }

    fn decide(&mut self, now: Time) {
        for step in self.view.steps(now) {
            let write = match step {
                LeaseStep::Publish { version, working } => {
                    self.publish(version, &working);
                    continue;
                }
                LeaseStep::Renew => Write::Renew,
                LeaseStep::Take { slot, version, after } => {
                    Write::Take { slot, version, after, life: self.view.life() }
                }
                LeaseStep::Release { slot, version } => Write::Release { slot, version },
                LeaseStep::Forget { process, version } => Write::Forget { process, version },
            };
            self.requests.push_back(Request { write, begun: now, given_up: false });
        }
    }

    /// Counts requests as failed that were not answered in time, whatever becomes of them.
    fn give_up(&mut self, now: Time) {
        for request in self.requests.iter_mut().filter(|request| now >= request.begun + PATIENCE) {
            if !std::mem::replace(&mut request.given_up, true) {
                self.answers.extend(failure(&request.write));
            }
        }
    }

    fn answered(&mut self, now: Time) {
        match self.answers.pop_front() {
            None => {}
            Some(Answer::Renewed { begun, version }) => {
                let id = self.id.clone();
                self.view.on_process(&id, version, Some(LIVING), now);
                self.view.on_renewed(begun, now);
            }
            Some(Answer::NotRenewed) => self.view.on_not_renewed(now),
            Some(Answer::Taken { slot, life, version }) => self.view.on_taken(slot, life, version, now),
            Some(Answer::Released { slot, version }) => self.view.on_released(slot, version, now),
            Some(Answer::Failed { slot }) => self.view.on_failed(slot, now),
        }
    }
}

fn failure(write: &Write) -> Option<Answer> {
    match write {
        Write::Renew => Some(Answer::NotRenewed),
        Write::Take { slot, .. } | Write::Release { slot, .. } => Some(Answer::Failed { slot: *slot }),
        Write::Forget { .. } => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if std::env::var_os("CARRICK_WIDE").is_some() { 5_000 } else { 64 }))]

    #[test]
    fn a_slot_never_has_two_owners_and_none_is_forgotten(
        speeds in prop::collection::vec(90_u64..110, 2..5),
        script in prop::collection::vec(happens(), 0..400),
    ) {
        let mut world = World::new(&speeds);
        for what in &script {
            world.happen(what);
        }
        world.calm_down();
        world.check_owners();
    }
}

#[test]
fn the_slots_of_a_dead_process_are_taken_over_within_its_lease_and_no_sooner() {
    let mut world = World::new(&[100, 100]);
    world.calm_down();
    world.check_owners();
    let survivor = world.processes.remove(0);
    let died = world.now;
    world.processes = vec![survivor];
    let all_taken = |world: &World| {
        let process = &world.processes[0];
        (0..SLOTS).all(|slot| process.works_on(slot, world.now))
    };
    while !all_taken(&world) {
        world.happen(&Happens { passed: 50, mood: None, killed: None, first: 0, traffic: 100 });
        assert!(world.now - died <= 15_100, "not taken over in time");
    }
    assert!(world.now - died >= 10_000, "taken over after {} ms", world.now - died);
}

/// A release that was given up may still arrive: work goes on only after a write that makes it fail.
#[test]
fn a_slot_is_not_worked_on_while_its_release_may_still_arrive() {
    let (me, other): (Arc<str>, Arc<str>) = ("p1".into(), "p2".into());
    let slot = (0..SLOTS).find(|slot| slots::owner(*slot, [("p1", 1.0), ("p2", 1.0)]) == Some("p2"));
    let slot = slot.expect("a slot of the other process");
    let mut view = View::new(me.clone(), SLOTS, TIMING);
    let second = Duration::from_secs(1);
    view.on_process(&me, 1, Some(LIVING), second);
    view.on_renewed(second, second);
    view.on_synced();
    view.steps(second);
    view.on_taken(slot, view.life(), 2, second);
    view.on_process(&other, 3, Some(LIVING), second);
    view.steps(second);
    view.on_drained(u64::MAX);
    assert!(view.steps(second).contains(&LeaseStep::Release { slot, version: 2 }));

    view.on_failed(slot, second * 2);
    view.on_process(&other, 4, None, second * 2);
    let steps = view.steps(second * 3);
    let works = |step: &LeaseStep| matches!(step, LeaseStep::Publish { working, .. } if working[slot]);
    assert!(!steps.iter().any(works), "{steps:?}");
    assert!(steps.contains(&LeaseStep::Take { slot, version: Some(2), after: None }), "{steps:?}");
}
