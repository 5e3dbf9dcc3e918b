//! The fields of built-in kinds: enough to refuse what does not fit Kubernetes' own types.

mod admission;

use serde_json::{Value, json};

use super::groups::ADMISSION;

fn text() -> Value {
    json!({"type": "string"})
}

fn flag() -> Value {
    json!({"type": "boolean"})
}

fn number() -> Value {
    json!({"type": "integer"})
}

fn texts() -> Value {
    json!({"type": "array", "items": {"type": "string"}})
}

fn text_map() -> Value {
    json!({"type": "object", "additionalProperties": {"type": "string"}})
}

fn any() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

fn list(items: &Value) -> Value {
    json!({"type": "array", "items": items})
}

fn keyed(mut items: Value, key: &str) -> Value {
    items["required"] = json!([key]);
    json!({"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]})
}

fn object(properties: &Value) -> Value {
    json!({"type": "object", "properties": properties})
}

fn described(mut schema: Value, description: &str) -> Value {
    schema["description"] = description.into();
    schema
}

/// The schema of `spec.conversion` of a CRD.
fn conversion() -> Value {
    let service = object(&json!({"namespace": text(), "name": text(), "path": text(), "port": number()}));
    let client = object(&json!({"url": text(), "service": service, "caBundle": text()}));
    let webhook = object(&json!({"clientConfig": client, "conversionReviewVersions": texts()}));
    object(&json!({"strategy": text(), "webhook": webhook}))
}

/// The schema of a built-in kind, or `None` if it is stored unchecked.
pub(super) fn schema(group: &str, kind: &str) -> Option<Value> {
    let reference = || {
        object(&json!({
            "apiVersion": text(), "kind": text(), "name": text(), "namespace": text(), "uid": text(),
            "resourceVersion": text(), "fieldPath": text(),
        }))
    };
    let named = || object(&json!({"name": text()}));
    let selector = || {
        let expression = object(&json!({"key": text(), "operator": text(), "values": texts()}));
        object(&json!({"matchLabels": text_map(), "matchExpressions": list(&expression)}))
    };
    let rule = || {
        object(&json!({
            "verbs": texts(), "apiGroups": texts(), "resources": texts(), "resourceNames": texts(),
            "nonResourceURLs": texts(),
        }))
    };
    let (description, properties) = match (group, kind) {
        ("", "ConfigMap") => (
            "ConfigMap holds configuration data for pods to consume.",
            json!({
                "data": described(text_map(), "Data contains the configuration data. Each value is a text."),
                "binaryData": described(text_map(), "BinaryData contains the binary data, base64 encoded."),
                "immutable": described(flag(), "If true, the data cannot be changed any more."),
            }),
        ),
        ("", "Secret") => (
            "Secret holds secret data of a certain type.",
            json!({
                "data": described(text_map(), "Data contains the secret data, base64 encoded."),
                "stringData": described(text_map(), "Secret data in plain text; it is folded into data when written."),
                "type": described(text(), "Used to facilitate programmatic handling of secret data."),
                "immutable": described(flag(), "If true, the data cannot be changed any more."),
            }),
        ),
        ("", "Namespace") => (
            "Namespace provides a scope for names.",
            json!({"spec": object(&json!({"finalizers": texts()})), "status": any()}),
        ),
        ("", "ServiceAccount") => (
            "ServiceAccount binds together a name and a principal that can be authenticated and authorized.",
            json!({
                "secrets": keyed(reference(), "name"), "imagePullSecrets": keyed(named(), "name"),
                "automountServiceAccountToken": flag(),
            }),
        ),
        ("coordination.k8s.io", "Lease") => (
            "Lease defines a lease concept.",
            json!({"spec": object(&json!({
                "holderIdentity": text(), "leaseDurationSeconds": number(), "acquireTime": text(), "renewTime": text(),
                "leaseTransitions": number(), "strategy": text(), "preferredHolder": text(),
            }))}),
        ),
        ("rbac.authorization.k8s.io", "Role") => (
            "Role is a namespaced set of rules that can be referenced by a RoleBinding.",
            json!({"rules": list(&rule())}),
        ),
        ("rbac.authorization.k8s.io", "ClusterRole") => (
            "ClusterRole is a set of rules that can be referenced by a RoleBinding or ClusterRoleBinding.",
            json!({
                "rules": list(&rule()),
                "aggregationRule": object(&json!({"clusterRoleSelectors": list(&selector())})),
            }),
        ),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => (
            "A binding gives the rules of a role to users, groups and service accounts.",
            json!({
                "roleRef": object(&json!({"apiGroup": text(), "kind": text(), "name": text()})),
                "subjects": list(&object(&json!({
                    "kind": text(), "apiGroup": text(), "name": text(), "namespace": text(),
                }))),
            }),
        ),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => (
            "CustomResourceDefinition represents a resource that should be exposed on the API server.",
            json!({"spec": object(&json!({
                "group": text(), "scope": text(), "names": object(&json!({
                    "plural": text(), "singular": text(), "kind": text(), "listKind": text(), "shortNames": texts(),
                    "categories": texts(),
                })),
                "versions": list(&any()), "conversion": conversion(), "preserveUnknownFields": flag(),
            })), "status": any()}),
        ),
        (ADMISSION, kind) => {
            let (description, shape) = admission::shape(kind)?;
            return Some(described(shape, description));
        }
        _ => return None,
    };
    Some(described(object(&properties), description))
}
