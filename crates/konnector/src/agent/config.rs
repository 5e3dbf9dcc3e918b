//! What a konnector is told when it starts.

use std::time::Duration;

use carrick_client::Server;
use carrick_sync::executor::Allowance;

/// What a konnector is told when it starts.
#[derive(Clone)]
pub struct KonnectorConfig {
    /// The consumer's cluster.
    pub server: Server,
    /// The Lease without which it does nothing; none if it is alone.
    pub lease: Option<LeaseConfig>,
    /// Where probes and metrics are served; nowhere if it is left out.
    pub server_address: Option<String>,
    /// The APIExportEndpointSlice whose workspaces are the consumers; without it the cluster itself is the consumer.
    pub export: Option<String>,
    /// How often contracts are looked at if nothing happens.
    pub polling: Duration,
    /// The namespace that it runs in, if that is known: nothing of it goes to a provider.
    pub namespace: Option<String>,
    /// What it does about kube-bind v2.
    pub core: CoreConfig,
    /// How much one object may have of it.
    pub budget: Budget,
}

/// How much one object may have of a konnector, so that nobody keeps it from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// How often one object is written in a minute.
    pub writes: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { writes: 600 }
    }
}

impl Budget {
    /// What the brake of a contract or of a Connection allows.
    pub(super) fn allowance(self) -> Allowance {
        Allowance { most: self.writes, flag: "--max-writes-per-minute" }
    }
}

/// What a konnector does about kube-bind v2.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreConfig {
    /// It does nothing, even if the CRDs of v2 are there.
    pub off: bool,
    /// Connections may name Secrets in any namespace: whoever may create a Connection can then make the konnector use any Secret that it can read.
    pub secrets_anywhere: bool,
}

/// The Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseConfig {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// The name of this process in it; a random one if it is left out.
    pub identity: Option<String>,
    /// How long it lives without renewal; 15 seconds if it is left out.
    pub duration: Option<Duration>,
}
