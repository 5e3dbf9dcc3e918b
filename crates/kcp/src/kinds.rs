//! The kcp kinds this project touches.

/// Group, version, kind, plural and scope of one API kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// API group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural resource name.
    pub plural: &'static str,
}

impl Kind {
    const fn new(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Self {
        Self { group, version, kind, plural }
    }

    /// `group/version`.
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }
}

/// APIExport in the version the agent writes.
pub const API_EXPORT: Kind = Kind::new("apis.kcp.io", "v1alpha1", "APIExport", "apiexports");
/// APIExport in the version kcp stores.
pub const API_EXPORT_V2: Kind = Kind::new("apis.kcp.io", "v1alpha2", "APIExport", "apiexports");
/// APIBinding in the version the agent reads.
pub const API_BINDING: Kind = Kind::new("apis.kcp.io", "v1alpha1", "APIBinding", "apibindings");
/// APIBinding in the version kcp stores.
pub const API_BINDING_V2: Kind = Kind::new("apis.kcp.io", "v1alpha2", "APIBinding", "apibindings");
/// APIResourceSchema.
pub const API_RESOURCE_SCHEMA: Kind = Kind::new("apis.kcp.io", "v1alpha1", "APIResourceSchema", "apiresourceschemas");
/// APIExportEndpointSlice.
pub const API_EXPORT_ENDPOINT_SLICE: Kind =
    Kind::new("apis.kcp.io", "v1alpha1", "APIExportEndpointSlice", "apiexportendpointslices");
/// LogicalCluster.
pub const LOGICAL_CLUSTER: Kind = Kind::new("core.kcp.io", "v1alpha1", "LogicalCluster", "logicalclusters");
/// Workspace.
pub const WORKSPACE: Kind = Kind::new("tenancy.kcp.io", "v1alpha1", "Workspace", "workspaces");
/// WorkspaceType.
pub const WORKSPACE_TYPE: Kind = Kind::new("tenancy.kcp.io", "v1alpha1", "WorkspaceType", "workspacetypes");
