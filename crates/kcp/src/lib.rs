//! kcp without I/O: names and paths of workspaces, URLs, hashes and the API kinds an agent meets.
//!
//! ```text
//!  path      root:orgs:acme   ──▶ logical cluster names, the check that a string is one
//!  url       https://host/clusters/root:orgs   ──▶ retarget to another workspace, build virtual-workspace URLs
//!  hash      export, claim, identity and binding-name hashes exactly as kcp computes them
//!  kinds     group, version, kind and plural of every kcp kind this project touches
//!  apis      typed APIExport, APIResourceSchema and APIExportEndpointSlice (v1alpha1), as the agent writes them
//! ```

pub mod apis;
pub mod hash;
pub mod kinds;
pub mod path;
pub mod url;

/// Annotation with the logical cluster's name; kcp adds it to every object on read.
pub const CLUSTER_ANNOTATION: &str = "kcp.io/cluster";
/// Annotation with the workspace path on APIExports, APIBindings and LogicalClusters.
pub const PATH_ANNOTATION: &str = "kcp.io/path";
/// Prefix of the labels by which kcp marks objects that an accepted permission claim makes visible.
pub const CLAIM_LABEL_PREFIX: &str = "claimed.internal.apis.kcp.io/";
/// Name of the one LogicalCluster object in every workspace.
pub const LOGICAL_CLUSTER_NAME: &str = "cluster";
