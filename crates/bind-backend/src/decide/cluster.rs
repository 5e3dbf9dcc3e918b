//! What a provider's cluster needs once, whoever its consumers are.

use carrick_bind_api::existing::ADOPTABLE_ANNOTATION;
use carrick_bind_api::kinds::GROUP;
use carrick_bind_api::names::{
    AGGREGATE_LABEL, BINDER, CONTRACT_ANNOTATION, EXPORTS_ROLE, SERVICE_NAMESPACE_ANNOTATION, SHARED_WITH_ANNOTATION,
};
use carrick_bind_api::v1alpha2::{Cluster, Isolation};
use serde_json::{Value, json};

use super::plan;
use super::terms::Terms;

const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";
/// Name of the policy that keeps consumers apart, and of its binding.
pub const POLICY: &str = "kube-binder-own-objects";
/// A namespace that cannot exist, and so neither can its accounts.
const NOWHERE: &str = "-nowhere-";
/// Role of those who may log in.
const LOGIN_ROLE: &str = "kube-bind-oidc-user";

/// The objects that a cluster needs.
pub fn wanted(terms: &Terms) -> Vec<Value> {
    let all = ["create", "delete", "get", "list", "patch", "update", "watch"];
    let role = |name: &str, rules: Value| json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules});
    let binding = |name: &str, role: &str, subjects: Value| {
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}, "subjects": subjects})
    };
    // kube-bind's own CRD wants a spec, even if there is nothing in it.
    let mut cluster = plan::value(&Cluster::new("default"));
    if cluster["spec"].is_null() {
        cluster["spec"] = json!({});
    }
    let mut wanted = vec![
        cluster,
        role(
            BINDER,
            json!([
                {"apiGroups": [GROUP], "resources": ["apiserviceexportrequests", "apiservicenamespaces"], "verbs": all},
                {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
                {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]},
                {"apiGroups": [GROUP], "resources": ["clusterbindings", "apiserviceexports", "boundschemas"], "verbs": ["get", "list", "watch"]},
                {"apiGroups": [GROUP], "resources": ["clusterbindings/status", "apiserviceexports/status", "boundschemas/status"],
                    "verbs": ["get", "patch", "update"]},
            ]),
        ),
        // The server fills in what is exported. It is for people to read: nobody is bound to it.
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": {"name": EXPORTS_ROLE},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {AGGREGATE_LABEL: "true"}}]}}),
        // kube-bind binds one consumer here to what all of them export. Whoever looks for that binding finds one that gives nothing to anybody; its
        // role is the one that kube-bind expects, which could not be changed when its backend comes back.
        binding(EXPORTS_ROLE, EXPORTS_ROLE, json!([{"kind": "ServiceAccount", "name": BINDER, "namespace": NOWHERE}])),
    ];
    let subject = |kind: &str, name: &String| json!({"apiGroup": RBAC, "kind": kind, "name": name});
    let groups = terms.logins.groups.iter().map(|name| subject("Group", name));
    let subjects: Vec<Value> = groups.chain(terms.logins.users.iter().map(|name| subject("User", name))).collect();
    if !subjects.is_empty() {
        wanted.push(role(
            LOGIN_ROLE,
            json!([
                {"apiGroups": [GROUP], "resources": ["*"], "verbs": ["bind"]},
                {"nonResourceURLs": ["/", "/api", "/api/*", "/apis", "/apis/*"], "verbs": ["access"]},
            ]),
        ));
        wanted.push(binding(LOGIN_ROLE, LOGIN_ROLE, json!(subjects)));
    }
    wanted
}

/// Whether a request is for a namespace of the consumer's. In one that several share, what is exported must be its own, and what is claimed must not be
/// another one's: kube-bind's konnectors leave no mark on claimed objects.
fn in_namespace(own: &str) -> String {
    let space = "namespaceObject.metadata.annotations";
    let has = |key: &str| format!("'{key}' in {space}");
    let (first, shared) = (has(SERVICE_NAMESPACE_ANNOTATION), has(SHARED_WITH_ANNOTATION));
    let serves = format!("({first} && {space}['{SERVICE_NAMESPACE_ANNOTATION}'].startsWith(variables.contract + '/'))");
    let shares = format!(
        "({shared} && {space}['{SHARED_WITH_ANNOTATION}'].split(',').exists(one, one.startsWith(variables.contract + '/')))"
    );
    let free = |object: &str| {
        let annotations = format!("{object}.metadata.annotations");
        format!(
            "({object} == null || !has({annotations}) || !('{CONTRACT_ANNOTATION}' in {annotations}) || \
             {annotations}['{CONTRACT_ANNOTATION}'] == variables.contract)"
        )
    };
    let claimed = format!("request.resource.group == '' && {} && {}", free("object"), free("oldObject"));
    format!(
        "request.namespace == variables.contract || (namespaceObject != null && has({space}) && \
         (({serves} && !({shared})) || (({serves} || {shares}) && (({claimed}) || ({own})))))"
    )
}

/// A policy that lets each consumer write only what is its own: roles cannot tell objects of one kind apart. Objects in namespaces must be in one of
/// the consumer's; others, and those in namespaces that several share, must carry its mark before and after the write.
pub fn policy(isolation: &Isolation) -> [Value; 2] {
    let marked = |object: &str| {
        format!(
            "({object} == null || (has({object}.metadata.annotations) && '{CONTRACT_ANNOTATION}' in {object}.metadata.annotations && \
             {object}.metadata.annotations['{CONTRACT_ANNOTATION}'] == variables.contract))"
        )
    };
    // An object of the provider's own may get its first mark. A name with the contract's prefix says whose it is; otherwise the provider has to.
    let annotations = "oldObject.metadata.annotations";
    let unmarked = format!("(!has({annotations}) || !('{CONTRACT_ANNOTATION}' in {annotations}))");
    let adoptable = format!(
        "request.operation == 'UPDATE' && {unmarked} && has({annotations}) && '{ADOPTABLE_ANNOTATION}' in {annotations} && \
         {annotations}['{ADOPTABLE_ANNOTATION}'] == variables.contract"
    );
    let own_if = |adoptable: &str| format!("{} && ({} || ({adoptable}))", marked("object"), marked("oldObject"));
    let in_namespace = in_namespace(&own_if(&adoptable));
    let mut own = own_if(&adoptable);
    if *isolation == Isolation::Prefixed {
        own = own_if(&format!("request.operation == 'UPDATE' && {unmarked}"));
        own.push_str(" && has(request.name) && request.name.startsWith(variables.contract + '-')");
    }
    let message = format!(
        "a consumer may write in its own namespaces, and cluster-scoped objects that carry its own mark and name; a provider lets it adopt another one \
         with annotation {ADOPTABLE_ANNOTATION}=<contract namespace>"
    );
    let policy = json!({"apiVersion": format!("{ADMISSION}/v1"), "kind": "ValidatingAdmissionPolicy", "metadata": {"name": POLICY}, "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["CREATE", "UPDATE", "DELETE"]}],
            // Reviews are questions.
            "excludeResourceRules": [{"apiGroups": ["authentication.k8s.io", "authorization.k8s.io"], "apiVersions": ["*"], "resources": ["*/*"],
                "operations": ["*"]}],
        },
        "matchConditions": [{"name": "consumers", "expression":
            format!("request.userInfo.username.startsWith('system:serviceaccount:') && request.userInfo.username.endsWith(':{BINDER}')")}],
        "variables": [{"name": "contract", "expression": "request.userInfo.username.split(':')[2]"}],
        "validations": [{"expression": format!("has(request.namespace) && request.namespace != '' ? ({in_namespace}) : ({own})"), "message": message, "reason": "Forbidden"}],
    }});
    let binding = json!({"apiVersion": format!("{ADMISSION}/v1"), "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": POLICY},
        "spec": {"policyName": POLICY, "validationActions": ["Deny"]}});
    [policy, binding]
}

#[cfg(test)]
mod tests {
    use carrick_bind_api::v1alpha2::InformerScope;

    use super::*;

    #[test]
    fn the_cluster_has_a_spec_because_kube_binds_own_crd_wants_one() {
        let wanted = wanted(&Terms::example(InformerScope::Cluster, Isolation::Prefixed));
        let cluster = wanted.iter().find(|object| object["kind"] == "Cluster").unwrap();
        assert_eq!(cluster["spec"], json!({}));
    }

    #[test]
    fn the_binding_that_all_share_has_kube_binds_role_and_nobody_in_it() {
        let wanted = wanted(&Terms::example(InformerScope::Cluster, Isolation::Prefixed));
        let named = |it: &&Value| it["kind"] == "ClusterRoleBinding" && it["metadata"]["name"] == "kube-binder-exports";
        let binding = wanted.iter().find(named).unwrap();
        assert_eq!(binding["roleRef"]["name"], "kube-binder-exports");
        assert_eq!(binding["subjects"][0]["name"], "kube-binder", "kube-bind's suite looks for it");
        let namespace = binding["subjects"][0]["namespace"].as_str().unwrap();
        assert!(!carrick_go::names::V1_34.dns1123_label(namespace).is_empty(), "{namespace} could be created");
    }
}
