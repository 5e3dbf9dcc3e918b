//! Orders of which kcp shows less than they have, because an older schema is exported again.
//!
//! kcp drops unknown fields when it reads, so every order loses them at once although nobody has changed it: its generation is the one that its
//! copy was made for. What runs with these fields keeps them. Whatever is written to the order next, be it its status, drops them from kcp for
//! good, so that they do not come back with the newer schema either. The copy follows when the consumer changes the order.

use serde_json::Value;

use super::Step;
use crate::api::{REMOTE_GENERATION, ROLLED_BACK};
use crate::rules::Rules;
use crate::rules::metadata::{SERVICE_SIDE, annotation};

/// How many fields are named.
const NAMED: usize = 3;

/// The fields that steps would remove from the copy although nobody has changed the order; none if all is as it should be.
pub(super) fn lost(rules: &Rules, source: &Value, copy: &Value, steps: &[Step]) -> Vec<String> {
    let generation = source["metadata"]["generation"].as_i64();
    let done = annotation(copy, REMOTE_GENERATION).and_then(|done| done.parse::<i64>().ok());
    let mut lost = Vec::new();
    if rules.rolled_back && generation.is_some() && generation == done {
        for step in steps {
            lost_by(step, copy, &mut lost);
        }
        lost.sort_unstable();
        lost.dedup();
    }
    lost
}

/// What is said about an order whose copy keeps fields.
pub(super) fn notice(lost: &[String]) -> String {
    let more = if lost.len() > NAMED { ", …" } else { "" };
    format!(
        "kcp does not show {}{more} of this order since a rollback to an older schema; its copy keeps that until the order is changed, or annotation {ROLLED_BACK} of the PublishedResource is removed",
        lost[..lost.len().min(NAMED)].join(", ")
    )
}

/// Whether a step brings content to a copy, or remembers that.
pub(super) fn is_content(step: &Step) -> bool {
    !matches!(step, Step::SetFinalizers { .. })
}

fn lost_by(step: &Step, copy: &Value, lost: &mut Vec<String>) {
    match step {
        Step::Edit { at, edits, .. } if at.side == SERVICE_SIDE => {
            for edit in edits.iter().filter(|edit| edit.path.first().is_some_and(|field| field != "metadata")) {
                let there = edit.path.iter().try_fold(copy, |there, key| there.get(key));
                let Some(there) = there else { continue };
                compare(&mut edit.path.clone(), there, edit.value.as_ref(), lost);
            }
        }
        Step::Replace { at, object } | Step::Apply { at, object, .. } if at.side == SERVICE_SIDE => {
            let content = copy.as_object().into_iter().flatten();
            let content =
                content.filter(|(field, _)| !["apiVersion", "kind", "metadata", "status"].contains(&field.as_str()));
            for (field, there) in content {
                compare(&mut vec![field.clone()], there, object.get(field), lost);
            }
        }
        _ => {}
    }
}

/// Finds fields that are there and will not be. Other values are no loss.
fn compare(path: &mut Vec<String>, there: &Value, then: Option<&Value>, lost: &mut Vec<String>) {
    match (there, then) {
        (_, None) => lost.push(path.join(".")),
        (Value::Object(there), Some(Value::Object(then))) => {
            for (key, value) in there {
                path.push(key.clone());
                compare(path, value, then.get(key), lost);
                path.pop();
            }
        }
        (Value::Array(there), Some(Value::Array(then))) => {
            for (number, (there, then)) in there.iter().zip(then).enumerate() {
                path.push(number.to_string());
                compare(path, there, Some(then), lost);
                path.pop();
            }
        }
        _ => {}
    }
}
