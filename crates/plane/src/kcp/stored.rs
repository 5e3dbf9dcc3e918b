//! What kcp stores where: its kinds, and the clusters and names that are always the same.

use std::sync::LazyLock;

use crate::store::Kind;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $group:literal / $resource:literal;)*) => {
        $($(#[$doc])* pub static $name: LazyLock<Kind> = LazyLock::new(|| Kind::new($group, $resource));)*
    };
}

kinds! {
    /// APIResourceSchemas.
    SCHEMAS = "apis.kcp.io" / "apiresourceschemas";
    /// APIExports.
    EXPORTS = "apis.kcp.io" / "apiexports";
    /// APIBindings.
    BINDINGS = "apis.kcp.io" / "apibindings";
    /// APIExportEndpointSlices.
    SLICES = "apis.kcp.io" / "apiexportendpointslices";
    /// LogicalClusters.
    CLUSTERS = "core.kcp.io" / "logicalclusters";
    /// Workspaces.
    WORKSPACES = "tenancy.kcp.io" / "workspaces";
    /// WorkspaceTypes.
    TYPES = "tenancy.kcp.io" / "workspacetypes";
    /// Shards.
    SHARDS = "core.kcp.io" / "shards";
    /// Namespaces.
    NAMESPACES = "" / "namespaces";
    /// Secrets.
    SECRETS = "" / "secrets";
    /// CustomResourceDefinitions.
    CRDS = "apiextensions.k8s.io" / "customresourcedefinitions";
    /// ClusterRoleBindings.
    CLUSTER_ROLE_BINDINGS = "rbac.authorization.k8s.io" / "clusterrolebindings";
}

/// The root of all workspaces.
pub const ROOT: &str = "root";
/// The logical cluster whose RBAC applies everywhere.
pub const SYSTEM_ADMIN: &str = "system:admin";
/// The logical cluster that keeps a copy of every schema in use, named by its uid.
pub const BOUND_SCHEMAS: &str = "system:bound-crds";
/// The name of the LogicalCluster in each cluster.
pub const SELF: &str = carrick_kcp::LOGICAL_CLUSTER_NAME;
