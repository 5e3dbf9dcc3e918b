//! One order whose copy somebody else edits, on a server that stores one field in another form.
//!
//! What must never happen is checked after every move. What must have happened at rest is checked only if each edit met an agent that had nothing left to do:
//! an edit between a write and the note about it counts as stored, because nobody can tell it from what a webhook does then.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use carrick_sync::drift::SeenNote;
use carrick_syncagent::api::PAUSE;
use carrick_syncagent::decide::drift::{MOST_REVERTS, WINDOW};
use carrick_syncagent::decide::{Copies, NOBODY, Plan, PrimaryView, Step, decide};
use carrick_syncagent::rules::Rules;
use carrick_syncagent::rules::metadata::SourceKey;
use serde_json::{Value, json};

use super::servers::{Data, Memory, Place, Servers, memory, remembered, version};
use super::{Move, World};

/// A defect that the model has to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriftDefect {
    Nothing,
    /// What counts is what was sent, not what the server stored.
    AgainstWhatWasSent,
    /// Nobody counts how often something is set back.
    Uncounted,
    /// What is set back counts only once it is back.
    CountedAfterwards,
    /// The annotation that pauses is not read.
    PauseOverlooked,
}

/// What may still happen.
#[derive(Debug, Clone, Copy, Hash)]
pub struct Chances {
    /// Edits of the copy by somebody else.
    pub edits: u8,
    /// Changes of the order.
    pub changes: u8,
    /// Pauses that begin; each one may end.
    pub pauses: u8,
    /// Processes that end, before or after a write.
    pub restarts: u8,
    /// State Secrets that somebody deletes.
    pub secrets: u8,
    /// Times at which ten minutes have passed.
    pub windows: u8,
}

struct Setup {
    rules: Rules,
    reverts: bool,
    /// Whether the memory can be lost.
    forgets: bool,
    defect: DriftDefect,
    decided: RefCell<HashMap<u64, Rc<Plan>>>,
}

impl Hash for Setup {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// The world.
#[derive(Clone, Hash)]
pub struct DriftWorld {
    setup: Rc<Setup>,
    servers: Servers,
    seen: BTreeMap<Place, Arc<Value>>,
    secret: Option<(u64, Arc<Data>)>,
    /// What is left of a plan, and the copy that it was decided for.
    steps: Vec<StepOfPlan>,
    chances: Chances,
    /// How many windows have passed.
    window: u8,
    /// How often something was set back in each, by when that was decided.
    reverts: BTreeMap<u8, usize>,
    /// Whether anybody has edited the copy, or the memory was lost.
    is_disturbed: bool,
    /// Whether what is there may count as stored.
    is_blurred: bool,
    /// Whether the memory was lost, and the copy was not written since.
    is_lost: bool,
    /// The size for which the copy was written last.
    carried: String,
    /// What the server answered to the last write of this process.
    answer: Option<Arc<Value>>,
}

#[derive(Clone)]
struct StepOfPlan {
    step: Arc<Step>,
    /// Whether the copy that was seen says that its content rests.
    is_paused: bool,
    /// The size that the order has.
    order: String,
    window: u8,
    /// The version of the copy that was seen.
    decided: String,
    hash: u64,
}

impl Hash for StepOfPlan {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.hash, self.is_paused, &self.order, self.window, &self.decided).hash(state);
    }
}

fn spec(size: u8) -> Value {
    json!({ "size": size, "cpu": "1000m" })
}

/// What the server makes of it.
fn stored(copy: &mut Value) {
    if copy["spec"]["cpu"] == "1000m" {
        copy["spec"]["cpu"] = "1".into();
    }
}

impl DriftWorld {
    /// An order that nobody has carried out yet.
    pub fn new(rules: Rules, reverts: bool, chances: Chances, defect: DriftDefect) -> Self {
        let mut servers = Servers::default();
        let metadata = json!({"name": "one", "namespace": "default"});
        servers.create(
            Place::Order,
            json!({"apiVersion": "example.com/v1", "kind": "CronTab", "metadata": metadata, "spec": spec(1)}),
        );
        let forgets = chances.secrets > 0;
        Self {
            setup: Rc::new(Setup { rules, reverts, forgets, defect, decided: RefCell::default() }),
            servers,
            seen: BTreeMap::new(),
            secret: None,
            steps: Vec::new(),
            chances,
            window: 0,
            reverts: BTreeMap::new(),
            is_disturbed: false,
            is_blurred: false,
            is_lost: false,
            carried: String::new(),
            answer: None,
        }
    }

    fn now(&self) -> String {
        let second = 1_800_000_000 + i64::from(self.window) * (WINDOW + 1);
        jiff::Timestamp::from_second(second).map(|now| now.to_string()).unwrap_or_default()
    }

    fn plan(&self) -> Rc<Plan> {
        let mut hasher = DefaultHasher::new();
        (&self.seen, &self.secret, self.window).hash(&mut hasher);
        let mut decided = self.setup.decided.borrow_mut();
        decided.entry(hasher.finish()).or_insert_with(|| Rc::new(self.decide())).clone()
    }

    fn decide(&self) -> Plan {
        let key = SourceKey { cluster: "c1".into(), namespace: "default".into(), name: "one".into() };
        let Some(source) = self.seen.get(&Place::Order) else { return Plan::default() };
        let mut copy = self.seen.get(&Place::Copy).map(|copy| Value::clone(copy));
        if let (Some(copy), DriftDefect::PauseOverlooked) = (&mut copy, self.setup.defect)
            && let Some(annotations) = copy["metadata"]["annotations"].as_object_mut()
        {
            annotations.remove(PAUSE);
        }
        let (state, now, nobody) = (memory(self.secret.as_ref()), self.now(), Value::Null);
        let view = PrimaryView {
            ended: false,
            former: &NOBODY,
            now: &now,
            managed: Some(&nobody),
            key: &key,
            workspace: carrick_syncagent::rules::naming::Workspace::default(),
            source: Some(source),
            namespace: None,
            copies: copy.as_ref().map_or(Copies::None, Copies::One),
            state: &state,
            related: None,
            others: &[],
            released: false,
            ahead: 0,
        };
        decide(&self.setup.rules, view).unwrap_or_default()
    }

    fn planned(&self) -> Vec<StepOfPlan> {
        let plan = self.plan();
        let is_paused = self.seen.get(&Place::Copy).is_some_and(|copy| is_paused(copy));
        let order = self.seen.get(&Place::Order).map(|order| order["spec"]["size"].to_string()).unwrap_or_default();
        let decided = version(self.seen.get(&Place::Copy).map(|copy| &**copy)).to_owned();
        let steps = plan.steps.iter().chain(plan.strands.iter().flatten());
        let steps = steps.filter(|step| !matches!(step, Step::Report { .. } | Step::EnsureNamespace { .. }));
        let steps = steps.map(|step| {
            let mut hasher = DefaultHasher::new();
            format!("{step:?}").hash(&mut hasher);
            StepOfPlan {
                step: Arc::new(step.clone()),
                is_paused,
                order: order.clone(),
                window: self.window,
                decided: decided.clone(),
                hash: hasher.finish(),
            }
        });
        let mut steps: Vec<StepOfPlan> = steps.collect();
        if self.setup.defect == DriftDefect::CountedAfterwards {
            // What is counted comes after what is done.
            steps.sort_by_key(|one| matches!(*one.step, Step::RememberSeen { .. }));
        }
        steps
    }

    /// Carries out the next step; an error if that breaks a promise.
    fn step(&mut self) -> Result<(), String> {
        let StepOfPlan { step, is_paused, order, window, decided, .. } = self.steps.remove(0);
        let Some(place) = step.address().map(Place::of) else { return self.remember(&step) };
        let before = self.servers.get(place).cloned();
        if self.servers.arrive(&step).is_err() {
            self.steps.clear();
            return Ok(());
        }
        let is_copy = place == Place::Copy && !matches!(*step, Step::WriteStatus { .. });
        if !is_copy {
            return Ok(());
        }
        // What somebody has changed since the copy was seen counts as stored: nobody can tell it from what a webhook does.
        self.is_blurred |= before.is_some() && version(before.as_deref()) != decided;
        self.servers.change(Place::Copy, stored);
        self.answer = self.servers.get(Place::Copy).cloned();
        let content = |object: Option<&Arc<Value>>| object.map(|object| object["spec"].clone());
        let is_changed = content(before.as_ref()) != content(self.answer.as_ref());
        if is_paused && is_changed {
            return Err("a copy that rests is written".to_owned());
        }
        let is_carried_out = std::mem::replace(&mut self.carried, order.clone()) != order;
        if std::mem::take(&mut self.is_lost) || is_carried_out || !is_changed {
            return Ok(());
        }
        if !self.is_disturbed {
            return Err("what the server stored is set back".to_owned());
        }
        // A change whose note was lost is carried out once more.
        if self.is_blurred && !self.setup.reverts {
            return Ok(());
        }
        if !self.setup.reverts {
            return Err("what is only reported is set back".to_owned());
        }
        let reverts = self.reverts.entry(window).or_default();
        *reverts += 1;
        if *reverts > MOST_REVERTS { Err("it is set back once too often".to_owned()) } else { Ok(()) }
    }

    /// Remembers something, by a write that names the version of the state Secret.
    fn remember(&mut self, step: &Step) -> Result<(), String> {
        let step = self.setup.defect.of_memory(step.clone());
        let shown =
            self.servers.showing(Place::Copy, self.answer.clone().or_else(|| self.seen.get(&Place::Copy).cloned()));
        match remembered(memory(self.secret.as_ref()), &step, &shown) {
            Memory::Unchanged => {}
            Memory::Holds(data) => {
                let known = self.secret.as_ref().map(|(version, _)| *version);
                if self.servers.arrive_secret(known, Some(&data)).is_err() {
                    self.steps.clear();
                }
                self.secret.clone_from(&self.servers.secret);
            }
            Memory::Gone => return Err("an order that lives is forgotten".to_owned()),
        }
        Ok(())
    }

    /// Whether the agent has nothing left to do, and knows it.
    fn is_quiet(&self) -> bool {
        let is_seen = |place: Place| self.seen.get(&place) == self.servers.get(place);
        self.steps.is_empty() && is_seen(Place::Order) && is_seen(Place::Copy) && self.planned().is_empty()
    }

    fn edit(&mut self, field: &str, value: Value) {
        self.is_blurred |= !self.is_quiet();
        self.is_disturbed = true;
        self.chances.edits -= 1;
        self.servers.change(Place::Copy, |copy| copy["spec"][field] = value);
    }

    fn restart(&mut self) {
        self.is_blurred |= !self.steps.is_empty();
        self.steps.clear();
        self.answer = None;
        let places = [Place::Order, Place::Copy].into_iter();
        self.seen = places.filter_map(|place| Some((place, self.servers.get(place)?.clone()))).collect();
        self.secret.clone_from(&self.servers.secret);
    }
}

fn is_paused(copy: &Value) -> bool {
    copy["metadata"]["annotations"][PAUSE].is_string()
}

impl DriftDefect {
    /// What becomes of a step that remembers something.
    fn of_memory(self, mut step: Step) -> Step {
        match (self, &mut step) {
            (
                Self::AgainstWhatWasSent,
                Step::Remember { value, seen: Some(seen), .. } | Step::RememberSeen { value, seen, .. },
            ) => {
                *seen = SeenNote::As(carrick_sync::drift::Seen::stored(value, value));
            }
            (Self::Uncounted, Step::RememberSeen { seen: SeenNote::As(seen), .. }) => seen.reverts.clear(),
            _ => {}
        }
        step
    }
}

impl World for DriftWorld {
    fn moves(&self) -> Vec<Move<Self>> {
        let mut moves = Vec::new();
        let mut add = |story: String, by_itself: bool, change: &dyn Fn(&mut Self) -> Result<(), String>| {
            let mut next = self.clone();
            let done = change(&mut next);
            moves.push(Move { story, by_itself, next: done.map(|()| next) });
        };
        for place in [Place::Order, Place::Copy] {
            if self.seen.get(&place) != self.servers.get(place) {
                add(format!("sees {place:?}"), true, &|next| {
                    if let Some(live) = next.servers.get(place).cloned() {
                        next.seen.insert(place, live);
                    }
                    Ok(())
                });
            }
        }
        let copy = self.servers.get(Place::Copy);
        let Chances { edits, changes, pauses, restarts, secrets, windows } = self.chances;
        if let Some(copy) = copy {
            if edits > 0 {
                // One that was stored as it was sent, and one that was not, in turn.
                let (field, value) = if edits % 2 == 0 { ("size", json!(9)) } else { ("cpu", json!("4")) };
                add(format!("somebody edits {field} of the copy"), false, &|next| {
                    next.edit(field, value.clone());
                    Ok(())
                });
            }
            let rests = is_paused(copy);
            if pauses > 0 || rests {
                add((if rests { "the pause ends" } else { "the copy is paused" }).to_owned(), false, &|next| {
                    next.chances.pauses = if rests { pauses } else { pauses - 1 };
                    let value = if rests { Value::Null } else { "Spec".into() };
                    next.servers.change(Place::Copy, |copy| {
                        carrick_json::merge::apply(copy, &json!({"metadata": {"annotations": {PAUSE: value}}}));
                    });
                    Ok(())
                });
            }
        }
        if changes > 0 {
            add("the order changes".to_owned(), false, &|next| {
                next.chances.changes -= 1;
                next.servers.change(Place::Order, |order| order["spec"] = spec(1 + changes));
                Ok(())
            });
        }
        if windows > 0 {
            add("ten minutes pass".to_owned(), false, &|next| {
                (next.chances.windows, next.window) = (windows - 1, next.window + 1);
                Ok(())
            });
        }
        if restarts > 0 {
            add("another process takes over".to_owned(), false, &|next| {
                next.chances.restarts -= 1;
                next.restart();
                Ok(())
            });
        }
        if secrets > 0 && self.servers.secret.is_some() {
            add("somebody deletes the state Secret".to_owned(), false, &|next| {
                next.chances.secrets = secrets - 1;
                (next.is_disturbed, next.is_blurred, next.is_lost) = (true, true, true);
                next.servers.secret = None;
                next.secret = None;
                next.steps.clear();
                Ok(())
            });
        }
        let mut works = self.clone();
        if works.steps.is_empty() {
            works.steps = self.planned();
        }
        if let Some(first) = works.steps.first() {
            let story = format!("{} of {:?}", first.step.verb(), first.step.address().map(Place::of));
            let next = works.step().map(|()| works);
            moves.push(Move { story, by_itself: true, next });
        }
        moves
    }

    fn at_rest(&self) -> Result<(), String> {
        let (Some(order), Some(copy)) = (self.servers.get(Place::Order), self.servers.get(Place::Copy)) else {
            return Err("an order has no copy".to_owned());
        };
        let plan = self.plan();
        let drift = plan.drift.as_deref().and_then(|all| all.first());
        let mut wanted = order["spec"].clone();
        if wanted["cpu"] == "1000m" {
            wanted["cpu"] = "1".into();
        }
        let is_in_line = copy["spec"] == wanted;
        if is_paused(copy) {
            return Ok(());
        }
        let is_reported = drift.is_some_and(|drift| !drift.fields.is_empty());
        match (self.setup.reverts, drift) {
            // What was edited before it was noted, and written back before the memory was lost, may be noted from a cache that is behind.
            _ if self.is_blurred && self.setup.forgets => Ok(()),
            _ if is_in_line && is_reported => Err("what is as it should be is reported".to_owned()),
            _ if is_in_line || self.is_blurred => Ok(()),
            (true, Some(drift)) if drift.contested => Ok(()),
            (true, _) => Err("drift is neither set back nor contested".to_owned()),
            (false, _) if is_reported => Ok(()),
            (false, _) => Err("drift is not reported".to_owned()),
        }
    }
}
