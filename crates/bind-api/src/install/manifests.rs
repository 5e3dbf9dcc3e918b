//! What a konnector consists of.

use serde_json::{Value, json};

use super::host_alias::HostAliases;
use crate::names::KONNECTOR_NAMESPACE;
use crate::roles::{self, Subject};

/// Name of the ServiceAccount and of the Deployment.
pub const NAME: &str = "konnector";

/// The namespace of everything else.
pub fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": KONNECTOR_NAMESPACE}})
}

/// Who the konnector is.
pub fn subject() -> Subject {
    Subject {
        account: NAME.to_owned(),
        namespace: KONNECTOR_NAMESPACE.to_owned(),
        lease_namespace: KONNECTOR_NAMESPACE.to_owned(),
        lease_name: "kube-bind".to_owned(),
    }
}

/// A konnector with this image, whose pods know these names: ServiceAccount, base roles, Deployment.
pub fn konnector(image: &str, aliases: &HostAliases) -> Vec<Value> {
    let (namespace, subject) = (KONNECTOR_NAMESPACE, subject());
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
    let mut pod = json!({"serviceAccountName": NAME, "containers": [container]});
    if !aliases.is_empty() {
        pod["hostAliases"] = aliases.field();
    }
    objects.push(json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": namespace, "labels": labels},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": pod}}}));
    objects
}
