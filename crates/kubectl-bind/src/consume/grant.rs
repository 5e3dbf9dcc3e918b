//! The rights that a konnector needs for a binding: for its APIs, and for what its provider claims.

use std::fmt::Write as _;

use carrick_bind_api::claims::{Accepted, described, mark};
use carrick_bind_api::existing::Existing;
use carrick_bind_api::install;
use carrick_bind_api::names::{KONNECTOR_NAMESPACE, KUBECONFIG_KEY};
use carrick_bind_api::roles;
use carrick_bind_api::v1alpha2::{
    ApiServiceBinding, ApiServiceExportRequest, BoundSchemaReference, ExportedResource, SecretKeyReference,
};
use carrick_process::printable::one_line;
use serde_json::Value;

/// What a request asks for.
pub(super) fn read(request: &Value) -> ApiServiceExportRequest {
    // Whatever cannot be read is refused by the provider.
    serde_json::from_value(request.clone()).unwrap_or_default()
}

/// The roles that a konnector needs for a binding of this name.
pub(super) fn roles(name: &str, secret: &str, request: &ApiServiceExportRequest) -> Vec<Value> {
    let mut binding = ApiServiceBinding::new(name);
    binding.spec.kubeconfig_secret_ref = SecretKeyReference::new(KONNECTOR_NAMESPACE, secret, KUBECONFIG_KEY);
    let bound = request.spec.resources.iter().map(|it| BoundSchemaReference::new(&it.group, &it.resource));
    binding.status.bound_schemas = bound.collect();
    binding.status.permission_claims.clone_from(&request.spec.permission_claims);
    roles::of_binding(&binding, Existing::Leave, &Accepted::All, &install::subject())
}

/// What accepts the claims of a request, and no others that its provider may think of later: empty if it claims nothing, which accepts none.
pub(super) fn accepted(request: &ApiServiceExportRequest) -> String {
    request.spec.permission_claims.iter().map(mark).collect::<Vec<_>>().join(",")
}

/// What is about to be granted, in words.
pub(super) fn announced(name: &str, request: &ApiServiceExportRequest) -> String {
    let mut said = String::new();
    // The provider has written all of it, and somebody agrees to it because of these lines.
    let mut line = |text: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(said, "{}", one_line(&text));
    };
    let apis: Vec<String> = request.spec.resources.iter().map(ExportedResource::bound_schema_name).collect();
    line(format!("for binding {name} the konnector may read and write: {}", apis.join(", ")));
    for claim in &request.spec.permission_claims {
        let (what, resource) = (described(claim), &claim.resource);
        line(format!("  its provider gets {what}; for that the konnector may read and write all {resource}"));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_granted_is_what_the_request_asks_for_and_it_is_said() {
        let request =
            read(&json!({"spec": {"resources": [{"group": "g.io", "resource": "things", "versions": ["v1"]}],
            "permissionClaims": [{"group": "", "resource": "secrets", "selector": {"labelSelector": {}}}]}}));
        let all = roles("mine", "s", &request);
        assert_eq!(all[0]["metadata"]["name"], "kube-bind-konnector-mine");
        assert_eq!(all[1]["subjects"][0]["name"], "konnector");
        let said = announced("mine", &request);
        assert!(said.contains("things.g.io") && said.contains("ALL secrets of this cluster"), "{said}");
        assert!(accepted(&request).starts_with("secrets-"));
        let forged = "secrets\n  its provider gets nothing\u{1b}[8m";
        let request = read(&json!({"spec": {"resources": [{"group": forged, "resource": forged, "versions": ["v1"]}],
            "permissionClaims": [{"group": forged, "resource": forged, "selector": {"labelSelector": {}}}]}}));
        let said = announced(forged, &request);
        assert!(said.lines().count() == 2 && !said.contains('\u{1b}'), "what is agreed to is all there is: {said:?}");
        let claim = &request.spec.permission_claims[0];
        let none = accepted(&read(&json!({})));
        assert!(none.is_empty() && !Accepted::of_words([none.as_str()]).accepts(claim), "what was not claimed then");
    }
}
