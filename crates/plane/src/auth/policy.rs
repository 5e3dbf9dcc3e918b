//! The roles and bindings every cluster starts with.

use serde_json::{Value, json};

use crate::api::{Api, Caller, WriteOptions};
use crate::status::Status;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Stores the bootstrap policy in a cluster; what exists is left alone.
pub fn install(api: &Api, cluster: &str) -> Result<(), Status> {
    for object in roles().into_iter().chain(bindings()) {
        let plural = if object["kind"] == "ClusterRole" { "clusterroles" } else { "clusterrolebindings" };
        let Some(scope) = api.scope(cluster, GROUP, plural) else { continue };
        match api.create(&Caller::system(), &scope, object, &WriteOptions::default()) {
            Err(status) if status.reason != "AlreadyExists" => return Err(status),
            _ => {}
        }
    }
    Ok(())
}

fn role(name: &str, labels: &Value, rules: &Value) -> Value {
    let mut labels = labels.clone();
    labels["kubernetes.io/bootstrapping"] = "rbac-defaults".into();
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels}, "rules": rules,
    })
}

fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": groups, "resources": resources, "verbs": verbs})
}

fn urls(paths: &[&str]) -> Value {
    json!({"nonResourceURLs": paths, "verbs": ["get"]})
}

fn roles() -> Vec<Value> {
    const READ: &[&str] = &["get", "list", "watch"];
    const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];
    const CONTENT: &[&str] = &[
        "configmaps",
        "events",
        "serviceaccounts",
        "resourcequotas",
        "pods",
        "services",
        "endpoints",
        "persistentvolumeclaims",
    ];
    const APPS: &[&str] = &[
        "deployments",
        "daemonsets",
        "replicasets",
        "statefulsets",
        "jobs",
        "cronjobs",
        "ingresses",
        "networkpolicies",
    ];
    const GROUPS: &[&str] = &["apps", "batch", "networking.k8s.io"];
    let none = json!({});
    let mut admin = role("admin", &none, &json!([]));
    let mut edit = role("edit", &json!({"rbac.authorization.k8s.io/aggregate-to-admin": "true"}), &json!([]));
    let mut view = role("view", &json!({"rbac.authorization.k8s.io/aggregate-to-edit": "true"}), &json!([]));
    for (object, name) in [(&mut admin, "admin"), (&mut edit, "edit"), (&mut view, "view")] {
        let label = format!("rbac.authorization.k8s.io/aggregate-to-{name}");
        object["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]});
    }
    let view_rules = json!([
        rule(&[""], CONTENT, READ),
        rule(&[""], &["namespaces"], READ),
        rule(GROUPS, APPS, READ),
        rule(&["events.k8s.io"], &["events"], READ),
    ]);
    let edit_rules = json!([
        rule(&[""], CONTENT, READ),
        rule(&[""], CONTENT, WRITE),
        rule(&[""], &["secrets"], READ),
        rule(&[""], &["secrets"], WRITE),
        rule(&[""], &["namespaces"], READ),
        rule(GROUPS, APPS, READ),
        rule(GROUPS, APPS, WRITE),
        rule(&["coordination.k8s.io"], &["leases"], READ),
        rule(&["coordination.k8s.io"], &["leases"], WRITE),
        rule(&["events.k8s.io"], &["events"], READ),
    ]);
    let mut admin_rules = edit_rules.clone();
    if let Some(list) = admin_rules.as_array_mut() {
        list.push(rule(&[GROUP], &["roles", "rolebindings"], READ));
        list.push(rule(&[GROUP], &["roles", "rolebindings"], WRITE));
    }
    let part = |name: &str, target: &str, rules: &Value| {
        let label = format!("rbac.authorization.k8s.io/aggregate-to-{target}");
        role(name, &json!({label: "true"}), rules)
    };
    vec![
        role(
            "cluster-admin",
            &none,
            &json!([rule(&["*"], &["*"], &["*"]), {"nonResourceURLs": ["*"], "verbs": ["*"]}]),
        ),
        admin,
        edit,
        view,
        part("system:aggregate-to-admin", "admin", &admin_rules),
        part("system:aggregate-to-edit", "edit", &edit_rules),
        part("system:aggregate-to-view", "view", &view_rules),
        role(
            "system:basic-user",
            &none,
            &json!([
                rule(&["authorization.k8s.io"], &["selfsubjectaccessreviews", "selfsubjectrulesreviews"], &["create"]),
                rule(&["authentication.k8s.io"], &["selfsubjectreviews"], &["create"]),
            ]),
        ),
        role(
            "system:discovery",
            &none,
            &json!([urls(&[
                "/api",
                "/api/*",
                "/apis",
                "/apis/*",
                "/healthz",
                "/livez",
                "/readyz",
                "/openapi",
                "/openapi/*",
                "/version",
                "/version/"
            ])]),
        ),
        role(
            "system:public-info-viewer",
            &none,
            &json!([urls(&["/healthz", "/livez", "/readyz", "/version", "/version/"])]),
        ),
    ]
}

fn bindings() -> Vec<Value> {
    let binding = |name: &str, groups: &[&str]| {
        let subjects: Vec<Value> =
            groups.iter().map(|group| json!({"kind": "Group", "name": group, "apiGroup": GROUP})).collect();
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}},
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
            "subjects": subjects,
        })
    };
    vec![
        binding("cluster-admin", &["system:masters"]),
        binding("system:basic-user", &["system:authenticated"]),
        binding("system:discovery", &["system:authenticated"]),
        binding("system:public-info-viewer", &["system:authenticated", "system:unauthenticated"]),
    ]
}
