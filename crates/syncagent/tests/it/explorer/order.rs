//! One order: its consumer, its agent and whatever is under way between them, with both ways of remembering.
//!
//! A copy that lost a label of its link is found as production finds it: by the address that is remembered.
//!
//! Late creations are left out once the order or the original ends, or somebody has deleted what they would create again: no server can know that nobody
//! wants the object any more.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use carrick_syncagent::api::{PLACED_GENERATION, REMOTE_CLUSTER};
use carrick_syncagent::decide::{
    Copies, DroppedSeen, NOBODY, PrimaryView, RelatedSeen, RelatedView, Step, decide, unnamed,
};
use carrick_syncagent::rules::metadata::{SourceKey, is_deleting};
use carrick_syncagent::rules::{ApiKind, Rules};
use serde_json::{Value, json};

use super::planted::Planted;
use super::sent::{Planned, Sent};
use super::servers::{Arrived, Data, Memory, Place, Servers, memory, remembered, version};
use super::{Move, World};

/// What people do, in this order and at any time.
#[derive(Debug, Clone, Copy)]
pub enum Act {
    /// The order is made.
    Order(u8),
    /// It is changed.
    Change(u8),
    /// The operator reports a status.
    Report(u8),
    /// It is deleted.
    Cancel,
    /// The service makes a Secret.
    MakeOriginal(u8),
    /// It takes it away.
    RemoveOriginal,
    /// Somebody takes a label of its link off the copy.
    Unlink,
}

/// What does not change while a world is explored.
struct Setup {
    rules: Rules,
    script: Vec<Act>,
    planted: Planted,
    /// How many state Secrets may be deleted.
    secrets: u8,
    /// What was decided already, by a hash of what was seen: most moves change something else.
    decided: RefCell<HashMap<u64, Vec<Planned>>>,
}

impl Hash for Setup {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// How much may still go wrong.
#[derive(Debug, Clone, Copy, Hash)]
pub struct Faults {
    /// Writes that arrive later, or never.
    pub late: u8,
    /// Writes whose answers are lost.
    pub lost: u8,
    /// Agents that are replaced by another process.
    pub restarts: u8,
    /// State Secrets that somebody deletes.
    pub secrets: u8,
}

/// The agent's process.
#[derive(Clone, Hash, Default)]
struct Process {
    /// Its caches, which may lag.
    seen: BTreeMap<Place, Arc<Value>>,
    /// The state Secret as it was read or written last.
    secret: Option<(u64, Arc<Data>)>,
    /// What is left of a plan.
    steps: Vec<Planned>,
    /// The version of the order that the plan names, and the one that it has left.
    rebased: Option<(String, String)>,
}

/// One order and everything around it.
#[derive(Clone, Hash)]
pub struct OrderWorld {
    setup: Rc<Setup>,
    servers: Servers,
    /// How many acts are over.
    acts: usize,
    process: Process,
    flight: Vec<Sent>,
    faults: Faults,
    /// The generation of the order that the copy was written for last.
    placed: u64,
}

fn spec(number: u8) -> Value {
    // What one of them leaves behind, no other one takes away.
    match number {
        1 => json!({"replicas": 1, "image": "a"}),
        2 => json!({"replicas": 2, "cronSpec": "b"}),
        other => json!({"replicas": other}),
    }
}

impl OrderWorld {
    /// Nothing has happened yet.
    pub fn new(rules: Rules, script: &[Act], faults: Faults, planted: Planted) -> Self {
        let (script, secrets, decided) = (script.to_vec(), faults.secrets, RefCell::default());
        Self {
            setup: Rc::new(Setup { rules, script, planted, secrets, decided }),
            servers: Servers::default(),
            acts: 0,
            process: Process::default(),
            flight: Vec::new(),
            faults,
            placed: 0,
        }
    }

    fn order(&self) -> Option<&Value> {
        self.servers.get(Place::Order).map(|order| &**order)
    }

    /// Whether what was sent is for an order and an original that are there to stay.
    fn wants(&self, sent: &Sent) -> bool {
        let (Sent::Object(Planned { order: uid, .. }) | Sent::Secret { order: uid, .. }) = sent;
        self.order().is_some_and(|order| !is_deleting(order) && order["metadata"]["uid"] == **uid)
            && (!sent.is_related() || self.servers.get(Place::Original).is_some())
    }

    fn act(&mut self, act: Act) {
        self.acts += 1;
        match act {
            Act::Order(number) => {
                let metadata = json!({"name": "one", "namespace": "default"});
                let order = json!({"apiVersion": "example.com/v1", "kind": "CronTab", "metadata": metadata, "spec": spec(number)});
                self.servers.create(Place::Order, order);
                self.placed = 0;
            }
            Act::Change(number) => self.servers.change(Place::Order, |order| order["spec"] = spec(number)),
            Act::Report(number) => self.servers.change(Place::Copy, |copy| copy["status"] = json!({"at": number})),
            Act::Cancel => self.servers.delete(Place::Order),
            Act::MakeOriginal(number) => {
                let metadata = json!({"name": "creds", "namespace": "c1"});
                let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"n": number.to_string()}});
                self.servers.create(Place::Original, secret);
            }
            Act::RemoveOriginal => self.servers.delete(Place::Original),
            Act::Unlink => self.servers.change(Place::Copy, |copy| {
                if let Some(labels) = copy["metadata"]["labels"].as_object_mut() {
                    labels.remove(REMOTE_CLUSTER);
                }
            }),
        }
    }

    /// What the process would do now.
    fn plan(&self) -> Vec<Planned> {
        let mut hasher = DefaultHasher::new();
        (&self.process.seen, &self.process.secret, self.is_confirmed()).hash(&mut hasher);
        let mut decided = self.setup.decided.borrow_mut();
        decided.entry(hasher.finish()).or_insert_with(|| self.decide()).clone()
    }

    /// Whether what the caches say of related objects is so: before a copy is taken back, the servers are asked.
    fn is_confirmed(&self) -> bool {
        let is_seen = |place: Place| self.process.seen.get(&place) == self.servers.get(place);
        is_seen(Place::Original) && is_seen(Place::Related)
    }

    fn decide(&self) -> Vec<Planned> {
        let Process { seen, secret, .. } = &self.process;
        let rules = &self.setup.rules;
        let key = SourceKey { cluster: "c1".into(), namespace: "default".into(), name: "one".into() };
        let get = |place: Place| seen.get(&place).map(|object| &**object);
        let state = memory(secret.as_ref());
        let mut related = related(rules, &state, get(Place::Original), get(Place::Related));
        if !self.is_confirmed() {
            related.dropped.clear();
        }
        let Some(source) = get(Place::Order) else { return Vec::new() };
        let is_found = |copy: &Value| self.setup.planted != Planted::LinkOverlooked || is_linked(copy);
        let view = PrimaryView {
            ended: false,
            former: &NOBODY,
            now: "2026-01-01T00:00:00Z",
            managed: None,
            key: &key,
            workspace: carrick_syncagent::rules::naming::Workspace::default(),
            source: Some(source),
            namespace: None,
            copies: get(Place::Copy).filter(|copy| is_found(copy)).map_or(Copies::None, Copies::One),
            state: &state,
            related: None,
            others: &[],
            released: false,
            ahead: 0,
        };
        // A cache may still show the copy of an earlier order; that is refused.
        let mut plan = decide(rules, view).unwrap_or_default();
        if !rules.related.is_empty() && (is_deleting(source) || plan.steps.is_empty()) {
            plan = decide(rules, PrimaryView { related: Some(&related), ..view }).unwrap_or_default();
        }
        let steps = plan.steps.into_iter().chain(plan.strands.into_iter().flatten());
        let steps = steps.filter(|step| !matches!(step, Step::Report { .. } | Step::EnsureNamespace { .. }));
        let generation = source["metadata"]["generation"].as_u64().unwrap_or_default();
        let order: Arc<str> = source["metadata"]["uid"].as_str().unwrap_or_default().into();
        let planned = self.setup.planted.plant(&steps.collect::<Vec<_>>()).into_iter().map(|step| {
            let decided = step.address().map(|at| version(get(Place::of(at))).to_owned()).unwrap_or_default();
            Planned::new(step, decided, (order.clone(), generation))
        });
        planned.collect()
    }

    /// Sends the next step; `None` if it is no write.
    fn send(&mut self) -> Option<Sent> {
        let planned = self.process.steps.remove(0);
        let step = planned.step.clone();
        if let Some(at) = step.address() {
            if let (Place::Order, Some((from, to))) = (Place::of(at), &self.process.rebased)
                && let Some(rebased) = rebased(&step, from, to)
            {
                return Some(Sent::Object(Planned::new(rebased, to.clone(), (planned.order, planned.generation))));
            }
            return Some(Sent::Object(planned));
        }
        let planted = self.setup.planted;
        let mut state = memory(self.process.secret.as_ref());
        if let (Step::RememberNext { entry, .. }, Planted::IntentionReplaced) = (&*step, planted)
            && let Some(last) = state.entry(entry).and_then(|entry| entry.last.clone())
        {
            state.note_as(entry, last);
        }
        let mut known = self.process.secret.as_ref().map(|(version, _)| *version);
        let data = match remembered(state, &step, &self.servers) {
            Memory::Unchanged => return None,
            Memory::Holds(data) => Some(data),
            Memory::Gone => None,
        };
        if data.is_none() && known.is_none() {
            // It is read first.
            known = self
                .servers
                .secret
                .as_ref()
                .map(|(version, _)| *version)
                .filter(|_| planted != Planted::SecretOverlooked);
            known?;
        }
        let unguarded = data.is_none() && planted == Planted::UnguardedForget;
        Some(Sent::Secret { known, data, unguarded, order: planned.order })
    }

    /// Something that was sent arrives; an error if it breaks a promise.
    fn arrive(&mut self, sent: &Sent) -> Result<Arrived, String> {
        let (step, decided, generation) = match sent {
            Sent::Object(Planned { step, decided, generation, .. }) => (step, decided, *generation),
            Sent::Secret { known, data, unguarded: true, .. } => {
                let now = self.servers.secret.as_ref().map(|(version, _)| *version);
                if now.is_some() && now != *known {
                    return Err("something newer is forgotten".to_owned());
                }
                return Ok(self.servers.arrive_secret(now, data.as_ref()));
            }
            Sent::Secret { known, data, .. } => return Ok(self.servers.arrive_secret(*known, data.as_ref())),
        };
        let Some(place) = step.address().map(Place::of) else { return Ok(Ok(())) };
        let before = self.servers.get(place).cloned();
        let arrived = self.servers.arrive(step);
        let after = self.servers.get(place);
        if arrived.is_err() || before.as_ref() == after {
            return Ok(arrived);
        }
        let is_older = before.is_some() && version(before.as_deref()) != decided;
        if is_older && matches!(place, Place::Order | Place::Related) {
            return Err(format!("a decision about an older version has changed {place:?}"));
        }
        let content = |object: Option<&Arc<Value>>| object.map(|object| object["spec"].clone());
        if place == Place::Copy && !matches!(**step, Step::Delete { .. }) {
            if generation < self.placed && content(before.as_ref()) != content(after) {
                return Err(format!("the copy goes back from generation {} to {generation}", self.placed));
            }
            self.placed = self.placed.max(generation);
        }
        Ok(arrived)
    }

    /// The process learns what became of what it sent.
    fn answered(&mut self, sent: &Sent, arrived: &Arrived) {
        let process = &mut self.process;
        match sent {
            Sent::Secret { .. } => {
                process.secret.clone_from(&self.servers.secret);
            }
            Sent::Object(Planned { step, decided, .. }) if step.address().map(Place::of) == Some(Place::Order) => {
                let first = process.rebased.take().map_or_else(|| decided.clone(), |(first, _)| first);
                let now = version(self.servers.get(Place::Order).map(|order| &**order)).to_owned();
                process.rebased = Some((first, now));
            }
            Sent::Object(Planned { step, .. }) => {
                // Caches of related objects know what the process itself has done.
                let of_related = step.address().map(Place::of) == Some(Place::Related);
                if let Some(written) = self.servers.get(Place::Related).filter(|_| of_related) {
                    process.seen.insert(Place::Related, written.clone());
                }
            }
        }
        if arrived.is_err() {
            process.give_up();
        }
    }

    /// What the process does next, and what can go wrong with that.
    fn works(&self, moves: &mut Vec<Move<Self>>) {
        let mut base = self.clone();
        if base.process.steps.is_empty() {
            base.process.steps = self.plan();
            base.process.rebased = None;
        }
        let Some(first) = base.process.steps.first().map(|planned| planned.step.clone()) else { return };
        if matches!(*first, Step::ConfirmNoCopy) {
            base.process.steps.remove(0);
            if base.servers.get(Place::Copy).is_some() {
                base.process.give_up();
            }
            moves.push(Move { story: "asks whether a copy is left".into(), by_itself: true, next: Ok(base) });
            return;
        }
        let Some(mut sent) = base.send() else {
            moves.push(Move { story: format!("needs no {}", first.verb()), by_itself: true, next: Ok(base) });
            return;
        };
        let words = sent.words();
        let mut done = base.clone();
        if let Sent::Secret { known: known @ Some(_), data: Some(_), .. } = &mut sent
            && done.servers.secret.is_none()
        {
            // Somebody has deleted it; what it said is still known.
            *known = None;
        }
        let next = done.arrive(&sent).map(|arrived| {
            done.answered(&sent, &arrived);
            done
        });
        moves.push(Move { story: words.clone(), by_itself: true, next });
        base.process.give_up();
        if self.faults.lost > 0 {
            let mut lost = base.clone();
            lost.faults.lost -= 1;
            let next = lost.arrive(&sent).map(|_| lost);
            moves.push(Move { story: format!("{words}; the answer is lost"), by_itself: false, next });
        }
        if self.faults.late > 0 {
            base.faults.late -= 1;
            base.flight.push(sent);
            moves.push(Move { story: format!("{words}; it is late"), by_itself: false, next: Ok(base) });
        }
    }
}

impl Process {
    fn give_up(&mut self) {
        self.steps.clear();
        self.rebased = None;
    }
}

impl World for OrderWorld {
    fn moves(&self) -> Vec<Move<Self>> {
        let mut moves = Vec::new();
        let mut add = |story: String, by_itself: bool, change: &dyn Fn(&mut Self)| {
            let mut next = self.clone();
            change(&mut next);
            moves.push(Move { story, by_itself, next: Ok(next) });
        };
        if let Some(act) = self.setup.script.get(self.acts).copied() {
            // Nobody reports about what is not there, and nobody orders twice.
            let possible = match act {
                Act::Report(_) | Act::Unlink => self.servers.get(Place::Copy).is_some(),
                Act::Order(_) => self.order().is_none(),
                _ => true,
            };
            if possible {
                add(format!("{act:?}"), false, &|next| next.act(act));
            }
        }
        for place in Place::ALL {
            let live = self.servers.get(place);
            if self.process.seen.get(&place) != live {
                add(format!("sees {place:?} at {:?}", version(live.map(|it| &**it))), true, &|next| {
                    match next.servers.get(place).cloned() {
                        Some(live) => next.process.seen.insert(place, live),
                        None => next.process.seen.remove(&place),
                    };
                });
            }
        }
        if self.faults.restarts > 0 {
            add("another process takes over".into(), false, &|next| {
                next.faults.restarts -= 1;
                let seen = Place::ALL.into_iter().filter_map(|place| Some((place, next.servers.get(place)?.clone())));
                next.process =
                    Process { seen: seen.collect(), secret: next.servers.secret.clone(), ..Process::default() };
            });
        }
        if self.faults.secrets > 0 && self.servers.secret.is_some() {
            add("somebody deletes the state Secret".into(), false, &|next| {
                next.faults.secrets -= 1;
                next.servers.secret = None;
            });
        }
        for (index, sent) in self.flight.iter().enumerate() {
            let is_lost_secret = matches!(sent, Sent::Secret { .. }) && self.faults.secrets < self.setup.secrets;
            if sent.creates() && (!self.wants(sent) || is_lost_secret) {
                continue;
            }
            let mut next = self.clone();
            let sent = next.flight.remove(index);
            let (story, arrived) = (format!("at last arrives: {}", sent.words()), next.arrive(&sent));
            moves.push(Move { story, by_itself: false, next: arrived.map(|_| next) });
        }
        self.works(&mut moves);
        moves
    }

    fn at_rest(&self) -> Result<(), String> {
        let get = |place: Place| self.servers.get(place).map(|object| &**object);
        let (copy, original, related) = (get(Place::Copy), get(Place::Original), get(Place::Related));
        let wrong = match self.order() {
            None if copy.is_some() => "a copy has no order",
            None if self.servers.secret.is_some() => "something is remembered of an order that is gone",
            None if related.is_some() => "a related copy has no order",
            None => return Ok(()),
            Some(order) if is_deleting(order) => "an order is held for ever",
            Some(order) => match copy {
                None => "an order has no copy",
                Some(copy) if !is_linked(copy) => "the copy does not say whose it is",
                Some(copy) if copy["spec"] != order["spec"] => "the copy is not what was ordered",
                Some(copy) if copy["status"] != order["status"] => "the status has not come back",
                _ if self.setup.rules.feedback
                    && placed_generation(order) != order["metadata"]["generation"].as_u64() =>
                {
                    "the consumer is not told what was placed"
                }
                _ if !self.setup.rules.related.is_empty()
                    && original.map(|it| &it["data"]) != related.map(|it| &it["data"]) =>
                {
                    "the related copy is not what the service has"
                }
                _ => return Ok(()),
            },
        };
        Err(wrong.to_owned())
    }
}

/// Whether a copy has the label that somebody may take away.
fn is_linked(copy: &Value) -> bool {
    copy["metadata"]["labels"][REMOTE_CLUSTER].is_string()
}

fn placed_generation(order: &Value) -> Option<u64> {
    order["metadata"]["annotations"][PLACED_GENERATION].as_str()?.parse().ok()
}

/// What the caches say about the one related object.
fn related(
    rules: &Rules,
    state: &carrick_syncagent::decide::state::PrimaryState,
    original: Option<&Value>,
    copy: Option<&Value>,
) -> RelatedView {
    let kind = Arc::new(ApiKind {
        group: String::new(),
        version: "v1".into(),
        kind: "Secret".into(),
        plural: "secrets".into(),
        namespaced: true,
    });
    let seen = original.map(|original| RelatedSeen {
        entry: 0,
        origin_kind: kind.clone(),
        destination_kind: kind,
        destination_status: false,
        origin: original.clone(),
        destination_namespace: "default".into(),
        destination_name: "creds".into(),
        destination: copy.cloned(),
        others: Vec::new(),
        rival: None,
        ordered: false,
        wanted: false,
    });
    let seen: Vec<RelatedSeen> = seen.into_iter().collect();
    let dropped = unnamed(state, &rules.related, &seen).into_iter().map(|(key, record)| DroppedSeen {
        key,
        record,
        origin: None,
        copy: copy.cloned(),
        others: Vec::new(),
    });
    RelatedView { dropped: dropped.collect(), seen, ..RelatedView::default() }
}

/// A step that names a version which an earlier step of the same plan has replaced is for the one that followed.
fn rebased(step: &Step, from: &str, to: &str) -> Option<Step> {
    let mut step = step.clone();
    match &mut step {
        Step::SetFinalizers { resource_version, .. } if resource_version == from => to.clone_into(resource_version),
        Step::Patch { patch, .. } if version(Some(patch)) == from => patch["metadata"]["resourceVersion"] = json!(to),
        _ => return None,
    }
    Some(step)
}
