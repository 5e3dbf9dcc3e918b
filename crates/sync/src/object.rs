//! Metadata of objects.

use serde_json::{Map, Value};

/// A label of an object.
pub fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["labels"].get(key)?.as_str()
}

/// An annotation of an object.
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"].get(key)?.as_str()
}

/// Whether the object is being deleted.
pub fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// Sets a label (`field` = `labels`) or an annotation.
pub fn set(object: &mut Value, field: &str, key: &str, value: &str) {
    let metadata = &mut object["metadata"];
    if !metadata[field].is_object() {
        metadata[field] = Value::Object(Map::new());
    }
    metadata[field][key] = value.into();
}
