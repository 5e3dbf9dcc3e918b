//! Patches: the four media types, and what they make of an object.

mod merge;
mod strategic;

use serde_json::Value;

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
                if patch.is_null() {
                    return Ok(object);
                }
                if !patch.is_array() {
                    let found = json_type(patch);
                    let why = format!("json: cannot unmarshal {found} into Go value of type []handlers.jsonPatchOp");
                    return Err(Status::bad_request(format!("error decoding patch: {why}")));
                }
                if let Some(other) = patch.as_array().into_iter().flatten().find(|operation| !operation.is_object()) {
                    let found = json_type(other);
                    let why = format!("json: cannot unmarshal {found} into Go value of type handlers.jsonPatchOp");
                    return Err(Status::bad_request(format!("error decoding patch: {why}")));
                }
                let operations: json_patch::Patch =
                    serde_json::from_value(patch.clone()).map_err(|_| unapplicable())?;
                for operation in operations.iter() {
                    if !finds_nothing_as_expected(operation, &object) {
                        let operation = lenient(operation, &object);
                        json_patch::patch(&mut object, &[operation]).map_err(|_| unapplicable())?;
                    }
                }
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

/// Whether it is a test for null at a key that its object does not have. Kubernetes accepts such a test, the crate does not; clients add
/// the first finalizer that way.
fn finds_nothing_as_expected(operation: &json_patch::PatchOperation, object: &Value) -> bool {
    let json_patch::PatchOperation::Test(test) = operation else { return false };
    let parent = test.path.parent().and_then(|parent| parent.resolve(object).ok());
    test.value.is_null() && parent.is_some_and(Value::is_object) && test.path.resolve(object).is_err()
}

/// Kubernetes treats the replacement of a missing value as an addition, and copies null from a missing path; the crate refuses both.
fn lenient(operation: &json_patch::PatchOperation, object: &Value) -> json_patch::PatchOperation {
    use json_patch::{AddOperation, PatchOperation};
    let missing = |path: &json_patch::jsonptr::PointerBuf| {
        let parent = path.parent().and_then(|parent| parent.resolve(object).ok());
        parent.is_some_and(Value::is_object) && path.resolve(object).is_err()
    };
    match operation {
        PatchOperation::Replace(replace) if missing(&replace.path) => {
            PatchOperation::Add(AddOperation { path: replace.path.clone(), value: replace.value.clone() })
        }
        PatchOperation::Copy(copy) if missing(&copy.from) => {
            PatchOperation::Add(AddOperation { path: copy.path.clone(), value: Value::Null })
        }
        other => other.clone(),
    }
}

/// A JSON patch whose test fails or whose path is missing.
fn unapplicable() -> Status {
    let mut status = Status::new(422, "Invalid", "the server rejected our request due to an error in our request");
    status.details = serde_json::json!({});
    status
}
