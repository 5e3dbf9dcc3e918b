//! Whether a configuration for server-side apply fits its kind, with the errors of Kubernetes' own types.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::fields;
use super::scope::Scope;
use crate::go::{literal, plain, type_name};
use crate::schema::{ListType, Schema, Type};
use crate::status::Status;

/// The schema of metadata.
static METADATA: LazyLock<Option<Schema>> = LazyLock::new(|| {
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let owner = json!({"type": "object", "required": ["uid"], "properties": {
        "apiVersion": text, "kind": text, "name": text, "uid": text,
        "controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"},
    }});
    let metadata = json!({"type": "object", "properties": {
        "name": text, "generateName": text, "namespace": text, "selfLink": text, "uid": text, "resourceVersion": text,
        "generation": number, "creationTimestamp": text, "deletionTimestamp": text,
        "deletionGracePeriodSeconds": number, "labels": texts, "annotations": texts,
        "finalizers": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "ownerReferences": {"type": "array", "items": owner, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"]},
        "managedFields": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
    }});
    Schema::compile(&metadata).ok()
});

/// Everything in an object that does not fit its kind.
pub(super) fn faults(scope: &Scope, config: &Value) -> Result<Vec<String>, Status> {
    let Some(schema) = scope.version()?.schema.as_deref() else { return Ok(Vec::new()) };
    let mut faults = Vec::new();
    for (key, value) in config.as_object().into_iter().flatten() {
        let path = format!(".{key}");
        match (key.as_str(), schema.properties.get(key)) {
            ("apiVersion" | "kind", _) => {}
            ("metadata", _) => METADATA.iter().for_each(|metadata| node(value, metadata, &path, &mut faults)),
            (_, Some(child)) => node(value, child, &path, &mut faults),
            (_, None) if is_open(schema) => {}
            (_, None) => faults.push(format!("{path}: field not declared in schema")),
        }
    }
    Ok(faults)
}

/// Refuses a configuration that does not fit.
pub(super) fn check(scope: &Scope, config: &Value) -> Result<(), Status> {
    let faults = faults(scope, config)?;
    let reported = match &faults[..] {
        [] => return Ok(()),
        [one] => one.clone(),
        several => format!("errors:\n  {}", several.join("\n  ")),
    };
    let text = |key: &str| config["metadata"][key].as_str().unwrap_or_default();
    let (group, kind) = (&scope.resource.group, &scope.resource.kind);
    let message = format!(
        "failed to create typed patch object ({}/{}; {group}/{}, Kind={kind}): {reported}",
        text("namespace"),
        text("name"),
        scope.version
    );
    Err(Status::new(500, "", message))
}

/// Whether an object may have any fields.
fn is_open(schema: &Schema) -> bool {
    schema.preserve || schema.open || schema.embedded || (schema.properties.is_empty() && schema.additional.is_none())
}

fn node(value: &Value, schema: &Schema, path: &str, faults: &mut Vec<String>) {
    let mut fault = |why: String| faults.push(format!("{path}: {why}"));
    match (schema.kind, value) {
        (_, Value::Null)
        | (Type::Any | Type::IntOrString, _)
        | (Type::String, Value::String(_))
        | (Type::Integer | Type::Number, Value::Number(_))
        | (Type::Boolean, Value::Bool(_)) => {}
        (Type::Object, Value::Object(map)) => {
            for (key, child) in map {
                let path = format!("{path}.{key}");
                if schema.embedded && key == "metadata" {
                    METADATA.iter().for_each(|metadata| node(child, metadata, &path, faults));
                    continue;
                }
                match schema.properties.get(key).or(schema.additional.as_deref()) {
                    Some(below) => node(child, below, &path, faults),
                    None if is_open(schema) => {}
                    None => faults.push(format!("{path}: field not declared in schema")),
                }
            }
        }
        (Type::Object, _) => fault(format!("expected map, got &{{{}}}", plain(value))),
        (Type::Array, Value::Array(list)) => items(list, schema, path, faults),
        (Type::Array, _) => fault(format!("expected list, got &{{{}}}", plain(value))),
        (Type::String, _) => {
            fault(format!("expected string, got &value.valueUnstructured{{Value:{}}}", literal(value)));
        }
        (Type::Integer | Type::Number, _) => {
            fault(format!("expected numeric (int or float), got {}", type_name(value)));
        }
        (Type::Boolean, _) => fault(format!("expected boolean, got &{{{}}}", plain(value))),
    }
}

fn items(list: &[Value], schema: &Schema, path: &str, faults: &mut Vec<String>) {
    let below = schema.items.as_deref();
    let mut seen = Vec::new();
    for (index, item) in list.iter().enumerate() {
        let why = match (&schema.list, item) {
            (ListType::Map(_), Value::Null) => {
                Some("associative list with keys may not have a null element".to_owned())
            }
            (ListType::Map(_), item) if !item.is_object() => {
                Some("associative list with keys may not have non-map elements".to_owned())
            }
            (ListType::Map(keys), item) if fields::keys_of(keys, below, item).is_empty() => {
                let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
                Some(format!(
                    "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values \
                     for any key fields)",
                    keys.join(" ")
                ))
            }
            (ListType::Set, Value::Object(_)) => {
                Some("associative list without keys has an element that's a map type".to_owned())
            }
            (ListType::Set, Value::Array(_)) => {
                Some("not supported: associative list with lists as elements".to_owned())
            }
            (ListType::Set, Value::Null) => {
                Some("associative list without keys has an element that's an explicit null".to_owned())
            }
            _ => None,
        };
        if let Some(why) = why {
            faults.push(format!("{path}: element {index}: {why}"));
            return;
        }
        let place = match fields::item_element(&schema.list, below, item) {
            None => format!("[{index}]"),
            Some(element) => {
                let shown = fields::display(&vec![element.clone()]);
                if seen.contains(&element) {
                    faults.push(format!("{path}: duplicate entries for key {shown}"));
                }
                seen.push(element);
                shown
            }
        };
        if let Some(below) = below {
            node(item, below, &format!("{path}{place}"), faults);
        }
    }
}
