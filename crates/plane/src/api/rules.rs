//! Special rules of single kinds: completion before a write, checks of a write, deletion.

mod crd;
mod events;
mod names;
mod workloads;

use std::borrow::Cow;
use std::collections::HashMap;

use data_encoding::BASE64;
use parking_lot::MutexGuard;
use serde_json::{Map, Value, json};

use super::base::Api;
use super::meta::NameRule;
use super::scope::Scope;
use crate::admission;
use crate::caller::Caller;
use crate::definition;
use crate::go;
use crate::protobuf;
use crate::resource::groups::{ADMISSION, RBAC};
use crate::resource::{Origin, Resource};
use crate::status::{Cause, Status};

pub(crate) use crd::CLEANUP_FINALIZER;

/// How many bytes the values of a Secret or a ConfigMap may have together.
const DATA: usize = 1024 * 1024;

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

/// Whether the checks of a kind say all that is wrong with an object, once it has been decoded.
pub(super) fn checks_all(resource: &Resource) -> bool {
    is_admission(resource)
}

/// Webhook configurations and policies.
fn is_admission(resource: &Resource) -> bool {
    *resource.group == *ADMISSION && resource.origin == Origin::Builtin
}

fn is_crd(resource: &Resource) -> bool {
    is(resource, "apiextensions.k8s.io", "customresourcedefinitions")
}

/// Whether finalizers must be Kubernetes' own or have a domain.
pub(super) fn has_strict_finalizers(resource: &Resource) -> bool {
    resource.origin == Origin::Builtin && !is_crd(resource)
}

/// How often Kubernetes validates the finalizers of an update, and so reports the same error; other metadata is validated twice more.
pub(super) fn looks(resource: &Resource) -> usize {
    if resource.is_custom() || is_crd(resource) || is(resource, "coordination.k8s.io", "leases") {
        1
    } else if is_rbac(resource) {
        3
    } else {
        2
    }
}

/// The rule for names of a kind; `None` if they are checked with everything else.
pub(super) fn name_rule(resource: &Resource) -> Option<NameRule> {
    (!is_crd(resource)).then(|| NameRule::of(&resource.group, &resource.plural))
}

/// Whether the server counts generations.
pub(super) fn has_generation(resource: &Resource) -> bool {
    resource.is_custom()
        || is_crd(resource)
        || is_admission(resource)
        || matches!(&*resource.group, "apps" | "batch" | "networking.k8s.io" | "policy")
}

/// A new CRD that is not stored (dry run) has not been seen by the controllers that fill in its status.
pub(super) fn unestablished(resource: &Resource, object: &mut Value) {
    if is_crd(resource) {
        object["status"]["acceptedNames"] = json!({"kind": "", "plural": ""});
        object["status"]["conditions"] = Value::Null;
    }
}

/// Treats maps of strings as Kubernetes' own types do: null becomes an empty string.
pub(super) fn fit_types(resource: &Resource, object: &mut Value) -> Result<(), String> {
    for field in ["labels", "annotations"] {
        if let Some(Value::Object(texts)) = object["metadata"].get_mut(field) {
            texts.values_mut().filter(|value| value.is_null()).for_each(|value| *value = Value::String(String::new()));
        }
    }
    if !has_texts(resource) {
        return Ok(());
    }
    let bytes = if is(resource, "", "secrets") { "data" } else { "binaryData" };
    check_base64(object.get(bytes))?;
    let Some(map) = object.as_object_mut() else { return Ok(()) };
    for field in TEXTS {
        let Some(Value::Object(texts)) = map.get_mut(field) else { continue };
        for value in texts.values_mut().filter(|value| value.is_null()) {
            *value = Value::String(String::new());
        }
    }
    Ok(())
}

/// The fields of Secrets and ConfigMaps that hold the actual texts.
const TEXTS: [&str; 3] = ["data", "binaryData", "stringData"];

fn has_texts(resource: &Resource) -> bool {
    is(resource, "", "secrets") || is(resource, "", "configmaps")
}

/// Leaves out what Kubernetes' own types do not tell from nothing.
pub(super) fn drop_empty(resource: &Resource, object: &mut Value) {
    if let (true, Some(map)) = (has_texts(resource), object.as_object_mut()) {
        let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
        map.retain(|field, value| !(TEXTS.contains(&field.as_str()) && is_empty(value)));
    }
}

/// Decodes an object into Kubernetes' own type, if that type is known in full: errors are reported, unknown fields are dropped. Returns
/// false for all other kinds.
pub(super) fn read(resource: &Resource, object: &mut Value, unknown: &mut Vec<String>) -> Result<bool, String> {
    if is_crd(resource) {
        return definition::decode(object, unknown).map(|()| true);
    }
    let Some(message) = message(resource) else { return Ok(false) };
    workloads::read(message, object, unknown).map(|()| true)
}

/// The status of a new object of a kind that has no schema: there, but empty.
pub(super) fn empty_status(resource: &Resource, object: &mut Value) {
    if let Some(status) = message(resource).and_then(workloads::empty_status) {
        object["status"] = status;
    }
}

/// What is known of a kind that has no schema.
fn message(resource: &Resource) -> Option<&'static protobuf::Message> {
    let version = resource.versions.first().filter(|version| version.schema.is_none())?;
    let is_stored = resource.origin == Origin::Builtin && !resource.is_review() && !is_event(resource);
    is_stored.then(|| protobuf::kind(&resource.api_version(&version.name), &resource.kind)).flatten()
}

/// Brings an accepted object into the form in which it is stored.
pub(super) fn settle(resource: &Resource, object: &mut Value) {
    drop_empty(resource, object);
    if is_crd(resource) {
        definition::tidy(object);
    } else if is_event(resource) {
        events::settle(&resource.group, object);
    }
}

fn is_event(resource: &Resource) -> bool {
    is(resource, "", "events") || is(resource, "events.k8s.io", "events")
}

/// An object in the form in which it would be stored: what is left out there has no owner.
pub(super) fn settled<'a>(resource: &Resource, object: &'a Value) -> Cow<'a, Value> {
    if !is_crd(resource) {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    definition::tidy(&mut object);
    Cow::Owned(object)
}

/// Warnings about an accepted object.
pub(super) fn warnings(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<String> {
    if is_crd(resource) { definition::warnings(object, old) } else { Vec::new() }
}

/// Whether a PUT to a missing name creates the object.
pub(super) fn created_by_put(resource: &Resource) -> bool {
    resource.origin == Origin::Builtin && (matches!(&*resource.plural, "leases" | "events") || *resource.group == *RBAC)
}

/// A finalizer the server adds when an object of this kind is deleted.
pub(super) fn delete_finalizer(resource: &Resource) -> Option<&'static str> {
    is_crd(resource).then_some(CLEANUP_FINALIZER)
}

/// Whether metadata that is sent to the status of a kind is stored. Kubernetes' older kinds do that, newer and custom ones do not.
pub(super) fn takes_metadata_with_status(resource: &Resource) -> bool {
    const OLD: [&str; 8] =
        ["", "apps", "autoscaling", "batch", "certificates.k8s.io", "extensions", "networking.k8s.io", "policy"];
    resource.origin == Origin::Builtin && OLD.contains(&&*resource.group) && &*resource.plural != "servicecidrs"
}

/// What of the metadata cannot be changed even so.
pub(super) fn kept_with_status(resource: &Resource) -> &'static [&'static str] {
    match &*resource.plural {
        "deployments" => &["labels"],
        "pods" => &["ownerReferences"],
        _ => &[],
    }
}

/// Refuses deletions that Kubernetes never allows.
pub(super) fn check_delete(resource: &Resource, name: &str, caller: &Caller) -> Result<(), Status> {
    let kept = matches!(name, "default" | "kube-system" | "kube-public");
    if is_namespace(resource) && kept && !caller.system {
        return Err(Status::forbidden("", "namespaces", name, "this namespace may not be deleted"));
    }
    Ok(())
}

/// Fills in what a client left out, as if it had sent it; `old` is `None` on create.
pub(super) fn complete(resource: &Resource, object: &mut Value, old: Option<&Value>) {
    if is(resource, "", "secrets") {
        secret(object, old);
    } else if is_namespace(resource) && object["metadata"]["name"].as_str().is_some_and(|name| !name.is_empty()) {
        name_label(object);
    } else if is_crd(resource) {
        definition::complete(object);
    } else if is_rbac(resource) {
        rbac(object);
    } else if is_admission(resource) {
        admission::complete(&resource.kind, object);
    } else if is(resource, "", "services") {
        default_text(object, "/spec", "type", "ClusterIP");
    } else if *resource.group == *"apps"
        && matches!(&*resource.kind, "Deployment" | "ReplicaSet" | "StatefulSet")
        && let Some(Value::Object(spec)) = object.get_mut("spec")
    {
        spec.entry("replicas").or_insert_with(|| 1.into());
    }
}

fn secret(object: &mut Value, old: Option<&Value>) {
    let kind = old.map_or("Opaque", |old| old["type"].as_str().unwrap_or("Opaque")).to_owned();
    let Some(map) = object.as_object_mut() else { return };
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
}

/// Refuses values that are not base64, as decoding does.
fn check_base64(data: Option<&Value>) -> Result<(), String> {
    for text in data.and_then(Value::as_object).into_iter().flat_map(|data| data.values()).filter_map(Value::as_str) {
        if BASE64.decode(text.as_bytes()).is_err() {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'\n' | b'\r');
            // Padding may end the text, and nothing else may be missing.
            let at = text.bytes().position(|byte| !fits(byte)).unwrap_or(text.len());
            return Err(format!("illegal base64 data at input byte {at}"));
        }
    }
    Ok(())
}

/// Sets the label with the name of a namespace.
fn name_label(object: &mut Value) {
    let name = object["metadata"]["name"].clone();
    if !object["metadata"]["labels"].is_object() {
        object["metadata"]["labels"] = json!({});
    }
    object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
}

/// Sets the fields that a client cannot decide; `old` is `None` on create.
pub(super) fn prepare(api: &Api, scope: &Scope, cluster: &str, object: &mut Value, old: Option<&Value>) {
    let resource = &scope.resource;
    if is_crd(resource) {
        crd::prepare(api, cluster, object, old);
    }
    if is(resource, ADMISSION, "validatingadmissionpolicies") && old.is_none() {
        // Types are checked by a controller that is not part of the API server.
        object["status"] = json!({});
    }
    if !is_namespace(resource) {
        return;
    }
    match old {
        None => {
            name_label(object);
            let mut finalizers = object["spec"]["finalizers"].as_array().cloned().unwrap_or_default();
            if !finalizers.contains(&"kubernetes".into()) {
                finalizers.push("kubernetes".into());
            }
            object["spec"] = json!({"finalizers": finalizers});
            object["status"] = json!({"phase": "Active"});
        }
        // Only the finalize subresource changes these.
        Some(old) => object["spec"] = old["spec"].clone(),
    }
}

/// The names of a CRD are given when it is stored: while it was admitted, others may have taken them. Others wait as long as this is held.
pub(super) fn name_kind<'a>(
    api: &'a Api,
    resource: &Resource,
    cluster: &str,
    object: &mut Value,
    old: Option<&Value>,
) -> Option<MutexGuard<'a, ()>> {
    let naming = is_crd(resource).then(|| api.naming.lock())?;
    crd::prepare(api, cluster, object, old);
    Some(naming)
}

fn rbac(object: &mut Value) {
    if object["roleRef"].is_object() {
        default_text(object, "/roleRef", "apiGroup", RBAC);
    }
    for subject in object.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
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
        let is_secret = is(resource, "", "secrets");
        let mut causes = data(object, old, is_secret);
        if is_secret {
            causes.extend(secret_keys(object));
        }
        causes
    } else if is_namespace(resource) {
        let finalizers = object["spec"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
        finalizers
            .filter(|name| *name != "kubernetes" && !name.contains('/'))
            .map(|name| {
                let detail = "name is neither a standard finalizer name nor is it fully qualified";
                Cause::invalid("spec.finalizers", &name.into(), detail)
            })
            .collect()
    } else if is(resource, "", "events") {
        events::faults(object).into_iter().collect()
    } else if is_crd(resource) {
        crd::validate(api, cluster, object, old)
    } else if is_rbac(resource) {
        roles(resource, object, old)
    } else if is_admission(resource) {
        admission::faults(&resource.kind, object, old)
    } else if resource.origin == Origin::Builtin {
        workloads::faults(resource, object)
    } else {
        replicas(scope, object)
    }
}

/// What is wrong with the status of a custom kind that has replicas.
pub(super) fn validate_status(scope: &Scope, object: &Value) -> Vec<Cause> {
    let scale = scope.resource.version(&scope.version).and_then(|version| version.scale.as_ref());
    let scale = scale.filter(|_| scope.resource.is_custom());
    scale.and_then(|scale| replicas_fault(&scale.status, object)).into_iter().collect()
}

/// Replica counts are integers and never negative, whatever a schema says.
fn replicas(scope: &Scope, object: &Value) -> Vec<Cause> {
    let scale = scope.resource.version(&scope.version).and_then(|version| version.scale.as_ref());
    let Some(scale) = scale.filter(|_| scope.resource.is_custom()) else { return Vec::new() };
    [&scale.spec, &scale.status].into_iter().filter_map(|path| replicas_fault(path, object)).collect()
}

fn replicas_fault(path: &str, object: &Value) -> Option<Cause> {
    let misfit = |found: &Value, wanted: &str| {
        let kind = go::type_name(found);
        let detail = format!("{path} accessor error: {} is of the type {kind}, expected {wanted}", go::plain(found));
        Some(Cause::invalid(path, &0.into(), &detail))
    };
    let mut found = object;
    for part in path.split('.').filter(|part| !part.is_empty()) {
        match found {
            Value::Null => return None,
            Value::Object(map) => found = map.get(part)?,
            other => return misfit(other, "map[string]interface{}"),
        }
    }
    match found.as_i64() {
        Some(number) if number < 0 => Some(Cause::invalid(path, &number.into(), "should be a non-negative integer")),
        Some(_) => None,
        None => misfit(found, "int64"),
    }
}

fn data(object: &Value, old: Option<&Value>, is_secret: bool) -> Vec<Cause> {
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
                let detail = "duplicate of key present in binaryData";
                causes.push(Cause::invalid(&format!("data[{key}]"), &key.as_str().into(), detail));
            }
        }
    }
    causes.extend(too_much_data(object, is_secret));
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

/// The total size of all values is limited; binary values count without their encoding.
fn too_much_data(object: &Value, is_secret: bool) -> Option<Cause> {
    let values = |field: &str| object[field].as_object().into_iter().flatten().filter_map(|(_, value)| value.as_str());
    let bytes: usize = values(if is_secret { "data" } else { "binaryData" }).map(decoded_size).sum();
    let texts: usize = if is_secret { 0 } else { values("data").map(str::len).sum() };
    // The path of the whole ConfigMap is empty, and shown like that.
    (bytes + texts > DATA).then(|| Cause::too_long(if is_secret { "data" } else { "[]" }, DATA))
}

/// How many bytes a valid base64 text stands for.
fn decoded_size(text: &str) -> usize {
    text.len() / 4 * 3 - text.bytes().rev().take(2).filter(|byte| *byte == b'=').count()
}

/// The keys that a Secret of a well-known type must have.
fn secret_keys(object: &Value) -> Vec<Cause> {
    let has = |key: &str| object["data"].get(key).is_some();
    let missing = |keys: &[&str]| -> Vec<Cause> {
        keys.iter().filter(|key| !has(key)).map(|key| Cause::required(&format!("data[{key}]"), "")).collect()
    };
    match object["type"].as_str().unwrap_or_default() {
        "kubernetes.io/tls" => missing(&["tls.crt", "tls.key"]),
        "kubernetes.io/ssh-auth" => missing(&["ssh-privatekey"]),
        "kubernetes.io/dockercfg" => missing(&[".dockercfg"]),
        "kubernetes.io/dockerconfigjson" => missing(&[".dockerconfigjson"]),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => missing(&["username", "password"]),
        "kubernetes.io/service-account-token" => {
            let key = "kubernetes.io/service-account.name";
            let named = object["metadata"]["annotations"][key].as_str().is_some_and(|name| !name.is_empty());
            let cause = || Cause::required(&format!("metadata.annotations[{key}]"), "");
            if named { Vec::new() } else { vec![cause()] }
        }
        _ => Vec::new(),
    }
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
