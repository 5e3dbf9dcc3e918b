//! What workers do for one object.

use carrick_bind_api::core::names::FIELD_MANAGER;
use carrick_multicluster::Queue;
use serde_json::Value;

use super::execute::CoreWriting;
use super::hub::{Hub, WantedApi, WorkKey};
use crate::agent::objects::ledger::Ledger;
use crate::agent::objects::outcome::{Outcome, Trouble};
use crate::agent::objects::watched::Watched;
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
        let coverage = api.coverage(key.object.namespace.as_deref());
        let Some([consumer, provider]) = self.both(key, api) else { return Ok(Outcome::Unknown) };
        // Whoever keeps copies does not have to see them.
        if !consumer.store.is_synced() || coverage != Coverage::Release && !provider.store.is_synced() {
            return Ok(Outcome::Unknown);
        }
        let (source, copy) = (read(&consumer, key)?, read(&provider, key)?);
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
        let writing = CoreWriting { hub: self, key, noted: noted.clone(), source, copy_at, marks, manager, watches };
        writing.carry_out(plan).await
    }
}

/// An object as a watch has reported it; one that only has to go need not be readable.
pub(super) fn read(watched: &Watched, key: &WorkKey) -> Result<Option<Value>, Trouble> {
    match watched.store.get(&key.object) {
        Some(object) if object.is_deleting() => Ok(Some(object.value())),
        found => found.map(|it| it.read()).transpose().map_err(|error| Trouble::Pending(error.to_string())),
    }
}
