//! The roles and bindings every cluster starts with.

use serde_json::{Value, json};

use super::aggregation::{aggregated, name};
use crate::release::Release;

const GROUP: &str = "rbac.authorization.k8s.io";

const AGGREGATE: &str = "rbac.authorization.k8s.io/aggregate-to-";
const UPDATED: &str = "rbac.authorization.kubernetes.io/autoupdate";
const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];
const BOTH: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// API groups, resources and verbs of a rule, each in alphabetical order, as they are stored.
type Row = (&'static [&'static str], &'static [&'static str], &'static [&'static str]);

/// What those may see who view a namespace: everything that cannot be used to gain more rights.
const VIEW: &[Row] = &[
    (
        &[""],
        &[
            "configmaps",
            "endpoints",
            "persistentvolumeclaims",
            "persistentvolumeclaims/status",
            "pods",
            "replicationcontrollers",
            "replicationcontrollers/scale",
            "serviceaccounts",
            "services",
            "services/status",
        ],
        READ,
    ),
    (
        &[""],
        &[
            "bindings",
            "limitranges",
            "namespaces/status",
            "pods/log",
            "pods/status",
            "replicationcontrollers/status",
            "resourcequotas",
            "resourcequotas/status",
        ],
        READ,
    ),
    (&[""], &["namespaces"], READ),
    (&["", "events.k8s.io"], &["events"], READ),
    (&["discovery.k8s.io"], &["endpointslices"], READ),
    (
        &["apps"],
        &[
            "controllerrevisions",
            "daemonsets",
            "daemonsets/status",
            "deployments",
            "deployments/scale",
            "deployments/status",
            "replicasets",
            "replicasets/scale",
            "replicasets/status",
            "statefulsets",
            "statefulsets/scale",
            "statefulsets/status",
        ],
        READ,
    ),
    (&["autoscaling"], &["horizontalpodautoscalers", "horizontalpodautoscalers/status"], READ),
    (&["batch"], &["cronjobs", "cronjobs/status", "jobs", "jobs/status"], READ),
    (
        &["extensions"],
        &[
            "daemonsets",
            "daemonsets/status",
            "deployments",
            "deployments/scale",
            "deployments/status",
            "ingresses",
            "ingresses/status",
            "networkpolicies",
            "replicasets",
            "replicasets/scale",
            "replicasets/status",
            "replicationcontrollers/scale",
        ],
        READ,
    ),
    (&["policy"], &["poddisruptionbudgets", "poddisruptionbudgets/status"], READ),
    (&["networking.k8s.io"], &["ingresses", "ingresses/status", "networkpolicies"], READ),
    (&["resource.k8s.io"], &["resourceclaims", "resourceclaims/status", "resourceclaimtemplates"], READ),
];

/// What those may do besides who edit a namespace.
const EDIT: &[Row] = &[
    (&[""], &["pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "secrets", "services/proxy"], READ),
    (&[""], &["serviceaccounts"], &["impersonate"]),
    (&[""], &["pods", "pods/attach", "pods/exec", "pods/portforward", "pods/proxy"], WRITE),
    (&[""], &["pods/eviction"], &["create"]),
    (
        &[""],
        &[
            "configmaps",
            "persistentvolumeclaims",
            "replicationcontrollers",
            "replicationcontrollers/scale",
            "secrets",
            "serviceaccounts",
            "services",
            "services/proxy",
        ],
        WRITE,
    ),
    (&[""], &["serviceaccounts/token"], &["create"]),
    (&["", "events.k8s.io"], &["events"], WRITE),
    (
        &["apps"],
        &[
            "daemonsets",
            "deployments",
            "deployments/rollback",
            "deployments/scale",
            "replicasets",
            "replicasets/scale",
            "statefulsets",
            "statefulsets/scale",
        ],
        WRITE,
    ),
    (&["autoscaling"], &["horizontalpodautoscalers"], WRITE),
    (&["batch"], &["cronjobs", "jobs"], WRITE),
    (
        &["extensions"],
        &[
            "daemonsets",
            "deployments",
            "deployments/rollback",
            "deployments/scale",
            "ingresses",
            "networkpolicies",
            "replicasets",
            "replicasets/scale",
            "replicationcontrollers/scale",
        ],
        WRITE,
    ),
    (&["policy"], &["poddisruptionbudgets"], WRITE),
    (&["networking.k8s.io"], &["ingresses", "networkpolicies"], WRITE),
    (&["coordination.k8s.io"], &["leases"], BOTH),
    (&["resource.k8s.io"], &["resourceclaims", "resourceclaimtemplates"], WRITE),
];

/// What those may do besides who administer a namespace.
const ADMIN: &[Row] = &[
    (&["authorization.k8s.io"], &["localsubjectaccessreviews"], &["create"]),
    (&[GROUP], &["rolebindings", "roles"], BOTH),
];

const BASIC: &[Row] = &[
    (&["authorization.k8s.io"], &["selfsubjectaccessreviews", "selfsubjectrulesreviews"], &["create"]),
    (&["authentication.k8s.io"], &["selfsubjectreviews"], &["create"]),
];

const DELEGATE: &[Row] = &[
    (&["authentication.k8s.io"], &["tokenreviews"], &["create"]),
    (&["authorization.k8s.io"], &["subjectaccessreviews"], &["create"]),
];

const METRICS: &[Row] = &[(&[""], &["nodes/metrics"], &["get"])];

/// All of them.
pub fn objects(release: Release) -> impl Iterator<Item = Value> {
    settled(roles(release)).into_iter().chain(bindings())
}

/// The roles with the rules that they aggregate, so that nobody has to wait for the controller.
fn settled(mut roles: Vec<Value>) -> Vec<Value> {
    roles.sort_by(|a, b| name(a).cmp(name(b)));
    loop {
        let before = roles.clone();
        for role in &mut roles {
            if let Some(rules) = aggregated(role, &before) {
                role["rules"] = rules.into();
            }
        }
        if roles == before {
            return roles;
        }
    }
}

fn role(name: &str, labels: &Value, rules: &Value) -> Value {
    let mut labels = labels.clone();
    labels["kubernetes.io/bootstrapping"] = "rbac-defaults".into();
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels, "annotations": {UPDATED: "true"}}, "rules": rules,
    })
}

/// A role that collects the rules of all roles with its label; `into` names the next larger one.
fn collector(name: &str, into: Option<&str>) -> Value {
    let labels = into.map_or_else(|| json!({}), |into| json!({format!("{AGGREGATE}{into}"): "true"}));
    let mut role = role(name, &labels, &json!([]));
    let selector = json!({"matchLabels": {format!("{AGGREGATE}{name}"): "true"}});
    role["aggregationRule"] = json!({"clusterRoleSelectors": [selector]});
    role
}

fn rules(rows: &[Row]) -> Value {
    let rule = |(groups, resources, verbs): &Row| json!({"apiGroups": groups, "resources": resources, "verbs": verbs});
    rows.iter().map(rule).collect()
}

/// The same in 1.34, where events were among the other resources of their group, and not in the group of their own.
fn older_rules(rows: &[Row]) -> Value {
    let mut rules = rules(rows);
    for rule in rules.as_array_mut().into_iter().flatten() {
        let has = |name: &str| rule["resources"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
        let joins = has("bindings") || (has("configmaps") && rule["verbs"] == json!(WRITE));
        if let (true, Some(all)) = (joins, rule["resources"].as_array_mut()) {
            all.push("events".into());
            all.sort_by_key(ToString::to_string);
        }
    }
    if let Some(all) = rules.as_array_mut() {
        all.retain(|rule| rule["resources"] != json!(["events"]));
    }
    rules
}

fn urls(paths: &[&str]) -> Value {
    json!({"nonResourceURLs": paths, "verbs": ["get"]})
}

fn roles(release: Release) -> Vec<Value> {
    let none = json!({});
    let rules = if release.grants_new_events() { rules } else { older_rules };
    let part = |target: &str, rows: &[Row]| {
        let labels = json!({format!("{AGGREGATE}{target}"): "true"});
        role(&format!("system:aggregate-to-{target}"), &labels, &rules(rows))
    };
    let everything: &[Row] = &[(&["*"], &["*"], &["*"])];
    let mut all = rules(everything);
    if let Some(list) = all.as_array_mut() {
        list.push(json!({"nonResourceURLs": ["*"], "verbs": ["*"]}));
    }
    let discovery = [
        "/api",
        "/api/*",
        "/apis",
        "/apis/*",
        "/healthz",
        "/livez",
        "/openapi",
        "/openapi/*",
        "/readyz",
        "/version",
        "/version/",
    ];
    let monitoring =
        ["/healthz", "/healthz/*", "/livez", "/livez/*", "/metrics", "/metrics/slis", "/readyz", "/readyz/*"];
    let issuer = [
        "/.well-known/openid-configuration",
        "/.well-known/openid-configuration/",
        "/openid/v1/jwks",
        "/openid/v1/jwks/",
    ];
    vec![
        role("cluster-admin", &none, &all),
        collector("admin", None),
        collector("edit", Some("admin")),
        collector("view", Some("edit")),
        part("admin", ADMIN),
        part("edit", EDIT),
        part("view", VIEW),
        role("system:auth-delegator", &none, &rules(DELEGATE)),
        role("system:basic-user", &none, &rules(BASIC)),
        role("system:discovery", &none, &json!([urls(&discovery)])),
        role("system:monitoring", &none, &json!([urls(&monitoring), rules(METRICS)[0]])),
        role("system:service-account-issuer-discovery", &none, &json!([urls(&issuer)])),
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
            "metadata": {
                "name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}, "annotations": {UPDATED: "true"},
            },
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
            "subjects": subjects,
        })
    };
    vec![
        binding("cluster-admin", &["system:masters"]),
        binding("system:basic-user", &["system:authenticated"]),
        binding("system:discovery", &["system:authenticated"]),
        binding("system:monitoring", &["system:monitoring"]),
        binding("system:service-account-issuer-discovery", &["system:serviceaccounts"]),
        binding("system:public-info-viewer", &["system:authenticated", "system:unauthenticated"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_for_namespaces_has_the_rules_of_the_smaller_ones() {
        let roles = settled(roles(Release::V1_35));
        let rules = |wanted: &str| {
            let found = roles.iter().find(|role| name(role) == wanted).unwrap();
            found["rules"].as_array().unwrap().clone()
        };
        let counts = ["view", "edit", "admin"].map(|name| rules(name).len());
        assert_eq!(counts, [VIEW.len(), VIEW.len() + EDIT.len(), VIEW.len() + EDIT.len() + ADMIN.len()]);
        let secrets = |rules: &[Value]| rules.iter().any(|rule| rule["resources"].to_string().contains("\"secrets\""));
        assert_eq!(["view", "edit"].map(|name| secrets(&rules(name))), [false, true]);
    }

    #[test]
    fn events_have_a_rule_of_their_own_in_newer_releases() {
        let shown = |release: Release| {
            let roles = settled(roles(release));
            let view = roles.iter().find(|role| name(role) == "view").unwrap();
            let rules = view["rules"].as_array().unwrap();
            let about = rules.iter().filter(|rule| rule["resources"].to_string().contains("\"events\""));
            about.map(|rule| rule["apiGroups"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(shown(Release::V1_35), [json!(["", "events.k8s.io"])]);
        assert_eq!(shown(Release::V1_34), [json!([""])]);
    }
}
