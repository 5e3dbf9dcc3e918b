//! Who a cluster is: the uid of its LogicalCluster if it is a workspace of kcp, else that of its Namespace `kube-system`.

/// The group whose presence says that a cluster is a workspace of kcp. It is asked for first: a server that does not serve it may answer 403
/// instead of 404 to a narrow credential, and that would look like a denial.
pub const KCP_GROUP: &str = "core.kcp.io";
/// The name of the one LogicalCluster of a workspace.
pub const LOGICAL_CLUSTER: &str = "cluster";
/// The namespace that every other cluster has.
pub const SYSTEM_NAMESPACE: &str = "kube-system";

/// What is pinned of an identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pinned {
    /// It is pinned for the first time, or is the one that was.
    Same,
    /// It is another one.
    Changed {
        /// What was pinned.
        pinned: String,
        /// What is found now.
        found: String,
    },
}

/// Compares an identity with the one that was pinned, which is empty before the first time.
///
/// ```
/// use carrick_bind_api::core::identity::{Pinned, compare};
///
/// assert_eq!(compare("", "a"), Pinned::Same);
/// assert_eq!(compare("a", "a"), Pinned::Same);
/// assert!(matches!(compare("a", "b"), Pinned::Changed { .. }));
/// ```
pub fn compare(pinned: &str, found: &str) -> Pinned {
    if pinned.is_empty() || pinned == found {
        return Pinned::Same;
    }
    Pinned::Changed { pinned: pinned.to_owned(), found: found.to_owned() }
}
