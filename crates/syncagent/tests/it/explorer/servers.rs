//! The servers of an order: objects with versions, and what becomes of writes that arrive.

use std::collections::BTreeMap;
use std::sync::Arc;

use carrick_json::merge;
use carrick_syncagent::api::FIELD_MANAGER;
use carrick_syncagent::decide::state::{self, Applied, CopyNote, PrimaryState};
use carrick_syncagent::decide::{ObjectAddress, Role, Step, edit, ownership};
use carrick_syncagent::rules::metadata::WORDS;
use serde_json::{Value, json};

/// Where an object is. Each place has one name, so a new object there is the old one's successor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// The consumer's object.
    Order,
    /// Its copy on the service cluster.
    Copy,
    /// A Secret of the service.
    Original,
    /// Its copy beside the order.
    Related,
}

impl Place {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Order, Self::Copy, Self::Original, Self::Related];

    /// The place of an address.
    pub fn of(at: &ObjectAddress) -> Self {
        match (at.kind.kind.as_str(), at.side.role) {
            ("Secret", Role::Provider) => Self::Original,
            ("Secret", Role::Consumer) => Self::Related,
            (_, Role::Consumer) => Self::Order,
            (_, Role::Provider) => Self::Copy,
        }
    }
}

/// What is in the state Secret.
pub type Data = BTreeMap<String, Vec<u8>>;

/// All objects as their servers have them.
#[derive(Debug, Clone, Default, Hash)]
pub struct Servers {
    objects: BTreeMap<Place, Arc<Value>>,
    /// The last version that was given out at a place: it is never given out again.
    versions: BTreeMap<Place, u64>,
    /// The fields of a copy that the agent owns, where it writes by server-side apply.
    owned: BTreeMap<Place, Arc<Value>>,
    /// The state Secret, and its version.
    pub secret: Option<(u64, Arc<Data>)>,
    secrets: u64,
}

/// Why a write was refused.
#[derive(Debug)]
pub struct Refused;

/// What a step becomes when it arrives.
pub type Arrived = Result<(), Refused>;

/// The version of an object.
pub fn version(object: Option<&Value>) -> &str {
    object.and_then(|object| object["metadata"]["resourceVersion"].as_str()).unwrap_or_default()
}

/// Reads what is in a state Secret.
pub fn memory(secret: Option<&(u64, Arc<Data>)>) -> PrimaryState {
    let data = secret.iter().flat_map(|(_, data)| data.iter());
    state::read(data.map(|(key, text)| (key.as_str(), text.as_slice())))
}

impl Servers {
    /// The object at a place.
    pub fn get(&self, place: Place) -> Option<&Arc<Value>> {
        self.objects.get(&place)
    }

    /// The same as somebody sees it who was given another version of one object.
    pub fn showing(&self, place: Place, object: Option<Arc<Value>>) -> Self {
        let mut shown = self.clone();
        match object {
            Some(object) => shown.objects.insert(place, object),
            None => shown.objects.remove(&place),
        };
        shown
    }

    /// Creates an object, as a server does.
    pub fn create(&mut self, place: Place, mut object: Value) {
        let number = self.versions.get(&place).copied().unwrap_or_default();
        object["metadata"]["uid"] = json!(format!("{place:?}-{number}"));
        object["metadata"]["generation"] = json!(1);
        self.store(place, object);
    }

    /// Changes an object, as a server does for whoever has the right.
    pub fn change(&mut self, place: Place, change: impl FnOnce(&mut Value)) {
        let Some(object) = self.objects.get(&place) else { return };
        let (before, mut object) = (object.clone(), Value::clone(object));
        change(&mut object);
        if object == *before {
            return;
        }
        if object["spec"] != before["spec"]
            || object["metadata"]["deletionTimestamp"] != before["metadata"]["deletionTimestamp"]
        {
            object["metadata"]["generation"] = json!(before["metadata"]["generation"].as_u64().unwrap_or_default() + 1);
        }
        self.store(place, object);
    }

    /// Deletes an object, which stays as long as somebody holds it.
    pub fn delete(&mut self, place: Place) {
        self.change(place, |object| object["metadata"]["deletionTimestamp"] = json!("now"));
    }

    fn store(&mut self, place: Place, mut object: Value) {
        let version = self.versions.entry(place).or_default();
        *version += 1;
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        let is_held = object["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
        if object["metadata"]["deletionTimestamp"].is_string() && !is_held {
            self.objects.remove(&place);
            self.owned.remove(&place);
        } else {
            self.objects.insert(place, Arc::new(object));
        }
    }

    /// A write of the agent arrives. Writes of the state Secret are no part of this.
    pub fn arrive(&mut self, step: &Step) -> Arrived {
        let Some(at) = step.address() else { return Ok(()) };
        let place = Place::of(at);
        let live = self.objects.get(&place).cloned();
        if let Step::Create { object, .. } = step {
            if live.is_some() {
                return Err(Refused);
            }
            self.owned.insert(place, Arc::new(object.clone()));
            let mut object = object.clone();
            if place == Place::Related {
                // What a server records of who wrote it; for others nobody asks.
                object["metadata"]["managedFields"] = json!([{"manager": FIELD_MANAGER, "fieldsV1": {"f:data": {}}}]);
            }
            self.create(place, object);
            return Ok(());
        }
        let live = live.ok_or(Refused)?;
        let names = |object: &Value| {
            ["uid", "resourceVersion"].into_iter().all(|field| {
                let named = &object["metadata"][field];
                named.is_null() || *named == live["metadata"][field]
            })
        };
        let is_meant = match step {
            Step::SetFinalizers { resource_version, .. } => version(Some(&live)) == resource_version,
            Step::Edit { guard, .. } => guard.holds(&live),
            Step::Patch { patch: object, .. }
            | Step::Apply { object, .. }
            | Step::Replace { object, .. }
            | Step::WriteStatus { object, .. } => names(object),
            Step::Delete { uid, resource_version, .. } => {
                names(&json!({"metadata": {"uid": uid, "resourceVersion": resource_version}}))
            }
            _ => true,
        };
        if !is_meant {
            return Err(Refused);
        }
        let owned = self.owned.get(&place).cloned().unwrap_or_default();
        match step {
            Step::SetFinalizers { finalizers, held_by, .. } => self.change(place, |object| {
                object["metadata"]["finalizers"] = json!(finalizers);
                if let Some(held_by) = held_by {
                    merge::apply(object, &json!({"metadata": {"annotations": {"syncagent.kcp.io/held-by": held_by}}}));
                }
            }),
            Step::Edit { edits, .. } => self.change(place, |object| edit::apply(edits, object)),
            Step::Patch { patch, .. } => self.change(place, |object| merge::apply(object, patch)),
            Step::WriteStatus { object: wanted, .. } => {
                self.change(place, |object| object["status"] = wanted["status"].clone());
            }
            Step::Replace { object: wanted, .. } => self.change(place, |object| *object = wanted.clone()),
            Step::Apply { object: wanted, .. } => {
                self.change(place, |object| ownership::applied(&owned, wanted, object));
                self.owned.insert(place, Arc::new(wanted.clone()));
            }
            Step::Delete { .. } => self.delete(place),
            _ => {}
        }
        Ok(())
    }

    /// A write of the state Secret arrives, made for one version of it or for none.
    pub fn arrive_secret(&mut self, known: Option<u64>, data: Option<&Arc<Data>>) -> Arrived {
        if self.secret.as_ref().map(|(version, _)| *version) != known {
            return Err(Refused);
        }
        self.secrets += 1;
        self.secret = data.map(|data| (self.secrets, data.clone()));
        Ok(())
    }
}

/// What a step makes of what is remembered.
pub enum Memory {
    /// Nothing else.
    Unchanged,
    /// This.
    Holds(Arc<Data>),
    /// It is forgotten.
    Gone,
}

/// What becomes of the memory by a step.
pub fn remembered(mut state: PrimaryState, step: &Step, servers: &Servers) -> Memory {
    match step.clone() {
        Step::RememberNext { entry, value } => state.note_next(&entry, value),
        Step::Remember { entry, value, copy, how, instead, seen } => {
            let stored = copy.and_then(|at| servers.get(Place::of(&at))).map(AsRef::as_ref);
            let seen = seen.and_then(|seen| seen.resolve(&value, stored));
            let applied = instead.map_or(Applied::Whole(value), Applied::Sum);
            let copy = stored.and_then(|stored| CopyNote::of(&WORDS, stored, how));
            state.note_written(&entry, applied, copy);
            if let Some(seen) = seen {
                state.note_seen(&entry, seen);
            }
        }
        Step::RememberSeen { entry, value, copy, seen } => {
            let seen = seen.resolve(&value, servers.get(Place::of(&copy)).map(AsRef::as_ref));
            if let Some(seen) = seen {
                state.note_seen(&entry, seen);
            }
        }
        Step::Track { records } => state.track_all(records),
        Step::Drop { entry } => state.drop_entry(&entry),
        Step::Forget => return Memory::Gone,
        _ => return Memory::Unchanged,
    }
    Memory::Holds(Arc::new(state.to_data()))
}
