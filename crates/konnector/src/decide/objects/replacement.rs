//! Replacements: how a copy is written where it cannot be applied.

use carrick_sync::Mark;
use carrick_sync::object::{annotation, set};
use serde_json::Value;

use super::words::APPLIED_STATE;

/// The copy with all content of what should have been applied. A server drops fields of it that its schema does not know, whereas it refuses an apply
/// of them. Its mark says that it was not applied.
pub fn replacement(copy: &Value, applied: &Value) -> Value {
    let mut object = copy.clone();
    for (field, value) in applied.as_object().into_iter().flatten() {
        if !["apiVersion", "kind", "metadata", "status"].contains(&field.as_str()) {
            object[field] = value.clone();
        }
    }
    for field in ["labels", "annotations"] {
        for (key, value) in applied["metadata"][field].as_object().into_iter().flatten() {
            set(&mut object, field, key, value.as_str().unwrap_or_default());
        }
    }
    if let Some(mark) = annotation(applied, APPLIED_STATE) {
        let mark = Mark { applied: false, ..Mark::read(mark) };
        set(&mut object, "annotations", APPLIED_STATE, &mark.to_string());
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn content_is_replaced_and_all_else_stays() {
        let copy = json!({"kind": "Widget", "spec": {"old": 1}, "status": {"phase": "Up"}, "metadata": {"name": "a", "resourceVersion": "7",
            "labels": {"theirs": "1"}, "annotations": {"kube-bind.io/applied-state": "applied-1"}}});
        let applied = json!({"kind": "Widget", "spec": {"new": 1}, "metadata": {"name": "a", "labels": {"ours": "1"},
            "annotations": {"kube-bind.io/applied-state": "applied-2.5"}}});
        let wanted = json!({"kind": "Widget", "spec": {"new": 1}, "status": {"phase": "Up"}, "metadata": {"name": "a", "resourceVersion": "7",
            "labels": {"theirs": "1", "ours": "1"}, "annotations": {"kube-bind.io/applied-state": "2.5"}}});
        assert_eq!(replacement(&copy, &applied), wanted);
    }
}
