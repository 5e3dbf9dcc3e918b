//! JSON patches, as Go's library applies them.

use serde_json::Value;

use crate::depth::{self, deepest};
use crate::go::json_type;
use crate::status::Status;

/// API servers refuse patches with more operations.
const OPERATIONS: usize = 10_000;

/// What the copies of one patch may have in all, in bytes of JSON: a few operations could make gigabytes of a kilobyte.
const COPIED: usize = 3 * 1024 * 1024;

/// Applies a whole patch as clients send it.
pub(super) fn apply(object: &mut Value, patch: &Value) -> Result<(), Status> {
    if patch.is_null() {
        return Ok(());
    }
    let Some(operations) = patch.as_array() else { return Err(undecodable(patch, "[]handlers.jsonPatchOp")) };
    if let Some(other) = operations.iter().find(|operation| !operation.is_object()) {
        return Err(undecodable(other, "handlers.jsonPatchOp"));
    }
    if operations.len() > OPERATIONS {
        let got = operations.len();
        let why = format!("The allowed maximum operations in a JSON patch is {OPERATIONS}, got {got}");
        return Err(Status::new(413, "RequestEntityTooLarge", format!("Request entity too large: {why}")));
    }
    let mut patcher = JsonPatcher::default();
    let operations: json_patch::Patch = serde_json::from_value(patch.clone()).map_err(|_| unapplicable())?;
    operations.iter().try_for_each(|operation| patcher.operate(object, operation))
}

fn undecodable(found: &Value, wanted: &str) -> Status {
    let found = json_type(found);
    let why = format!("json: cannot unmarshal {found} into Go value of type {wanted}");
    Status::bad_request(format!("error decoding patch: {why}"))
}

/// Applies operations one after the other, and counts what they copy.
#[derive(Debug, Default)]
pub(crate) struct JsonPatcher {
    copied: usize,
}

impl JsonPatcher {
    /// Applies one operation.
    pub(crate) fn apply(&mut self, object: &mut Value, operation: &Value) -> Result<(), Status> {
        let operation = serde_json::from_value(operation.clone()).map_err(|_| unapplicable())?;
        self.operate(object, &operation)
    }

    fn operate(&mut self, object: &mut Value, operation: &json_patch::PatchOperation) -> Result<(), Status> {
        if finds_nothing_as_expected(operation, object) {
            return Ok(());
        }
        let operation = lenient(operation, object);
        if let json_patch::PatchOperation::Copy(copy) = &operation {
            self.copied += copy.from.resolve(object).map_or(0, |value| value.to_string().len());
        }
        if self.copied > COPIED || levels(&operation, object) > deepest() {
            return Err(unapplicable());
        }
        json_patch::patch(object, &[operation]).map_err(|_| unapplicable())
    }
}

/// How deep an object nests at the place that an operation writes to. Few operations could make it deeper than any stack, and whoever
/// walks through it later has no way to refuse it.
fn levels(operation: &json_patch::PatchOperation, object: &Value) -> usize {
    use json_patch::PatchOperation as Operation;
    let (path, value) = match operation {
        Operation::Add(add) => (&add.path, Some(&add.value)),
        Operation::Replace(replace) => (&replace.path, Some(&replace.value)),
        Operation::Copy(copy) => (&copy.path, copy.from.resolve(object).ok()),
        Operation::Move(moved) => (&moved.path, moved.from.resolve(object).ok()),
        Operation::Remove(_) | Operation::Test(_) => return 0,
    };
    path.count() + value.map_or(0, depth::of)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::depth::MAX_DEPTH;

    fn tested(test: impl FnOnce() + Send + 'static) {
        std::thread::Builder::new().stack_size(carrick_json::STACK).spawn(test).unwrap().join().unwrap();
    }

    #[test]
    fn copies_of_copies_do_not_nest_deeper_than_any_body_may() {
        tested(|| {
            let (mut path, mut operations) = (String::from("/a"), Vec::new());
            for _ in 0..17 {
                operations.push(json!({"op": "copy", "from": "", "path": path}));
                path = format!("{path}{path}");
            }
            let mut object = json!({});
            assert_eq!(apply(&mut object, &operations.into()).unwrap_err().code, 422);
        });
    }

    #[test]
    fn nothing_is_added_or_moved_deeper_than_any_body_may_nest() {
        tested(|| {
            let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({ "a": inner }));
            let half = MAX_DEPTH / 2;
            let below = "/a".repeat(half);
            let add = |levels: usize| json!([{"op": "add", "path": below, "value": nested(levels)}]);
            for (levels, fits) in [(1, true), (half - 1, true), (half + 1, false), (MAX_DEPTH - 1, false)] {
                let mut object = nested(half);
                assert_eq!(apply(&mut object, &add(levels)).is_ok(), fits, "{levels}");
            }
            let mut object = json!({"a": nested(half - 1), "b": nested(half + 10)});
            let moved = json!([{"op": "move", "from": "/b", "path": format!("{}/b", "/a".repeat(half - 1))}]);
            assert_eq!(apply(&mut object, &moved).unwrap_err().code, 422);
        });
    }
}
