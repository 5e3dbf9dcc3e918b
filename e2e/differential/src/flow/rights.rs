//! What the agent may do in the provider's workspace.

use carrick_e2e_stage::world::AGENT;
use serde_json::{Value, json};

use super::{EXPORT, Step, inside, post};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// How many sets of rights there are.
pub(super) const SETS: usize = 7;

/// Gives the agent a set of rights: none, too few, all, or those of the reference agent's role.
pub(super) fn grant(set: usize) -> Vec<Step> {
    let access = json!({ "nonResourceURLs": ["/"], "verbs": ["access"] });
    let content = |verbs: Value, name: &str| json!({ "apiGroups": ["apis.kcp.io"], "resources": ["apiexports/content"], "resourceNames": [name], "verbs": verbs });
    let own = |resource: &str, name: &str, verbs: Value| {
        let group = if resource == "logicalclusters" { "core.kcp.io" } else { "apis.kcp.io" };
        json!({ "apiGroups": [group], "resources": [resource], "resourceNames": [name], "verbs": verbs })
    };
    let rules = match set {
        0 => return Vec::new(),
        1 => json!([access]),
        2 => json!([content(json!(["*"]), EXPORT)]),
        3 => json!([access, content(json!(["get", "list", "watch"]), EXPORT)]),
        4 => json!([access, content(json!(["*"]), "{ns}-other")]),
        5 => return bind("cluster-admin"),
        _ => json!([
            access,
            own("logicalclusters", "cluster", json!(["get"])),
            own("apiexports", EXPORT, json!(["get", "list", "watch", "patch", "update"])),
            own("apiexportendpointslices", EXPORT, json!(["get", "list", "watch"])),
            { "apiGroups": ["apis.kcp.io"], "resources": ["apiresourceschemas"], "verbs": ["get", "list", "watch", "create"] },
            { "apiGroups": [""], "resources": ["events"], "verbs": ["get", "create", "patch", "update"] },
            content(json!(["*"]), EXPORT),
        ]),
    };
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "{ns}-agent" }, "rules": rules,
    });
    let mut steps = vec![Step::admin(post(inside("{P}", &format!("{RBAC}/clusterroles")), role))];
    steps.extend(bind("{ns}-agent"));
    steps
}

fn bind(role: &str) -> Vec<Step> {
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": "{ns}-agent" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": AGENT }],
    });
    vec![Step::admin(post(inside("{P}", &format!("{RBAC}/clusterrolebindings")), binding))]
}
