//! Patches: the four media types, and what they make of an object.

mod json;
mod merge;
mod strategic;

use serde_json::Value;

pub(crate) use json::JsonPatcher;

use crate::go::json_type;
use crate::status::Status;

/// A patch as it was sent.
#[derive(Debug, Clone)]
pub enum Patch {
    /// `application/merge-patch+json`.
    Merge(Value),
    /// `application/json-patch+json`.
    Json(Value),
    /// `application/strategic-merge-patch+json`, built-in kinds only.
    Strategic(Value),
    /// `application/apply-patch+yaml`: server-side apply.
    Apply(Value),
}

impl Patch {
    /// Stands for a patch that cannot be read, until its object is found.
    pub(crate) fn unreadable(why: &str) -> Value {
        Value::String(format!("{UNREADABLE}{why}"))
    }

    /// The result of applying a patch other than server-side apply.
    pub(crate) fn apply_to(&self, current: &Value) -> Result<Value, Status> {
        let mut object = current.clone();
        match self {
            Self::Merge(patch) => {
                object_patch(patch)?;
                merge::apply(&mut object, patch);
            }
            Self::Strategic(patch) => {
                object_patch(patch)?;
                strategic::apply(&mut object, patch)?;
            }
            Self::Json(patch) => {
                readable(patch)?;
                json::apply(&mut object, patch)?;
            }
            Self::Apply(_) => {}
        }
        Ok(object)
    }
}

/// Marks the error of a patch that is not JSON.
const UNREADABLE: &str = "\u{0}unreadable: ";

/// Refuses a patch that could not be read.
fn readable(patch: &Value) -> Result<(), Status> {
    match patch.as_str().and_then(|text| text.strip_prefix(UNREADABLE)) {
        Some(why) => Err(Status::bad_request(format!("error decoding patch: {why}"))),
        None => Ok(()),
    }
}

fn object_patch(patch: &Value) -> Result<(), Status> {
    readable(patch)?;
    if patch.is_object() {
        return Ok(());
    }
    if patch.is_null() {
        return Err(Status::bad_request("Invalid JSON Patch"));
    }
    let found = json_type(patch);
    let why = format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}");
    Err(Status::bad_request(format!("error decoding patch: {why}")))
}
