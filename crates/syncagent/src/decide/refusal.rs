//! Why an object is not placed although everything works.

use serde_json::Value;
use thiserror::Error;

use super::Step;
use crate::rules::metadata::SERVICE_SIDE;

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

/// Whether a value has everything that is wanted.
fn holds(there: &Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (Value::Object(there), Value::Object(wanted)) => {
            wanted.iter().all(|(field, wanted)| there.get(field).is_some_and(|there| holds(there, wanted)))
        }
        _ => there == wanted,
    }
}
