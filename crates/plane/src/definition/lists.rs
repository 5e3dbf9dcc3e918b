//! List types and map types for server-side apply.

use serde_json::Value;

use super::faults::Faults;
use super::shown;
use super::structural::{below, kind, listed};
use super::value::is_true;

/// What is wrong with the list type and the map type of a node.
pub(super) fn check(schema: &Value, path: &str, faults: &mut Faults) {
    let at = |key: &str| format!("{path}.{key}");
    if let Some(found) = schema["x-kubernetes-map-type"].as_str() {
        wrong_kind(schema, "object", "x-kubernetes-map-type", path, faults);
        if !matches!(found, "atomic" | "granular") {
            faults.unsupported(&at("x-kubernetes-map-type"), &found.into(), &["atomic", "granular"]);
        }
    }
    let keys = listed(schema, "x-kubernetes-list-map-keys");
    let Some(found) = schema["x-kubernetes-list-type"].as_str() else {
        if !keys.is_empty() {
            let why = "must be map if x-kubernetes-list-map-keys is non-empty";
            faults.required(&at("x-kubernetes-list-type"), why);
        }
        return;
    };
    if !wrong_kind(schema, "array", "x-kubernetes-list-type", path, faults) && found == "set" {
        check_set(schema, path, faults);
    }
    if !matches!(found, "atomic" | "map" | "set") {
        faults.unsupported(&at("x-kubernetes-list-type"), &found.into(), &["atomic", "set", "map"]);
    }
    if !keys.is_empty() && found != "map" {
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        faults.invalid(&at("x-kubernetes-list-type"), &found.into(), why);
    }
    if found == "map" {
        check_map(schema, keys, path, faults);
    }
    let Some(items) = below(schema, "items").filter(|_| matches!(found, "map" | "set")) else { return };
    if is_true(&items["nullable"]) {
        let why = format!("cannot be nullable when x-kubernetes-list-type is {found}");
        faults.forbidden(&at("items.nullable"), &why);
    }
    if found == "map" {
        check_keys(items, keys, path, faults);
    }
}

/// Reports a node whose type does not match a keyword.
fn wrong_kind(schema: &Value, wanted: &str, keyword: &str, path: &str, faults: &mut Faults) -> bool {
    let (found, place) = (kind(schema), format!("{path}.type"));
    let why = format!("must be {wanted} if {keyword} is specified");
    match found {
        found if found == wanted => return false,
        "" => faults.required(&place, &why),
        found => faults.invalid(&place, &found.into(), &why),
    }
    true
}

/// The items of a set must be compared as a whole.
fn check_set(schema: &Value, path: &str, faults: &mut Faults) {
    let Some(items) = below(schema, "items") else { return };
    let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let list = items["x-kubernetes-list-type"].as_str();
    // Both kinds of items are shown with their list type.
    let shown = shown::plain(&list.into());
    match kind(items) {
        "array" if list.is_some_and(|list| list != "atomic") => {
            faults.shown(&format!("{path}.items.x-kubernetes-list-type"), &shown, why);
        }
        "object" if items["x-kubernetes-map-type"] != "atomic" => {
            faults.shown(&format!("{path}.items.x-kubernetes-map-type"), &shown, why);
        }
        _ => {}
    }
}

fn check_map(schema: &Value, keys: &[Value], path: &str, faults: &mut Faults) {
    let at = |key: &str| format!("{path}.{key}");
    if keys.is_empty() {
        faults.required(&at("x-kubernetes-list-map-keys"), "must not be empty if x-kubernetes-list-type is map");
    }
    let Some(items) = schema.get("items") else {
        return faults.required(&at("items"), "must have a schema if x-kubernetes-list-type is map");
    };
    if !items.is_object() {
        let why = "must only have a single schema if x-kubernetes-list-type is map";
        return faults.shown(&at("items"), &shown::items(items), why);
    }
    if kind(items) != "object" {
        let why = "must be object if parent array's x-kubernetes-list-type is map";
        return faults.invalid(&at("items.type"), &kind(items).into(), why);
    }
    let all = Value::from(keys);
    for (index, key) in keys.iter().enumerate() {
        let name = key.as_str().unwrap_or_default();
        match items["properties"].get(name) {
            Some(field) if matches!(kind(field), "array" | "object") => {
                let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                faults.invalid(&format!("{path}.items.properties[{name}].type"), &"object".into(), why);
            }
            Some(_) => {}
            None => {
                let why = "entries must all be names of item properties";
                faults.invalid(&at("x-kubernetes-list-map-keys"), &all, why);
            }
        }
        if keys[..index].contains(key) {
            faults.invalid(&at("x-kubernetes-list-map-keys"), &all, "must not contain duplicate entries");
        }
    }
}

/// Keys must always have a value.
fn check_keys(items: &Value, keys: &[Value], path: &str, faults: &mut Faults) {
    let required = listed(items, "required");
    for key in keys {
        let name = key.as_str().unwrap_or_default();
        let Some(field) = items["properties"].get(name) else { continue };
        let place = |what: &str| format!("{path}.items.properties[{name}].{what}");
        if !required.contains(key) && field.get("default").is_none() {
            let why =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            faults.required(&place("default"), why);
        }
        if is_true(&field["nullable"]) {
            let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            faults.forbidden(&place("nullable"), why);
        }
    }
}
