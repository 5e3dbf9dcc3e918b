//! What all parts of the agent share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use carrick_bind_api::claims::Guarded;
use carrick_bind_api::heartbeat::HeartbeatWatch;
use carrick_bind_api::v1alpha2::{
    ApiServiceBinding, ApiServiceBindingBundle, ClusterBindingStatus, SecretKeyReference,
};
use parking_lot::Mutex;

use super::config::Budget;
use super::local::Local;
use super::metrics::Metrics;
use super::writer::Writer;

/// What all parts of the agent share.
pub struct Context {
    /// What there is on the consumer's cluster.
    pub local: Arc<Local>,
    /// Writes there.
    pub writer: Writer,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// How often contracts are looked at if nothing happens.
    pub polling: Duration,
    /// The namespace that this process runs in, if that is known.
    pub namespace: Option<String>,
    /// The uid of the own cluster, if it may be known.
    pub cluster_uid: Option<String>,
    /// How much one object may have.
    pub budget: Budget,
    /// Namespaces and names of the Secrets that Connections of v2 name.
    connected: Mutex<BTreeSet<(String, String)>>,
    /// By uid of their ClusterBindings.
    heartbeats: Mutex<BTreeMap<String, ContractHeartbeats>>,
}

/// The heartbeats of one contract.
struct ContractHeartbeats {
    watch: HeartbeatWatch,
    /// Which kubeconfig sends them: there may be several for one contract, and they must not fight.
    sender: Option<SecretKeyReference>,
}

impl Context {
    /// A context for a cluster.
    pub fn new(
        local: Arc<Local>,
        metrics: Arc<Metrics>,
        polling: Duration,
        namespace: Option<String>,
        cluster_uid: Option<String>,
        budget: Budget,
    ) -> Self {
        let writer = Writer::new(local.client.clone(), "consumer", Arc::clone(&metrics));
        Self {
            local,
            writer,
            metrics,
            polling,
            namespace,
            cluster_uid,
            budget,
            connected: Mutex::default(),
            heartbeats: Mutex::default(),
        }
    }

    /// What goes to no provider, whatever it claims.
    pub fn guarded(&self) -> Guarded {
        let namespaces = self.namespace.iter().cloned().collect();
        // Workspaces that are consumers have no kubeconfigs of ours.
        if self.local.export.is_some() {
            return Guarded { namespaces, ..Guarded::default() };
        }
        let bindings = self.local.bindings.all::<ApiServiceBinding>();
        let bundles = self.local.bundles.all::<ApiServiceBindingBundle>();
        let named = bindings.iter().map(|binding| &binding.spec.kubeconfig_secret_ref);
        let named = named.chain(bundles.iter().map(|bundle| &bundle.spec.kubeconfig_secret_ref));
        let named = named.map(|at| (at.namespace.clone(), at.name.clone()));
        Guarded { namespaces, kubeconfigs: named.chain(self.connected.lock().iter().cloned()).collect() }
    }

    /// Notes the Secrets that Connections of v2 name: neither contract carries them.
    pub fn guard(&self, secrets: BTreeSet<(String, String)>) {
        *self.connected.lock() = secrets;
    }

    /// Whether this kubeconfig sends the heartbeats of a contract: the first one that asks does.
    pub fn sends_heartbeats(&self, contract_uid: &str, at: &SecretKeyReference) -> bool {
        let mut heartbeats = self.heartbeats.lock();
        let sender = &mut entry(&mut heartbeats, contract_uid).sender;
        sender.get_or_insert_with(|| at.clone()) == at
    }

    /// This kubeconfig sends no more heartbeats.
    pub fn ends_heartbeats(&self, at: &SecretKeyReference) {
        for contract in self.heartbeats.lock().values_mut() {
            contract.sender.take_if(|sender| sender == at);
        }
    }

    /// A heartbeat is sent.
    pub fn sent_heartbeat(&self, contract_uid: &str, status: &ClusterBindingStatus) {
        entry(&mut self.heartbeats.lock(), contract_uid).watch.on_sent(status);
    }

    /// A ClusterBinding was seen. True if another cluster is sure to send heartbeats there.
    pub fn seen_heartbeat(&self, contract_uid: &str, status: &ClusterBindingStatus) -> bool {
        entry(&mut self.heartbeats.lock(), contract_uid).watch.on_seen(status)
    }
}

fn entry<'a>(all: &'a mut BTreeMap<String, ContractHeartbeats>, uid: &str) -> &'a mut ContractHeartbeats {
    all.entry(uid.to_owned()).or_insert_with(|| ContractHeartbeats { watch: HeartbeatWatch::default(), sender: None })
}
