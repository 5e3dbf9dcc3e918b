//! APIExport and APIBinding between v1alpha1 and v1alpha2, without loss in either direction.
//!
//! Each version has fields that the other lacks: v1alpha2 has verbs, selectors and virtual storage, v1alpha1 has lists of names. What the
//! target version cannot express is kept in an annotation and restored from there when converting back. kcp does the same in its server,
//! so clients rarely need this.
//!
//! Objects are converted as JSON, because that is what a server stores, and so that unknown fields are kept.

use serde_json::{Map, Value, json};

use crate::apis::split_schema_name;

/// The annotation in which an APIExport of v1alpha1 keeps the claims that it cannot express.
pub const KEPT_CLAIMS: &str = "apis.v1alpha2.kcp.io/permission-claims";

/// The annotation in which an APIExport of v1alpha1 keeps the resources that it cannot express.
pub const KEPT_RESOURCES: &str = "apis.v1alpha2.kcp.io/resource-schemas";
/// The annotation in which an APIExport of v1alpha2 keeps the claims of v1alpha1, as far as v1alpha2 cannot express them.
pub const KEPT_V1_CLAIMS: &str = "apis.v1alpha2.kcp.io/v1alpha1-permission-claims";

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
            show_status(object);
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
        if to == V1 {
            show_status(object);
        }
    }
    object["apiVersion"] = json!(format!("apis.kcp.io/{to}"));
}

/// v1alpha1 has a status even if it is empty.
fn show_status(object: &mut Value) {
    map(object).entry("status").or_insert_with(|| json!({}));
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
    let names = spec.remove("latestResourceSchemas").unwrap_or_default();
    let names = names.as_array().into_iter().flatten();
    let mut resources: Vec<Value> = names.filter_map(Value::as_str).map(resource_of).collect();
    resources.extend(rest);
    if !resources.is_empty() {
        spec.insert("resources".to_owned(), Value::Array(resources));
    }
}

fn schemas_to_v1(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let Some(Value::Array(resources)) = spec.remove("resources") else { return };
    let (plain, rest): (Vec<Value>, Vec<Value>) =
        resources.into_iter().partition(|resource| resource_of(text(resource, "/schema")) == *resource);
    let names: Vec<Value> = plain.iter().map(|resource| resource["schema"].clone()).collect();
    if !names.is_empty() {
        spec.insert("latestResourceSchemas".to_owned(), Value::Array(names));
    }
    keep(object, "resource-schemas", rest);
}

fn claims(object: &mut Value, list: &Claims, to: &str) {
    let (incoming, outgoing) = if to == V2 { (list.v2_rest, list.v1_rest) } else { (list.v1_rest, list.v2_rest) };
    let kept = take(object, incoming);
    let Some(Value::Object(parent)) = object.get_mut(list.parent) else { return };
    let Some(Value::Array(found)) = parent.remove(list.field) else { return };
    // Kinds that are written in Go leave empty lists out.
    if found.is_empty() {
        return;
    }
    let convert = |claim: &Value| {
        let known = kept.iter().find(|known| key(known) == key(claim));
        let mut converted = plain(claim, list, to);
        if let (Some(known), Value::Object(fields)) = (known, &mut converted) {
            restore(fields, known, list, to);
        }
        converted
    };
    let converted = found.iter().map(convert).collect();
    parent.insert(list.field.to_owned(), Value::Array(converted));
    let lost: Vec<String> = found.iter().filter(|claim| list.loses(claim, to)).map(written).collect();
    if !lost.is_empty() {
        note(object, outgoing, format!("[{}]", lost.join(",")));
    }
}

/// Puts back what the other version could not express.
fn restore(fields: &mut Map<String, Value>, known: &Value, list: &Claims, to: &str) {
    let names: &[&str] = match (to, list.selector) {
        (V1, _) => &["all", "resourceSelector"],
        (_, true) => &["verbs", "selector"],
        (_, false) => &["verbs", "defaultSelector"],
    };
    for name in names {
        match known.get(*name).filter(|value| **value != false) {
            Some(value) => fields.insert((*name).to_owned(), value.clone()),
            None => fields.remove(*name),
        };
    }
}

impl Claims {
    /// Whether a claim is kept as it is, because the other version may not be able to express it.
    fn loses(&self, claim: &Value, to: &str) -> bool {
        if to == V1 {
            // kcp itself loses a default selector beside all verbs.
            return claim["verbs"] != json!(["*"])
                || claim.get("defaultSelector").is_some()
                || (self.selector && claim["selector"]["matchAll"] != true);
        }
        !self.selector || claim["resourceSelector"].as_array().is_some_and(|list| !list.is_empty())
    }
}

/// A claim as kcp writes it: in the order of its type, without what is empty.
pub(crate) fn written(claim: &Value) -> String {
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
    // What neither version knows is not ours to drop.
    let unknown = claim.as_object().into_iter().flatten().filter(|(field, _)| !ORDER.contains(&field.as_str()));
    out.extend(unknown.map(|(field, value)| (field.clone(), value.clone())));
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
