//! What both versions of APIExport and APIBinding have in common.

use crate::condition::Condition;
use crate::object::{object, words};

object! {
    /// An APIExport by workspace and name.
    ExportReference {
        /// Workspace path or cluster name; empty means the workspace of the object that holds the reference.
        path: String => "path",
        /// Name of the APIExport.
        name: String => "name",
    }
}

impl ExportReference {
    /// The export of this name in the workspace of this path; empty for the own one.
    pub fn new(path: impl Into<String>, name: impl Into<String>) -> Self {
        Self { path: path.into(), name: name.into(), ..Self::default() }
    }
}

object! {
    /// What an APIBinding binds to.
    BindingReference {
        /// The APIExport.
        export: ExportReference => "export",
    }
}

object! {
    /// Where the identity of an APIExport comes from.
    Identity {
        /// The Secret with the key.
        secret_ref: SecretReference => "secretRef",
    }
}

object! {
    /// A Secret by namespace and name.
    SecretReference {
        /// Namespace of the Secret.
        namespace: String => "namespace",
        /// Name of the Secret.
        name: String => "name",
    }
}

object! {
    /// An upper bound of what consumers may do with exported APIs.
    MaximalPermissionPolicy {
        /// The bound is RBAC in the export's own workspace.
        local: Option<LocalPolicy> => "local",
    }
}

object! {
    /// RBAC in the export's own workspace; there is nothing to be set.
    LocalPolicy {}
}

object! {
    /// What kcp says about an APIExport.
    ApiExportStatus {
        /// Hash of the identity; claims and bound resources refer to the export by it.
        identity_hash: String => "identityHash",
        /// Conditions.
        conditions: Vec<Condition> => "conditions",
        /// URLs of the export's virtual workspace; empty since there are APIExportEndpointSlices.
        virtual_workspaces: Vec<VirtualWorkspace> => "virtualWorkspaces",
    }
}

object! {
    /// Address of a virtual workspace.
    VirtualWorkspace {
        /// Which one, of a WorkspaceType: `initializing` or `terminating`.
        type_: String => "type",
        /// Its URL.
        url: String => "url",
    }
}

impl VirtualWorkspace {
    /// A virtual workspace of this type at this URL.
    pub fn new(type_: impl Into<String>, url: impl Into<String>) -> Self {
        Self { type_: type_.into(), url: url.into(), ..Self::default() }
    }
}

words! {
    /// How far an APIBinding is.
    BindingPhase {
        /// kcp works on it.
        Binding,
        /// The APIs are served.
        Bound,
    }
}

words! {
    /// What a consumer has decided about a claim.
    ClaimState {
        /// The provider may.
        Accepted,
        /// The provider may not.
        Rejected,
    }
}

object! {
    /// An API that a binding serves.
    BoundApiResource {
        /// API group, empty for core.
        group: String => "group" [always],
        /// Plural resource name.
        resource: String => "resource",
        /// The schema that it is served from.
        schema: BoundApiResourceSchema => "schema",
        /// Versions in which objects were stored since the binding exists.
        storage_versions: Vec<String> => "storageVersions",
    }
}

impl BoundApiResource {
    /// A resource that is served from a schema.
    pub fn new(group: impl Into<String>, resource: impl Into<String>, schema: BoundApiResourceSchema) -> Self {
        Self { group: group.into(), resource: resource.into(), schema, ..Self::default() }
    }
}

object! {
    /// The schema of a bound API.
    BoundApiResourceSchema {
        /// Name of the APIResourceSchema.
        name: String => "name",
        /// Uid of the APIResourceSchema.
        uid: String => "UID",
        /// Identity of the export it came from.
        identity_hash: String => "identityHash",
    }
}

impl BoundApiResourceSchema {
    /// A schema by name and uid, of the export with this identity.
    pub fn new(name: impl Into<String>, uid: impl Into<String>, identity_hash: impl Into<String>) -> Self {
        Self { name: name.into(), uid: uid.into(), identity_hash: identity_hash.into(), ..Self::default() }
    }
}
