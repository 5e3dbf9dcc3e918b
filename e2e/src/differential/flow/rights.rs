//! What the agent may do in the provider's workspace, and in a consumer's.

use serde_json::{Value, json};

use super::{EXPORT, Step, inside, post};
use crate::differential::dice::Dice;
use crate::world::AGENT;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Gives the agent one of several sets of rights: none, too few, those of the reference agent's role, or all.
pub(super) fn grant(dice: &mut Dice) -> Vec<Step> {
    let access = json!({ "nonResourceURLs": ["/"], "verbs": ["access"] });
    let content = |verbs: Value, name: &str| json!({ "apiGroups": ["apis.kcp.io"], "resources": ["apiexports/content"], "resourceNames": [name], "verbs": verbs });
    let own = |resource: &str, name: &str, verbs: Value| {
        let group = if resource == "logicalclusters" { "core.kcp.io" } else { "apis.kcp.io" };
        json!({ "apiGroups": [group], "resources": [resource], "resourceNames": [name], "verbs": verbs })
    };
    let rules = match dice.below(10) {
        0 => return Vec::new(),
        1 => json!([access]),
        2 => json!([content(json!(["*"]), EXPORT)]),
        3 => json!([access, content(json!(["get", "list", "watch"]), EXPORT)]),
        4 => json!([access, content(json!(["*"]), "other")]),
        5 => return bind("{P}", "cluster-admin"),
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
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "agent" }, "rules": rules,
    });
    let mut steps = vec![Step::admin(post(inside("{P}", &format!("{RBAC}/clusterroles")), role))];
    steps.extend(bind("{P}", "agent"));
    if dice.chance(25) {
        steps.extend(bind("{A}", "cluster-admin"));
    }
    steps
}

fn bind(cluster: &str, role: &str) -> Vec<Step> {
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": "agent" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": AGENT }],
    });
    vec![Step::admin(post(inside(cluster, &format!("{RBAC}/clusterrolebindings")), binding))]
}
