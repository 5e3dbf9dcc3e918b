//! Roles: what a backend needs on its own cluster, and no more.
//!
//! A server lets nobody grant what he does not hold. So the backend holds what it hands on: the APIs that are exported and the kinds that are claimed,
//! each named. The roles that are the same for all consumers are written here as well, by whoever applies this, and not by the backend.

use std::collections::BTreeSet;

use carrick_bind_api::kinds::GROUP;
use carrick_bind_api::names::{BINDER, EXPORTS_ROLE, KUBECONFIG_KEY};
use serde_json::{Value, json};

use super::cluster::{self, POLICY};
use super::terms::Terms;

const RBAC: &str = "rbac.authorization.k8s.io";
const ALL: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];
const READ: [&str; 3] = ["get", "list", "watch"];

/// The name of the roles.
pub const NAME: &str = "kube-bind-backend";

/// Who gets the roles, and where its Lease and its keys are.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its ServiceAccount.
    pub account: String,
    /// The namespace of the ServiceAccount.
    pub namespace: String,
    /// The namespace of the Lease and of the keys.
    pub own_namespace: String,
    /// The name of the Lease.
    pub lease_name: String,
}

/// What a backend needs whatever is exported.
pub fn base(subject: &Subject, terms: &Terms) -> Vec<Value> {
    let group = "admissionregistration.k8s.io";
    let policies = ["validatingadmissionpolicies", "validatingadmissionpolicybindings"];
    let rights = ["roles", "rolebindings", "clusterroles", "clusterrolebindings"];
    let mut rules = vec![
        json!({"apiGroups": [GROUP], "resources": ["*"], "verbs": ALL}),
        // Contracts, and the namespaces that serve them.
        json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": ["create", "delete", "get", "list", "update", "watch"]}),
        json!({"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["create"]}),
        json!({"apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": [BINDER], "verbs": ["get", "list", "update", "watch"]}),
        // Whoever asks for a contract says which Secret gets the answer; one of somebody else is left alone.
        json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "get", "update"]}),
        json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": [BINDER, KUBECONFIG_KEY], "verbs": ["list", "watch"]}),
        json!({"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": READ}),
        json!({"apiGroups": [RBAC], "resources": rights, "verbs": ["create", "delete", "get", "list", "update", "watch"]}),
        json!({"apiGroups": [RBAC], "resources": ["clusterroles"], "resourceNames": [BINDER, EXPORTS_ROLE], "verbs": ["bind"]}),
        json!({"apiGroups": [group], "resources": policies, "verbs": ["create"]}),
        json!({"apiGroups": [group], "resources": policies, "resourceNames": [POLICY], "verbs": ["get", "update"]}),
    ];
    if !terms.logins.groups.is_empty() || !terms.logins.users.is_empty() {
        rules.push(
            json!({"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]}),
        );
    }
    let lease = "coordination.k8s.io";
    let own = [
        json!({"apiGroups": [lease], "resources": ["leases"], "verbs": ["create"]}),
        json!({"apiGroups": [lease], "resources": ["leases"], "resourceNames": [subject.lease_name], "verbs": ["get", "patch", "update"]}),
    ];
    let mut all: Vec<Value> =
        cluster::wanted(terms).into_iter().filter(|it| it["apiVersion"] == format!("{RBAC}/v1")).collect();
    all.extend(cluster_role(NAME, &rules, subject));
    let mut role = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": {"name": NAME, "namespace": subject.own_namespace}, "rules": own});
    all.push(role.clone());
    role = binding("Role", NAME, subject);
    role["metadata"]["namespace"] = json!(subject.own_namespace);
    all.push(role);
    all
}

/// What a backend hands on: kinds by group and plural, exported or claimed. None without any.
pub fn handed_on(kinds: &BTreeSet<(String, String)>, subject: &Subject) -> Vec<Value> {
    if kinds.is_empty() {
        return Vec::new();
    }
    let rule = |(group, plural): &(String, String)| json!({"apiGroups": [group], "resources": [plural], "verbs": ALL});
    cluster_role(&format!("{NAME}-exports"), &kinds.iter().map(rule).collect::<Vec<_>>(), subject)
}

fn cluster_role(name: &str, rules: &[Value], subject: &Subject) -> Vec<Value> {
    let role =
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules});
    vec![role, binding("ClusterRole", name, subject)]
}

fn binding(kind: &str, name: &str, subject: &Subject) -> Value {
    json!({"apiVersion": format!("{RBAC}/v1"), "kind": format!("{kind}Binding"), "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": subject.account, "namespace": subject.namespace}]})
}

#[cfg(test)]
mod tests {
    use carrick_bind_api::v1alpha2::{InformerScope, Isolation};

    use super::*;

    fn subject() -> Subject {
        let text = str::to_owned;
        Subject { account: text("b"), namespace: text("n"), own_namespace: text("own"), lease_name: text("l") }
    }

    #[test]
    fn nothing_is_given_that_lets_the_backend_give_itself_more() {
        let terms = Terms::example(InformerScope::Namespaced, Isolation::Prefixed);
        for role in base(&subject(), &terms).iter().filter(|role| role["metadata"]["name"] == NAME) {
            for rule in role["rules"].as_array().into_iter().flatten() {
                let verbs = rule["verbs"].to_string();
                assert!(
                    !verbs.contains("escalate") && !verbs.contains("impersonate") && !verbs.contains('*'),
                    "{rule}"
                );
                assert!(!verbs.contains("\"bind\"") || rule["resourceNames"].is_array(), "{rule}");
                assert!(!rule["resources"].to_string().contains('*') || rule["apiGroups"] == json!([GROUP]), "{rule}");
                assert!(!rule["apiGroups"].to_string().contains('*'), "{rule}");
            }
        }
    }

    #[test]
    fn what_is_handed_on_is_named() {
        assert_eq!(handed_on(&BTreeSet::new(), &subject()), Vec::<Value>::new());
        let kinds = [("wild.io".to_owned(), "sheriffs".to_owned()), (String::new(), "secrets".to_owned())].into();
        let [role, binding] = &handed_on(&kinds, &subject())[..] else { panic!() };
        assert_eq!(role["rules"][1], json!({"apiGroups": ["wild.io"], "resources": ["sheriffs"], "verbs": ALL}));
        assert_eq!(binding["subjects"][0]["namespace"], "n");
    }
}
