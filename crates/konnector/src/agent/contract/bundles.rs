//! Bundles: a binding for every export of the contract.

use std::collections::BTreeSet;

use carrick_bind_api::identity::Contract;
use carrick_bind_api::jiff::Timestamp;
use carrick_bind_api::kinds::{API_SERVICE_BINDING, API_SERVICE_EXPORT, CLUSTER_BINDING};
use carrick_bind_api::names::CLUSTER_BINDING_NAME;
use carrick_bind_api::v1alpha2::{ApiServiceBinding, ApiServiceBindingBundle, ApiServiceExport, ClusterBinding};
use carrick_client::{Error, ListOptions};
use carrick_sync::executor::refusal::{Access, is_settled, is_unserved};
use serde_json::Value;

use super::heartbeat::ContractState;
use super::pace::PassResult;
use super::session::Session;
use super::unbinding;
use crate::agent::resources;
use crate::decide::Seen;
use crate::decide::bundle::{BundlePlan, BundleView, decide};
use crate::decide::pin::{self, Pin};

impl Session {
    /// Creates and deletes bindings as the bundles of this kubeconfig want.
    pub async fn follow_bundles(&mut self, state: &ContractState, now: Timestamp) -> PassResult {
        let mut outcome = PassResult::default();
        for bundle in self.context.local.bundles_of(&self.at) {
            if !bundle.metadata.is_deleting() {
                outcome.add(self.follow_bundle(bundle, state, now).await);
            }
        }
        outcome
    }

    async fn follow_bundle(
        &mut self,
        mut bundle: ApiServiceBindingBundle,
        state: &ContractState,
        now: Timestamp,
    ) -> PassResult {
        let objects = self.provider.exports.objects();
        let names: Vec<String> = objects.iter().map(|export| export.name.to_string()).collect();
        let leaving: Vec<String> =
            objects.iter().filter(|export| export.is_deleting()).map(|export| export.name.to_string()).collect();
        if self.provider.exports.is_pending() {
            return PassResult::default();
        }
        let exports = self.provider.exports.unknown().map_or(Seen::Present(names.as_slice()), Seen::Unknown);
        let bindings = self.context.local.bindings.all::<ApiServiceBinding>();
        let contract = self.kubeconfig.contract.clone();
        let view = |confirmed, failed| BundleView {
            bundle: &bundle,
            contract: Ok(contract.as_str()),
            exports: exports.clone(),
            leaving: &leaving,
            confirmed,
            bindings: &bindings,
            failed,
            now,
        };
        let mut plan = decide(&view(false, &[]));
        if plan.confirm && self.confirm(&names, state).await {
            plan = decide(&view(true, &[]));
        }
        let failed = self.carry_out(&plan, &bindings, state).await;
        let mut outcome = PassResult { failed: !failed.is_empty(), again: None };
        if !failed.is_empty() {
            plan = decide(&view(false, &failed));
        }
        if let Some(status) = plan.status {
            bundle.status = status;
            outcome.add(written(
                self.context.writer.status(&bundle).await,
                "APIServiceBindingBundle",
                &bundle.metadata.name,
            ));
        }
        outcome
    }

    /// Creates and deletes bindings; returns what could not be done.
    async fn carry_out(
        &mut self,
        plan: &BundlePlan,
        bindings: &[ApiServiceBinding],
        state: &ContractState,
    ) -> Vec<String> {
        let resource = resources::of(API_SERVICE_BINDING);
        let mut failed = Vec::new();
        for binding in &plan.create {
            let name = &binding.metadata.name;
            let value = serde_json::to_value(binding).unwrap_or_default();
            match self.context.writer.create(&resource, &value).await {
                Ok(_) => tracing::info!(binding = name, "Created an APIServiceBinding for an export."),
                Err(error) => failed.push(format!("APIServiceBinding {name} could not be created: {error}")),
            }
        }
        for (name, uid) in &plan.delete {
            let binding = bindings.iter().find(|binding| binding.metadata.uid == *uid);
            let elsewhere = match (binding, &state.contract) {
                (Some(binding), Ok(contract)) => matches!(pin::decide(binding, contract), Pin::Other(_)),
                _ => true,
            };
            if elsewhere {
                let problem =
                    "is kept: its export is unknown here because the kubeconfig leads to another contract than before";
                failed.push(format!("APIServiceBinding {name} {problem}"));
                continue;
            }
            // The CRD would take them along, and nobody here has asked for that.
            match binding.map(|binding| unbinding::has_objects(&self.context, binding)) {
                Some(asked) => match asked.await {
                    Ok(false) => {}
                    Ok(true) => {
                        if self.said.insert(format!("kept {uid}")) {
                            tracing::info!(
                                binding = name,
                                "The export is gone; the binding stays as long as there are objects."
                            );
                        }
                        continue;
                    }
                    Err(problem) => {
                        failed.push(format!("APIServiceBinding {name} is kept: its objects are not known: {problem}"));
                        continue;
                    }
                },
                None => continue,
            }
            match self.context.writer.delete(&resource, name, uid).await {
                Ok(()) => tracing::info!(binding = name, "Deleted an APIServiceBinding whose export is gone."),
                Err(error) => failed.push(format!("APIServiceBinding {name} could not be deleted: {error}")),
            }
        }
        failed
    }

    /// Whether a second list says the same as the watch, and the contract is still there.
    async fn confirm(&self, names: &[String], state: &ContractState) -> bool {
        let Ok(contract) = &state.contract else { return false };
        let (client, namespace) = (self.writer.client(), Some(self.kubeconfig.contract.as_str()));
        let binding = client.get(&resources::of(CLUSTER_BINDING), namespace, CLUSTER_BINDING_NAME).await;
        let same = |binding: Value| {
            serde_json::from_value::<ClusterBinding>(binding).is_ok_and(|it| Contract::of(&it).uid == contract.uid)
        };
        if !binding.is_ok_and(|binding| binding.is_some_and(same)) {
            return false;
        }
        let list = client.list_compact(&resources::of(API_SERVICE_EXPORT), namespace, &ListOptions::default()).await;
        let Ok(list) = list else { return false };
        let now: BTreeSet<&str> = list.iter().map(|export| &*export.name).collect();
        let readable = list.iter().all(|export| export.decode::<ApiServiceExport>().is_ok());
        readable && now == names.iter().map(String::as_str).collect()
    }
}

/// How a write of a status went. A conflict is nobody's fault: the newer object is on its way.
pub(in crate::agent) fn written(result: Result<(), Error>, kind: &str, name: &str) -> PassResult {
    match result {
        Ok(()) => PassResult::default(),
        Err(error) if is_settled(&error, Access::Status) || is_unserved(&error) => {
            PassResult::after(std::time::Duration::from_secs(1))
        }
        Err(error) => {
            tracing::warn!(kind, name, %error, "A status could not be written, trying again.");
            PassResult::failure()
        }
    }
}
