//! Examples: objects that were valid and are not any more, or are stored differently. None is shown that the validator has not seen.

use std::fmt;

use crate::{Cause, Schema};
use serde_json::{Value, json};

use super::isolate::{Part, at, isolated};
use crate::evolution::node;
use crate::evolution::sample::{near, samples, smallest};
use crate::evolution::step::Step;

/// How many objects are tried for one change.
const TRIES: usize = 240;
/// How many are tried for all changes of a version together, so that thousands of changes do not take minutes.
const ALL_TRIES: usize = 6_000;

/// An example.
pub(super) struct Seen {
    /// The object.
    pub(super) object: Value,
    /// Whether it could not even be labelled or released, had it been stored before.
    pub(super) is_stuck: bool,
}

/// What a new schema does to an object that was valid.
#[derive(Debug, PartialEq)]
pub(super) enum Effect {
    /// It is refused.
    Refused(Vec<Cause>),
    /// It is stored differently.
    Altered,
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(causes) => f.write_str(&causes.first().map(Cause::text).unwrap_or_default()),
            Self::Altered => f.write_str("it would not be stored as it is"),
        }
    }
}

/// What the new schema does to an object; `None` if it is valid and stored the same, or was not valid before.
pub(super) fn effect(old: &Schema, new: &Schema, object: &Value) -> Option<Effect> {
    let mut known = object.clone();
    old.drop_nulls(&mut known);
    old.prune(&mut known, &mut Vec::new());
    if known != *object {
        return None;
    }
    let before = old.stored(known);
    if !old.validate(&before, None).is_empty() {
        return None;
    }
    // As it was sent, and as it is stored.
    let sent = [object, &before].into_iter().take(if *object == before { 1 } else { 2 });
    let mut altered = false;
    for sent in sent {
        let after = new.stored(sent.clone());
        let causes = new.validate(&after, None);
        if !causes.is_empty() {
            return Some(Effect::Refused(causes));
        }
        let mut comparable = after;
        old.prune(&mut comparable, &mut Vec::new());
        altered |= comparable != before;
    }
    altered.then_some(Effect::Altered)
}

/// Looks for examples between two schemas.
pub(super) struct Witness<'a> {
    old: &'a Value,
    new: &'a Value,
    compiled: Option<(Schema, Schema)>,
    head: Value,
    tries: usize,
}

impl<'a> Witness<'a> {
    /// Between two schemas of objects of that apiVersion and kind.
    pub(super) fn new(old: &'a Value, new: &'a Value, (api_version, kind): (&str, &str)) -> Self {
        // Rules that cannot be compiled are refused by the API server; without them, there are no examples.
        let compiled = Schema::compile(old).ok().zip(Schema::compile(new).ok());
        let head = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "example"}});
        Self { old, new, compiled, head, tries: 0 }
    }

    /// An example with one of the values at a node, or another value that the old schema allows there. It shows this change, not others: with
    /// this change alone it would be an example, too.
    pub(super) fn find(&mut self, seek: &[Step], values: &[Value], (place, part): (&[Step], Part)) -> Option<Seen> {
        let (old, new) = self.compiled.as_ref()?;
        let (old_root, new_root) = (node::whole(self.old), node::whole(self.new));
        // Where a change cannot be made by itself, all of them have to do.
        let alone = isolated(&old_root, &new_root, place, part).and_then(|schema| Schema::compile(&schema).ok());
        let alone = alone.as_ref().unwrap_or(new);
        let (before, after) = (at(&old_root, seek)?, at(&new_root, seek));
        let others = near(&before, after.as_ref().unwrap_or(&before));
        let bases: Vec<Value> = if seek.is_empty() { Vec::new() } else { self.bases() };
        // Small objects first, then the same values among others.
        let small = values.iter().chain(&others).map(|value| build(&old_root, seek, value));
        let among = bases.iter().flat_map(|base| values.iter().chain(&others).map(move |value| (base, value)));
        let among = among.map(|(base, value)| graft(&old_root, base, seek, value));
        for object in small.chain(among).flatten().filter(Value::is_object).take(TRIES) {
            if self.tries >= ALL_TRIES {
                return None;
            }
            self.tries += 1;
            let object = self.headed(object);
            let Some(seen) = effect(old, alone, &object) else { continue };
            if effect(old, new, &object).is_some() {
                let is_stuck = matches!(seen, Effect::Refused(_)) && is_stuck(old, alone, &object);
                return Some(Seen { object, is_stuck });
            }
        }
        None
    }

    /// Whole objects with many fields, for rules that look at several of them.
    fn bases(&self) -> Vec<Value> {
        samples(self.old).into_iter().filter(Value::is_object).take(4).collect()
    }

    fn headed(&self, mut object: Value) -> Value {
        for key in ["apiVersion", "kind"] {
            object[key] = self.head[key].clone();
        }
        if !object["metadata"]["name"].is_string() {
            let name = self.head["metadata"]["name"].clone();
            match &mut object["metadata"] {
                Value::Object(metadata) => drop(metadata.insert("name".to_owned(), name)),
                other => *other = json!({"name": name}),
            }
        }
        object
    }
}

/// Whether a stored object cannot even be labelled under the new schema: what is checked at every write is not forgiven.
fn is_stuck(old: &Schema, new: &Schema, object: &Value) -> bool {
    let existing = new.stored(old.stored(object.clone()));
    let mut labelled = existing.clone();
    labelled["metadata"]["labels"] = json!({"touched": "true"});
    !new.validate(&labelled, Some(&existing)).is_empty()
}

/// The smallest value of a schema that has a given value at a path.
fn build(schema: &Value, steps: &[Step], value: &Value) -> Option<Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(value.clone()) };
    let base = smallest(schema).unwrap_or_default();
    graft_step(schema, base, step, rest, value)
}

/// A value with another one at a path.
fn graft(schema: &Value, base: &Value, steps: &[Step], value: &Value) -> Option<Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(value.clone()) };
    graft_step(schema, base.clone(), step, rest, value)
}

fn graft_step(schema: &Value, mut base: Value, step: &Step, rest: &[Step], value: &Value) -> Option<Value> {
    let key = match step {
        Step::Field(name) => name.as_str(),
        Step::Value => "key",
        Step::Item => {
            let items = node::item(schema);
            let mut list = base.as_array().cloned().unwrap_or_default();
            let made = match list.first() {
                Some(first) if !rest.is_empty() => graft(&items, first, rest, value)?,
                _ => build(&items, rest, value)?,
            };
            match list.first_mut() {
                Some(first) => *first = made,
                None => list.push(made),
            }
            return Some(Value::Array(list));
        }
    };
    let below = node::child(schema, key).or_else(|| node::rest(schema))?;
    if !base.is_object() {
        base = json!({});
    }
    let made = match base.get(key).filter(|_| !rest.is_empty()) {
        Some(known) => graft(&below, known, rest, value)?,
        None => build(&below, rest, value)?,
    };
    base[key] = made;
    Some(base)
}
