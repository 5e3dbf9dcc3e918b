//! CRDs that scenarios publish.

use carrick_client::Resource;
use serde_json::{Value, json};

/// A kind of the scenarios' own, on the service cluster or in kcp: `Bucket` becomes `buckets`.
pub fn kind(group: &str, kind: &str) -> Resource {
    Resource::namespaced(group, "v1", kind, &format!("{}s", kind.to_lowercase()))
}

/// A CRD with a status subresource and a spec of `region`, `size` and `owner`.
pub fn crd(group: &str, kind: &str) -> Value {
    let singular = kind.to_lowercase();
    let spec = json!({
        "region": { "type": "string" },
        "size": { "type": "integer" },
        "owner": { "type": "string" },
    });
    let version = json!({
        "name": "v1",
        "served": true,
        "storage": true,
        "subresources": { "status": {} },
        "schema": { "openAPIV3Schema": { "type": "object", "properties": {
            "spec": { "type": "object", "properties": spec },
            "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        }}},
    });
    let names = json!({
        "plural": format!("{singular}s"), "singular": singular, "kind": kind, "listKind": format!("{kind}List"),
    });
    crd_of(group, &names, &version)
}

/// Buckets that can be large and deep: `blob` takes any text, `free` anything at all, and `nick` may be null.
pub fn roomy(group: &str) -> Value {
    let mut crd = crd(group, "Bucket");
    let spec = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    spec["blob"] = json!({ "type": "string" });
    spec["free"] = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    spec["nick"] = json!({ "type": "string", "nullable": true });
    crd
}

/// Buckets whose region can never change.
pub fn rigid(group: &str) -> Value {
    let mut crd = roomy(group);
    let spec = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    let rule = json!({ "rule": "self == oldSelf", "message": "a region is for ever" });
    spec["region"] = json!({ "type": "string", "maxLength": 100, "x-kubernetes-validations": [rule] });
    crd
}

/// Buckets whose status has a closed schema: a field of its own for everything, one with a default, one with few values, and lists.
pub fn closed(group: &str) -> Value {
    let mut crd = crd(group, "Bucket");
    let condition = json!({
        "type": "object", "required": ["type"],
        "properties": { "type": { "type": "string" }, "status": { "type": "string", "default": "Unknown" } },
    });
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = json!({
        "type": "object",
        "properties": {
            "url": { "type": "string" },
            "phase": { "type": "string", "default": "Pending" },
            "mode": { "type": "string", "enum": ["fine", "bad"] },
            "note": { "type": "string", "nullable": true },
            "conditions": {
                "type": "array", "items": condition,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
            },
            "hosts": { "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": "set" },
        },
    });
    crd
}

/// The CronTab CRD of the reference agent's own tests, for which the name of its schema is known.
pub fn crontab(group: &str) -> Value {
    let spec = json!({
        "cronSpec": { "type": "string" },
        "image": { "type": "string" },
        "replicas": { "type": "integer" },
    });
    let names = json!({
        "plural": "crontabs", "singular": "crontab", "kind": "CronTab", "listKind": "CronTabList", "shortNames": ["ct"],
    });
    crd_of(group, &names, &version_of(&spec))
}

/// The one version of a kind without a status, given the fields of its spec.
fn version_of(spec: &Value) -> Value {
    json!({
        "name": "v1",
        "served": true,
        "storage": true,
        "schema": { "openAPIV3Schema": { "type": "object", "properties": {
            "spec": { "type": "object", "properties": spec },
        }}},
    })
}

/// The same in the versions v1 and v2, of which v2 is stored.
pub fn crontab_in_two_versions(group: &str) -> Value {
    let mut crd = crontab(group);
    let mut second = crd["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    crd["spec"]["versions"][0]["storage"] = json!(false);
    if let Some(versions) = crd["spec"]["versions"].as_array_mut() {
        versions.push(second);
    }
    crd
}

/// A CRD without a status whose spec lists names in `items`.
pub fn backup(group: &str) -> Value {
    let item = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let spec = json!({
        "source": { "type": "string" },
        "destination": { "type": "string" },
        "items": { "type": "array", "items": item },
    });
    let names = json!({ "plural": "backups", "singular": "backup", "kind": "Backup", "listKind": "BackupList" });
    crd_of(group, &names, &version_of(&spec))
}

/// A kind with a status.
pub fn subnet(group: &str) -> Value {
    crd(group, "Subnet")
}

fn crd_of(group: &str, names: &Value, version: &Value) -> Value {
    let plural = names["plural"].as_str().unwrap_or_default();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": { "group": group, "scope": "Namespaced", "names": names, "versions": [version] },
    })
}

/// Copies bear the names of their sources, in a namespace that is called after the workspace.
pub fn beside_names(prefix: &str) -> Value {
    json!({ "name": "{{ .Object.metadata.name }}", "namespace": format!("{prefix}{{{{ .ClusterName }}}}") })
}
