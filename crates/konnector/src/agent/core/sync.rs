//! What workers do for one object.

use carrick_bind_api::core::names::FIELD_MANAGER;
use carrick_client::Object;
use carrick_multicluster::Queue;
use carrick_sync::Role;
use serde_json::Value;

use super::execute::Writing;
use super::hub::{Hub, WantedApi, WorkKey};
use crate::agent::objects::ledger::Ledger;
use crate::agent::objects::outcome::{Outcome, Trouble};
use crate::agent::objects::work::Workshop;
use crate::decide::core::objects::{CoreView, Coverage, decide};
use crate::decide::objects::PROVIDER;

impl Workshop for Hub {
    type Key = WorkKey;

    fn queue(&self) -> &Queue<WorkKey> {
        &self.queue
    }

    fn ledger(&self) -> &Ledger<WorkKey> {
        &self.ledger
    }

    fn shown(&self, key: &WorkKey) -> String {
        key.to_string()
    }

    fn problems_changed(&self) {
        self.notify();
    }

    fn ended(&self, key: &WorkKey) {
        self.decided(key);
    }

    async fn process(&self, key: &WorkKey) -> Result<Outcome, Trouble> {
        match self.wanted().get(&*key.lane) {
            Some(api) if api.is_related() => self.sync_related(key, api).await,
            Some(api) => self.sync(key, api).await,
            None => Ok(Outcome::Settled),
        }
    }
}

impl Hub {
    /// Brings one object and its copy in line.
    async fn sync(&self, key: &WorkKey, api: &WantedApi) -> Result<Outcome, Trouble> {
        let namespace = key.object.namespace.as_deref();
        let coverage = api.coverage(namespace);
        let (consumer, provider) =
            (self.watched(Role::Consumer, api, namespace), self.watched(Role::Provider, api, namespace));
        let (Some(consumer), Some(provider)) = (consumer, provider) else { return Ok(Outcome::Unknown) };
        // Whoever keeps copies does not have to see them.
        if !consumer.store.is_synced() || coverage != Coverage::Release && !provider.store.is_synced() {
            return Ok(Outcome::Unknown);
        }
        let (source, copy) = (consumer.store.get(&key.object), provider.store.get(&key.object));
        let source = source.as_ref().map(read).transpose()?;
        let copy = copy.as_ref().map(read).transpose()?;
        let noted = self.ledger.noted(key);
        let view = CoreView {
            kind: &api.kind,
            key: &key.object,
            has_status: api.has_status,
            cluster_uid: &self.cluster_uid,
            source: source.as_ref(),
            copy: copy.as_ref(),
            coverage,
            noted: &noted,
        };
        let plan = decide(&view);
        let (copy_at, marks, watches) = (view.at(PROVIDER), view.marks(), [&consumer, &provider]);
        let (source, manager) = (view.source, FIELD_MANAGER);
        let writing = Writing { hub: self, key, noted: noted.clone(), source, copy_at, marks, manager, watches };
        writing.carry_out(plan).await
    }
}

pub(super) fn read(object: &Object) -> Result<Value, Trouble> {
    if object.is_deleting() {
        return Ok(object.value());
    }
    object.read().map_err(|error| Trouble::Pending(error.to_string()))
}
