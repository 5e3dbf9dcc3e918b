//! The workers, and what they do for one object.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use carrick_bind_api::core::names::FIELD_MANAGER;
use carrick_client::Object;
use carrick_multicluster::Lease;
use carrick_sync::Role;
use futures::FutureExt;
use serde_json::Value;

use super::execute::Writing;
use super::hub::{Hub, WantedApi, WorkKey};
use crate::agent::objects::outcome::{Outcome, Problem, Trouble};
use crate::decide::core::objects::{CoreView, Coverage, decide};
use crate::decide::objects::PROVIDER;

/// Works until the queue is closed.
pub(super) async fn work(hub: Arc<Hub>) {
    while let Some(lease) = hub.queue.next().await {
        let key = lease.key().clone();
        let done = AssertUnwindSafe(hub.process(&key)).catch_unwind().await;
        let done = done.unwrap_or_else(|_| Err(Trouble::failed("the konnector panicked over it; please report that")));
        end(&hub, lease, &key, done);
        hub.decided(&key);
    }
}

fn end(hub: &Hub, lease: Lease<WorkKey>, key: &WorkKey, done: Result<Outcome, Trouble>) {
    let shown = |words: &str| format!("{key}: {words}");
    let problem = |is_conflict, words: &str| Some(Problem { is_conflict, words: shown(words), ..Problem::default() });
    match done {
        Ok(Outcome::Again) if hub.another_round(key) => {
            hub.set_problem(key, problem(false, "what is written is undone at once; look for whoever else changes it"));
            lease.retry();
        }
        Ok(Outcome::Again) => {
            hub.queue.add(key.clone());
            lease.done();
        }
        Ok(Outcome::Settled) => {
            hub.at_rest(key);
            hub.set_problem(key, None);
            lease.done();
        }
        Ok(Outcome::Unknown) => lease.done(),
        Err(Trouble::Conflict(words)) => {
            hub.set_problem(key, problem(true, &words));
            lease.done();
        }
        Err(Trouble::Pending(words)) => {
            hub.set_problem(key, problem(false, &words));
            lease.done();
        }
        Err(Trouble::Failed { words, cause }) => {
            tracing::warn!(object = %key, problem = words, "An object cannot be synced.");
            hub.set_problem(key, problem(false, &words));
            match cause {
                Some(cause) => lease.wait_for(&cause),
                None => {
                    lease.retry();
                }
            }
        }
        Err(Trouble::Contested { words, wait }) => {
            tracing::warn!(object = %key, problem = words, "An object is contested.");
            hub.set_problem(key, Some(Problem { is_contested: true, words: shown(&words), ..Problem::default() }));
            lease.again_after(wait);
        }
        Err(Trouble::Race) => {
            lease.retry();
        }
    }
}

impl Hub {
    async fn process(&self, key: &WorkKey) -> Result<Outcome, Trouble> {
        match self.wanted().get(&*key.lane) {
            Some(api) if api.is_related() => self.sync_related(key, api).await,
            Some(api) => self.sync(key, api).await,
            None => Ok(Outcome::Settled),
        }
    }

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
        let noted = self.noted(key);
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
