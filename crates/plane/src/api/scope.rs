//! What a verb applies to.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::extension::{ViewAdmit, Visible};
use crate::request::Target;
use crate::resource::{Resource, Version};
use crate::status::Status;
use crate::store::{Key, StoreError};

/// What a verb applies to: a kind in one version, in one or all clusters, perhaps in one namespace.
#[derive(Clone)]
pub struct Scope {
    /// The clusters.
    pub target: Target,
    /// The kind.
    pub resource: Arc<Resource>,
    /// Version of request and response bodies.
    pub version: Arc<str>,
    /// Namespace; empty for cluster-scoped kinds and for all namespaces.
    pub namespace: Arc<str>,
    /// Hides objects in virtual workspaces.
    pub visible: Option<Visible>,
    /// Reviews writes in virtual workspaces.
    pub admit: Option<ViewAdmit>,
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("target", &self.target)
            .field("resource", &self.resource)
            .field("version", &self.version)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl Scope {
    /// A kind in one cluster and all its namespaces.
    pub fn new(cluster: &str, resource: Arc<Resource>, version: &str) -> Self {
        Self {
            target: Target::One(cluster.into()),
            resource,
            version: version.into(),
            namespace: "".into(),
            visible: None,
            admit: None,
        }
    }

    /// Whether a virtual workspace takes the request: it knows no Go types, and forwards what it makes of a write.
    pub fn is_forwarded(&self) -> bool {
        self.visible.is_some() && self.admit.is_some()
    }

    /// The same in one namespace.
    #[must_use]
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// The one cluster of this scope; requests for a named object across all clusters do not exist.
    pub fn cluster(&self) -> Result<&Arc<str>, Status> {
        match &self.target {
            Target::One(cluster) => Ok(cluster),
            Target::All => Err(Status::no_such_resource()),
        }
    }

    /// The version of this scope.
    pub fn version(&self) -> Result<&Version, Status> {
        self.resource.version(&self.version).ok_or_else(Status::page_not_found)
    }

    /// The `apiVersion` of responses.
    pub fn api_version(&self) -> String {
        self.resource.api_version(&self.version)
    }

    pub(super) fn key(&self, name: &str) -> Result<Key, Status> {
        let namespace = if self.resource.namespaced { &*self.namespace } else { "" };
        Ok(Key::new(&self.resource.stored_kind(), self.cluster()?, namespace, name))
    }

    pub(super) fn not_found(&self, name: &str) -> Status {
        Status::not_found(&self.resource.group, &self.resource.plural, name)
    }

    pub(super) fn shows(&self, key: &Key, object: &Value) -> bool {
        self.visible.as_ref().is_none_or(|visible| visible(key, object))
    }
}

/// The error for a write that the store refuses.
pub(super) fn store_error(scope: &Scope, name: &str, error: &StoreError) -> Status {
    let resource = &scope.resource;
    match error {
        StoreError::Exists => Status::already_exists(&resource.group, &resource.plural, name),
        StoreError::Missing => scope.not_found(name),
        StoreError::Stale(_) => Status::stale(&resource.group, &resource.plural, name),
        StoreError::TooLarge(size) => Status::too_large_to_store(*size),
        StoreError::Disk(_) => Status::internal(error.to_string()),
    }
}
