//! What a Connection does without a binding: the automatic ClusterBinding, and CRDs of all exports.

use carrick_bind_api::core::{CLUSTER_BINDING, Connection, PullPolicy};
use carrick_bind_api::jiff::Timestamp;
use serde_json::json;

use super::bindings::write_crd;
use super::session::{ConnectionSession, ConnectionState};
use crate::agent::contract::bundles::written;
use crate::agent::contract::pace::PassResult;
use crate::agent::resources;
use crate::decide::core::autobind::{self, AutoBind, CONFIRMED_AFTER};
use crate::decide::core::crd;

impl ConnectionSession {
    /// Follows autoBind. Without it nothing is undone: whoever wants the ClusterBinding away deletes it.
    pub async fn auto_bind(&self, connection: &Connection, state: &ConnectionState, now: Timestamp) -> PassResult {
        // Before all ClusterBindings are known there may be one of that name.
        if !connection.spec.auto_bind || self.local.unknown_bindings().is_some() {
            return PassResult::default();
        }
        let all = self.local.all_bindings();
        let there = all.iter().find(|it| it.namespace().is_none() && it.metadata.name == self.name).map(|it| &**it);
        let (writer, kind) = (&self.local.context.writer, resources::of(CLUSTER_BINDING));
        let plan = autobind::decide(connection, there, &state.exports, now);
        let mut outcome = match plan {
            AutoBind::Nothing => PassResult::default(),
            AutoBind::Taken => {
                tracing::debug!(
                    connection = self.name,
                    "autoBind leaves a ClusterBinding alone that somebody else made."
                );
                PassResult::default()
            }
            AutoBind::Create(new) => {
                let created = writer.create(&kind, &json!(*new)).await.map(drop);
                written(created, "ClusterBinding", &self.name)
            }
            AutoBind::Replace(new) => written(writer.replace(&kind, &json!(*new)).await, "ClusterBinding", &self.name),
        };
        if autobind::is_waiting(there) {
            outcome.add(PassResult::after(CONFIRMED_AFTER));
        }
        outcome
    }

    /// Installs the CRDs of all exports, if the Connection says so; those of kcp and Kubernetes are nobody's wish.
    pub async fn pull_all(&self, connection: &Connection, state: &ConnectionState) -> PassResult {
        if connection.spec.schema.pull_policy != PullPolicy::All {
            return PassResult::default();
        }
        let local = match self.local.context.local.crds(state.offered.keys().cloned().collect::<Vec<_>>()).await {
            Ok(local) => local,
            Err(error) => {
                tracing::warn!(connection = self.name, error, "CRDs here could not be read, trying again.");
                return PassResult::failure();
            }
        };
        let mut outcome = PassResult::default();
        let asked = state.exports.iter().filter(|api| autobind::is_offered(api));
        for (name, offered) in asked.filter_map(|api| Some((&api.name, state.offered.get(&api.name)?))) {
            let plan = crd::decide(offered, local.get(name), &self.name, &connection.spec.schema);
            if write_crd(&self.local.context.writer, plan.write.as_ref()).await.is_some() {
                outcome.add(PassResult::failure());
            }
        }
        outcome
    }
}
