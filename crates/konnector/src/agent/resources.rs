//! Kinds as the client knows them.

use carrick_bind_api::kinds::{Kind, is_namespaced};
use carrick_client::Resource;

/// A kind of kube-bind.
pub fn of(kind: Kind) -> Resource {
    let Kind { group, version, kind: name, plural, .. } = kind;
    if is_namespaced(kind) {
        Resource::namespaced(group, version, name, plural)
    } else {
        Resource::cluster_wide(group, version, name, plural)
    }
}

/// Secrets.
pub fn secrets() -> Resource {
    Resource::namespaced("", "v1", "Secret", "secrets")
}

/// Namespaces.
pub fn namespaces() -> Resource {
    Resource::cluster_wide("", "v1", "Namespace", "namespaces")
}

/// CustomResourceDefinitions.
pub fn crds() -> Resource {
    Resource::cluster_wide("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
}
