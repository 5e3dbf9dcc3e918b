//! Which process works on which cluster.
//!
//! ```text
//!   Coordinator ──ownership──▶ Fleet ──▶ controllers open and close clusters
//!        ▲                                        │ queue purged, running work ended
//!        └──────────────drained(version)──────────┘
//! ```
//!
//! A hand-over has three steps: the coordinator publishes an [`Ownership`] that lacks some clusters; the controllers stop
//! taking up work for them, wait for what runs and say so; only then does the coordinator let another process have them.

mod election;
mod leader;
mod lease;
mod sharded;

use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::watch;

use crate::guard::caught;
use crate::name::ClusterName;

pub use election::{Election, Leadership, Lost, Report};
pub use leader::Leader;
pub use sharded::Sharded;

/// Decides which clusters this process works on.
pub trait Coordinator: Send + Sync + 'static {
    /// What this process owns, now and later. A cluster is worked on while the latest value owns it.
    fn ownership(&self) -> watch::Receiver<Ownership>;

    /// Called when nothing is worked on any more that ownership `version` does not own. Versions may be skipped; a later
    /// one includes all before. Must not block.
    fn drained(&self, version: u64) {
        let _ = version;
    }

    /// What has to be done all the time, such as renewing Leases. The fleet runs this as a task for as long as it lives.
    fn run(self: Arc<Self>) -> BoxFuture<'static, ()> {
        futures::future::pending().boxed()
    }

    /// Releases everything, after all work has ended in a graceful shutdown.
    fn release(&self) -> BoxFuture<'static, ()> {
        futures::future::ready(()).boxed()
    }
}

/// Remembers the highest version that was drained.
fn note_drained(drained: &watch::Sender<u64>, version: u64) {
    drained.send_if_modified(|drained| {
        let newer = *drained < version;
        *drained = version.max(*drained);
        newer
    });
}

/// A predicate over cluster names, with a version that grows with every change.
///
/// What is not owned is not worked on. An endpoint that serves one cluster only ([`ClusterKey::Fixed`](crate::ClusterKey::Fixed)) is not
/// watched either, unless the cluster is owned or [`Ownership::watching`] asks for it. Endpoints of many clusters are watched by all.
#[derive(Clone)]
pub struct Ownership {
    version: u64,
    owns: Names,
    watches: Watches,
}

type Names = Arc<dyn Fn(&ClusterName) -> bool + Send + Sync>;

/// What is watched.
#[derive(Clone)]
enum Watches {
    All,
    Owned,
    These(Names),
}

impl Ownership {
    /// A predicate. Each one a coordinator publishes has a higher version than the one before.
    pub fn new(version: u64, owns: impl Fn(&ClusterName) -> bool + Send + Sync + 'static) -> Self {
        Self { version, owns: Arc::new(owns), watches: Watches::Owned }
    }

    /// Everything is owned.
    pub fn all(version: u64) -> Self {
        Self::new(version, |_| true).watching_all()
    }

    /// Watches these clusters, whether they are owned or not.
    #[must_use]
    pub fn watching(mut self, watches: impl Fn(&ClusterName) -> bool + Send + Sync + 'static) -> Self {
        self.watches = Watches::These(Arc::new(watches));
        self
    }

    /// Watches everything, whether it is owned or not: a process on standby can begin at once, and has seen every deletion.
    #[must_use]
    pub fn watching_all(mut self) -> Self {
        self.watches = Watches::All;
        self
    }

    /// Nothing is owned.
    pub fn none(version: u64) -> Self {
        Self::new(version, |_| false)
    }

    /// Which change this is.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Whether a cluster is owned. If the function panics, it is not.
    pub fn owns(&self, cluster: &ClusterName) -> bool {
        caught(|| (self.owns)(cluster)).unwrap_or(false)
    }

    /// Whether a cluster is watched.
    pub fn watches(&self, cluster: &ClusterName) -> bool {
        match &self.watches {
            Watches::All => true,
            Watches::Owned => self.owns(cluster),
            Watches::These(watches) => caught(|| watches(cluster)).unwrap_or(false),
        }
    }

    /// Whether every cluster is watched.
    pub(crate) fn watches_all(&self) -> bool {
        matches!(self.watches, Watches::All)
    }
}

impl fmt::Debug for Ownership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ownership").field("version", &self.version).finish_non_exhaustive()
    }
}

/// One process works on all clusters. The default.
#[derive(Clone, Debug)]
pub struct All {
    ownership: watch::Sender<Ownership>,
}

impl Default for All {
    fn default() -> Self {
        Self { ownership: watch::Sender::new(Ownership::all(0)) }
    }
}

impl Coordinator for All {
    fn ownership(&self) -> watch::Receiver<Ownership> {
        self.ownership.subscribe()
    }
}
