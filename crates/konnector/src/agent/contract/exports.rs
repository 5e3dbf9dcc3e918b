//! Exports that no binding here is for: the provider is told so.

use carrick_bind_api::jiff::Timestamp;
use carrick_bind_api::v1alpha2::{ApiServiceBinding, ApiServiceExport};

use super::bundles::written;
use super::pace::PassResult;
use super::session::Session;
use crate::decide::binding::unbound_export_status;

impl Session {
    /// Tells the provider which exports nobody here uses, and the log which ones cannot be used because their name is taken.
    pub async fn follow_unbound_exports(&mut self, now: Timestamp) -> PassResult {
        let mut outcome = PassResult::default();
        if self.context.local.bindings.unknown().is_some() {
            return outcome;
        }
        let bindings = self.context.local.bindings.all::<ApiServiceBinding>();
        let bundled = !self.context.local.bundles_of(&self.at).is_empty();
        for mut export in self.provider.exports.all::<ApiServiceExport>() {
            let name = export.metadata.name.clone();
            let taken = match bindings.iter().find(|binding| binding.metadata.name == name) {
                Some(binding) if binding.spec.kubeconfig_secret_ref == self.at => continue,
                // Its binding is about to be created.
                None if bundled => continue,
                taken => taken.is_some(),
            };
            if taken && self.said.insert(format!("clash {name}")) {
                let contract = &self.kubeconfig.contract;
                tracing::warn!(
                    export = name,
                    contract,
                    "The APIServiceBinding of this name belongs to another provider."
                );
            }
            let status = unbound_export_status(&export, now);
            if status != export.status {
                export.status = status;
                outcome.add(written(self.writer.status(&export).await, "APIServiceExport", &name));
            }
        }
        outcome
    }
}
