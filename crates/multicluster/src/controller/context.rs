//! What a reconciler gets besides its object.

use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::cluster::Cluster;
use crate::fleet::Fleet;
use crate::queue::Reason;

/// What a reconciler gets besides its object.
#[non_exhaustive]
pub struct Context<C> {
    /// The cluster of the object: clients, path, recorder.
    pub cluster: Cluster,
    /// All clusters, and the stores of everything that is watched.
    pub fleet: Fleet,
    /// How many tries there have been since the last success.
    pub attempt: u32,
    /// Why the object is reconciled.
    pub reason: Reason,
    /// Since when the object has waited to be reconciled.
    pub since: Instant,
    /// Cancelled when this process has to stop working on the cluster. After [a while](crate::Config::grace) the reconcile is aborted.
    pub stop: CancellationToken,
    /// What was handed to `run`.
    pub data: Arc<C>,
}

impl<C> Clone for Context<C> {
    fn clone(&self) -> Self {
        Self {
            cluster: self.cluster.clone(),
            fleet: self.fleet.clone(),
            attempt: self.attempt,
            reason: self.reason,
            since: self.since,
            stop: self.stop.clone(),
            data: self.data.clone(),
        }
    }
}
