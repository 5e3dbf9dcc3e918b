//! What turns the plain API server into kcp. A service cluster runs without an extension.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::auth::decision::Decision;
use crate::auth::rbac::Rights;
use crate::caller::Caller;
use crate::request::{Attributes, Operation, Target};
use crate::resource::{Catalog, Resource};
use crate::status::Status;
use crate::store::Key;

/// One write, before validation; admission may change `object`, and nothing else: perhaps nothing will be stored.
pub struct Review<'a> {
    /// What is about to happen.
    pub operation: Operation,
    /// `status` or another subresource, empty for the object itself.
    pub subresource: &'a str,
    /// The caller.
    pub caller: &'a Caller,
    /// The kind.
    pub resource: &'a Resource,
    /// Logical cluster name.
    pub cluster: &'a str,
    /// Current state in the request's version; `None` on create.
    pub old: Option<&'a Value>,
    /// The object to be written, in the request's version.
    pub object: &'a mut Value,
}

/// All kinds that a cluster serves, by its name.
pub type Kinds<'a> = &'a dyn Fn(&str) -> Catalog;
/// Decides whether an object is visible in a virtual workspace.
pub type Visible = Arc<dyn Fn(&Key, &Value) -> bool + Send + Sync>;
/// Decides whether a caller may do something in a virtual workspace.
pub type ViewAuthorize = Arc<dyn Fn(&Caller, &Attributes) -> Result<(), Status> + Send + Sync>;
/// Reviews a write that goes through a virtual workspace, before the cluster's own admission.
pub type ViewAdmit = Arc<dyn Fn(&mut Review<'_>) -> Result<(), Status> + Send + Sync>;

/// A virtual workspace, resolved from a `/services/...` URL.
#[derive(Clone)]
pub struct VirtualView {
    /// The rest of the path, from `/api` or `/apis` or `/openapi` on.
    pub rest: String,
    /// The clusters it covers.
    pub target: Target,
    /// What it serves; nothing else exists in it.
    pub resources: Catalog,
    /// Which objects it shows.
    pub visible: Visible,
    /// Who may do what.
    pub authorize: ViewAuthorize,
    /// Extra admission for writes; `None` if everything visible may be written.
    pub admit: Option<ViewAdmit>,
    /// Which kinds it leaves to the workspace itself, which answers as it always does.
    pub passes: fn(&Resource) -> bool,
}

impl fmt::Debug for VirtualView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualView").field("rest", &self.rest).field("target", &self.target).finish_non_exhaustive()
    }
}

/// The kcp half of the plane. All calls are synchronous and must be quick.
pub trait Extension: Send + Sync {
    /// The logical cluster name for the segment after `/clusters/`: a path or a name; `None` if there is no such workspace.
    fn resolve(&self, segment: &str) -> Option<Arc<str>>;

    /// System kinds and bound resources of a cluster. Called on every request, so it must be cheap.
    /// Clusters with the same kinds get the same list, and the same cluster gets it again until something changes.
    fn resources(&self, cluster: &str) -> Arc<Vec<Arc<Resource>>>;

    /// A kind that is bound from an export with this identity somewhere.
    fn identified(&self, group: &str, plural: &str, identity: &str) -> Option<Arc<Resource>>;

    /// Checks and completes one write.
    fn admit(&self, review: &mut Review<'_>) -> Result<(), Status>;

    /// Whether the caller may do this in the cluster, and why, as access reviews show it.
    fn decide(&self, caller: &Caller, cluster: &str, attributes: &Attributes) -> Decision;

    /// The cluster whose webhooks and policies apply to a kind in a cluster.
    fn admission_source(&self, cluster: &str, resource: &Resource) -> Arc<str>;

    /// The response to a `get` of an object that is computed rather than stored, called before anything else; `None` for stored objects.
    fn unstored(&self, caller: &Caller, cluster: &str, attributes: &Attributes) -> Result<Option<Value>, Status>;

    /// Where a caller's rights in a cluster come from.
    fn rights<'a>(&self, caller: &'a Caller, cluster: &'a str) -> Rights<'a>;

    /// Keeps a caller, as whom somebody else acts in a cluster, from having any rights in others.
    fn confine(&self, caller: &mut Caller, cluster: &str);

    /// The virtual workspace behind a `/services/...` path; `None` if there is no such service.
    fn virtual_workspace(&self, kinds: Kinds<'_>, caller: &Caller, path: &str) -> Result<Option<VirtualView>, Status>;

    /// The shard of a logical cluster; zero if there is only one.
    fn shard_of(&self, cluster: &str) -> usize;

    /// The shard that a logical cluster was on at a revision.
    fn shard_at(&self, cluster: &str, revision: u64) -> usize;

    /// Whether a shard answers.
    fn is_up(&self, shard: usize) -> bool;

    /// Spawns the controllers; they end when `stop` is cancelled.
    fn start(&self, stop: CancellationToken);
}
