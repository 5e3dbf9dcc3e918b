//! What is special about single kinds: completion before a write, checks of a write, deletion.

mod crd;
mod names;

use std::collections::HashMap;

use data_encoding::BASE64;
use serde_json::{Value, json};

use super::meta::NameRule;
use super::{Api, Caller, Scope};
use crate::resource::{Origin, Resource};
use crate::status::{Cause, Status};

pub(crate) use crd::CLEANUP_FINALIZER;

const RBAC: &str = "rbac.authorization.k8s.io";

fn is(resource: &Resource, group: &str, plural: &str) -> bool {
    resource.origin == Origin::Builtin && *resource.group == *group && *resource.plural == *plural
}

/// Namespaces have finalizers of their own.
pub(super) fn is_namespace(resource: &Resource) -> bool {
    is(resource, "", "namespaces")
}

/// Roles and bindings.
pub(super) fn is_rbac(resource: &Resource) -> bool {
    *resource.group == *RBAC && resource.origin == Origin::Builtin
}

fn is_crd(resource: &Resource) -> bool {
    is(resource, "apiextensions.k8s.io", "customresourcedefinitions")
}

/// The rule for names of a kind.
pub(super) fn name_rule(resource: &Resource) -> NameRule {
    NameRule::of(&resource.group, &resource.plural)
}

/// Whether the server counts generations.
pub(super) fn has_generation(resource: &Resource) -> bool {
    resource.is_custom()
        || is_crd(resource)
        || matches!(&*resource.group, "apps" | "batch" | "networking.k8s.io" | "policy")
}

/// Whether a PUT to a missing name creates the object.
pub(super) fn created_by_put(resource: &Resource) -> bool {
    resource.origin == Origin::Builtin && (matches!(&*resource.plural, "leases" | "events") || *resource.group == *RBAC)
}

/// A finalizer the server adds when an object of this kind is deleted.
pub(super) fn delete_finalizer(resource: &Resource) -> Option<&'static str> {
    is_crd(resource).then_some(CLEANUP_FINALIZER)
}

/// Refuses deletions that Kubernetes never allows.
pub(super) fn check_delete(resource: &Resource, name: &str, caller: &Caller) -> Result<(), Status> {
    let kept = matches!(name, "default" | "kube-system" | "kube-public");
    if is_namespace(resource) && kept && !caller.system {
        return Err(Status::forbidden("", "namespaces", name, "this namespace may not be deleted"));
    }
    Ok(())
}

/// Completes an object before admission; `old` is none on create.
pub(super) fn prepare(
    api: &Api,
    scope: &Scope,
    cluster: &str,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    let resource = &scope.resource;
    if is(resource, "", "secrets") {
        secret(object, old)?;
    } else if is_namespace(resource) {
        namespace(object, old);
    } else if is_crd(resource) {
        crd::prepare(api, cluster, object, old)?;
    } else if is_rbac(resource) {
        rbac(object);
    } else if is(resource, "", "services") {
        default_text(object, "/spec", "type", "ClusterIP");
    } else if *resource.group == *"apps"
        && matches!(&*resource.kind, "Deployment" | "ReplicaSet" | "StatefulSet")
        && let Some(Value::Object(spec)) = object.get_mut("spec")
    {
        spec.entry("replicas").or_insert_with(|| 1.into());
    }
    Ok(())
}

fn secret(object: &mut Value, old: Option<&Value>) -> Result<(), Status> {
    let kind = old.map_or("Opaque", |old| old["type"].as_str().unwrap_or("Opaque")).to_owned();
    let Some(map) = object.as_object_mut() else { return Ok(()) };
    if let Some(Value::Object(texts)) = map.remove("stringData") {
        let data = map.entry("data").or_insert_with(|| json!({}));
        if data.is_null() {
            *data = json!({});
        }
        for (key, value) in texts {
            data[&key] = BASE64.encode(value.as_str().unwrap_or_default().as_bytes()).into();
        }
    }
    if map.get("type").and_then(Value::as_str).is_none_or(str::is_empty) {
        map.insert("type".into(), kind.into());
    }
    for value in map.get("data").and_then(Value::as_object).into_iter().flat_map(|data| data.values()) {
        if let Some(Err(error)) = value.as_str().map(|text| BASE64.decode(text.as_bytes())) {
            return Err(Status::bad_request(format!(
                "Secret in version \"v1\" cannot be handled as a Secret: illegal base64 data at input byte {}",
                error.position
            )));
        }
    }
    Ok(())
}

fn namespace(object: &mut Value, old: Option<&Value>) {
    let name = object["metadata"]["name"].clone();
    if !object["metadata"]["labels"].is_object() {
        object["metadata"]["labels"] = json!({});
    }
    object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
    match old {
        None => {
            object["spec"] = json!({"finalizers": ["kubernetes"]});
            object["status"] = json!({"phase": "Active"});
        }
        // Only the finalize subresource changes these.
        Some(old) => object["spec"] = old["spec"].clone(),
    }
}

fn rbac(object: &mut Value) {
    if object["roleRef"].is_object() {
        default_text(object, "/roleRef", "apiGroup", RBAC);
    }
    for subject in object["subjects"].as_array_mut().into_iter().flatten() {
        if matches!(subject["kind"].as_str(), Some("User" | "Group")) && subject["apiGroup"].is_null() {
            subject["apiGroup"] = RBAC.into();
        }
    }
}

fn default_text(object: &mut Value, pointer: &str, key: &str, value: &str) {
    if let Some(Value::Object(map)) = object.pointer_mut(pointer) {
        map.entry(key).or_insert_with(|| value.into());
    }
}

/// What is wrong with an object beyond its schema.
pub(super) fn validate(api: &Api, scope: &Scope, cluster: &str, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let resource = &scope.resource;
    if is(resource, "", "secrets") || is(resource, "", "configmaps") {
        data(object, old)
    } else if is_crd(resource) {
        crd::validate(api, cluster, object, old)
    } else if is_rbac(resource) {
        roles(resource, object, old)
    } else {
        Vec::new()
    }
}

fn data(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let key_fits = |key: &str| {
        !key.is_empty()
            && key.len() <= 253
            && key != "."
            && key != ".."
            && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    let mut seen: HashMap<&str, &str> = HashMap::new();
    for field in ["data", "binaryData"] {
        for (key, _) in object[field].as_object().into_iter().flatten() {
            if !key_fits(key) {
                let detail = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
                causes.push(Cause::invalid(&format!("{field}[{key}]"), &key.as_str().into(), detail));
            }
            if seen.insert(key, field).is_some_and(|other| other != field) {
                causes.push(Cause::invalid(field, &key.as_str().into(), "duplicate of key present in data"));
            }
        }
    }
    let Some(old) = old else { return causes };
    if old["type"] != object["type"] {
        causes.push(Cause::invalid("type", &object["type"], "field is immutable"));
    }
    if old["immutable"] == true {
        for field in ["immutable", "data", "binaryData"] {
            if old[field] != object[field] {
                causes.push(Cause::forbidden(field, "field is immutable when `immutable` is set"));
            }
        }
    }
    causes
}

fn roles(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    if resource.plural.ends_with("bindings") {
        let known = [json!("ClusterRole"), json!("Role")];
        let kind = &object["roleRef"]["kind"];
        if object["roleRef"]["name"].as_str().is_none_or(str::is_empty) {
            causes.push(Cause::required("roleRef.name", ""));
        } else if !known.contains(kind) || (&*resource.plural == "clusterrolebindings" && kind == "Role") {
            let supported = if &*resource.plural == "clusterrolebindings" { &known[..1] } else { &known[..] };
            causes.push(Cause::unsupported("roleRef.kind", kind, supported));
        }
        if old.is_some_and(|old| old["roleRef"] != object["roleRef"]) {
            let reference = &object["roleRef"];
            let (group, kind, name) = (&reference["apiGroup"], &reference["kind"], &reference["name"]);
            let shown = format!("{{\"APIGroup\":{group},\"Kind\":{kind},\"Name\":{name}}}");
            causes.push(Cause::invalid_text("roleRef", &shown, "cannot change roleRef"));
        }
    }
    for (index, rule) in object["rules"].as_array().into_iter().flatten().enumerate() {
        if rule["verbs"].as_array().is_none_or(Vec::is_empty) {
            causes.push(Cause::required(&format!("rules[{index}].verbs"), "verbs must contain at least one value"));
        }
    }
    causes
}
