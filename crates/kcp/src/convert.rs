//! APIExport and APIBinding between v1alpha1 and v1alpha2, without loss in either direction.
//!
//! Each version has fields that the other lacks: v1alpha2 has verbs, selectors and virtual storage, v1alpha1 has lists of names. What the
//! target version cannot express is kept in an annotation and restored from there when converting back. kcp does the same in its server,
//! so clients rarely need this.
//!
//! Objects are converted as JSON, because that is what a server stores, and so that unknown fields are kept.

use serde_json::{Map, Value, json};

use crate::apis::split_schema_name;

const PREFIX: &str = "apis.v1alpha2.kcp.io/";
const V1: &str = "v1alpha1";
const V2: &str = "v1alpha2";

/// The order in which kcp writes the fields of claims of either version.
const ORDER: [&str; 9] =
    ["group", "resource", "all", "resourceSelector", "verbs", "identityHash", "defaultSelector", "selector", "state"];

/// The path of a list of claims, its elements in v1alpha2, and the annotations for what does not fit.
struct Claims {
    parent: &'static str,
    field: &'static str,
    selector: bool,
    v2_rest: &'static str,
    v1_rest: &'static str,
}

const EXPORT_CLAIMS: Claims = Claims {
    parent: "spec",
    field: "permissionClaims",
    selector: false,
    v2_rest: "permission-claims",
    v1_rest: "v1alpha1-permission-claims",
};

const BINDING_CLAIMS: [Claims; 3] = [
    Claims { selector: true, v2_rest: "acceptable-permission-claims", ..EXPORT_CLAIMS },
    Claims {
        parent: "status",
        field: "exportPermissionClaims",
        selector: false,
        v2_rest: "status-export-permission-claims",
        v1_rest: "v1alpha1-status-export-permission-claims",
    },
    Claims {
        parent: "status",
        field: "appliedPermissionClaims",
        selector: true,
        v2_rest: "status-applied-permission-claims",
        v1_rest: "v1alpha1-status-applied-permission-claims",
    },
];

/// Converts an APIExport in place; the arguments are API versions, with or without the group.
pub fn export(from: &str, to: &str, object: &mut Value) {
    let (from, to) = (version(from), version(to));
    match (from, to) {
        (V1, V2) => {
            schemas_to_v2(object);
            claims(object, &EXPORT_CLAIMS, V2);
        }
        (V2, V1) => {
            schemas_to_v1(object);
            claims(object, &EXPORT_CLAIMS, V1);
        }
        _ => {}
    }
    object["apiVersion"] = json!(format!("apis.kcp.io/{to}"));
}

/// Converts an APIBinding in place; the arguments are API versions, with or without the group.
pub fn binding(from: &str, to: &str, object: &mut Value) {
    let (from, to) = (version(from), version(to));
    if from != to {
        for list in &BINDING_CLAIMS {
            claims(object, list, to);
        }
    }
    object["apiVersion"] = json!(format!("apis.kcp.io/{to}"));
}

fn version(api_version: &str) -> &str {
    api_version.rsplit('/').next().unwrap_or(api_version)
}

/// The v1alpha2 resource that a bare schema name stands for.
fn resource_of(schema: &str) -> Value {
    let (_, resource, group) = split_schema_name(schema).unwrap_or_default();
    let group = if group == "core" { "" } else { group };
    json!({"name": resource, "group": group, "schema": schema, "storage": {"crd": {}}})
}

fn schemas_to_v2(object: &mut Value) {
    let rest = take(object, "resource-schemas");
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let Some(Value::Array(names)) = spec.remove("latestResourceSchemas") else { return };
    let mut resources: Vec<Value> = names.iter().filter_map(Value::as_str).map(resource_of).collect();
    resources.extend(rest);
    spec.insert("resources".to_owned(), Value::Array(resources));
}

fn schemas_to_v1(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let Some(Value::Array(resources)) = spec.remove("resources") else { return };
    let (plain, rest): (Vec<Value>, Vec<Value>) =
        resources.into_iter().partition(|resource| resource_of(text(resource, "/schema")) == *resource);
    let names = plain.iter().map(|resource| resource["schema"].clone()).collect();
    spec.insert("latestResourceSchemas".to_owned(), Value::Array(names));
    keep(object, "resource-schemas", rest);
}

fn claims(object: &mut Value, list: &Claims, to: &str) {
    let (other, incoming, outgoing) =
        if to == V2 { (V1, list.v2_rest, list.v1_rest) } else { (V2, list.v1_rest, list.v2_rest) };
    let mut kept = take(object, incoming);
    for claim in kept.iter_mut().filter(|_| to == V2).filter_map(Value::as_object_mut) {
        for field in ["group", "identityHash"] {
            claim.entry(field).or_insert_with(|| "".into());
        }
    }
    let pointer = format!("/{}/{}", list.parent, list.field);
    let Some(found) = object.pointer(&pointer) else { return };
    let (mut out, mut rest) = (Vec::new(), Vec::new());
    for claim in found.as_array().into_iter().flatten() {
        let mut claim = claim.clone();
        if let (V2, Some(fields)) = (to, claim.as_object_mut()) {
            fields.retain(|field, value| *value != "" || !matches!(field.as_str(), "group" | "identityHash"));
        }
        let known = kept.iter().position(|other| key(other) == key(&claim)).map(|at| kept.remove(at));
        let converted = match known {
            Some(mut known) => {
                if let (Some(known), Some(state)) = (known.as_object_mut(), claim.get("state")) {
                    known.insert("state".to_owned(), state.clone());
                }
                known
            }
            None => plain(&claim, list, to),
        };
        if plain(&converted, list, other) != claim {
            rest.push(claim);
        }
        out.push(converted);
    }
    if let Some(Value::Object(parent)) = object.get_mut(list.parent) {
        parent.insert(list.field.to_owned(), Value::Array(out));
    }
    if !rest.is_empty() {
        let rest: Vec<String> = rest.iter().map(written).collect();
        note(object, outgoing, format!("[{}]", rest.join(",")));
    }
}

/// A claim as kcp writes it: in the order of its type, without what is empty.
fn written(claim: &Value) -> String {
    let Some(map) = claim.as_object() else { return claim.to_string() };
    let mut keys: Vec<&str> = ORDER.to_vec();
    keys.extend(map.keys().map(String::as_str).filter(|key| !ORDER.contains(key)));
    let shown = |value: &&Value| **value != "" && **value != false;
    let fields = keys.iter().filter_map(|key| Some(format!("{key:?}:{}", map.get(*key).filter(shown)?)));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

/// What makes two claims the same claim.
fn key(claim: &Value) -> (&str, &str, &str) {
    (text(claim, "/group"), text(claim, "/resource"), text(claim, "/identityHash"))
}

/// A claim in the given version as far as that version can express it.
fn plain(claim: &Value, list: &Claims, version: &str) -> Value {
    let (group, resource, identity) = key(claim);
    let mut out = Map::new();
    out.insert("resource".to_owned(), resource.into());
    for (field, value) in [("group", group), ("identityHash", identity)] {
        if version == V2 || !value.is_empty() {
            out.insert(field.to_owned(), value.into());
        }
    }
    if version == V2 {
        out.insert("verbs".to_owned(), json!(["*"]));
        if list.selector {
            out.insert("selector".to_owned(), json!({"matchAll": true}));
        }
    } else if list.selector && claim["selector"]["matchAll"] == true {
        out.insert("all".to_owned(), json!(true));
    }
    if let Some(state) = claim.get("state") {
        out.insert("state".to_owned(), state.clone());
    }
    Value::Object(out)
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Takes back what the other version kept; annotations left empty go as well.
fn take(object: &mut Value, rest: &str) -> Vec<Value> {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return Vec::new() };
    let Some(Value::Object(annotations)) = metadata.get_mut("annotations") else { return Vec::new() };
    let taken = annotations.remove(&format!("{PREFIX}{rest}"));
    if taken.is_some() && annotations.is_empty() {
        metadata.remove("annotations");
    }
    taken.as_ref().and_then(Value::as_str).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

fn keep(object: &mut Value, rest: &str, list: Vec<Value>) {
    if !list.is_empty() {
        note(object, rest, Value::Array(list).to_string());
    }
}

fn note(object: &mut Value, rest: &str, kept: String) {
    let annotations = map(map(object).entry("metadata").or_insert(Value::Null)).entry("annotations");
    map(annotations.or_insert(Value::Null)).insert(format!("{PREFIX}{rest}"), kept.into());
}

/// The fields of an object; whatever is none becomes one.
fn map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("the value was made an object above"),
    }
}

#[cfg(test)]
mod tests;
