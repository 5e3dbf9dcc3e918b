//! A contract whose kubeconfig can be used.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use carrick_bind_api::jiff::Timestamp;
use carrick_bind_api::problems::BindingProblem;
use carrick_bind_api::v1alpha2::SecretKeyReference;
use carrick_client::Server;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::heartbeat::StatusWrites;
use super::pace::{Pace, PassResult};
use super::provider::Provider;
use crate::agent::context::Context;
use crate::agent::kubeconfig::{self, ProviderKubeconfig};
use crate::agent::metrics::Metrics;
use crate::agent::objects::{Consumers, ContractSync, SyncReport, Wanted, WantedBinding};
use crate::agent::rights;
use crate::agent::task::Task;
use crate::agent::writer::Writer;
use crate::decide::Seen;

/// How long the sync may take to end.
const GRACE: Duration = Duration::from_secs(8);

/// A contract whose kubeconfig can be used, from its first request until the Secret says something else.
pub(super) struct Session {
    pub context: Arc<Context>,
    /// Where the kubeconfig is.
    pub at: SecretKeyReference,
    pub kubeconfig: ProviderKubeconfig,
    /// What there is on the provider.
    pub provider: Provider,
    /// Writes there.
    pub writer: Writer,
    /// What is synced, by binding.
    pub wanted: BTreeMap<String, WantedBinding>,
    /// What was told to the sync, and what it tells.
    tell: watch::Sender<Arc<Wanted>>,
    pub told: watch::Receiver<Arc<SyncReport>>,
    /// What the server said to CRDs that could not be written, by binding and name.
    pub refused: BTreeMap<String, BTreeMap<String, BindingProblem>>,
    /// Since when objects of bindings could not be read.
    pub unread: BTreeMap<String, Instant>,
    /// What was said once and need not be said again.
    pub said: BTreeSet<String>,
    /// What was written to the status of the ClusterBinding of late.
    pub status_writes: StatusWrites,
    /// How the last heartbeat went.
    pub heartbeat: Option<Result<(), BindingProblem>>,
    sync: Task,
    stop: CancellationToken,
}

impl Session {
    /// Connects, and begins to watch and to sync.
    pub fn new(context: Arc<Context>, at: SecretKeyReference, kubeconfig: ProviderKubeconfig, server: &Server) -> Self {
        let stop = CancellationToken::new();
        let client = rights::of_provider(&server.client(), &kubeconfig.contract);
        let provider = Provider::start(client.clone(), &kubeconfig.contract, stop.clone());
        let (tell, wanted) = watch::channel(Arc::new(Wanted::default()));
        let (telling, told) = watch::channel(Arc::new(SyncReport::default()));
        let sync = ContractSync {
            consumers: match &context.local.export {
                Some(export) => Consumers::Workspaces(Arc::clone(&export.workspaces)),
                None => Consumers::Cluster(context.local.client.clone()),
            },
            provider: client.clone(),
            contract: kubeconfig.contract.clone(),
            metrics: Arc::<Metrics>::clone(&context.metrics),
            budget: context.budget,
        };
        let sync = Task::spawn(sync.run(wanted, telling, stop.child_token()));
        let secret = format!("{}/{}", at.namespace, at.name);
        tracing::info!(
            secret,
            contract = kubeconfig.contract,
            provider = kubeconfig.server(),
            "Connecting to a provider."
        );
        Self {
            writer: Writer::new(client, "provider", Arc::clone(&context.metrics)),
            wanted: BTreeMap::new(),
            refused: BTreeMap::new(),
            unread: BTreeMap::new(),
            said: BTreeSet::new(),
            status_writes: StatusWrites::default(),
            heartbeat: None,
            context,
            at,
            kubeconfig,
            provider,
            tell,
            told,
            sync,
            stop,
        }
    }

    /// Looks at everything whenever something has changed, until told to stop or the Secret says something else.
    pub async fn run(mut self, stop: &CancellationToken) {
        let (mut local, mut remote) = (self.context.local.notifier.subscribe(), self.provider.notifier.subscribe());
        let mut pace = Pace::default();
        while !stop.is_cancelled() && !self.is_outdated() {
            let outcome = self.pass().await;
            let polling = self.context.polling;
            let again = pace.next(outcome).map_or(polling, |again| again.min(polling));
            tokio::select! {
                () = stop.cancelled() => {}
                () = local.changed() => {}
                () = remote.changed() => {}
                Ok(()) = self.told.changed() => {}
                () = tokio::time::sleep(again) => {}
            }
        }
        self.stop.cancel();
        self.sync.ended_within(GRACE, &self.kubeconfig.contract).await;
        self.context.ends_heartbeats(&self.at);
    }

    /// Whether the Secret says something else than what this session works with. A Secret that cannot be read says nothing else.
    fn is_outdated(&self) -> bool {
        self.is_outdated_by(&self.context.local.secret(&self.at))
    }

    pub(super) fn is_outdated_by(&self, secret: &Seen<Value>) -> bool {
        match secret {
            Seen::Present(secret) => kubeconfig::of_secret(Some(secret), &self.at).as_ref() != Ok(&self.kubeconfig),
            Seen::Absent => true,
            Seen::Unknown(_) => false,
        }
    }

    /// One look at everything.
    async fn pass(&mut self) -> PassResult {
        let now = Timestamp::now();
        let contract = self.beat(now).await;
        let mut outcome = contract.outcome;
        outcome.add(self.follow_bundles(&contract, now).await);
        outcome.add(self.follow_bindings(&contract, now).await);
        outcome.add(self.follow_claims().await);
        outcome.add(self.follow_unbound_exports(now).await);
        outcome
    }

    /// Tells the sync what is wanted, if that has changed.
    pub fn tell_sync(&self) {
        let guarded = self.context.guarded();
        self.tell.send_if_modified(|before| {
            let changed = before.bindings != self.wanted || before.guarded != guarded;
            if changed {
                *before = Arc::new(Wanted { bindings: self.wanted.clone(), guarded });
            }
            changed
        });
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
