//! What a konnector consists of.

use carrick_bind_api::names::KONNECTOR_NAMESPACE;
use carrick_client::Resource;
use carrick_konnector::decide::roles::{self, Subject};
use serde_json::{Value, json};

/// Name of the ServiceAccount and of the Deployment.
pub(super) const NAME: &str = "konnector";

/// Deployments.
pub(super) fn deployments() -> Resource {
    Resource::namespaced("apps", "v1", "Deployment", "deployments")
}

/// The kind of one of these objects.
pub(super) fn resource(object: &Value) -> Resource {
    let kind = object["kind"].as_str().unwrap_or_default();
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let plural = format!("{}s", kind.to_lowercase());
    let is_namespaced = object["metadata"]["namespace"].is_string();
    let make = if is_namespaced { Resource::namespaced } else { Resource::cluster_wide };
    make(group, version, kind, &plural)
}

/// The namespace of everything else.
pub(crate) fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": KONNECTOR_NAMESPACE}})
}

/// Who the konnector is.
pub(crate) fn konnector_subject() -> Subject {
    Subject {
        account: NAME.to_owned(),
        namespace: KONNECTOR_NAMESPACE.to_owned(),
        lease_namespace: KONNECTOR_NAMESPACE.to_owned(),
        lease_name: "kube-bind".to_owned(),
    }
}

/// A konnector with this image: ServiceAccount, base roles, Deployment.
pub(super) fn konnector(image: &str) -> Vec<Value> {
    let (namespace, subject) = (KONNECTOR_NAMESPACE, konnector_subject());
    let labels = json!({"app": NAME});
    let from = |field: &str| json!({"fieldRef": {"fieldPath": field}});
    let container = json!({
        "name": NAME, "image": image,
        "env": [
            {"name": "POD_NAME", "valueFrom": from("metadata.name")},
            {"name": "POD_NAMESPACE", "valueFrom": from("metadata.namespace")},
        ],
        "ports": [{"name": "probes", "containerPort": 8090}],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8090}},
        "securityContext": {"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true,
            "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}},
    });
    let mut objects =
        vec![json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": namespace}})];
    objects.extend(roles::base(&subject));
    objects.push(json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": namespace, "labels": labels},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"serviceAccountName": NAME, "containers": [container]}}}}));
    objects
}
