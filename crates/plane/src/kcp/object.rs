//! Small readers and writers for objects held as JSON.

use serde_json::{Map, Value};

/// The string at a JSON pointer, empty if there is none.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The strings of the array at a JSON pointer.
pub fn strings(object: &Value, pointer: &str) -> Vec<String> {
    items(object, pointer).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The elements of the array at a JSON pointer.
pub fn items<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether the boolean at a JSON pointer is true.
pub fn flag(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).and_then(Value::as_bool).unwrap_or_default()
}

/// The object's name.
pub fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// The object's uid.
pub fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

/// Whether deletion of the object has begun.
pub fn deleting(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(|t| !t.is_null())
}

/// An annotation's value.
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get("annotations")?.get(key)?.as_str()
}

/// A label's value.
pub fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get("labels")?.get(key)?.as_str()
}

/// Sets an annotation.
pub fn annotate(object: &mut Value, key: &str, value: impl Into<String>) {
    child(object, &["metadata", "annotations"]).insert(key.to_owned(), Value::String(value.into()));
}

/// Sets a label.
pub fn set_label(object: &mut Value, key: &str, value: impl Into<String>) {
    child(object, &["metadata", "labels"]).insert(key.to_owned(), Value::String(value.into()));
}

/// The object's finalizers.
pub fn finalizers(object: &Value) -> Vec<String> {
    strings(object, "/metadata/finalizers")
}

/// Adds a finalizer unless it is there.
pub fn add_finalizer(object: &mut Value, finalizer: &str) {
    let mut all = finalizers(object);
    if !all.iter().any(|f| f == finalizer) {
        all.push(finalizer.to_owned());
        child(object, &["metadata"]).insert("finalizers".to_owned(), all.into());
    }
}

/// The nested map at the given keys, created on the way; whatever else was there is replaced.
pub fn child<'a>(object: &'a mut Value, keys: &[&str]) -> &'a mut Map<String, Value> {
    let mut at = object;
    for key in keys {
        at = as_map(at).entry(*key).or_insert_with(|| Value::Object(Map::new()));
    }
    as_map(at)
}

fn as_map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("the value was made an object above"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_missing_on_the_way_is_made() {
        let mut object = json!({"metadata": {"name": "a"}});
        annotate(&mut object, "k", "v");
        add_finalizer(&mut object, "f");
        add_finalizer(&mut object, "f");
        assert_eq!(object, json!({"metadata": {"name": "a", "annotations": {"k": "v"}, "finalizers": ["f"]}}));
    }
}
