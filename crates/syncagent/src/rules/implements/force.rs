//! Which steps are at work: a change of them is a change of every copy, and goes through the same gate as a changed schema.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha1::{Digest, Sha1};

use super::Mapping;
use crate::api::{APPROVED_MAPPING, ConversionStep, Implements, MappingInForce, PublishedResource};
use crate::rules::hex;

/// How many orders are named.
const NAMED: usize = 5;

/// The steps of one generation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Steps {
    /// Those that make the copy.
    pub spec: Vec<ConversionStep>,
    /// Those that make the status of the order.
    pub status: Vec<ConversionStep>,
}

impl Steps {
    /// Those that are written down.
    pub fn of(implements: &Implements) -> Self {
        Self { spec: implements.spec.clone(), status: implements.status.clone() }
    }

    /// As they are kept in the status of the PublishedResource.
    pub fn noted(&self, resource: &str) -> MappingInForce {
        // What was read from JSON can be written as JSON; fields without a value say nothing.
        let steps = brief(&serde_json::to_value(self).unwrap_or_default()).to_string();
        let digest = hex(&Sha1::digest(steps.as_bytes()))[..8].to_owned();
        MappingInForce { resource: resource.to_owned(), digest, steps }
    }
}

/// The steps that are at work instead of those that are written down, because these wait for an approval; none if nothing waits.
pub fn held_for(pr: &PublishedResource) -> Option<Steps> {
    let (implements, at_work) = (pr.spec.implements.as_ref()?, pr.status.mapping.as_ref()?);
    let written = Steps::of(implements).noted(&implements.resource);
    let approved = pr.metadata.annotations.get(APPROVED_MAPPING).is_some_and(|digest| *digest == written.digest);
    // Nobody has orders of another resource yet.
    let is_open =
        !pr.is_gated() || approved || at_work.resource != written.resource || at_work.digest == written.digest;
    if is_open { None } else { serde_json::from_str(&at_work.steps).ok() }
}

/// What new steps would do to orders that are there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MappingTrial {
    /// How many orders were tried.
    pub orders: usize,
    /// Those whose copies would change or could not be made, in words.
    pub changed: Vec<String>,
}

impl MappingTrial {
    /// Makes the copies of all orders by both.
    pub fn of(old: &Mapping, new: &Mapping, orders: impl Iterator<Item = (String, Value)>) -> Self {
        let mut trial = Self::default();
        for (cluster, order) in orders {
            trial.orders += 1;
            let made = |mapping: &Mapping| mapping.spec(&order, Some(&order));
            let difference = match (made(old), made(new)) {
                (_, Err(error)) => Some(format!("cannot be placed any more: {error}")),
                (Err(_), Ok(_)) => None,
                (Ok(old), Ok(new)) => difference(&old, &new),
            };
            let name = ["namespace", "name"].map(|key| order["metadata"][key].as_str().unwrap_or_default());
            trial
                .changed
                .extend(difference.map(|difference| format!("{cluster} {}/{}: {difference}", name[0], name[1])));
        }
        trial
    }

    /// The same in one sentence.
    pub fn sentence(&self) -> String {
        let mut sentence = match (self.orders, self.changed.len()) {
            (0, _) => return "there are no orders that it would change".to_owned(),
            (all, 0) => return format!("it changes none of {all} orders"),
            (all, changed) => format!("it changes {changed} of {all} orders"),
        };
        for one in self.changed.iter().take(NAMED) {
            // Writing to a String cannot fail.
            let _ = write!(sentence, "; {one}");
        }
        if self.changed.len() > NAMED {
            let _ = write!(sentence, "; and {} more", self.changed.len() - NAMED);
        }
        sentence
    }
}

/// The fields that differ; values are not shown, because they may be secret.
fn difference(old: &Value, new: &Value) -> Option<String> {
    let mut paths = Vec::new();
    collect_changed(old, new, String::new(), &mut paths);
    (!paths.is_empty()).then(|| paths.join(", "))
}

fn collect_changed(old: &Value, new: &Value, path: String, paths: &mut Vec<String>) {
    let (Value::Object(before), Value::Object(after)) = (old, new) else {
        paths.extend((old != new).then_some(path));
        return;
    };
    for key in before.keys().chain(after.keys().filter(|key| !before.contains_key(*key))) {
        let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        collect_changed(&old[key], &new[key], below, paths);
    }
}

/// A value without nulls, empty texts and empty maps.
fn brief(value: &Value) -> Value {
    let says_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !says_nothing(value));
            kept.map(|(key, value)| (key.clone(), brief(value))).collect()
        }
        Value::Array(list) => list.iter().map(brief).collect(),
        other => other.clone(),
    }
}
