//! Rights: what each consumer may do on the provider, and where.
//!
//! | objects of an export | cluster-wide | in the service namespaces, or in the contract's |
//! | --- | --- | --- |
//! | namespaced | reading, if konnectors may watch the cluster | everything |
//! | cluster-scoped, isolation Namespaced | reading, if konnectors may watch the cluster | everything, in the contract's |
//! | cluster-scoped, isolation Prefixed or None | everything; the policy in [`cluster`](super::cluster) keeps consumers apart | |
//! | claimed | nothing | everything |
//!
//! In a namespace that several contracts share, each has the same rights, and the policy lets each write only what is its own. Roles of the contract that
//! the namespace serves are called as kube-bind calls them; those of the others have `<contract>:` in their names, which no name of an export has.
//!
//! ClusterRoles `kube-binder-resources-…` and `kube-binder-claims-…` only say what is exported, as kube-bind's do: nobody is bound to them, because
//! whoever was would have the rights of all consumers.

use std::collections::BTreeMap;

use carrick_bind_api::carrick_kcp::apis::v1alpha1::ResourceScope;
use carrick_bind_api::names::{AGGREGATE_LABEL, BINDER, EXPORTS_ROLE, WITHDRAWAL_FINALIZER};
use carrick_bind_api::v1alpha2::{ApiServiceExport, InformerScope, Isolation};
use serde_json::{Value, json};

use super::objects::{ContractObjects, NamespaceFacts};
use super::plan::{Plan, Write, is_deleting};
use super::terms::Terms;

const RBAC: &str = "rbac.authorization.k8s.io";
/// Label of the roles that this backend keeps.
const MANAGED_LABEL: (&str, &str) = ("app.kubernetes.io/managed-by", "kube-bind-backend");
const ALL: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];
const READ: [&str; 3] = ["get", "list", "watch"];

/// Kind, namespace (empty for cluster-wide ones) and name of a role or binding.
pub type RoleKey = (String, String, String);

/// The key of a role or binding.
pub fn key(object: &Value) -> RoleKey {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&object["kind"]), text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]))
}

/// Whether a role in a service namespace is one for this contract to look after: its own, or, if it is the one that the namespace serves, one that a
/// contract has left which shares it no more.
pub fn concerns(role: &str, facts: &NamespaceFacts, contract: &str) -> bool {
    let serves = facts.serves_first(contract);
    match sharer(role) {
        None => serves,
        Some(of) => of == contract || (serves && !facts.shared.iter().any(|(it, _)| it == of)),
    }
}

/// The contract in the name of a role that is for one that shares a namespace.
fn sharer(role: &str) -> Option<&str> {
    let rest = ["claims", "resources"].iter().find_map(|part| role.strip_prefix(&format!("{BINDER}-{part}-")))?;
    rest.split_once(':').map(|(contract, _)| contract)
}

/// The roles and bindings that a contract needs.
///
/// As long as the policy does not stand that keeps consumers apart, nobody may write in a whole cluster, or in a namespace of another one.
pub fn wanted(objects: &ContractObjects, terms: &Terms, policy_stands: bool) -> Vec<Value> {
    let contract = &objects.contract;
    let mut all = Vec::new();
    let (mut cluster_wide, mut writes) = (Vec::new(), false);
    let spaces = objects.service_namespaces().into_iter();
    let spaces = spaces.map(|facts| (facts.name.as_str(), facts.serves_first(&contract.namespace)));
    let spaces: Vec<(&str, bool)> = spaces.filter(|(_, first)| *first || policy_stands).collect();
    for export in objects.exports.iter().filter(|export| is_served(export)) {
        let parts = ExportRights::of(export, objects, terms);
        let name = &export.metadata.name;
        for (part, rules) in [("resources", &parts.resources), ("claims", &parts.claims)] {
            let name = format!("{BINDER}-{part}-{}-{name}", contract.namespace);
            let mut role = cluster_role(&name, rules, &contract.owner());
            role["metadata"]["labels"][AGGREGATE_LABEL] = json!("true");
            all.push(role);
        }
        for (part, rules, namespaces) in [
            ("claims", &parts.claims, spaces.clone()),
            ("resources", &parts.in_service_namespaces, spaces.clone()),
            ("resources", &parts.in_contract, vec![(contract.namespace.as_str(), true)]),
        ] {
            for (namespace, first) in namespaces {
                let of = if first { String::new() } else { format!("{}:", contract.namespace) };
                all.extend(role_in(namespace, &format!("{BINDER}-{part}-{of}{name}"), rules, &contract.subject()));
            }
        }
        cluster_wide.extend(parts.cluster_wide);
        writes |= !parts.cluster_wide_writes.is_empty();
        cluster_wide.extend(parts.cluster_wide_writes);
    }
    if !cluster_wide.is_empty() && (policy_stands || !writes) {
        cluster_wide.dedup();
        let name = format!("{EXPORTS_ROLE}-{}", contract.namespace);
        all.push(cluster_role(&name, &cluster_wide, &contract.owner()));
        let mut binding = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": metadata(&name),
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}, "subjects": [contract.subject()]});
        binding["metadata"]["ownerReferences"] = json!([contract.owner()]);
        all.push(binding);
    }
    all
}

/// What to do so that a contract has the rights that it needs, and no others.
pub fn decide(
    objects: &ContractObjects,
    existing: &BTreeMap<RoleKey, Value>,
    terms: &Terms,
    policy_stands: bool,
) -> Plan {
    let (mut plan, wanted) = (Plan::default(), wanted(objects, terms, policy_stands));
    for role in &wanted {
        plan.ensure(existing.get(&key(role)), role);
    }
    let names: Vec<RoleKey> = wanted.iter().map(key).collect();
    for (at, role) in existing {
        let ours = role["metadata"]["labels"][MANAGED_LABEL.0] == MANAGED_LABEL.1;
        // What was given when the policy stood is not taken back because nobody has looked at the policy yet.
        let own = || at.2 == format!("{EXPORTS_ROLE}-{}", objects.contract.namespace) || sharer(&at.2).is_some();
        let waits = !policy_stands && own();
        if ours && !waits && !names.contains(at) && !is_deleting(role) {
            plan.writes.push(Write::Delete(role.clone()));
        }
    }
    plan
}

/// Whether a consumer still works with an export. One that is withdrawn is there until its consumer knows.
fn is_served(export: &ApiServiceExport) -> bool {
    !export.metadata.is_deleting() || export.metadata.has_finalizer(WITHDRAWAL_FINALIZER)
}

/// Rules of one export, by where they hold.
struct ExportRights {
    resources: Vec<Value>,
    claims: Vec<Value>,
    in_service_namespaces: Vec<Value>,
    in_contract: Vec<Value>,
    cluster_wide: Vec<Value>,
    cluster_wide_writes: Vec<Value>,
}

impl ExportRights {
    fn of(export: &ApiServiceExport, objects: &ContractObjects, terms: &Terms) -> Self {
        let mut rights = Self {
            resources: Vec::new(),
            claims: Vec::new(),
            in_service_namespaces: Vec::new(),
            in_contract: Vec::new(),
            cluster_wide: Vec::new(),
            cluster_wide_writes: Vec::new(),
        };
        let watches_all = export.spec.informer_scope == InformerScope::Cluster;
        for resource in &export.spec.resources {
            let (group, plural) = (&resource.group, &resource.resource);
            let everything = rule(group, plural, &ALL);
            rights.resources.push(everything.clone());
            let Some(schema) = objects.schema(&resource.bound_schema_name()) else { continue };
            let own = match (&schema.spec.scope, export.isolation()) {
                (ResourceScope::Namespaced, _) => &mut rights.in_service_namespaces,
                (ResourceScope::Cluster, Isolation::Namespaced) => &mut rights.in_contract,
                (ResourceScope::Cluster, Isolation::Prefixed | Isolation::None) => {
                    rights.cluster_wide_writes.push(everything);
                    continue;
                }
                // Nobody knows how consumers are kept apart there.
                _ => continue,
            };
            own.push(everything);
            if watches_all {
                rights.cluster_wide.push(rule(group, plural, &READ));
            }
        }
        for claim in &export.spec.permission_claims {
            rights.claims.push(rule(&claim.group, &claim.resource, &ALL));
            if watches_all && terms.cluster_wide_claims {
                rights.cluster_wide.push(rule(&claim.group, &claim.resource, &READ));
            }
        }
        rights
    }
}

fn rule(group: &str, resource: &str, verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": [resource], "verbs": verbs})
}

fn metadata(name: &str) -> Value {
    json!({"name": name, "labels": {MANAGED_LABEL.0: MANAGED_LABEL.1}})
}

fn cluster_role(name: &str, rules: &[Value], owner: &Value) -> Value {
    let mut role =
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": metadata(name), "rules": rules});
    role["metadata"]["ownerReferences"] = json!([owner]);
    role
}

/// A Role and its RoleBinding; none without rules.
fn role_in(namespace: &str, name: &str, rules: &[Value], subject: &Value) -> Vec<Value> {
    if rules.is_empty() {
        return Vec::new();
    }
    let mut metadata = metadata(name);
    metadata["namespace"] = json!(namespace);
    vec![
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": metadata, "rules": rules}),
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name}, "subjects": [subject]}),
    ]
}
