//! What the konnector needs on its own cluster for v2: its kinds, and what bindings list.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::core::{ALL, BindingSpec, Direction, GROUP};
use crate::roles::{BASE, Subject, cluster_role, role};
use crate::v1alpha2::SecretKeyReference;

/// The roles for these bindings, and for the Secrets that Connections name.
pub fn of_bindings(
    bindings: &[(Option<&str>, &BindingSpec)],
    secrets: &[SecretKeyReference],
    subject: &Subject,
) -> Vec<Value> {
    let all = ["get", "list", "watch", "create", "update", "patch", "delete"];
    let kinds = ALL.map(|kind| kind.plural);
    let mut rules = vec![
        json!({"apiGroups": [GROUP], "resources": kinds, "verbs": all}),
        json!({"apiGroups": [GROUP], "resources": kinds.map(|kind| format!("{kind}/status")), "verbs": ["get", "update", "patch"]}),
        // A conflict is told on the object, wherever that is.
        json!({"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}),
    ];
    let names: BTreeSet<&str> = bindings.iter().flat_map(|(_, spec)| &spec.apis).map(|api| api.name.as_str()).collect();
    for (plural, group) in names.iter().filter_map(|name| name.split_once('.')) {
        rules.push(
            json!({"apiGroups": [group], "resources": [plural], "verbs": ["get", "list", "watch", "update", "patch"]}),
        );
        rules.push(json!({"apiGroups": [group], "resources": [format!("{plural}/status")], "verbs": ["get", "update", "patch"]}));
    }
    if !names.is_empty() {
        rules.push(json!({"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
            "resourceNames": names, "verbs": ["update", "patch", "delete"]}));
    }
    let name = format!("{BASE}-core");
    let related = |namespace: Option<&str>| -> Vec<Value> {
        let here =
            bindings.iter().filter(|(scope, _)| *scope == namespace).flat_map(|(_, spec)| &spec.related_resources);
        let of = |direction| -> BTreeSet<&str> {
            here.clone().filter(|entry| entry.direction == direction).map(|entry| entry.resource.as_str()).collect()
        };
        let mut rules = Vec::new();
        for (resources, verbs) in [(of(Direction::FromProvider), &all[..]), (of(Direction::FromConsumer), &all[..3])] {
            if !resources.is_empty() {
                rules.push(json!({"apiGroups": [""], "resources": resources, "verbs": verbs}));
            }
        }
        rules
    };
    rules.extend(related(None));
    let mut roles = cluster_role(&name, subject, &rules);
    let scopes: BTreeSet<&str> = bindings.iter().filter_map(|(namespace, _)| *namespace).collect();
    for namespace in scopes {
        let rules = related(Some(namespace));
        if !rules.is_empty() {
            roles.extend(role(&format!("{name}-related"), namespace, subject, &rules));
        }
    }
    let namespaces: BTreeSet<&str> = secrets.iter().map(|at| at.namespace.as_str()).collect();
    for namespace in namespaces {
        let named: BTreeSet<&str> =
            secrets.iter().filter(|at| at.namespace == namespace).map(|at| at.name.as_str()).collect();
        let rule = json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": named,
            "verbs": ["get", "list", "watch", "patch"]});
        roles.extend(role(&name, namespace, subject, &[rule]));
    }
    roles
}

#[cfg(test)]
mod tests {
    use crate::core::ApiName;

    use super::*;

    #[test]
    fn bindings_give_rights_to_what_they_list_and_connections_to_their_secrets_and_nothing_else() {
        let text = str::to_owned;
        let (account, namespace) = (text("konnector"), text("kube-bind"));
        let subject = Subject { account, namespace, lease_namespace: text("kube-bind"), lease_name: text("kube-bind") };
        let spec = BindingSpec { apis: vec![ApiName::new("widgets.example.io")], ..BindingSpec::default() };
        let secret = SecretKeyReference::new("kbind", "west", "kubeconfig");
        let roles = of_bindings(&[(None, &spec), (None, &spec)], std::slice::from_ref(&secret), &subject);
        let kinds: Vec<_> = roles.iter().map(|role| role["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]);
        let rules = roles[0]["rules"].as_array().unwrap();
        assert_eq!((rules.len(), &rules[3]["resources"]), (6, &json!(["widgets"])));
        assert_eq!(rules[5]["resourceNames"], json!(["widgets.example.io"]));
        assert_eq!(roles[2]["rules"][0]["resourceNames"], json!(["west"]));
        assert!(!json!(roles).to_string().contains('*'));
        // Related objects of one namespace, and of all of them.
        let mut related = spec.clone();
        let entry = json!({"resource": "secrets", "direction": "FromConsumer"});
        related.related_resources = vec![serde_json::from_value(entry).unwrap()];
        let roles = of_bindings(&[(Some("team"), &related)], std::slice::from_ref(&secret), &subject);
        assert_eq!((roles.len(), &roles[2]["metadata"]["namespace"]), (6, &json!("team")));
        assert_eq!(roles[2]["rules"][0]["verbs"], json!(["get", "list", "watch"]), "it only reads them");
        let roles = of_bindings(&[(None, &related)], &[secret], &subject);
        assert_eq!((roles.len(), roles[0]["rules"].as_array().unwrap().len()), (4, 7));
    }
}
