//! Why an object is not placed although everything works.

use serde_json::Value;
use thiserror::Error;

use super::Step;
use crate::rules::metadata::{SERVICE_SIDE, WORDS};

/// Why the provider does not want an object. The message is for its consumer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The workspace has as many objects as it may.
    #[error(
        "the limit of objects of this kind in one workspace is {0}: this one waits until another one is deleted, or the provider raises the limit"
    )]
    Limit(usize),
    /// It breaks a rule.
    #[error("{0}")]
    Rule(String),
}

/// Whether a step brings content to the service cluster that is not there: more than labels and annotations.
pub(super) fn places(step: &Step, copy: Option<&Value>) -> bool {
    match step {
        Step::Create { at, .. } => at.side == SERVICE_SIDE,
        Step::Edit { at, edits, .. } => {
            at.side == SERVICE_SIDE
                && edits.iter().any(|edit| edit.path.first().is_none_or(|field| field != "metadata"))
        }
        Step::Replace { at, object } | Step::Apply { at, object, .. } => {
            let content = object.as_object().into_iter().flatten().filter(|(field, _)| *field != "metadata");
            let there = |field: &str| copy.and_then(|copy| copy.get(field)).unwrap_or(&Value::Null);
            at.side == SERVICE_SIDE && content.into_iter().any(|(field, wanted)| !holds(there(field), wanted))
        }
        _ => false,
    }
}

/// Whether a step changes a copy at all.
pub(super) fn changes(step: &Step) -> bool {
    let (Step::Edit { at, .. } | Step::Replace { at, .. } | Step::Apply { at, .. }) = step else { return false };
    at.side == SERVICE_SIDE
}

/// A source as it would be with what is on its copy now, as far as consumers decide that.
pub(super) fn as_placed(source: &Value, copy: &Value) -> Value {
    let kept = |field: &str| ["apiVersion", "kind", "metadata", "status"].contains(&field);
    let (mut placed, strip) = (source.clone(), WORDS.strip(copy));
    if let (Some(placed), Some(copy)) = (placed.as_object_mut(), copy.as_object()) {
        placed.retain(|field, _| kept(field) || copy.contains_key(field));
        let content = copy.iter().filter(|(field, _)| !kept(field));
        placed.extend(content.map(|(field, value)| (field.clone(), value.clone())));
    }
    for field in ["labels", "annotations"] {
        let own = source["metadata"][field].as_object().into_iter().flatten();
        let own = own.filter(|(key, _)| key.starts_with(WORDS.prefix)).map(|(key, value)| (key.clone(), value.clone()));
        let crossed = strip["metadata"][field].as_object().cloned().unwrap_or_default();
        placed["metadata"][field] = Value::Object(own.chain(crossed).collect());
    }
    placed
}

/// Whether a value has everything that is wanted.
fn holds(there: &Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (Value::Object(there), Value::Object(wanted)) => {
            wanted.iter().all(|(field, wanted)| there.get(field).is_some_and(|there| holds(there, wanted)))
        }
        _ => there == wanted,
    }
}
