//! Roles: what the konnector needs on its own cluster, and no more.
//!
//! The base role lets it read bindings, make CRDs and keep its Lease. What it does beyond that follows from bindings, so each binding has a role of
//! its own, made from its status: the objects of its APIs, its CRDs by name, what its provider claims, and the Secret with its kubeconfig.

use serde_json::{Value, json};

use crate::claims::{Accepted, described, mark};
use crate::existing::Existing;
use crate::kinds::{API_SERVICE_BINDING, API_SERVICE_BINDING_BUNDLE, GROUP};
use crate::names::{ACCEPTED_CLAIMS_ANNOTATION, KONNECTOR_NAMESPACE, bound_schema_name};
use crate::v1alpha2::{ApiServiceBinding, ApiServiceBindingBundle, SecretKeyReference};

const RBAC: &str = "rbac.authorization.k8s.io";
const APIEXTENSIONS: &str = "apiextensions.k8s.io";
const CRDS: &str = "customresourcedefinitions";

/// The name of the base roles, and the first part of the names of all others.
pub const BASE: &str = "kube-bind-konnector";

/// Who gets the roles, and where its Lease is.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its ServiceAccount.
    pub account: String,
    /// The namespace of the ServiceAccount.
    pub namespace: String,
    /// The namespace of the Lease.
    pub lease_namespace: String,
    /// The name of the Lease.
    pub lease_name: String,
}

/// What the konnector needs whatever is bound.
pub fn base(subject: &Subject) -> Vec<Value> {
    let kinds = [API_SERVICE_BINDING.plural, API_SERVICE_BINDING_BUNDLE.plural];
    let statuses = kinds.map(|kind| format!("{kind}/status"));
    let own_crds = kinds.map(|kind| format!("{kind}.{GROUP}"));
    let cluster = vec![
        json!({"apiGroups": [GROUP], "resources": kinds, "verbs": ["get", "list", "watch"]}),
        // A bundle creates and deletes bindings; a binding gets a finalizer.
        json!({"apiGroups": [GROUP], "resources": [kinds[0]], "verbs": ["create", "update", "patch", "delete"]}),
        json!({"apiGroups": [GROUP], "resources": statuses, "verbs": ["get", "update", "patch"]}),
        json!({"apiGroups": [APIEXTENSIONS], "resources": [CRDS], "verbs": ["get", "list", "watch", "create"]}),
        json!({"apiGroups": [APIEXTENSIONS], "resources": [CRDS], "resourceNames": own_crds, "verbs": ["update", "patch"]}),
        // Consumers' namespaces are mirrored on providers, and providers may ask for one; the uid of kube-system is who we are.
        json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch", "create"]}),
    ];
    let secrets =
        vec![json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch", "update"]})];
    let group = "coordination.k8s.io";
    let lease = vec![
        json!({"apiGroups": [group], "resources": ["leases"], "verbs": ["create"]}),
        json!({"apiGroups": [group], "resources": ["leases"], "resourceNames": [subject.lease_name],
            "verbs": ["get", "update", "patch"]}),
    ];
    let mut roles = cluster_role(BASE, subject, &cluster);
    roles.extend(role(&format!("{BASE}-secrets"), KONNECTOR_NAMESPACE, subject, &secrets));
    let events = vec![json!({"apiGroups": [""], "resources": ["events"], "verbs": ["create"]})];
    // Where events about cluster-wide objects are, such as bindings.
    roles.extend(role(&format!("{BASE}-events"), "default", subject, &events));
    roles.extend(role(&format!("{BASE}-lease"), &subject.lease_namespace, subject, &lease));
    roles
}

/// What the konnector needs for one binding, as far as its status says what is bound.
pub fn of_binding(
    binding: &ApiServiceBinding,
    existing: Existing,
    accepted: &Accepted,
    subject: &Subject,
) -> Vec<Value> {
    let name = format!("{BASE}-{}", binding.metadata.name);
    let mut rules = Vec::new();
    let mut crds = Vec::new();
    for bound in &binding.status.bound_schemas {
        let (group, resource) = (&bound.group, &bound.resource);
        crds.push(bound_schema_name(group, resource));
        let mut verbs = vec!["get", "list", "watch", "update", "patch"];
        if existing.makes_objects() {
            verbs.extend(["create", "delete"]);
        }
        rules.push(json!({"apiGroups": [group], "resources": [resource], "verbs": verbs}));
        rules.push(json!({"apiGroups": [group], "resources": [format!("{resource}/status")],
            "verbs": ["get", "update", "patch"]}));
    }
    if !crds.is_empty() {
        rules.push(json!({"apiGroups": [APIEXTENSIONS], "resources": [CRDS], "resourceNames": crds,
            "verbs": ["update", "patch", "delete"]}));
    }
    for claim in binding.status.permission_claims.iter().filter(|claim| accepted.accepts(claim)) {
        rules.push(json!({"apiGroups": [claim.group], "resources": [claim.resource],
            "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"]}));
    }
    let mut roles = if rules.is_empty() { Vec::new() } else { cluster_role(&name, subject, &rules) };
    roles.extend(of_secret(&name, &binding.spec.kubeconfig_secret_ref, subject));
    roles
}

/// What the konnector needs for the bindings and bundles of a cluster.
pub fn of_bindings(
    bindings: &[ApiServiceBinding],
    bundles: &[ApiServiceBindingBundle],
    subject: &Subject,
) -> Vec<Value> {
    let own = bindings.iter().flat_map(|binding| {
        // For a word that nobody knows, nothing is done.
        let existing = Existing::of_binding(binding, bundles).unwrap_or_default();
        of_binding(binding, existing, &Accepted::of_binding(binding, bundles), subject)
    });
    own.chain(of_bundles(bundles, subject)).collect()
}

/// What the konnector needs for the kubeconfigs of bundles.
pub fn of_bundles(bundles: &[ApiServiceBindingBundle], subject: &Subject) -> Vec<Value> {
    let of_bundle = |bundle: &ApiServiceBindingBundle| {
        let name = format!("{BASE}-bundle-{}", bundle.metadata.name);
        of_secret(&name, &bundle.spec.kubeconfig_secret_ref, subject)
    };
    bundles.iter().flat_map(of_bundle).collect()
}

/// What whoever grants the roles of a binding should know before.
pub fn warnings(binding: &ApiServiceBinding, accepted: &Accepted) -> Vec<String> {
    let (name, claims) = (&binding.metadata.name, &binding.status.permission_claims);
    let marks: Vec<String> = claims.iter().map(mark).collect();
    let warning = |claim| {
        let what = described(claim);
        if !accepted.accepts(claim) {
            return format!(
                "binding {name} waits: its provider claims {what}, which nobody has accepted, so no role is printed for that; to accept it: \
                 kubectl annotate apiservicebinding {name} --overwrite {ACCEPTED_CLAIMS_ANNOTATION}={}",
                marks.join(",")
            );
        }
        format!(
            "binding {name}: its provider gets {what}; roles know no selectors, so with this one the konnector can read and write all {} of this \
             cluster",
            claim.resource
        )
    };
    claims.iter().map(warning).collect()
}

/// What the konnector needs to serve the workspaces of an APIExport: to list schemas in it, to follow its slice, and to work through its virtual
/// workspace.
pub fn of_export(slice: &str, export: &str, subject: &Subject) -> Vec<Value> {
    let (read, group) = (["get", "list", "watch"], "apis.kcp.io");
    let rules = [
        json!({"nonResourceURLs": ["/"], "verbs": ["access"]}),
        json!({"apiGroups": [group], "resources": ["apiexportendpointslices"], "resourceNames": [slice], "verbs": read}),
        json!({"apiGroups": [group], "resources": ["apiexports"], "resourceNames": [export],
            "verbs": ["get", "list", "watch", "update"]}),
        json!({"apiGroups": [group], "resources": ["apiexports/content"], "resourceNames": [export], "verbs": ["*"]}),
        json!({"apiGroups": [group], "resources": ["apiresourceschemas"],
            "verbs": ["get", "list", "watch", "create", "delete"]}),
    ];
    cluster_role(&format!("{BASE}-export"), subject, &rules)
}

/// What the konnector needs for a kubeconfig; those in its own namespace it may read anyway.
pub fn of_secret(name: &str, at: &SecretKeyReference, subject: &Subject) -> Vec<Value> {
    if at.namespace == KONNECTOR_NAMESPACE {
        return Vec::new();
    }
    let rules = [json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": [at.name],
        "verbs": ["get", "list", "watch", "update"]})];
    role(&format!("{name}-secret"), &at.namespace, subject, &rules)
}

pub(crate) fn cluster_role(name: &str, subject: &Subject, rules: &[Value]) -> Vec<Value> {
    let role =
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules});
    vec![role, binding("ClusterRole", name, None, subject)]
}

pub(crate) fn role(name: &str, namespace: &str, subject: &Subject, rules: &[Value]) -> Vec<Value> {
    let role = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": {"name": name, "namespace": namespace},
        "rules": rules});
    vec![role, binding("Role", name, Some(namespace), subject)]
}

fn binding(kind: &str, name: &str, namespace: Option<&str>, subject: &Subject) -> Value {
    let mut binding = json!({"apiVersion": format!("{RBAC}/v1"), "kind": format!("{kind}Binding"), "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": subject.account, "namespace": subject.namespace}]});
    if let Some(namespace) = namespace {
        binding["metadata"]["namespace"] = json!(namespace);
    }
    binding
}

#[cfg(test)]
mod tests {
    use crate::v1alpha2::{BoundSchemaReference, PermissionClaim, Selector};

    use super::*;

    fn subject() -> Subject {
        let text = str::to_owned;
        Subject {
            account: text("konnector"),
            namespace: text("kube-bind"),
            lease_namespace: text("kube-bind"),
            lease_name: text("kube-bind"),
        }
    }

    #[test]
    fn the_base_role_reaches_no_secret_outside_its_namespace_and_no_foreign_crd() {
        for role in base(&subject()) {
            for rule in role["rules"].as_array().into_iter().flatten() {
                let writes = ["update", "patch", "delete"].iter().any(|verb| rule["verbs"].to_string().contains(verb));
                if rule["resources"].to_string().contains(CRDS) && writes {
                    assert!(rule["resourceNames"].is_array(), "{rule}");
                }
                if rule["resources"].to_string().contains("secrets") {
                    assert_eq!(role["metadata"]["namespace"], "kube-bind", "{rule}");
                }
                assert!(!rule.to_string().contains('*'), "{rule}");
            }
        }
    }

    #[test]
    fn an_export_adds_its_slice_its_schemas_and_its_content_and_no_other_export() {
        let roles = of_export("slice", "export", &subject());
        assert_eq!(roles.len(), 2);
        for rule in roles[0]["rules"].as_array().unwrap().iter().filter(|rule| rule["resources"].is_array()) {
            let resource = rule["resources"][0].as_str().unwrap();
            match resource {
                "apiexportendpointslices" => assert_eq!(rule["resourceNames"], json!(["slice"])),
                "apiexports" | "apiexports/content" => assert_eq!(rule["resourceNames"], json!(["export"])),
                _ => assert_eq!(resource, "apiresourceschemas"),
            }
        }
    }

    #[test]
    fn a_binding_adds_its_apis_its_crds_its_claims_and_its_secret() {
        let mut binding = ApiServiceBinding::new("b");
        binding.spec.kubeconfig_secret_ref = SecretKeyReference::new("elsewhere", "provider", "kubeconfig");
        assert_eq!(
            of_binding(&binding, Existing::Leave, &Accepted::All, &subject()).len(),
            2,
            "nothing is bound yet, but the Secret has to be read"
        );
        binding.status.bound_schemas = vec![BoundSchemaReference::new("wild.io", "sheriffs")];
        binding.status.permission_claims = vec![PermissionClaim::new("", "configmaps", Selector::default())];
        let roles = of_binding(&binding, Existing::Leave, &Accepted::All, &subject());
        let kinds: Vec<_> = roles.iter().map(|role| role["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]);
        assert_eq!(roles[0]["rules"][2]["resourceNames"], json!(["sheriffs.wild.io"]));
        assert_eq!(roles[0]["rules"][3]["resources"], json!(["configmaps"]));
        assert_eq!(roles[2]["rules"][0]["resourceNames"], json!(["provider"]));
        // Only who shows or adopts objects creates and deletes some here.
        assert!(!roles[0]["rules"][0]["verbs"].to_string().contains("create"));
        for existing in [Existing::Show, Existing::Adopt] {
            let verbs = of_binding(&binding, existing, &Accepted::All, &subject())[0]["rules"][0]["verbs"].to_string();
            assert!(verbs.contains("create") && verbs.contains("delete"), "{verbs}");
        }
    }

    #[test]
    fn claims_are_warned_of_and_those_that_nobody_has_accepted_get_no_role() {
        let mut binding = ApiServiceBinding::new("b");
        binding.status.bound_schemas = vec![BoundSchemaReference::new("wild.io", "sheriffs")];
        binding.status.permission_claims = vec![PermissionClaim::new("", "secrets", Selector::default())];
        let nothing = Accepted::of_words([""]);
        let roles = of_binding(&binding, Existing::Leave, &nothing, &subject());
        assert!(!roles[0]["rules"].to_string().contains("secrets"), "{roles:?}");
        let warning = warnings(&binding, &nothing).join("");
        assert!(
            warning.contains("kubectl annotate apiservicebinding b --overwrite kube-bind.io/accepted-claims=secrets-")
        );
        let warning = warnings(&binding, &Accepted::All).join("");
        assert!(warning.contains("can read and write all secrets of this cluster"), "{warning}");
    }
}
