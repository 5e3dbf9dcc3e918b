//! Executing steps: the one place here that writes objects.
#![allow(clippy::result_large_err)] // failures are rare, and reported at once

use std::collections::HashMap;

use carrick_bind_api::copies::{self, Ownership};
use carrick_bind_api::existing::ADOPTED_ANNOTATION;
use carrick_bind_api::mapping::ObjectKey;
use carrick_bind_api::names::FIELD_MANAGER;
use carrick_client::{Error, wording};
use carrick_sync::executor::{Advice, Agent, Brake, Executor, StepError, Verb, resource};
use carrick_sync::memory::PrimaryState;
use carrick_sync::{Adoption, ApiKind, Event, ObjectAddress, Role, Side, SourceKey, Step, Vocabulary};
use parking_lot::Mutex;
use serde_json::Value;

use super::consumers::Place;
use super::hub::Hub;
use super::key::{Item, WorkKey};
use super::layout::WatchId;
use super::observer::Counting;
use super::outcome::{Outcome, Trouble};
use crate::decide::claims::is_copy;
use crate::decide::objects::{Confirm, Noted, ObjectPlan, WORDS, content_sum, is_altered, replacement};

/// What is written for one object, and which watches tell about it.
pub(super) struct Writing<'a> {
    pub hub: &'a Hub,
    pub key: &'a WorkKey,
    pub noted: Noted,
    /// Where the copy on the provider is.
    pub copy_at: ObjectAddress,
    /// The watches of the consumer's object and of the provider's.
    pub watches: [WatchId; 2],
    /// Where the consumer's object is.
    pub place: &'a Place,
}

impl Writing<'_> {
    /// Carries out a plan.
    pub async fn carry_out(self, plan: ObjectPlan) -> Result<Outcome, Trouble> {
        if plan.is_settled() {
            return Ok(Outcome::Settled);
        }
        if let Some(Confirm::Gone(at)) = &plan.confirm
            && !self.is_gone(at).await?
        {
            return Ok(Outcome::Again);
        }
        let sent = plan.steps.iter().find_map(|step| match step {
            Step::Create { at, object } | Step::Apply { at, object, .. } => Some((at.clone(), object.clone())),
            _ => None,
        });
        let mut state = PrimaryState::default();
        state.note_status("", self.noted.status.clone());
        let owner = brake_key(self.key);
        let uid = self.source().map(|source| copies::uid(&source).to_owned()).unwrap_or_default();
        let agent = ObjectAgent { writing: &self, state: Mutex::new(state), owner, uid };
        let mut executor = Executor {
            consumer: &self.place.client,
            provider: &self.hub.provider,
            namespaces: &self.hub.made,
            agent,
            objects: HashMap::new(),
            rebased: HashMap::new(),
        };
        // What goes is told by a watch; all else is known already, and may make another step possible.
        let waits = plan.steps.iter().any(|step| matches!(step, Step::Delete { .. }));
        let mut result = executor.run(plan.steps, &Counting(&*self.hub.observer)).await;
        if let (Err(error), Some((at, sent))) = (&result, &sent)
            && is_unknown_field(error)
            && let Some(copy) = self.known(at)
        {
            let step = Step::Replace { at: at.clone(), object: replacement(&copy, sent) };
            result = executor.run(vec![step], &Counting(&*self.hub.observer)).await;
        }
        let (written, state) = (std::mem::take(&mut executor.objects), executor.agent.state.into_inner());
        let mut noted = self.noted.clone();
        noted.status = state.entry("").and_then(|entry| entry.status.clone());
        if let Some((at, sent)) = sent
            && let Some(stored) = written.get(&at)
        {
            noted.altered = is_altered(&sent, stored).then(|| content_sum(stored));
        }
        self.hub.ledger.note(self.key, noted);
        for (at, object) in &written {
            self.hub.wrote(self.watch(at.side.role), object);
        }
        result?;
        Ok(if waits { Outcome::Settled } else { Outcome::Again })
    }

    /// An object as it was seen last.
    fn known(&self, at: &ObjectAddress) -> Option<Value> {
        if at.side.role == Role::Consumer {
            return self.source();
        }
        let key = ObjectKey { namespace: at.namespace.clone(), name: at.name.clone() };
        Some(self.hub.watched(self.watch(at.side.role))?.store.get(&key)?.value())
    }

    /// The consumer's object.
    fn source(&self) -> Option<Value> {
        let (Item::Object(key) | Item::Claimed(key)) = &self.key.item else { return None };
        Some(self.hub.watched(self.watch(Role::Consumer))?.store.get(key)?.value())
    }

    fn watch(&self, role: Role) -> &WatchId {
        let [consumer, provider] = &self.watches;
        if role == Role::Consumer { consumer } else { provider }
    }

    /// Whether a server itself says that an object is not there. A server that does not serve the kind, or not to us, says nothing about it.
    async fn is_gone(&self, at: &ObjectAddress) -> Result<bool, Trouble> {
        let path = resource(&at.kind).object_path(at.namespace.as_deref(), &at.name, None);
        let client = if at.side.role == Role::Consumer { &self.place.client } else { &self.hub.provider };
        match client.raw_get(&path).await {
            Ok(found) => {
                self.hub.wrote(self.watch(at.side.role), &found);
                Ok(false)
            }
            Err(error) if error.is_missing(&at.name) => Ok(true),
            Err(error) => Err(Trouble::request(&error)),
        }
    }
}

/// Whether a server refuses an apply because its schema does not have all fields.
fn is_unknown_field(error: &StepError) -> bool {
    let StepError::Write { verb: Verb::Apply, source, .. } = error else { return false };
    source.status().is_some_and(|status| wording::is_undeclared_field(&status.message))
}

/// What the executor has to know of us.
struct ObjectAgent<'a> {
    writing: &'a Writing<'a>,
    /// What is remembered as long as the konnector runs.
    state: Mutex<PrimaryState>,
    /// Whose writes these are.
    owner: SourceKey,
    uid: String,
}

/// By what the brake knows a piece of work.
fn brake_key(key: &WorkKey) -> SourceKey {
    let (namespace, name) = match &key.item {
        Item::Object(key) | Item::Claimed(key) => (key.namespace.as_deref().unwrap_or_default(), key.name.as_str()),
        Item::Namespaces => ("", ""),
    };
    SourceKey { cluster: key.lane.as_str().into(), namespace: namespace.into(), name: name.into() }
}

impl Agent for ObjectAgent<'_> {
    fn vocabulary(&self) -> &'static Vocabulary {
        &WORDS
    }

    fn field_manager(&self, _: bool) -> String {
        FIELD_MANAGER.to_owned()
    }

    /// kube-bind's own konnector creates copies under the name of its program.
    fn writers(&self) -> &[&str] {
        &["konnector"]
    }

    fn takes_all_fields(&self) -> bool {
        let (source, copy) = (self.writing.source(), self.writing.known(&self.writing.copy_at));
        source
            .zip(copy)
            .is_some_and(|(source, copy)| copies::annotation(&source, ADOPTED_ANNOTATION) == Some(copies::uid(&copy)))
    }

    fn is_confidential(&self, kind: &ApiKind) -> bool {
        kind.group.is_empty() && kind.kind == "Secret"
    }

    fn was_taken(&self) -> bool {
        false
    }

    fn adopt(&self, existing: &Value, _: &Value) -> Adoption {
        let contract = &self.writing.hub.contract;
        if is_copy(existing, Role::Consumer, contract) {
            return Adoption::Ours;
        }
        match copies::ownership(existing, contract) {
            Ownership::Ours => Adoption::Ours,
            Ownership::OtherContract(contract) => Adoption::Foreign { owner: format!("contract {contract}") },
            Ownership::Unmarked => Adoption::Refused,
        }
    }

    fn advice(&self) -> &'static Advice {
        &Advice {
            foreign: "another consumer has an object of this name, so choose another name here",
            refused: "delete or rename one of the two",
        }
    }

    fn has_namespace(&self, _: Side, _: &str) -> bool {
        true
    }

    async fn confirm_no_copy(&self) -> Result<(), StepError> {
        let (hub, at) = (self.writing.hub, &self.writing.copy_at);
        let path = resource(&at.kind).object_path(at.namespace.as_deref(), &at.name, None);
        match hub.provider.raw_get(&path).await {
            Ok(found)
                if copies::ownership(&found, &hub.contract) == Ownership::Ours
                    && !hub.is_derived(&found, self.writing.source().as_ref()) =>
            {
                hub.wrote(self.writing.watch(Role::Provider), &found);
                Err(StepError::CopyLeft(at.clone()))
            }
            Ok(_) => Ok(()),
            Err(error) if error.is_missing(&at.name) => Ok(()),
            Err(source) => Err(StepError::Write { verb: Verb::Get, at: at.into(), source }),
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
        Some((&self.writing.hub.brake, (&self.owner, &self.uid)))
    }

    fn refused_status(&self, at: &ObjectAddress) -> String {
        format!("{at} does not take the status of its copy; the schema here may be older than that of the provider")
    }
}
