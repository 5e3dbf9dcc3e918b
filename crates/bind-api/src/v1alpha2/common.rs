//! What several kinds have in common.

use carrick_kcp::object::{object, words};

words! {
    /// What the konnector may watch on the provider.
    InformerScope {
        /// All namespaces at once, and cluster-scoped resources.
        Cluster,
        /// Single namespaces only.
        Namespaced,
    }
}

words! {
    /// How objects of several consumers are kept apart on the provider.
    Isolation {
        /// Names of cluster-scoped objects get the contract namespace as a prefix.
        Prefixed,
        /// Objects that are cluster-scoped for consumers live in the contract namespace.
        Namespaced,
        /// Not at all: the provider has one consumer.
        None,
    }
}

words! {
    /// Whether a BoundSchema follows the schema that it was made from.
    SchemaUpdatePolicy {
        /// It stays as it is.
        Never,
        /// It follows.
        Always,
    }
}

words! {
    /// How far a request is.
    Phase {
        /// Somebody is working on it.
        Pending,
        /// It has failed for good.
        Failed,
        /// It is done.
        Succeeded,
    }
}

object! {
    /// A key of a Secret.
    SecretKeyReference {
        /// Namespace of the Secret.
        namespace: String => "namespace",
        /// Name of the Secret.
        name: String => "name",
        /// The key.
        key: String => "key",
    }
}

impl SecretKeyReference {
    /// The key of a Secret.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>, key: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into(), key: key.into(), ..Self::default() }
    }
}

object! {
    /// A key of a Secret in the same namespace.
    LocalSecretKeyReference {
        /// Name of the Secret.
        name: String => "name",
        /// The key.
        key: String => "key",
    }
}

impl LocalSecretKeyReference {
    /// The key of a Secret.
    pub fn new(name: impl Into<String>, key: impl Into<String>) -> Self {
        Self { name: name.into(), key: key.into(), ..Self::default() }
    }
}

object! {
    /// A Secret.
    SecretReference {
        /// Namespace of the Secret.
        namespace: String => "namespace",
        /// Name of the Secret.
        name: String => "name",
    }
}

impl SecretReference {
    /// A Secret by namespace and name.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into(), ..Self::default() }
    }
}

object! {
    /// A resource that is asked for, offered or exported.
    ExportedResource {
        /// API group, empty for core.
        group: String => "group",
        /// Plural name.
        resource: String => "resource",
        /// The versions that are meant; a backend exports nothing for a resource without one.
        versions: Vec<String> => "versions",
    }
}

impl ExportedResource {
    /// A resource in these versions.
    pub fn new(group: impl Into<String>, resource: impl Into<String>, versions: &[&str]) -> Self {
        let versions = versions.iter().map(|version| (*version).to_owned()).collect();
        Self { group: group.into(), resource: resource.into(), versions, ..Self::default() }
    }

    /// The name of its BoundSchema.
    pub fn bound_schema_name(&self) -> String {
        crate::names::bound_schema_name(&self.group, &self.resource)
    }
}

object! {
    /// A consumer namespace that the provider wants to be there.
    ExportedNamespace {
        /// Its name.
        name: String => "name",
    }
}
