//! What a request is about.

use std::sync::Arc;

/// Which logical clusters a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// One cluster, by name.
    One(Arc<str>),
    /// All clusters: `/clusters/*`.
    All,
}

/// The kind of write under review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A change, also through a subresource.
    Update,
    /// A deletion; `object` is the current state, and changes to it are ignored.
    Delete,
}

/// What a request wants to do, for authorization.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, or a special verb.
    pub verb: String,
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Plural; empty for requests that are not about a resource.
    pub resource: String,
    /// Subresource or empty.
    pub subresource: String,
    /// Namespace or empty.
    pub namespace: String,
    /// Object name or empty; also set from a `metadata.name=` field selector.
    pub name: String,
    /// URL path of a request that is not about a resource.
    pub path: String,
}

impl Attributes {
    /// Whether this is about a resource and not about a plain URL.
    pub fn is_resource(&self) -> bool {
        self.path.is_empty() || !self.resource.is_empty()
    }
}
