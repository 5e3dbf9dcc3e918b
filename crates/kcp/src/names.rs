//! Labels, annotations, finalizers and conditions by which kcp says things.

/// Annotation with the logical cluster's name; kcp adds it to every object on read.
pub const CLUSTER_ANNOTATION: &str = "kcp.io/cluster";
/// Annotation with the workspace path on APIExports, APIBindings and LogicalClusters.
pub const PATH_ANNOTATION: &str = "kcp.io/path";
/// Name of the one LogicalCluster object in every workspace.
pub const LOGICAL_CLUSTER_NAME: &str = "cluster";

/// Prefix of the labels by which kcp marks objects that an accepted permission claim makes visible.
pub const CLAIM_LABEL_PREFIX: &str = "claimed.internal.apis.kcp.io/";
/// Label of an APIBinding with the hash of its export.
pub const EXPORT_LABEL: &str = "internal.apis.kcp.io/export";
/// Prefix of the annotations of an APIExport that kcp copies to all its bindings.
pub const EXTRA_ANNOTATION_PREFIX: &str = "extra.apis.kcp.io/";
/// Annotation of an APIExport that wants no APIExportEndpointSlice of its own.
pub const SKIP_SLICE_ANNOTATION: &str = "apiexports.apis.kcp.io/skip-endpointslice";
/// Finalizer that holds an APIBinding until all instances of its APIs are gone.
pub const BINDING_FINALIZER: &str = "apis.kcp.io/apibinding-finalizer";
/// Annotation of a LogicalCluster: which resource belongs to which binding or CRD.
pub const RESOURCE_BINDINGS_ANNOTATION: &str = "internal.apis.kcp.io/resource-bindings";
/// Annotation by which the owner of a group of Kubernetes approves of a kind in it.
pub const API_APPROVED_ANNOTATION: &str = "api-approved.kubernetes.io";

/// Label with the phase, on Workspaces and LogicalClusters.
pub const PHASE_LABEL: &str = "tenancy.kcp.io/phase";
/// Annotation with the user who created a workspace, as JSON.
pub const OWNER_ANNOTATION: &str = "experimental.tenancy.kcp.io/owner";
/// Annotation of a LogicalCluster with the path and name of its WorkspaceType.
pub const TYPE_ANNOTATION: &str = "internal.tenancy.kcp.io/type";
/// Annotation of a Workspace with the name chosen for its logical cluster.
pub const WORKSPACE_CLUSTER_ANNOTATION: &str = "internal.tenancy.kcp.io/cluster";
/// Annotation of a Workspace with the hash of the shard that its logical cluster is on.
pub const WORKSPACE_SHARD_ANNOTATION: &str = "internal.tenancy.kcp.io/shard";
/// Annotation with the name of the shard, on Workspaces and LogicalClusters.
pub const SHARD_ANNOTATION: &str = "core.kcp.io/shard";
/// Annotation with the groups that a user needs to enter a workspace.
pub const REQUIRED_GROUPS_ANNOTATION: &str = "authorization.kcp.io/required-groups";
/// Finalizer that holds a Workspace until its logical cluster is gone.
pub const WORKSPACE_FINALIZER: &str = "core.kcp.io/logicalcluster";
/// Finalizer that holds a LogicalCluster until its content is gone.
pub const LOGICAL_CLUSTER_FINALIZER: &str = "core.kcp.io/logicalcluster-deletion";
/// Finalizer that holds a LogicalCluster until its terminators are done.
pub const TERMINATORS_FINALIZER: &str = "kcp.io/has-terminators";
/// The initializer that creates default bindings.
pub const BINDINGS_INITIALIZER: &str = "system:apibindings";

/// Types of the conditions that kcp sets. [`READY`](crate::condition::READY) sums them up.
pub mod conditions {
    /// APIExport: its identity can be proved.
    pub const IDENTITY_VALID: &str = "IdentityValid";
    /// APIBinding and APIExportEndpointSlice: the export can be used.
    pub const API_EXPORT_VALID: &str = "APIExportValid";
    /// APIExportEndpointSlice: its partition can be used.
    pub const PARTITION_VALID: &str = "PartitionValid";
    /// APIBinding: what is served is what the export offers now.
    pub const BINDING_UP_TO_DATE: &str = "BindingUpToDate";
    /// APIBinding: the APIs were served once.
    pub const INITIAL_BINDING_COMPLETED: &str = "InitialBindingCompleted";
    /// APIBinding: all instances of its APIs are deleted.
    pub const BINDING_RESOURCE_DELETE_SUCCESS: &str = "BindingResourceDeleteSuccess";
    /// APIBinding: the accepted claims are among those of the export.
    pub const PERMISSION_CLAIMS_VALID: &str = "PermissionClaimsValid";
    /// APIBinding: the accepted claims are in force.
    pub const PERMISSION_CLAIMS_APPLIED: &str = "PermissionClaimsApplied";
    /// Workspace: it has a logical cluster.
    pub const WORKSPACE_SCHEDULED: &str = "WorkspaceScheduled";
    /// Workspace and LogicalCluster: all initializers are done.
    pub const WORKSPACE_INITIALIZED: &str = "WorkspaceInitialized";
    /// On a LogicalCluster: the bindings that its type asks for are there.
    pub const API_BINDINGS_RECONCILED: &str = "APIBindingsReconciled";
    /// Workspace and LogicalCluster: all content is deleted.
    pub const WORKSPACE_CONTENT_DELETED: &str = "WorkspaceContentDeleted";
    /// WorkspaceType: its virtual workspaces have URLs.
    pub const VIRTUAL_WORKSPACE_URLS_READY: &str = "VirtualWorkspaceURLsReady";
}
