//! Executing steps: the one place that writes objects, under either contract.
#![allow(clippy::result_large_err)] // failures are rare, and reported at once

use std::collections::HashMap;
use std::sync::Arc;

use carrick_bind_api::mapping::ObjectKey;
use carrick_client::{Client, Error, wording};
use carrick_sync::executor::{Advice, Agent, Allowance, Brake, Executor, Namespaces, StepError, Verb, resource};
use carrick_sync::memory::PrimaryState;
use carrick_sync::{Adoption, ApiKind, Event, ObjectAddress, Role, Side, SourceKey, Step, Vocabulary};
use parking_lot::Mutex;
use serde_json::Value;

use super::observer::{Counting, WriteObserver};
use super::outcome::Trouble;
use super::store::Store;
use crate::decide::objects::{Noted, content_sum, is_altered, replacement};

/// What all writes of one contract share.
pub(in crate::agent) struct Tools {
    pub observer: Arc<dyn WriteObserver>,
    /// Namespaces that were made; the executor wants to know, but copies never need one.
    pub made: Namespaces,
    /// Keeps writes that are undone again and again from being repeated at once, and objects from being written too often.
    pub brake: Brake,
}

impl Tools {
    /// Those of a contract that writes nothing yet.
    pub fn new(observer: Arc<dyn WriteObserver>, writes: Allowance) -> Self {
        Self { observer, made: Namespaces::default(), brake: Brake::allowing(writes) }
    }
}

/// What is written for one object, and what a contract says about that.
pub(in crate::agent) trait Writing: Sync {
    /// What all writes of the contract share.
    fn tools(&self) -> &Tools;

    /// A side.
    fn client(&self, role: Role) -> &Client;

    /// What the watch of the object on a side has reported, as long as there is one.
    fn with_store<T>(&self, role: Role, act: impl FnOnce(&Store) -> T) -> Option<T>;

    /// What is remembered.
    fn noted(&self) -> &Noted;

    /// Where the copy on the provider is.
    fn copy_at(&self) -> &ObjectAddress;

    /// Lane, key and uid of the source, by which the brake knows these writes.
    fn braked(&self) -> (&str, Option<&ObjectKey>, String);

    /// What is written into metadata.
    fn vocabulary(&self) -> &'static Vocabulary;

    /// By whom it is written.
    fn manager(&self) -> &'static str;

    /// Under which names that was done other than by an apply.
    fn writers(&self) -> &[&str] {
        &[]
    }

    /// Whether fields that others have written so far become ours with the first apply, because the object was adopted.
    fn takes_all_fields(&self) -> bool {
        false
    }

    /// Whose an object in the place of a copy is.
    fn owner(&self, existing: &Value) -> Adoption;

    /// Whether an object in the place of the copy has to go before the source does.
    fn is_left(&self, found: &Value) -> bool;

    /// How people can give way to a copy.
    fn advice(&self) -> &'static Advice;

    /// By what the watch of a side knows an object.
    fn key_of(&self, at: &ObjectAddress) -> Option<ObjectKey> {
        Some(ObjectKey { namespace: at.namespace.clone(), name: at.name.clone() })
    }

    /// An object as it was seen last.
    fn known(&self, at: &ObjectAddress) -> Option<Value> {
        let key = self.key_of(at)?;
        self.with_store(at.side.role, |store| store.get(&key))?.map(|object| object.value())
    }
}

/// Carries out steps; returns what is to be remembered, and how it went.
pub(in crate::agent) async fn execute<W: Writing>(writing: &W, steps: Vec<Step>) -> (Noted, Result<(), StepError>) {
    let tools = writing.tools();
    let sent = steps.iter().find_map(|step| match step {
        Step::Create { at, object } | Step::Apply { at, object, .. } => Some((at.clone(), object.clone())),
        _ => None,
    });
    let mut state = PrimaryState::default();
    state.note_status("", writing.noted().status.clone());
    let (lane, key, uid) = writing.braked();
    let namespace = key.and_then(|key| key.namespace.as_deref()).unwrap_or_default();
    let name = key.map(|key| key.name.as_str()).unwrap_or_default();
    let owner = SourceKey { cluster: lane.into(), namespace: namespace.into(), name: name.into() };
    let mut executor = Executor {
        consumer: writing.client(Role::Consumer),
        provider: writing.client(Role::Provider),
        namespaces: &tools.made,
        agent: ObjectAgent { writing, state: Mutex::new(state), owner, uid },
        objects: HashMap::new(),
        rebased: HashMap::new(),
    };
    let mut result = executor.run(steps, &Counting(&*tools.observer)).await;
    if let (Err(error), Some((at, sent))) = (&result, &sent)
        && is_unknown_field(error)
        && let Some(copy) = writing.known(at)
    {
        let step = Step::Replace { at: at.clone(), object: replacement(&copy, sent) };
        result = executor.run(vec![step], &Counting(&*tools.observer)).await;
    }
    let (written, state) = (std::mem::take(&mut executor.objects), executor.agent.state.into_inner());
    let mut noted = writing.noted().clone();
    noted.status = state.entry("").and_then(|entry| entry.status.clone());
    if let Some((at, sent)) = sent
        && let Some(stored) = written.get(&at)
    {
        noted.altered = is_altered(&sent, stored).then(|| content_sum(stored));
    }
    for (at, object) in &written {
        writing.with_store(at.side.role, |store| store.wrote(object));
    }
    (noted, result)
}

/// Whether a server itself says that an object is not there. A server that does not serve the kind, or not to us, says nothing about it.
pub(in crate::agent) async fn is_gone(writing: &impl Writing, at: &ObjectAddress) -> Result<bool, Trouble> {
    match read(writing, at).await {
        Ok(Some(found)) => {
            writing.with_store(at.side.role, |store| store.wrote(&found));
            Ok(false)
        }
        Ok(None) => Ok(true),
        Err(error) => Err(Trouble::request(&error)),
    }
}

/// An object as its server has it.
async fn read(writing: &impl Writing, at: &ObjectAddress) -> Result<Option<Value>, Error> {
    let path = resource(&at.kind).object_path(at.namespace.as_deref(), &at.name, None);
    match writing.client(at.side.role).raw_get(&path).await {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_missing(&at.name) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a server refuses an apply because its schema does not have all fields.
fn is_unknown_field(error: &StepError) -> bool {
    let StepError::Write { verb: Verb::Apply, source, .. } = error else { return false };
    source.status().is_some_and(|status| wording::is_undeclared_field(&status.message))
}

/// What the executor has to know of us.
struct ObjectAgent<'a, W> {
    writing: &'a W,
    /// What is remembered as long as the konnector runs.
    state: Mutex<PrimaryState>,
    /// Whose writes these are.
    owner: SourceKey,
    uid: String,
}

impl<W: Writing> Agent for ObjectAgent<'_, W> {
    fn vocabulary(&self) -> &'static Vocabulary {
        self.writing.vocabulary()
    }

    fn field_manager(&self, _: bool) -> String {
        self.writing.manager().to_owned()
    }

    fn writers(&self) -> &[&str] {
        self.writing.writers()
    }

    fn takes_all_fields(&self) -> bool {
        self.writing.takes_all_fields()
    }

    fn is_confidential(&self, kind: &ApiKind) -> bool {
        kind.group.is_empty() && kind.kind == "Secret"
    }

    fn was_taken(&self) -> bool {
        false
    }

    fn adopt(&self, existing: &Value, _: &Value) -> Adoption {
        self.writing.owner(existing)
    }

    fn advice(&self) -> &'static Advice {
        self.writing.advice()
    }

    fn has_namespace(&self, _: Side, _: &str) -> bool {
        true
    }

    async fn confirm_no_copy(&self) -> Result<(), StepError> {
        let at = self.writing.copy_at();
        match read(self.writing, at).await {
            Ok(Some(found)) if self.writing.is_left(&found) => {
                self.writing.with_store(Role::Provider, |store| store.wrote(&found));
                Err(StepError::CopyLeft(at.clone()))
            }
            Ok(_) => Ok(()),
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
        Some((&self.writing.tools().brake, (&self.owner, &self.uid)))
    }

    fn refused_status(&self, at: &ObjectAddress) -> String {
        format!("{at} does not take the status of its copy; the schema here may be older than that of the provider")
    }
}
