//! Role based access control over the RBAC objects of one or several clusters.

use std::borrow::Cow;
use std::ops::ControlFlow;

use serde_json::Value;

use super::decision::{Decision, Verdict};
use crate::caller::Caller;
use crate::request::Attributes;
use crate::status::Status;
use crate::store::{Key, Kind, Store};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Whose RBAC objects decide about a caller.
#[derive(Debug, Clone)]
pub struct Rights<'a> {
    /// Who the caller counts as: a binding to any of these applies.
    pub identities: Vec<Cow<'a, Caller>>,
    /// Where bindings are looked for, in this order.
    pub sources: Vec<Source<'a>>,
}

/// The bindings of one cluster.
#[derive(Debug, Clone)]
pub struct Source<'a> {
    /// The cluster of the bindings.
    pub bindings: &'a str,
    /// The clusters of the roles they refer to; roles of the same name are merged.
    pub roles: Vec<&'a str>,
}

impl<'a> Rights<'a> {
    /// The rights of a caller in a cluster without an extension.
    pub fn plain(caller: &'a Caller, cluster: &'a str) -> Self {
        let source = Source { bindings: cluster, roles: vec![cluster] };
        Self { identities: vec![Cow::Borrowed(caller)], sources: vec![source] }
    }
}

/// What a search through bindings comes across.
enum Step<'s> {
    /// A rule, and a text that says who grants it to whom.
    Rule(&'s Value, &'s dyn Fn() -> String),
    /// A binding applies, but its role does not exist.
    Missing(String),
}

/// Whether RBAC allows a request.
pub fn allowed(store: &Store, rights: &Rights<'_>, attributes: &Attributes) -> bool {
    visit(store, rights, &attributes.namespace, &mut |step| match step {
        Step::Rule(rule, _) if rule_allows(rule, attributes) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    })
    .is_break()
}

/// Whether RBAC allows a request, with the reason that Kubernetes gives.
pub fn decide(store: &Store, rights: &Rights<'_>, attributes: &Attributes) -> Decision {
    let (mut granted, mut missing) = (None, Vec::new());
    let _ = visit(store, rights, &attributes.namespace, &mut |step| {
        match step {
            Step::Rule(rule, source) if rule_allows(rule, attributes) => {
                granted = Some(source());
                return ControlFlow::Break(());
            }
            Step::Rule(..) => {}
            Step::Missing(text) => missing.push(text),
        }
        ControlFlow::Continue(())
    });
    match granted {
        Some(source) => Decision::new(Verdict::Allow, format!("RBAC: allowed by {source}")),
        None if missing.is_empty() => Decision::new(Verdict::NoOpinion, ""),
        None => Decision::new(Verdict::NoOpinion, format!("RBAC: {}", aggregate(missing))),
    }
}

/// All rules that apply in a namespace (empty: cluster-wide ones only), and errors about roles that do not exist.
pub fn rules(store: &Store, rights: &Rights<'_>, namespace: &str) -> (Vec<Value>, Vec<String>) {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    let _ = visit(store, rights, namespace, &mut |step| {
        match step {
            Step::Rule(rule, _) => found.push(rule.clone()),
            Step::Missing(text) => missing.push(text),
        }
        ControlFlow::Continue(())
    });
    (found, missing)
}

/// Several errors as Kubernetes prints them.
pub fn aggregate(mut errors: Vec<String>) -> String {
    let mut seen = std::collections::BTreeSet::new();
    errors.retain(|error| seen.insert(error.clone()));
    match errors.as_slice() {
        [one] => one.clone(),
        all => format!("[{}]", all.join(", ")),
    }
}

/// Shows every rule that applies in a namespace, until told to stop.
fn visit(
    store: &Store,
    rights: &Rights<'_>,
    namespace: &str,
    see: &mut dyn FnMut(Step<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    for source in &rights.sources {
        visit_bindings(store, rights, source, "", see)?;
        if !namespace.is_empty() {
            visit_bindings(store, rights, source, namespace, see)?;
        }
    }
    ControlFlow::Continue(())
}

fn visit_bindings(
    store: &Store,
    rights: &Rights<'_>,
    source: &Source<'_>,
    namespace: &str,
    see: &mut dyn FnMut(Step<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let (plural, kind, inside) = if namespace.is_empty() {
        ("clusterrolebindings", "ClusterRoleBinding", None)
    } else {
        ("rolebindings", "RoleBinding", Some(namespace))
    };
    for (key, binding) in store.list(&Kind::new(GROUP, plural), Some(source.bindings), inside).1 {
        let binding = store.value(&binding);
        let subjects = binding["subjects"].as_array().map_or(&[][..], Vec::as_slice);
        let applies = |subject: &&Value| rights.identities.iter().any(|who| is_meant(subject, who, namespace));
        let Some(subject) = subjects.iter().find(applies) else { continue };
        let reference = &binding["roleRef"];
        let Some(rules) = role_rules(store, &source.roles, namespace, reference) else {
            see(Step::Missing(not_found(reference)))?;
            continue;
        };
        let granted_by = || {
            let name = if namespace.is_empty() { key.name.to_string() } else { format!("{}/{namespace}", key.name) };
            let text = |key: &str| reference[key].as_str().unwrap_or_default();
            let (role, whom) = (text("name"), described(subject, namespace));
            format!("{kind} {name:?} of {} {role:?} to {whom}", text("kind"))
        };
        for rule in &rules {
            see(Step::Rule(rule, &granted_by))?;
        }
    }
    ControlFlow::Continue(())
}

fn is_meant(subject: &Value, who: &Caller, namespace: &str) -> bool {
    let name = subject["name"].as_str().unwrap_or_default();
    match subject["kind"].as_str() {
        Some("User") => name == who.user,
        Some("Group") => who.is_in(name),
        Some("ServiceAccount") => {
            let home = home_of(subject, namespace);
            let account = who.user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
            !home.is_empty() && account == Some((home, name))
        }
        _ => false,
    }
}

/// The namespace of a service account; by default that of the binding.
fn home_of<'a>(subject: &'a Value, namespace: &'a str) -> &'a str {
    subject["namespace"].as_str().filter(|home| !home.is_empty()).unwrap_or(namespace)
}

fn described(subject: &Value, namespace: &str) -> String {
    let text = |key: &str| subject[key].as_str().unwrap_or_default();
    let (kind, name) = (text("kind"), text("name"));
    if kind == "ServiceAccount" {
        return format!("{kind} {:?}", format!("{name}/{}", home_of(subject, namespace)));
    }
    format!("{kind} {name:?}")
}

fn not_found(reference: &Value) -> String {
    let name = reference["name"].as_str().unwrap_or_default();
    let kind = if reference["kind"] == "Role" { "role" } else { "clusterrole" };
    format!("{kind}.{GROUP} {name:?} not found")
}

/// The rules of the role that a binding in a namespace (or in none) refers to; none if there is no such role.
pub fn referenced(store: &Store, rights: &Rights<'_>, namespace: &str, reference: &Value) -> Option<Vec<Value>> {
    let mut clusters: Vec<&str> = Vec::new();
    for cluster in rights.sources.iter().flat_map(|source| &source.roles) {
        if !clusters.contains(cluster) {
            clusters.push(cluster);
        }
    }
    role_rules(store, &clusters, namespace, reference)
}

/// The rules of a role; those of roles of the same name in several clusters are merged.
fn role_rules(store: &Store, clusters: &[&str], namespace: &str, reference: &Value) -> Option<Vec<Value>> {
    let name = reference["name"].as_str().unwrap_or_default();
    let (plural, namespace) = if reference["kind"] == "Role" { ("roles", namespace) } else { ("clusterroles", "") };
    let kind = Kind::new(GROUP, plural);
    let mut found: Option<Vec<Value>> = None;
    for cluster in clusters {
        let Some(role) = store.get(&Key::new(&kind, cluster, namespace, name)) else { continue };
        let own = role.object["rules"].as_array().map_or(&[][..], Vec::as_slice);
        match &mut found {
            None => found = Some(own.to_vec()),
            Some(merged) => {
                for rule in own {
                    if !merged.contains(rule) {
                        merged.push(rule.clone());
                    }
                }
            }
        }
    }
    found
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
        return urls.into_iter().any(|pattern| {
            pattern == attributes.path
                || (pattern.ends_with('*') && attributes.path.starts_with(pattern.trim_end_matches('*')))
        });
    }
    has(rule, "apiGroups", &attributes.group) && resource_fits(rule, attributes) && name_fits(rule, attributes)
}

fn resource_fits(rule: &Value, attributes: &Attributes) -> bool {
    let whole = if attributes.subresource.is_empty() {
        Cow::Borrowed(attributes.resource.as_str())
    } else {
        Cow::Owned(format!("{}/{}", attributes.resource, attributes.subresource))
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
        Some(names) => names.is_empty() || names.iter().any(|name| *name == *attributes.name),
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
