//! Executing steps for objects of v2: the one place that writes them.
#![allow(clippy::result_large_err)] // failures are rare, and reported at once

use std::collections::HashMap;
use std::sync::Arc;

use carrick_bind_api::core::conditions::PENDING;
use carrick_bind_api::core::names::{CONSUMER_CLUSTER_UID, MANAGED_LABEL};
use carrick_client::Error;
use carrick_sync::executor::{Advice, Agent, Brake, Executor, StepError, Verb, resource};
use carrick_sync::memory::PrimaryState;
use carrick_sync::{Adoption, ApiKind, Event, ObjectAddress, Role, Side, SourceKey, Step, Vocabulary};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::events;
use super::hub::{Hub, Watched, WorkKey};
use crate::agent::objects::observer::Counting;
use crate::agent::objects::outcome::{Outcome, Trouble};
use crate::agent::resources;
use crate::decide::core::objects::{Conflict, CopyOwner, CorePlan, Marks, WORDS};
use crate::decide::objects::{Confirm, Noted, PROVIDER, content_sum, is_altered};

/// What is written for one object, and which watches report it.
pub(super) struct Writing<'a> {
    pub hub: &'a Hub,
    pub key: &'a WorkKey,
    pub noted: Noted,
    /// The consumer's object, if events are about it.
    pub source: Option<&'a Value>,
    pub copy_at: ObjectAddress,
    /// What the copy carries.
    pub marks: Marks<'a>,
    /// By whom it is applied.
    pub manager: &'static str,
    /// Those of the consumer's object and of the provider's.
    pub watches: [&'a Arc<Watched>; 2],
}

impl Writing<'_> {
    /// Carries out a plan.
    pub async fn carry_out(self, plan: CorePlan) -> Result<Outcome, Trouble> {
        let CorePlan { plan, conflict } = plan;
        let is_settled = plan.is_settled();
        // What goes is reported by a watch; all else is known already, and may make another step possible.
        let waits = plan.steps.iter().any(|step| matches!(step, Step::Delete { .. }));
        if let Some(Confirm::Gone(at)) = &plan.confirm
            && !self.is_gone(at).await?
        {
            return Ok(Outcome::Again);
        }
        if !is_settled {
            self.ensure_namespace(&plan.steps).await?;
            self.execute(plan.steps).await?;
        }
        match conflict {
            None if is_settled || waits => Ok(Outcome::Settled),
            None => Ok(Outcome::Again),
            Some(conflict) => {
                if let Some(source) = self.source.filter(|_| !is_settled) {
                    events::warn(&self.hub.consumer, source, conflict.reason, &conflict.message).await;
                }
                Err(conflict.into())
            }
        }
    }

    async fn execute(&self, steps: Vec<Step>) -> Result<(), Trouble> {
        let sent = steps.iter().find_map(|step| match step {
            Step::Create { at, object } | Step::Apply { at, object, .. } => Some((at.clone(), object.clone())),
            _ => None,
        });
        let mut state = PrimaryState::default();
        state.note_status("", self.noted.status.clone());
        let mut executor = Executor {
            consumer: &self.hub.consumer,
            provider: &self.hub.provider,
            namespaces: &self.hub.made,
            agent: ObjectAgent { writing: self, state: Mutex::new(state), owner: brake_key(self.key) },
            objects: HashMap::new(),
            rebased: HashMap::new(),
        };
        let result = executor.run(steps, &Counting(&*self.hub.metrics)).await;
        let (written, state) = (std::mem::take(&mut executor.objects), executor.agent.state.into_inner());
        let mut noted = self.noted.clone();
        noted.status = state.entry("").and_then(|entry| entry.status.clone());
        if let Some((at, sent)) = sent
            && let Some(stored) = written.get(&at)
        {
            noted.altered = is_altered(&sent, stored).then(|| content_sum(stored));
        }
        self.hub.ledger.note(self.key, noted);
        let [consumer, provider] = self.watches;
        for (at, object) in &written {
            let watched = if at.side.role == Role::Consumer { consumer } else { provider };
            watched.store.wrote(object);
        }
        if let Err(error) = &result {
            self.explain(error).await;
        }
        Ok(result?)
    }

    /// Whether a server itself says that an object is not there. A server that does not serve the kind, or not to us, says nothing about it.
    async fn is_gone(&self, at: &ObjectAddress) -> Result<bool, Trouble> {
        let path = resource(&at.kind).object_path(at.namespace.as_deref(), &at.name, None);
        let is_here = at.side.role == Role::Consumer;
        let client = if is_here { &self.hub.consumer } else { &self.hub.provider };
        match client.raw_get(&path).await {
            Ok(found) => {
                self.watches[usize::from(!is_here)].store.wrote(&found);
                Ok(false)
            }
            Err(error) if error.is_missing(&at.name) => Ok(true),
            Err(error) => Err(Trouble::request(&error)),
        }
    }

    /// Makes the provider's namespace of a new copy, with our marks, unless it is known to be there.
    async fn ensure_namespace(&self, steps: &[Step]) -> Result<(), Trouble> {
        let Some(namespace) = self.key.object.namespace.as_ref() else { return Ok(()) };
        let creates = self.copy_at.side == PROVIDER && steps.iter().any(|step| matches!(step, Step::Create { .. }));
        if !creates || self.hub.namespaces.lock().contains(namespace) {
            return Ok(());
        }
        let labels = json!({MANAGED_LABEL: "true", CONSUMER_CLUSTER_UID: self.hub.cluster_uid});
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}});
        match self.hub.provider.create(&resources::namespaces(), None, &object).await {
            Err(error) if error.is_forbidden() => {
                // It may be there all the same; otherwise the copy is refused, and that says more.
                self.warn("creating provider namespace", &error).await;
            }
            Err(error) if !error.is_already_exists() => return Err(Trouble::request(&error)),
            _ => {}
        }
        self.hub.namespaces.lock().insert(namespace.clone());
        Ok(())
    }

    /// Says on the object that the provider refuses it, or that it changes too often.
    async fn explain(&self, error: &StepError) {
        if let (StepError::TooOften { .. }, Some(source)) = (error, self.source) {
            events::warn(&self.hub.consumer, source, "ChangesTooOften", &error.to_string()).await;
        }
        let StepError::Write { verb, source, .. } = error else { return };
        if *verb == Verb::Create
            && source.is_not_found()
            && let Some(namespace) = &self.key.object.namespace
        {
            // It may have been deleted since.
            self.hub.namespaces.lock().remove(namespace);
        }
        if source.is_forbidden() && matches!(verb, Verb::Create | Verb::Apply) {
            self.warn("applying spec to provider", source).await;
        }
    }

    async fn warn(&self, what: &str, error: &Error) {
        if let Some(source) = self.source {
            let words = format!("{what} is forbidden by provider RBAC: {error}");
            events::warn(&self.hub.consumer, source, "Forbidden", &words).await;
        }
    }
}

impl From<Conflict> for Trouble {
    fn from(conflict: Conflict) -> Self {
        if conflict.reason == PENDING { Self::Pending(conflict.message) } else { Self::Conflict(conflict.message) }
    }
}

/// What the executor has to know of us.
struct ObjectAgent<'a> {
    writing: &'a Writing<'a>,
    /// What is remembered as long as the konnector runs.
    state: Mutex<PrimaryState>,
    /// Whose writes these are.
    owner: SourceKey,
}

/// By what the brake knows an object.
fn brake_key(key: &WorkKey) -> SourceKey {
    let namespace = key.object.namespace.as_deref().unwrap_or_default();
    SourceKey { cluster: key.lane.as_str().into(), namespace: namespace.into(), name: key.object.name.as_str().into() }
}

impl Agent for ObjectAgent<'_> {
    fn vocabulary(&self) -> &'static Vocabulary {
        &WORDS
    }

    fn field_manager(&self, _: bool) -> String {
        self.writing.manager.to_owned()
    }

    fn writers(&self) -> &[&str] {
        &[]
    }

    fn is_confidential(&self, kind: &ApiKind) -> bool {
        kind.group.is_empty() && kind.kind == "Secret"
    }

    fn was_taken(&self) -> bool {
        false
    }

    fn adopt(&self, existing: &Value, _: &Value) -> Adoption {
        match self.writing.marks.owner(existing) {
            CopyOwner::Ours => Adoption::Ours,
            CopyOwner::Unmarked => Adoption::Refused,
            CopyOwner::Other => Adoption::Foreign { owner: "another object".to_owned() },
        }
    }

    fn advice(&self) -> &'static Advice {
        &Advice {
            foreign: "another consumer has an object of this name, so choose another name here",
            refused: "delete or rename one of the two, or let the binding adopt it",
        }
    }

    fn has_namespace(&self, _: Side, _: &str) -> bool {
        true
    }

    async fn confirm_no_copy(&self) -> Result<(), StepError> {
        let at = self.writing.copy_at.clone();
        let path = resource(&at.kind).object_path(at.namespace.as_deref(), &at.name, None);
        match self.writing.hub.provider.raw_get(&path).await {
            Ok(found) if self.writing.marks.owner(&found) == CopyOwner::Ours => {
                self.writing.watches[1].store.wrote(&found);
                Err(StepError::CopyLeft(at))
            }
            Ok(_) => Ok(()),
            Err(error) if error.is_missing(&at.name) => Ok(()),
            Err(source) => Err(StepError::Write { verb: Verb::Get, at: (&at).into(), source }),
        }
    }

    fn memory(&self) -> PrimaryState {
        self.state.lock().clone()
    }

    async fn remember(&self, change: impl FnOnce(&mut PrimaryState) + Send) -> Result<(), Error> {
        change(&mut self.state.lock());
        Ok(())
    }

    async fn forget(&self) -> Result<(), Error> {
        Ok(())
    }

    fn memory_at(&self) -> String {
        "what is remembered".to_owned()
    }

    fn report(&self, object: &Value, event: Event, detail: Option<&str>) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        tracing::debug!(object = name, ?event, detail, "Something happened to an object.");
    }

    fn brake(&self) -> Option<(&Brake, (&SourceKey, &str))> {
        Some((&self.writing.hub.brake, (&self.owner, self.writing.marks.value)))
    }

    fn refused_status(&self, at: &ObjectAddress) -> String {
        format!("{at} does not take the status of its copy; the schema here may be older than that of the provider")
    }
}
