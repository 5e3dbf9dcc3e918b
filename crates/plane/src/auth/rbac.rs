//! Role based access control over the RBAC objects of one or several clusters.

use std::sync::Arc;

use carrick_go::labels::{Requirement, Selector};
use serde_json::Value;

use crate::api::Caller;
use crate::extension::Attributes;
use crate::status::Status;
use crate::store::{Key, Kind, Store};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Whether RBAC allows a request. Bindings of all `clusters` count; a role is looked up in the binding's own cluster
/// first and then in the others.
pub fn allowed(store: &Store, clusters: &[&str], caller: &Caller, attributes: &Attributes) -> bool {
    rules(store, clusters, caller, &attributes.namespace).iter().any(|rule| rule_allows(rule, attributes))
}

/// All rules that apply to a caller in a namespace (empty: cluster-wide ones only).
pub fn rules(store: &Store, clusters: &[&str], caller: &Caller, namespace: &str) -> Vec<Value> {
    let mut found = Vec::new();
    for cluster in clusters {
        for (_, binding) in store.list(&Kind::new(GROUP, "clusterrolebindings"), Some(cluster), None).1 {
            let binding = store.value(&binding);
            if binds(&binding, caller, "") {
                found.extend(role_rules(store, clusters, cluster, "", &binding["roleRef"]).unwrap_or_default());
            }
        }
        if !namespace.is_empty() {
            for (_, binding) in store.list(&Kind::new(GROUP, "rolebindings"), Some(cluster), Some(namespace)).1 {
                let binding = store.value(&binding);
                if binds(&binding, caller, namespace) {
                    let role = role_rules(store, clusters, cluster, namespace, &binding["roleRef"]);
                    found.extend(role.unwrap_or_default());
                }
            }
        }
    }
    found
}

fn binds(binding: &Value, caller: &Caller, namespace: &str) -> bool {
    let subjects = binding["subjects"].as_array().into_iter().flatten();
    subjects.into_iter().any(|subject| {
        let name = subject["name"].as_str().unwrap_or_default();
        match subject["kind"].as_str() {
            Some("User") => name == caller.user,
            Some("Group") => caller.is_in(name),
            Some("ServiceAccount") => {
                let home = subject["namespace"].as_str().unwrap_or(namespace);
                caller.user == format!("system:serviceaccount:{home}:{name}")
            }
            _ => false,
        }
    })
}

/// The rules of the role a binding in the first cluster refers to; none if there is no such role.
pub fn referenced(store: &Store, clusters: &[&str], namespace: &str, reference: &Value) -> Option<Vec<Value>> {
    role_rules(store, clusters, clusters.first()?, namespace, reference)
}

fn role_rules(store: &Store, clusters: &[&str], home: &str, namespace: &str, reference: &Value) -> Option<Vec<Value>> {
    let name = reference["name"].as_str().unwrap_or_default();
    let (plural, namespace) = if reference["kind"] == "Role" { ("roles", namespace) } else { ("clusterroles", "") };
    let kind = Kind::new(GROUP, plural);
    let others = clusters.iter().copied().filter(|cluster| *cluster != home);
    for cluster in std::iter::once(home).chain(others) {
        if let Some(role) = store.get(&Key::new(&kind, cluster, namespace, name)) {
            return Some(rules_of(store, cluster, &role.object));
        }
    }
    None
}

/// The rules of a role, with those it aggregates.
fn rules_of(store: &Store, cluster: &str, role: &Arc<Value>) -> Vec<Value> {
    let own = |role: &Value| role["rules"].as_array().cloned().unwrap_or_default();
    let mut all = own(role);
    for selector in role["aggregationRule"]["clusterRoleSelectors"].as_array().into_iter().flatten() {
        let labels = selector["matchLabels"].as_object().into_iter().flatten();
        let selector: Selector =
            labels.map(|(key, value)| Requirement::equals(key, value.as_str().unwrap_or_default())).collect();
        for (_, other) in store.list(&Kind::new(GROUP, "clusterroles"), Some(cluster), None).1 {
            let other = store.value(&other);
            let label = |key: &str| other["metadata"]["labels"].get(key).and_then(Value::as_str);
            if !selector.is_empty() && selector.matches(label) {
                all.extend(own(&other));
            }
        }
    }
    all
}

fn has(rule: &Value, key: &str, wanted: &str) -> bool {
    rule[key].as_array().is_some_and(|list| list.iter().any(|item| item == "*" || item == wanted))
}

fn rule_allows(rule: &Value, attributes: &Attributes) -> bool {
    if !has(rule, "verbs", &attributes.verb) {
        return false;
    }
    if !attributes.is_resource() {
        let urls = rule["nonResourceURLs"].as_array().into_iter().flatten().filter_map(Value::as_str);
        return urls.into_iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => attributes.path.starts_with(prefix),
            None => attributes.path == pattern,
        });
    }
    has(rule, "apiGroups", &attributes.group) && resource_fits(rule, attributes) && name_fits(rule, attributes)
}

fn resource_fits(rule: &Value, attributes: &Attributes) -> bool {
    let whole = if attributes.subresource.is_empty() {
        attributes.resource.clone()
    } else {
        format!("{}/{}", attributes.resource, attributes.subresource)
    };
    let resources = rule["resources"].as_array().into_iter().flatten().filter_map(Value::as_str);
    resources.into_iter().any(|pattern| {
        pattern == "*"
            || pattern == whole
            || pattern.strip_prefix("*/").is_some_and(|sub| !sub.is_empty() && sub == attributes.subresource)
    })
}

fn name_fits(rule: &Value, attributes: &Attributes) -> bool {
    match rule["resourceNames"].as_array() {
        None => true,
        Some(names) if names.is_empty() => true,
        Some(names) => !attributes.name.is_empty() && names.iter().any(|name| *name == *attributes.name),
    }
}

/// The error for a forbidden request, in Kubernetes' wording; kcp appends `: access denied`.
pub fn refusal(caller: &Caller, attributes: &Attributes, suffix: &str) -> Status {
    let user = &caller.user;
    let verb = &attributes.verb;
    if !attributes.is_resource() {
        let message = format!("forbidden: User {user:?} cannot {verb} path {:?}{suffix}", attributes.path);
        let mut status = Status::new(403, "Forbidden", message);
        status.details = serde_json::json!({});
        return status;
    }
    let resource = if attributes.subresource.is_empty() {
        attributes.resource.clone()
    } else {
        format!("{}/{}", attributes.resource, attributes.subresource)
    };
    let place = if attributes.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {:?}", attributes.namespace)
    };
    let what = crate::status::qualified(&attributes.group, &attributes.resource);
    let name = if attributes.name.is_empty() { String::new() } else { format!(" {:?}", attributes.name) };
    let message = format!(
        "{what}{name} is forbidden: User {user:?} cannot {verb} resource {resource:?} in API group {:?} {place}{suffix}",
        attributes.group
    );
    Status::new(403, "Forbidden", message).about(&attributes.group, &attributes.resource, &attributes.name)
}
