//! The shell around the decisions: watches, one session per cluster, writes.
//!
//! ```text
//!  lead ┬─ Clusters   which clusters there are: the one of the kubeconfig, or the workspaces that bind the APIExport
//!       ├─ Lease      only one of several replicas goes on from here
//!       └─ ClusterSession    one per cluster: caches ──▶ work ──▶ look: decide, write
//! ```

mod cache;
mod catalogue;
mod clusters;
mod config;
pub mod init;
mod look;
pub(crate) mod resources;
pub mod roles;
mod session;
mod wait;
mod work;
mod writer;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use carrick_multicluster::coordination::{Election, Lost};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use carrick_process::HttpError;
pub use clusters::Clusters;
pub use config::{BackendConfig, LeaseConfig};
pub use session::SchemaSource;

use clusters::ServedCluster;
use session::ClusterSession;

/// How long to wait for answers to writes that are already sent.
const LAST_WRITES: Duration = Duration::from_secs(1);

/// Why a backend ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// Probes cannot be served.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// Another replica leads now.
    #[error(transparent)]
    Lease(#[from] Lost),
}

/// Does the provider's work, if no other replica does.
pub async fn lead(config: &BackendConfig, clusters: &Clusters, stop: &CancellationToken) -> Result<(), BackendError> {
    let Some(lease) = &config.lease else {
        serve(config, clusters, stop).await;
        return Ok(());
    };
    let report = |state: Result<(), &str>| {
        if let Err(problem) = state {
            tracing::warn!(problem, "The lease does not work, trying again until it does.");
        }
    };
    let mut election = Election::new(config.server.client(), &lease.name).namespace(&lease.namespace);
    if let Some(identity) = &lease.identity {
        election = election.identity(identity);
    }
    if let Some(duration) = lease.duration {
        election = election.duration(duration);
    }
    clusters.wait();
    let leadership = tokio::select! {
        () = stop.cancelled() => None,
        leadership = election.acquire(&report) => Some(leadership),
    };
    let Some(leadership) = leadership else {
        election.release().await;
        return Ok(());
    };
    // When it is lost, everything ends: another process may begin any moment.
    election.hold_while(&leadership, &report, serve(config, clusters, stop)).await?;
    if config.server.settle_writes(LAST_WRITES).await {
        election.release().await;
    }
    Ok(())
}

/// A session that ends with whoever holds it.
struct Running(CancellationToken, JoinHandle<()>, Arc<ClusterSession>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.cancel();
        self.1.abort();
    }
}

/// Runs one session per cluster until told to stop.
async fn serve(config: &BackendConfig, clusters: &Clusters, stop: &CancellationToken) {
    tracing::info!(version = crate::VERSION, "Serving consumers.");
    let mut running: BTreeMap<String, (ServedCluster, Running)> = BTreeMap::new();
    let mut changes = clusters.changes();
    while !stop.is_cancelled() {
        let wanted = clusters.all();
        running.retain(|name, (cluster, _)| wanted.get(name) == Some(cluster));
        for (name, cluster) in wanted {
            running.entry(name).or_insert_with(|| {
                let end = stop.child_token();
                let session = ClusterSession::start(&cluster.client, cluster.terms.clone(), config.source, &end);
                let task = tokio::spawn(Arc::clone(&session).run(end.clone()));
                (cluster, Running(end, task, session))
            });
        }
        clusters.serve(running.values().map(|(_, Running(.., session))| session));
        tokio::select! {
            () = stop.cancelled() => {}
            Ok(()) = changes.changed() => {}
        }
    }
    for (_, (_, mut session)) in running {
        // What it has begun is finished.
        let _ = (&mut session.1).await;
    }
}
