//! Defaults: they must be values of their own schema.

use serde_json::Value;

use super::structural::{below, kind, named};
use super::{Faults, is_true};
use crate::schema::{Place, Schema, rule_faults};
use crate::status::Cause;

/// What is wrong with the defaults of a schema.
pub(super) fn check(schema: &Value, path: &str, faults: &mut Faults) {
    node(schema, path, true, false, faults);
}

fn node(schema: &Value, path: &str, root: bool, inside_meta: bool, faults: &mut Faults) {
    let embedded = root || is_true(&schema["x-kubernetes-embedded-resource"]);
    let inside_meta = inside_meta && !embedded;
    if let Some(default) = schema.get("default") {
        if !inside_meta && has_unknown(default, Some(schema), embedded) {
            faults.invalid(&format!("{path}.default"), default, "must not have unknown fields");
        }
        value(default, schema, &format!("{path}.default"), faults);
    }
    if let Some(items) = below(schema, "items") {
        node(items, &format!("{path}.items"), false, inside_meta, faults);
    }
    for (name, child) in named(schema, "properties") {
        let meta = embedded && is_meta(name);
        node(child, &format!("{path}.properties[{name}]"), false, inside_meta || meta, faults);
    }
}

fn is_meta(name: &str) -> bool {
    matches!(name, "metadata" | "kind" | "apiVersion")
}

/// Whether a value has fields that would be dropped.
fn has_unknown(value: &Value, schema: Option<&Value>, embedded: bool) -> bool {
    static NONE: Value = Value::Null;
    let node = schema.unwrap_or(&NONE);
    let preserve = is_true(&node["x-kubernetes-preserve-unknown-fields"]);
    let deeper = |value: &Value, schema: Option<&Value>| {
        has_unknown(value, schema, schema.is_some_and(|schema| is_true(&schema["x-kubernetes-embedded-resource"])))
    };
    match value {
        Value::Object(map) => map.iter().any(|(name, value)| {
            if embedded && is_meta(name) {
                false
            } else if let Some(child) = node["properties"].get(name) {
                deeper(value, Some(child))
            } else if node.get("additionalProperties").is_some() {
                deeper(value, below(node, "additionalProperties"))
            } else {
                !preserve
            }
        }),
        Value::Array(list) => match below(node, "items") {
            None if preserve => false,
            items => list.iter().any(|item| deeper(item, items)),
        },
        _ => false,
    }
}

/// What is wrong with a value of a schema.
fn value(value: &Value, schema: &Value, path: &str, faults: &mut Faults) {
    let below = |field: &str| match field {
        "" | "<nil>" => path.to_owned(),
        field if field.starts_with('[') => format!("{path}{field}"),
        field => format!("{path}.{field}"),
    };
    let Ok(plain) = Schema::part(&without_rules(schema)) else { return };
    let found = plain.validate(value, None);
    if !found.is_empty() {
        faults.0.extend(found.into_iter().map(|cause| Cause { field: below(&cause.field), ..cause }));
        return;
    }
    let before = faults.0.len();
    uncompiled(value, schema, path, faults);
    if faults.0.len() > before {
        return;
    }
    let Ok(ruled) = Schema::part(schema) else { return };
    let found = ruled.validate(value, None);
    faults.0.extend(found.into_iter().map(|cause| Cause { field: below(&cause.field), ..cause }));
}

fn without_rules(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, _)| *key != "x-kubernetes-validations");
            Value::Object(kept.map(|(key, value)| (key.clone(), without_rules(value))).collect())
        }
        Value::Array(list) => list.iter().map(without_rules).collect(),
        other => other.clone(),
    }
}

/// Rules for the parts of a value that are no expressions.
fn uncompiled(value: &Value, schema: &Value, path: &str, faults: &mut Faults) {
    for fault in rule_faults(schema, &Place { path: "", root: false, uncorrelated: None }) {
        if let Some((_, why)) = fault.message.split_once("compilation failed: ").filter(|_| fault.field.ends_with(".rule")) {
            let why = format!("rule compile error: compilation failed: {why}");
            faults.invalid(path, &kind(schema).into(), &why);
        } else if fault.message.ends_with("cel expression must evaluate to a bool") {
            let why = "rule compile error: cel expression must evaluate to a bool";
            faults.invalid(path, &kind(schema).into(), why);
        }
    }
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                if let Some(child) = schema["properties"].get(name) {
                    uncompiled(value, child, &format!("{path}.{name}"), faults);
                } else if let Some(child) = below(schema, "additionalProperties") {
                    uncompiled(value, child, &format!("{path}[{name}]"), faults);
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = below(schema, "items") {
                for (index, value) in list.iter().enumerate() {
                    uncompiled(value, items, &format!("{path}[{index}]"), faults);
                }
            }
        }
        _ => {}
    }
}
