//! Examples: objects that were valid and are not any more, or are stored differently. None is shown that the validator has not seen.

use std::cell::{LazyCell, OnceCell};
use std::fmt;

use crate::{Cause, Schema};
use serde_json::{Value, json};

use super::isolate::{Part, at, isolated, step_down};
use crate::evolution::node::{self, Node};
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
    /// The schemas of whole objects.
    roots: (Value, Value),
    compiled: Option<(Schema, Schema)>,
    /// Whole objects with many fields, for rules that look at several of them; made when they are first needed.
    bases: OnceCell<Vec<Value>>,
    head: Value,
    tries: usize,
}

impl<'a> Witness<'a> {
    /// Between two schemas of objects of that apiVersion and kind.
    pub(super) fn new(old: &'a Value, new: &Value, (api_version, kind): (&str, &str)) -> Self {
        // Rules that cannot be compiled are refused by the API server; without them, there are no examples.
        let compiled = Schema::compile(old).ok().zip(Schema::compile(new).ok());
        let head = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "example"}});
        let bases = OnceCell::new();
        Self { old, roots: (node::whole(old), node::whole(new)), compiled, bases, head, tries: 0 }
    }

    /// An example with one of the values at a node, or another value that the old schema allows there. It shows this change, not others: with
    /// this change alone it would be an example, too.
    pub(super) fn find(&mut self, seek: &[Step], values: &[Value], (place, part): (&[Step], Part)) -> Option<Seen> {
        let (old, new) = self.compiled.as_ref()?;
        let (old_root, new_root) = (&self.roots.0, &self.roots.1);
        let way = Way::new(old_root, seek)?;
        let (before, after) = (way.end(), at(new_root, seek));
        // All of these take long where a kind is large, and most examples are found without.
        let others = LazyCell::new(|| near(before, after.as_deref().unwrap_or(before)));
        let bases = LazyCell::new(|| if seek.is_empty() { &[][..] } else { rich(&self.bases, self.old) });
        let alone = LazyCell::new(|| {
            let schema = isolated(old_root, new_root, place, part)?;
            Schema::compile_like(&schema, (self.old, old)).ok()
        });
        let (way, others, bases) = (&way, &others, &bases);
        let later = std::iter::once(());
        let all = || values.iter().chain(later.clone().flat_map(move |()| others.iter()));
        // Small objects first, then the same values among others.
        let small = all().map(|value| way.build(value));
        let among = later.clone().flat_map(|()| bases.iter());
        let among = among.flat_map(|base| all().map(move |value| way.graft(base, value)));
        for object in small.chain(among).flatten().filter(Value::is_object).take(TRIES) {
            if self.tries >= ALL_TRIES {
                return None;
            }
            self.tries += 1;
            let object = headed(&self.head, object);
            let Some(together) = effect(old, new, &object) else { continue };
            // Where a change cannot be made by itself, all of them have to do.
            let (schema, seen) = match &*alone {
                Some(alone) => (alone, effect(old, alone, &object)),
                None => (new, Some(together)),
            };
            if let Some(seen) = seen {
                let is_stuck = matches!(seen, Effect::Refused(_)) && is_stuck(old, schema, &object);
                return Some(Seen { object, is_stuck });
            }
        }
        None
    }
}

/// Whole objects with many fields, made once.
fn rich<'a>(known: &'a OnceCell<Vec<Value>>, schema: &Value) -> &'a [Value] {
    known.get_or_init(|| samples(schema).into_iter().filter(Value::is_object).take(4).collect())
}

/// An object with apiVersion, kind and a name.
fn headed(head: &Value, mut object: Value) -> Value {
    for key in ["apiVersion", "kind"] {
        object[key] = head[key].clone();
    }
    if !object["metadata"]["name"].is_string() {
        let name = head["metadata"]["name"].clone();
        match &mut object["metadata"] {
            Value::Object(metadata) => drop(metadata.insert("name".to_owned(), name)),
            other => *other = json!({"name": name}),
        }
    }
    object
}

/// Whether a stored object cannot even be labelled under the new schema: what is checked at every write is not forgiven.
fn is_stuck(old: &Schema, new: &Schema, object: &Value) -> bool {
    let existing = new.stored(old.stored(object.clone()));
    let mut labelled = existing.clone();
    labelled["metadata"]["labels"] = json!({"touched": "true"});
    !new.validate(&labelled, Some(&existing)).is_empty()
}

/// The way from the root of a schema to a node. What is at each station is found once, however many values are tried at its end.
struct Way<'a> {
    steps: &'a [Step],
    /// The nodes: the root, and where each step leads.
    nodes: Vec<Node<'a>>,
    /// The smallest value of each node.
    least: Vec<OnceCell<Value>>,
}

impl<'a> Way<'a> {
    fn new(root: &'a Value, steps: &'a [Step]) -> Option<Self> {
        let mut nodes = vec![Node::Borrowed(root)];
        for step in steps {
            nodes.push(step_down(nodes.last()?.clone(), step)?);
        }
        let least = nodes.iter().map(|_| OnceCell::new()).collect();
        Some(Self { steps, nodes, least })
    }

    /// The node at the end.
    fn end(&self) -> &Value {
        self.nodes.last().map_or(&Value::Null, |node| node)
    }

    /// The smallest object that has a value at the end.
    fn build(&self, value: &Value) -> Option<Value> {
        self.build_from(0, value)
    }

    /// An object with another value at the end.
    fn graft(&self, base: &Value, value: &Value) -> Option<Value> {
        self.graft_from(0, base, value)
    }

    fn build_from(&self, station: usize, value: &Value) -> Option<Value> {
        let Some(step) = self.steps.get(station) else { return Some(value.clone()) };
        let least = self.least[station].get_or_init(|| smallest(&self.nodes[station]).unwrap_or_default());
        self.step(station, step, least.clone(), value)
    }

    fn graft_from(&self, station: usize, base: &Value, value: &Value) -> Option<Value> {
        let Some(step) = self.steps.get(station) else { return Some(value.clone()) };
        self.step(station, step, base.clone(), value)
    }

    fn step(&self, station: usize, step: &Step, mut base: Value, value: &Value) -> Option<Value> {
        let is_last = station + 1 == self.steps.len();
        let below = |known: Option<&Value>| match known.filter(|_| !is_last) {
            Some(known) => self.graft_from(station + 1, known, value),
            None => self.build_from(station + 1, value),
        };
        let key = match step {
            Step::Field(name) => name.as_str(),
            Step::Value => "key",
            Step::Item => {
                let mut list = base.as_array().cloned().unwrap_or_default();
                let made = below(list.first())?;
                match list.first_mut() {
                    Some(first) => *first = made,
                    None => list.push(made),
                }
                return Some(Value::Array(list));
            }
        };
        if !base.is_object() {
            base = json!({});
        }
        let made = below(base.get(key))?;
        base[key] = made;
        Some(base)
    }
}
