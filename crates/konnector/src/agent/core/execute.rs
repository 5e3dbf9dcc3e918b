//! What is written for one object of v2, and what the executor has to know for that.

use std::sync::Arc;

use carrick_bind_api::core::conditions::{FORBIDDEN, PENDING};
use carrick_bind_api::core::names::{CONSUMER_CLUSTER_UID, EVENT_SOURCE, MANAGED_LABEL};
use carrick_bind_api::jiff::Timestamp;
use carrick_bind_api::mapping::ObjectKey;
use carrick_client::{Client, Error};
use carrick_sync::executor::{Advice, StepError, Verb};
use carrick_sync::{Adoption, ObjectAddress, Role, Step, Vocabulary};
use serde_json::{Value, json};

use super::hub::{Hub, WorkKey};
use crate::agent::events::{events, warning};
use crate::agent::objects::outcome::{Outcome, Trouble};
use crate::agent::objects::store::Store;
use crate::agent::objects::watched::Watched;
use crate::agent::objects::writing::{self, Tools, Writing};
use crate::agent::resources;
use crate::decide::core::objects::{Conflict, CopyOwner, CorePlan, Marks, WORDS};
use crate::decide::objects::{Confirm, Noted, PROVIDER};

/// What is written for one object, and which watches report it.
pub(super) struct CoreWriting<'a> {
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

impl CoreWriting<'_> {
    /// Carries out a plan.
    pub async fn carry_out(self, plan: CorePlan) -> Result<Outcome, Trouble> {
        let CorePlan { plan, conflict } = plan;
        let is_settled = plan.is_settled();
        // What goes is reported by a watch; all else is known already, and may make another step possible.
        let waits = plan.steps.iter().any(|step| matches!(step, Step::Delete { .. }));
        if let Some(Confirm::Gone(at)) = &plan.confirm
            && !writing::is_gone(&self, at).await?
        {
            return Ok(Outcome::Again);
        }
        if !is_settled {
            self.ensure_namespace(&plan.steps).await?;
            let (noted, result) = writing::execute(&self, plan.steps).await;
            self.hub.ledger.note(self.key, noted);
            if let Err(error) = &result {
                self.explain(error).await;
            }
            result?;
        }
        match conflict {
            None if is_settled || waits => Ok(Outcome::Settled),
            None => Ok(Outcome::Again),
            Some(conflict) => {
                if let Some(source) = self.source.filter(|_| !is_settled) {
                    self.say(source, conflict.reason, &conflict.message).await;
                }
                Err(conflict.into())
            }
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
            self.say(source, "ChangesTooOften", &error.to_string()).await;
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
            self.say(source, FORBIDDEN, &words).await;
        }
    }

    async fn say(&self, source: &Value, reason: &str, words: &str) {
        let event = warning(EVENT_SOURCE, source, &reason.to_lowercase(), reason, words, Timestamp::now());
        let (client, namespace) = (&self.hub.consumer, event["metadata"]["namespace"].as_str());
        if let Err(error) = client.create(&events(), namespace, &event).await
            && !error.is_already_exists()
        {
            tracing::debug!(%error, "An event could not be written; an annotation says the same.");
        }
    }
}

impl From<Conflict> for Trouble {
    fn from(conflict: Conflict) -> Self {
        if conflict.reason == PENDING { Self::Pending(conflict.message) } else { Self::Conflict(conflict.message) }
    }
}

impl Writing for CoreWriting<'_> {
    fn tools(&self) -> &Tools {
        &self.hub.tools
    }

    fn client(&self, role: Role) -> &Client {
        if role == Role::Consumer { &self.hub.consumer } else { &self.hub.provider }
    }

    fn with_store<T>(&self, role: Role, act: impl FnOnce(&Store) -> T) -> Option<T> {
        Some(act(&self.watches[usize::from(role == Role::Provider)].store))
    }

    fn noted(&self) -> &Noted {
        &self.noted
    }

    fn copy_at(&self) -> &ObjectAddress {
        &self.copy_at
    }

    fn braked(&self) -> (&str, Option<&ObjectKey>, String) {
        (self.key.lane.as_str(), Some(&self.key.object), self.marks.value.to_owned())
    }

    fn vocabulary(&self) -> &'static Vocabulary {
        &WORDS
    }

    fn manager(&self) -> &'static str {
        self.manager
    }

    fn owner(&self, existing: &Value) -> Adoption {
        match self.marks.owner(existing) {
            CopyOwner::Ours => Adoption::Ours,
            CopyOwner::Unmarked => Adoption::Refused,
            CopyOwner::Other => Adoption::Foreign { owner: "another object".to_owned() },
        }
    }

    fn is_left(&self, found: &Value) -> bool {
        self.marks.owner(found) == CopyOwner::Ours
    }

    fn advice(&self) -> &'static Advice {
        &Advice {
            foreign: "another consumer has an object of this name, so choose another name here",
            refused: "delete or rename one of the two, or let the binding adopt it",
        }
    }
}
