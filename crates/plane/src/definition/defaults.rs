//! Defaults: they must satisfy their own schema.

use serde_json::Value;

use super::faults::Faults;
use super::structural::{below, kind, named};
use super::value::{is_true, text};
use crate::schema::{RuleContext, Schema, rule_faults};
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
        let mut whole = schema.clone();
        if embedded && !inside_meta {
            whole["x-kubernetes-embedded-resource"] = true.into();
        }
        value(default, &whole, &format!("{path}.default"), faults);
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

/// How a value violates a schema.
fn value(value: &Value, schema: &Value, path: &str, faults: &mut Faults) {
    let here = |cause: Cause| {
        let field = match cause.field.as_str() {
            "" | "<nil>" => path.to_owned(),
            field if field.starts_with('[') => format!("{path}{field}"),
            field => format!("{path}.{field}"),
        };
        Cause { field, message: cause.message.replacen("<nil> in body", " in body", 1), ..cause }
    };
    let before = faults.0.len();
    resources(value, schema, path, faults);
    if faults.0.len() > before {
        return;
    }
    let odd = misfit(value, schema);
    let loose = loose(schema, odd.is_some() || has_any_type(value, schema));
    faults.0.extend(odd.map(here));
    let Ok(plain) = Schema::part(&loose) else { return };
    faults.0.extend(plain.validate(value, None).into_iter().map(here));
    if faults.0.len() > before {
        return;
    }
    uncompiled(value, schema, path, faults);
    if faults.0.len() > before {
        return;
    }
    let Ok(ruled) = Schema::part(&without(schema, &IRRELEVANT)) else { return };
    faults.0.extend(ruled.broken_rules(value).into_iter().map(here));
}

/// Embedded resources in a value must have a kind and an API version.
fn resources(value: &Value, schema: &Value, path: &str, faults: &mut Faults) {
    match value {
        Value::Object(map) => {
            for name in ["apiVersion", "kind"] {
                let wanted = is_true(&schema["x-kubernetes-embedded-resource"]);
                match map.get(name) {
                    None if wanted => faults.required(&format!("{path}.{name}"), ""),
                    Some(found) if wanted && *found == "" => {
                        faults.invalid(&format!("{path}.{name}"), found, "must not be empty");
                    }
                    _ => {}
                }
            }
            for (name, value) in map {
                if let Some(child) = schema["properties"].get(name) {
                    resources(value, child, &format!("{path}.{name}"), faults);
                } else if let Some(child) = below(schema, "additionalProperties") {
                    resources(value, child, &format!("{path}[{name}]"), faults);
                }
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                if let Some(items) = below(schema, "items") {
                    resources(value, items, &format!("{path}[{index}]"), faults);
                }
            }
        }
        _ => {}
    }
}

/// Kubernetes' special cases about types: a format takes precedence over the type, and no value has a type that does not exist.
fn misfit(value: &Value, schema: &Value) -> Option<Cause> {
    let (kind, format) = (kind(schema), text(schema, "format"));
    let (found, shape) = match value {
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.is_f64() => ("number", "float64"),
        Value::Number(_) => ("integer", "int64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        _ => ("object", ""),
    };
    let wrong = |shown: &str, wanted: &str| {
        let message = format!("Invalid value: {shown:?}:  in body must be of type {wanted}: {shown:?}");
        Some(Cause::new("FieldValueTypeInvalid", "", message))
    };
    let fits = found == kind || (found == "integer" && kind == "number");
    match kind {
        "" => None,
        _ if has_any_type(value, schema) => None,
        _ if !format.is_empty() && !matches!(found, "string" | "array") && !fits && shape != format => {
            wrong(shape, format)
        }
        "array" | "boolean" | "integer" | "number" | "object" | "string" => None,
        odd => wrong(found, odd),
    }
}

/// Strings and lists match any type that has a format and is not a number.
fn has_any_type(value: &Value, schema: &Value) -> bool {
    let numeric = matches!(kind(schema), "number" | "integer");
    !text(schema, "format").is_empty() && !numeric && (value.is_string() || value.is_array())
}

/// Keywords that do not constrain a single value.
const IRRELEVANT: [&str; 3] = ["default", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"];

/// The schema without its rules.
fn loose(schema: &Value, any_type: bool) -> Value {
    let [default, kind_of_list, keys] = IRRELEVANT;
    let others = ["x-kubernetes-int-or-string", "x-kubernetes-embedded-resource", "x-kubernetes-validations"];
    let mut loose = without(schema, &[&[default, kind_of_list, keys][..], &others[..]].concat());
    if any_type {
        loose["type"] = "".into();
    }
    open(&mut loose);
    loose
}

/// Without a type, any value is allowed.
fn open(schema: &mut Value) {
    if kind(schema).is_empty() {
        schema["x-kubernetes-preserve-unknown-fields"] = true.into();
    }
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        fields.values_mut().for_each(open);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = schema.get_mut(key).filter(|child| child.is_object()) {
            open(child);
        }
    }
}

/// A schema without some keywords, wherever they are.
fn without(schema: &Value, keywords: &[&str]) -> Value {
    let Some(map) = schema.as_object() else { return schema.clone() };
    let kept = map.iter().filter(|(key, _)| !keywords.contains(&key.as_str())).map(|(key, value)| {
        let value = match (key.as_str(), value) {
            ("properties", Value::Object(fields)) => {
                Value::Object(fields.iter().map(|(name, field)| (name.clone(), without(field, keywords))).collect())
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(list)) => {
                list.iter().map(|child| without(child, keywords)).collect()
            }
            ("items", child) if !child.is_object() => Value::Null,
            ("items" | "additionalProperties" | "not", child) => without(child, keywords),
            (_, value) => value.clone(),
        };
        (key.clone(), value)
    });
    Value::Object(kept.collect())
}

/// Rules for the parts of a value that are not valid expressions.
fn uncompiled(value: &Value, schema: &Value, path: &str, faults: &mut Faults) {
    for fault in rule_faults(schema, &RuleContext { path: "", root: false, uncorrelated: None }) {
        if let Some((_, why)) =
            fault.message.split_once("compilation failed: ").filter(|_| fault.field.ends_with("].rule"))
        {
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
