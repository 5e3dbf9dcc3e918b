//! The kinds that scenarios read and write, besides their own.

use carrick_client::Resource;
use carrick_kcp::kinds::Kind;
use carrick_syncagent::api;

/// A kcp kind as the client wants it; all of them are cluster-wide.
pub fn kcp(kind: &Kind) -> Resource {
    Resource::cluster_wide(kind.group, kind.version, kind.kind, kind.plural)
}

/// PublishedResource.
pub fn published_resources() -> Resource {
    Resource::cluster_wide(api::GROUP, api::VERSION, "PublishedResource", "publishedresources")
}

/// CustomResourceDefinition.
pub fn crds() -> Resource {
    Resource::cluster_wide("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
}

/// Namespace.
pub fn namespaces() -> Resource {
    Resource::cluster_wide("", "v1", "Namespace", "namespaces")
}

/// Secret.
pub fn secrets() -> Resource {
    Resource::namespaced("", "v1", "Secret", "secrets")
}

/// Event.
pub fn events() -> Resource {
    Resource::namespaced("", "v1", "Event", "events")
}

/// ConfigMap.
pub fn config_maps() -> Resource {
    Resource::namespaced("", "v1", "ConfigMap", "configmaps")
}

/// Lease.
pub fn leases() -> Resource {
    Resource::namespaced("coordination.k8s.io", "v1", "Lease", "leases")
}

/// ClusterRole.
pub fn cluster_roles() -> Resource {
    Resource::cluster_wide("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles")
}

/// ClusterRoleBinding.
pub fn cluster_role_bindings() -> Resource {
    Resource::cluster_wide("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings")
}
