//! Kinds as the client knows them.

use carrick_bind_api::kinds::{self, Kind, is_namespaced};
use carrick_client::Resource;
use serde_json::Value;

const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";

/// A kind of kube-bind.
pub fn of(kind: Kind) -> Resource {
    let make = if is_namespaced(kind) { Resource::namespaced } else { Resource::cluster_wide };
    make(kind.group, kind.version, kind.kind, kind.plural)
}

/// Secrets.
pub fn secrets() -> Resource {
    Resource::namespaced("", "v1", "Secret", "secrets")
}

/// Deployments.
pub fn deployments() -> Resource {
    Resource::namespaced("apps", "v1", "Deployment", "deployments")
}

/// Namespaces.
pub fn namespaces() -> Resource {
    Resource::cluster_wide("", "v1", "Namespace", "namespaces")
}

/// ServiceAccounts.
pub fn accounts() -> Resource {
    Resource::namespaced("", "v1", "ServiceAccount", "serviceaccounts")
}

/// CustomResourceDefinitions.
pub fn crds() -> Resource {
    Resource::cluster_wide("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
}

/// APIResourceSchemas of kcp.
pub fn schemas() -> Resource {
    carrick_bind_api::carrick_kcp::kinds::API_RESOURCE_SCHEMA.into()
}

/// APIBindings of kcp.
pub fn bindings() -> Resource {
    carrick_bind_api::carrick_kcp::kinds::API_BINDING.into()
}

/// ClusterRoles.
pub fn cluster_roles() -> Resource {
    Resource::cluster_wide(RBAC, "v1", "ClusterRole", "clusterroles")
}

/// ClusterRoleBindings.
pub fn cluster_role_bindings() -> Resource {
    Resource::cluster_wide(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings")
}

/// Roles.
pub fn roles() -> Resource {
    Resource::namespaced(RBAC, "v1", "Role", "roles")
}

/// RoleBindings.
pub fn role_bindings() -> Resource {
    Resource::namespaced(RBAC, "v1", "RoleBinding", "rolebindings")
}

/// The kind of an object that the backend writes.
pub fn of_object(object: &Value) -> Option<Resource> {
    let kind = object["kind"].as_str()?;
    let builtin = [
        secrets(),
        namespaces(),
        accounts(),
        deployments(),
        cluster_roles(),
        cluster_role_bindings(),
        roles(),
        role_bindings(),
        schemas(),
        Resource::cluster_wide(ADMISSION, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
        Resource::cluster_wide(
            ADMISSION,
            "v1",
            "ValidatingAdmissionPolicyBinding",
            "validatingadmissionpolicybindings",
        ),
    ];
    let own = kinds::ALL.into_iter().map(of);
    own.chain(builtin).find(|resource| &*resource.kind == kind)
}
