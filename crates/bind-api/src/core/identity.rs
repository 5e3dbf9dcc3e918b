//! Who a cluster is: the uid of its LogicalCluster if it is a workspace of kcp, else that of its Namespace `kube-system`.

/// The group whose presence says that a cluster is a workspace of kcp. It is asked for first: a server that does not serve it may answer 403
/// instead of 404 to a narrow credential, and that would look like a denial.
pub const KCP_GROUP: &str = "core.kcp.io";
/// The name of the one LogicalCluster of a workspace.
pub const LOGICAL_CLUSTER: &str = "cluster";
/// The namespace that every other cluster has.
pub const SYSTEM_NAMESPACE: &str = "kube-system";
