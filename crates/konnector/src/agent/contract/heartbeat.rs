//! The ClusterBinding: heartbeats, renewed credentials, and who the contract is.

use std::time::Duration;

use carrick_bind_api::identity::Contract;
use carrick_bind_api::jiff::Timestamp;
use carrick_bind_api::kinds::CLUSTER_BINDING;
use carrick_bind_api::names::CLUSTER_BINDING_NAME;
use carrick_bind_api::problems::BindingProblem;
use carrick_bind_api::v1alpha2::{ClusterBinding, ClusterBindingStatus};
use tokio::time::Instant;

use super::pace::PassResult;
use super::session::Session;
use crate::VERSION;
use crate::agent::{kubeconfig, resources};
use crate::decide::Seen;
use crate::decide::contract::{ContractView, decide};

/// So often the same status may be written in a minute; more only happens if somebody else writes the same object all the time, and then one every
/// so often.
const BURST: usize = 6;
const MINUTE: Duration = Duration::from_mins(1);
const CALM: Duration = Duration::from_secs(10);
/// After a conflict a watch event comes; if not, look again.
const AFTER_CONFLICT: Duration = Duration::from_secs(1);

/// What the last statuses of a ClusterBinding said. Whoever has news may write it; whoever writes the same again and again is in a fight.
#[derive(Default)]
pub(super) struct StatusWrites(Vec<(Instant, ClusterBindingStatus)>);

impl StatusWrites {
    fn note(&mut self, status: &ClusterBindingStatus) {
        self.0.retain(|(at, _)| at.elapsed() < MINUTE);
        self.0.push((Instant::now(), without_times(status)));
    }

    /// Whether this status was written so often of late that somebody else must be undoing it.
    fn is_fight(&self, status: &ClusterBindingStatus) -> bool {
        let status = without_times(status);
        self.0.iter().filter(|(at, written)| at.elapsed() < MINUTE && *written == status).count() >= BURST
    }
}

fn without_times(status: &ClusterBindingStatus) -> ClusterBindingStatus {
    let mut status = status.clone();
    status.last_heartbeat_time.clear();
    for condition in &mut status.conditions {
        condition.last_transition_time.clear();
    }
    status
}

/// What is known of the contract after a look at its ClusterBinding.
pub(super) struct ContractState {
    /// Who it is, or why that is not known.
    pub contract: Result<Contract, String>,
    /// What the provider calls itself.
    pub provider: Option<String>,
    /// How it went.
    pub outcome: PassResult,
}

impl Session {
    /// Looks at the ClusterBinding: sends a heartbeat if one is due, and takes over new credentials.
    pub async fn beat(&mut self, now: Timestamp) -> ContractState {
        // What was seen before an outage says nothing about who is there now.
        let cache = &self.provider.cluster_bindings;
        if let Some(why) = cache.unknown() {
            // A watch that has only just begun is no reason to worry anybody.
            if !cache.is_pending() {
                self.heartbeat = Some(Err(BindingProblem::HeartbeatFailed { problem: why.clone() }));
            }
            return ContractState { contract: Err(why), provider: None, outcome: PassResult::default() };
        }
        let binding = match cache.get(&self.kubeconfig.contract, CLUSTER_BINDING_NAME) {
            Seen::Present(object) => cache.read::<ClusterBinding>(&object),
            Seen::Absent | Seen::Unknown(_) => None,
        };
        let Some(binding) = binding else {
            let (kind, contract) = (CLUSTER_BINDING.kind, &self.kubeconfig.contract);
            let problem = format!("{kind} {CLUSTER_BINDING_NAME} not found in namespace {contract}");
            self.heartbeat = Some(Err(BindingProblem::HeartbeatFailed { problem: problem.clone() }));
            return ContractState { contract: Err(problem), provider: None, outcome: PassResult::default() };
        };
        let contract = Contract::of(&binding);
        self.warn_of_identity(&contract);
        let outcome = self.send(&binding, now).await;
        let provider = Some(binding.spec.provider_pretty_name).filter(|name| !name.is_empty());
        ContractState { contract: Ok(contract), provider, outcome }
    }

    async fn send(&mut self, binding: &ClusterBinding, now: Timestamp) -> PassResult {
        let uid = &binding.metadata.uid;
        let foreign = self.context.seen_heartbeat(uid, &binding.status);
        if !self.context.sends_heartbeats(uid, &self.at) {
            self.heartbeat = Some(Ok(()));
            return PassResult::default();
        }
        let provider_secret = self.provider.secret(&binding.spec.kubeconfig_secret_ref.name);
        let consumer_secret = self.context.local.secret(&self.at);
        let in_use = !self.is_outdated_by(&consumer_secret);
        let view = ContractView {
            binding,
            provider_secret: provider_secret.as_ref(),
            consumer_secret: consumer_secret.as_ref(),
            in_use,
            at: &self.at,
            version: VERSION,
            now,
        };
        let plan = decide(&view, |text| kubeconfig::read(text).map(|found| found.contract));
        let mut outcome = PassResult::after(plan.look_again);
        if let Some(secret) = plan.secret {
            tracing::info!(
                secret = self.at.name,
                contract = self.kubeconfig.contract,
                "The provider has renewed our credentials."
            );
            if let Err(error) = self.context.writer.replace(&resources::secrets(), &secret).await {
                // What a server says about a Secret may quote it.
                let error = error.discreet();
                tracing::warn!(secret = self.at.name, %error, "New credentials could not be stored, trying again.");
                outcome.add(PassResult::failure());
            }
        }
        let result = match plan.status {
            None => Some(Ok(())),
            // Heartbeats go out all the same.
            Some(status)
                if binding.status.last_heartbeat_time == status.last_heartbeat_time
                    && self.status_writes.is_fight(&status) =>
            {
                outcome.add(PassResult::after(CALM));
                None
            }
            Some(status) => self.write(binding, status, &mut outcome).await,
        };
        if foreign {
            let evidence = "heartbeats that are not ours".to_owned();
            let contract = self.kubeconfig.contract.clone();
            self.heartbeat = Some(Err(BindingProblem::ForeignHeartbeat { contract, evidence }));
        } else if let Some(result) = result {
            self.heartbeat = Some(result);
        }
        outcome
    }

    /// Writes a status: how that went, unless it has to be tried again.
    async fn write(
        &mut self,
        binding: &ClusterBinding,
        status: ClusterBindingStatus,
        outcome: &mut PassResult,
    ) -> Option<Result<(), BindingProblem>> {
        let mut new = binding.clone();
        new.status = status;
        self.status_writes.note(&new.status);
        // Before it is sent: it may come back by the watch before the answer does.
        self.context.sent_heartbeat(&binding.metadata.uid, &new.status);
        match self.writer.status(&new).await {
            Ok(()) => Some(Ok(())),
            // A binding that is gone is no race here: the provider has to know that no heartbeat arrives.
            Err(error) if error.is_conflict() => {
                outcome.add(PassResult::after(AFTER_CONFLICT));
                None
            }
            Err(error) => {
                outcome.add(PassResult::failure());
                Some(Err(BindingProblem::HeartbeatFailed { problem: error.to_string() }))
            }
        }
    }

    fn warn_of_identity(&mut self, contract: &Contract) {
        let own = self.context.cluster_uid.as_deref();
        if own.is_some_and(|own| contract.is_of_another_cluster(own)) && self.said.insert("identity".to_owned()) {
            let (contract, identity) = (&contract.namespace, contract.identity.as_deref().unwrap_or_default());
            tracing::warn!(
                contract,
                identity,
                "The contract was made for an identity that is the uid of another cluster."
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use carrick_bind_api::conditions::Condition;

    use super::*;

    fn saying(message: &str) -> ClusterBindingStatus {
        let mut status = ClusterBindingStatus::default();
        let mut condition = Condition::default();
        message.clone_into(&mut condition.message);
        status.conditions.push(condition);
        status
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_has_news_is_in_no_fight() {
        let mut writes = StatusWrites::default();
        for number in 0..2 * BURST {
            writes.note(&saying(&number.to_string()));
        }
        assert!(!writes.is_fight(&saying("0")), "each was written once");
        for _ in 0..BURST {
            assert!(!writes.is_fight(&saying("same")));
            writes.note(&saying("same"));
        }
        assert!(writes.is_fight(&saying("same")) && !writes.is_fight(&saying("news")));
        tokio::time::advance(MINUTE).await;
        assert!(!writes.is_fight(&saying("same")), "that was long ago");
    }
}
