//! Single fields of objects that are being written.

use carrick_kcp::CLUSTER_ANNOTATION;
use serde_json::{Map, Value};

/// Removes the cluster annotation, which the server ignores; returns whether there was one.
pub(super) fn strip_cluster(object: &mut Value) -> bool {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return false };
    let (found, empty) = match metadata.get_mut("annotations") {
        Some(Value::Object(annotations)) => {
            let found = annotations.remove(CLUSTER_ANNOTATION).is_some();
            (found, found && annotations.is_empty())
        }
        Some(Value::Null) => (false, true),
        _ => (false, false),
    };
    if empty {
        metadata.remove("annotations");
    }
    found
}

/// Removes a field of metadata.
pub(super) fn remove_meta(object: &mut Value, key: &str) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove(key);
    }
}

/// Empty maps and lists in metadata are not kept, as Go's `omitempty` does.
pub(super) fn drop_empty_metadata(object: &mut Value) {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return };
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    // An empty list of managed fields is a request to clear them.
    let is_kept = |key: &str, value: &Value| !empty(value) || (key == "managedFields" && value.is_array());
    let kept: Map<String, Value> =
        std::mem::take(metadata).into_iter().filter(|(key, value)| is_kept(key, value)).collect();
    *metadata = kept;
}

/// Numbers without a fraction are stored as integers, as Go writes them.
pub(super) fn whole_numbers(value: &mut Value) {
    match value {
        Value::Object(map) => map.values_mut().for_each(whole_numbers),
        Value::Array(list) => list.iter_mut().for_each(whole_numbers),
        Value::Number(number) if number.is_f64() => {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 1e15);
            if let Some(whole) = whole.and_then(|whole| format!("{whole:.0}").parse::<i64>().ok()) {
                *value = whole.into();
            }
        }
        _ => {}
    }
}
