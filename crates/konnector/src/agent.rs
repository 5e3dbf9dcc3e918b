//! The shell around the decisions: watches, one session per contract, writes.
//!
//! ```text
//!  run ─┬─ http       /healthz, /readyz, /metrics
//!       ├─ install    the CRDs of APIServiceBinding and APIServiceBindingBundle
//!       ├─ Lease      only one of several replicas goes on from here
//!       ├─ Local      bindings, bundles, CRDs, and the Secrets that they name
//!       ├─ contracts  one task per kubeconfig ─▶ contract ─┬─▶ bundles, bindings, heartbeats
//!       │                                                  └─▶ objects   what is synced within it
//!       └─ core       kube-bind v2, as soon as its CRDs are there: one task per Connection
//! ```

pub mod cache;
pub mod config;
pub mod health;
pub mod metrics;
pub mod objects;
pub mod rights;
pub mod roles;
pub mod workspaces;
pub mod writer;

mod context;
mod contract;
mod contracts;
mod core;
mod events;
mod export;
mod http;
mod install;
mod kubeconfig;
mod local;
mod notifier;
mod resources;
mod secrets;
mod task;

use std::sync::Arc;
use std::time::Duration;

use carrick_client::Client;
use carrick_multicluster::coordination::{Election, Lost};
use tokio_util::sync::CancellationToken;

pub use carrick_process::HttpError;
pub use config::{Budget, CoreConfig, KonnectorConfig, LeaseConfig};

use context::Context;
use health::Health;
use local::Local;
use metrics::Metrics;

/// How long to wait for answers to writes that are already sent.
const LAST_WRITES: Duration = Duration::from_secs(1);

/// Why a konnector ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KonnectorError {
    /// Probes and metrics cannot be served.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// Another replica leads now.
    #[error(transparent)]
    Lease(#[from] Lost),
}

/// Runs a konnector until it is told to stop, which is no error.
pub async fn run(config: KonnectorConfig, stop: CancellationToken) -> Result<(), KonnectorError> {
    // Stops whatever still runs, however this function returns.
    let end = CancellationToken::new();
    let _end = end.clone().drop_guard();
    let (health, metrics) = (Arc::new(Health::default()), Arc::new(Metrics::default()));
    if let Some(address) = &config.server_address {
        let listener = carrick_process::bind(address, "--server-address").await?;
        let (health, metrics) = (Arc::clone(&health), Arc::clone(&metrics));
        let answer = move |target: &str| http::answer(target, &health, &metrics);
        tokio::spawn(carrick_process::serve(listener, answer, end.clone()));
    }
    let client = rights::of_consumer(&config);
    if !install::crds(&client, &metrics, &stop).await {
        return Ok(());
    }
    let Some(lease) = &config.lease else {
        work(&config, client, &metrics, &health, &stop).await;
        return Ok(());
    };
    let report = |state: Result<(), &str>| match state {
        Ok(()) => health.lease_works(),
        Err(problem) => tracing::warn!(problem, "The lease does not work, trying again until it does."),
    };
    let mut election = Election::new(client.clone(), &lease.name).namespace(&lease.namespace);
    if let Some(identity) = &lease.identity {
        election = election.identity(identity);
    }
    if let Some(duration) = lease.duration {
        election = election.duration(duration);
    }
    health.expect_lease();
    let leadership = tokio::select! {
        () = stop.cancelled() => None,
        leadership = election.acquire(&report) => Some(leadership),
    };
    let Some(leadership) = leadership else {
        election.release().await;
        return Ok(());
    };
    metrics.set_leading(true);
    // Held until the work has finished. When it is lost, everything ends: another process may begin any moment.
    election.hold_while(&leadership, &report, work(&config, client, &metrics, &health, &stop)).await?;
    if config.server.settle_writes(LAST_WRITES).await {
        election.release().await;
    } else {
        tracing::warn!(
            lease = lease.name,
            "A write may still arrive, so the lease is not released and expires by itself."
        );
    }
    Ok(())
}

/// Works until told to stop.
async fn work(
    config: &KonnectorConfig,
    client: Client,
    metrics: &Arc<Metrics>,
    health: &Arc<Health>,
    stop: &CancellationToken,
) {
    tracing::info!(version = crate::VERSION, "Konnecting.");
    // Ends all that was spawned when this future is dropped, as it is when the lease is lost.
    let end = stop.child_token();
    let _end = end.clone().drop_guard();
    let cluster_uid = own_uid(&client).await;
    let local = Local::start(client, config.export.as_deref(), &end);
    health.follow(&local);
    let (namespace, metrics) = (config.namespace.clone(), Arc::clone(metrics));
    let context = Context::new(local, metrics, config.polling, namespace, cluster_uid, config.budget);
    let context = Arc::new(context);
    tokio::join!(contracts::run(Arc::clone(&context), end.clone()), core::run(context, &config.core, &end));
}

/// The uid of this cluster, by which many contracts know it. Without the right to read it nothing is lost but a warning.
async fn own_uid(client: &Client) -> Option<String> {
    let namespace = client.get(&resources::namespaces(), None, "kube-system").await.ok()??;
    namespace["metadata"]["uid"].as_str().map(str::to_owned)
}
