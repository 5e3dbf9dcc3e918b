//! Carries out the steps that are decided on: the one place of an agent that writes.
//!
//! ```text
//!  Plan { steps } ──▶ Executor ──▶ consumer's and provider's cluster
//!                        │
//!   Agent       what it remembers, whom it informs, what it may take over
//!   Observer    counts, traces and learns how long servers take
//!   Brake       what is undone again and again is written ever more rarely, and nothing too often
//!   Namespaces  known to exist, so that nobody asks twice
//!   refusal     what follows when a server says no
//! ```
//!
//! Steps are executed in order, and the first failure ends them: see [`StepError`]. Whoever decides again afterwards heals what was left.
#![allow(clippy::result_large_err)] // failures are rare, and reported at once

mod agent;
mod brake;
mod error;
mod namespaces;
mod rate;
pub mod refusal;
mod resource;

use std::borrow::Cow;
use std::collections::HashMap;

use carrick_client::{Client, DeleteOptions, Error};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tracing::Instrument;

use crate::drift::Seen;
use crate::edit::{self, Edit, Guard, json_patch};
use crate::memory::{Applied, CopyNote, PrimaryState, StatusNote, checksum};
use crate::ownership::turned_over;
use crate::{Adoption, Dependents, Event, ObjectAddress, Role, Side, Step, Vocabulary};

pub use agent::{Advice, Agent, Observer};
pub use brake::{Brake, Contest, Wait};
pub use error::{StepError, Target, Verb, asks_to_wait};
pub use namespaces::Namespaces;
pub use rate::Allowance;
pub use resource::resource;

use brake::Write;
use refusal::{Access, Fallback, Then, follows, is_done};

/// Executes the steps of one object.
#[derive(Debug)]
pub struct Executor<'a, A> {
    /// The consumer's cluster.
    pub consumer: &'a Client,
    /// The provider's cluster.
    pub provider: &'a Client,
    /// Namespaces that are known to exist.
    pub namespaces: &'a Namespaces,
    /// Whom the steps are executed for.
    pub agent: A,
    /// Objects as they were seen or written last.
    pub objects: HashMap<ObjectAddress, Value>,
    /// Objects that earlier steps of the same plan have written: the version that steps name, and the one that followed it.
    pub rebased: HashMap<ObjectAddress, (String, String)>,
}

/// What was written and is still to be remembered.
#[derive(Debug, Default)]
pub struct Deferred(Vec<Note>);

#[derive(Debug)]
enum Note {
    Written { entry: String, applied: Applied, copy: Option<CopyNote>, seen: Option<Seen> },
    Seen { entry: String, seen: Seen },
    Dropped(String),
}

impl<A: Agent> Executor<'_, A> {
    /// Executes steps until one fails.
    pub async fn run(&mut self, steps: Vec<Step>, observer: &impl Observer) -> Result<(), StepError> {
        self.run_noting(steps, observer, None).await
    }

    /// The same, but what was written is noted for [`Executor::flush`] instead of being remembered at once. Dying before that is like dying
    /// between a write and its memory.
    pub async fn run_deferring(
        &mut self,
        steps: Vec<Step>,
        observer: &impl Observer,
        deferred: &mut Deferred,
    ) -> Result<(), StepError> {
        self.run_noting(steps, observer, Some(deferred)).await
    }

    /// Remembers everything that was noted, by one write.
    pub async fn flush(&self, deferred: &mut Deferred) -> Result<(), StepError> {
        let notes = std::mem::take(&mut deferred.0);
        if notes.is_empty() {
            return Ok(());
        }
        let note = |state: &mut PrimaryState| {
            for note in notes {
                match note {
                    Note::Written { entry, applied, copy, seen } => {
                        state.note_written(&entry, applied, copy);
                        if let Some(seen) = seen {
                            state.note_seen(&entry, seen);
                        }
                    }
                    Note::Seen { entry, seen } => state.note_seen(&entry, seen),
                    Note::Dropped(entry) => state.drop_entry(&entry),
                }
            }
        };
        self.remember(note).await
    }

    /// Remembers, by one write, what all of these are about to write.
    pub async fn intend(&self, strands: &[Vec<Step>]) -> Result<(), StepError> {
        let intents = strands.iter().flatten().filter_map(|step| match step {
            Step::RememberNext { entry, value } => Some((entry.clone(), value.clone())),
            _ => None,
        });
        let intents: Vec<(String, Value)> = intents.collect();
        if intents.len() < 2 {
            return Ok(());
        }
        let note = |state: &mut PrimaryState| {
            for (entry, value) in intents {
                if !state.entry(&entry).is_some_and(|entry| entry.has(&value)) {
                    state.note_next(&entry, value);
                }
            }
        };
        self.remember(note).await
    }

    async fn run_noting(
        &mut self,
        steps: Vec<Step>,
        observer: &impl Observer,
        mut deferred: Option<&mut Deferred>,
    ) -> Result<(), StepError> {
        let mut writes = self.check_brake(&steps)?.into_iter();
        let mut steps = steps.into_iter().peekable();
        while let Some(step) = steps.next() {
            let write = writes.next().flatten();
            let (verb, role) = (step.verb(), step.role());
            let noted = observer.begins(&step);
            let begun = Instant::now();
            if let (Some(write), Some((brake, _))) = (write, self.agent.brake()) {
                brake.sends(write);
            }
            // What is remembered holds the content of the objects it is about.
            let confidential = step.address().map_or(role.is_some(), |at| self.agent.is_confidential(&at.kind));
            let executed = match (step, deferred.as_deref_mut()) {
                // What is to be known before something is written cannot wait.
                (step @ Step::RememberSeen { .. }, _) if steps.peek().is_some() => {
                    self.execute(step).instrument(tracing::info_span!("step", verb)).await
                }
                (step @ (Step::Remember { .. } | Step::RememberSeen { .. } | Step::Drop { .. }), Some(deferred)) => {
                    deferred.0.extend(self.note_of(step));
                    Ok(())
                }
                (step, _) => self.execute(step).instrument(tracing::info_span!("step", verb)).await,
            };
            let executed = executed.map_err(|error| if confidential { error.discreet() } else { error });
            observer.ended(noted, role, begun.elapsed(), executed.as_ref().copied());
            if let (Err(error), Some(Step::Remember { entry, value, .. })) = (&executed, steps.peek())
                && !error.is_race()
                && !error.is_transient()
            {
                self.hold(entry, value).await;
            }
            executed?;
            if let (Some(write), Some((brake, _))) = (write, self.agent.brake()) {
                brake.wrote(write);
            }
        }
        Ok(())
    }

    /// What each step writes, for the brake. Nothing of a plan is executed as long as one of its writes has to wait.
    fn check_brake(&self, steps: &[Step]) -> Result<Vec<Option<Write>>, StepError> {
        let Some((brake, owner)) = self.agent.brake() else { return Ok(vec![None; steps.len()]) };
        let mut writes = Vec::with_capacity(steps.len());
        for step in steps {
            let write = brake.write_of(&owner, step, self.agent.vocabulary());
            if let (Some(Err(wait)), Some(at)) = (write.map(|write| brake.check(write)), step.address()) {
                let at = at.clone();
                return Err(match wait {
                    Wait::Contested(contest) => StepError::Undone { at, times: contest.times, wait: contest.wait },
                    Wait::TooOften(allowed, wait) => StepError::TooOften { at: Box::new(at), allowed, wait },
                });
            }
            writes.push(write);
        }
        Ok(writes)
    }

    /// Executes one step.
    async fn execute(&mut self, step: Step) -> Result<(), StepError> {
        match step {
            Step::SetFinalizers { at, finalizers, held_by, resource_version } => {
                let held = self.agent.vocabulary().held_by;
                self.patch(
                    Verb::SetFinalizers,
                    at,
                    &finalizers_patch(&finalizers, held_by.map(|it| (held, it)), &resource_version),
                )
                .await
            }
            Step::EnsureNamespace { side, name } => self.ensure_namespace(side, &name).await,
            Step::Create { at, object } => self.create(at, object).await,
            Step::Edit { at, edits, guard } => self.edit(at, &edits, &guard).await,
            Step::Apply { at, object, primary, first } => self.apply(at, object, primary, first).await,
            Step::Patch { at, patch } => self.patch(Verb::Patch, at, &patch).await,
            Step::Replace { at, object } => {
                let written = self.client(at.side).replace(&resource(&at.kind), at.namespace.as_deref(), &object).await;
                self.wrote(Verb::Replace, at, written)
            }
            Step::WriteStatus { at, object, entry, schema } => self.write_status(at, &object, &entry, schema).await,
            Step::Delete { at, uid, resource_version, dependents } => {
                let (client, options) = (self.client(at.side), delete_options(uid, resource_version, dependents));
                match client.delete(&resource(&at.kind), at.namespace.as_deref(), &at.name, &options).await {
                    Err(source) if !is_done(&source, Access::Delete) => Err(failed(Verb::Delete, &at, source)),
                    _ => Ok(()),
                }
            }
            Step::ConfirmNoCopy => self.agent.confirm_no_copy().await,
            Step::RememberNext { entry, value } => self.remember(|state| state.note_next(&entry, value)).await,
            Step::Remember { .. } | Step::RememberSeen { .. } | Step::Drop { .. } => {
                let mut noted = Deferred(self.note_of(step).into_iter().collect());
                self.flush(&mut noted).await
            }
            Step::Track { records } => self.remember(|state| state.track_all(records)).await,
            Step::Forget => {
                let written = self.agent.forget().await;
                written.map_err(|source| self.state_failed(Verb::Forget, source))
            }
            Step::Report { at, event } => {
                self.report(&at, event);
                Ok(())
            }
        }
    }

    fn note_of(&self, step: Step) -> Option<Note> {
        match step {
            Step::Remember { entry, value, copy, how, instead, seen } => {
                let (vocabulary, stored) = (self.agent.vocabulary(), copy.and_then(|at| self.objects.get(&at)));
                let seen = seen.and_then(|seen| seen.resolve(&value, stored));
                let copy = stored.and_then(|stored| CopyNote::of(vocabulary, stored, how));
                let applied = instead.map_or(Applied::Whole(value), Applied::Sum);
                Some(Note::Written { entry, applied, copy, seen })
            }
            Step::RememberSeen { entry, value, copy, seen } => {
                let seen = seen.resolve(&value, self.objects.get(&copy))?;
                Some(Note::Seen { entry, seen })
            }
            Step::Drop { entry } => Some(Note::Dropped(entry)),
            _ => None,
        }
    }

    /// Remembers an object whose copy cannot be made: it is held already, and must be released should its rules vanish.
    async fn hold(&self, entry: &str, value: &Value) {
        if self.agent.memory().entry(entry).is_some() {
            return;
        }
        let note = |state: &mut PrimaryState| state.note_next(entry, value.clone());
        if let Err(error) = self.agent.remember(note).await {
            tracing::debug!(%error, "Cannot remember an object whose copy cannot be made.");
        }
    }

    fn client(&self, side: Side) -> &Client {
        match side.role {
            Role::Consumer => self.consumer,
            Role::Provider => self.provider,
        }
    }

    fn wrote(&mut self, verb: Verb, at: ObjectAddress, written: Result<Value, Error>) -> Result<(), StepError> {
        match written {
            Ok(object) => {
                // An edit does not name a version, so somebody else's may have come in between.
                if let Some(before) = self.objects.get(&at).filter(|_| verb != Verb::Edit) {
                    let first = self.rebased.remove(&at).map_or_else(|| version(before).to_owned(), |(first, _)| first);
                    self.rebased.insert(at.clone(), (first, version(&object).to_owned()));
                }
                self.objects.insert(at, object);
                Ok(())
            }
            Err(source) => Err(failed(verb, &at, source)),
        }
    }

    fn report(&self, at: &ObjectAddress, event: Event) {
        if let Some(object) = self.objects.get(at) {
            self.agent.report(object, event, None);
        }
    }

    async fn remember(&self, change: impl FnOnce(&mut PrimaryState) + Send) -> Result<(), StepError> {
        let written = self.agent.remember(change).await;
        written.map_err(|source| self.state_failed(Verb::Remember, source))
    }

    /// Changes a copy if the guard holds when the write arrives. Where patches are not granted, or too much changes for one, the whole
    /// object is replaced.
    async fn edit(&mut self, at: ObjectAddress, edits: &[Edit], guard: &Guard) -> Result<(), StepError> {
        let (kind, namespace) = (resource(&at.kind), at.namespace.as_deref());
        let client = self.client(at.side);
        let patched = client.json_patch(&kind, namespace, &at.name, &json_patch(edits, guard)).await;
        let fallback = patched.as_ref().err().and_then(|error| follows(error, Access::Change, at.side.role).fallback);
        let (Err(refused), Some(fallback)) = (&patched, fallback) else { return self.wrote(Verb::Edit, at, patched) };
        let live = client.get(&kind, namespace, &at.name).await.map_err(|source| failed(Verb::Get, &at, source))?;
        let Some(mut live) = still_meant(live, guard) else {
            return Err(StepError::Stale(at));
        };
        // The server reports a test that fails like an object that is not valid.
        if fallback != Fallback::ReplaceWhole {
            return self.wrote(Verb::Edit, at, patched);
        }
        edit::apply(edits, &mut live);
        match client.replace(&kind, namespace, &live).await {
            // Of two rights that are missing, the first one is named.
            Err(error) if error.is_forbidden() => Err(failed(Verb::Edit, &at, refused.clone())),
            replaced => self.wrote(Verb::Edit, at, replaced),
        }
    }

    /// Applies what is ours on a copy. Whatever was written in another way is turned over first, or else it would stay for ever.
    async fn apply(
        &mut self,
        at: ObjectAddress,
        mut object: Value,
        primary: bool,
        first: bool,
    ) -> Result<(), StepError> {
        let (kind, namespace) = (resource(&at.kind), at.namespace.as_deref());
        let (client, manager) = (self.client(at.side), self.agent.field_manager(primary));
        if first {
            let live = client.get(&kind, namespace, &at.name).await.map_err(|source| failed(Verb::Get, &at, source))?;
            let Some(live) = live.filter(|live| live["metadata"]["uid"] == object["metadata"]["uid"]) else {
                return Err(StepError::Stale(at));
            };
            let entries = live["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
            let mut writers: Vec<&str> = self.agent.writers().iter().copied().chain([manager.as_str()]).collect();
            if self.agent.takes_all_fields() {
                writers.extend(entries.iter().filter_map(|entry| entry["manager"].as_str()));
            }
            if let Some(entries) = turned_over(entries, &writers, &manager) {
                let version = &object["metadata"]["resourceVersion"];
                let patch = json!([
                    {"op": "add", "path": "/metadata/resourceVersion", "value": version},
                    {"op": "replace", "path": "/metadata/managedFields", "value": entries},
                ]);
                let patched = client.json_patch(&kind, namespace, &at.name, &patch).await;
                let patched = patched.map_err(|source| failed(Verb::Apply, &at, source))?;
                object["metadata"]["resourceVersion"] = patched["metadata"]["resourceVersion"].clone();
            }
        }
        let applied = client.apply_as(&kind, namespace, &object, &manager).await;
        self.wrote(Verb::Apply, at, applied)
    }

    /// Writes a status. One that the server does not take as it is would be sent again and again: it is remembered what was sent.
    async fn write_status(
        &mut self,
        at: ObjectAddress,
        object: &Value,
        entry: &str,
        schema: String,
    ) -> Result<(), StepError> {
        let client = self.client(at.side);
        let sum = |object: &Value| checksum(&object["status"]);
        let sent = sum(object);
        let written = client.replace_status(&resource(&at.kind), at.namespace.as_deref(), object).await;
        let stored = match &written {
            Ok(stored) if stored["status"] == object["status"] => {
                if self.agent.memory().entry(entry).is_some_and(|entry| entry.status.is_some()) {
                    self.remember(|state| state.note_status(entry, None)).await?;
                }
                return self.wrote(Verb::WriteStatus, at, written);
            }
            Ok(stored) => Some(sum(stored)),
            Err(error) if follows(error, Access::Status, at.side.role).then == Then::GiveUp => None,
            Err(_) => return self.wrote(Verb::WriteStatus, at, written),
        };
        let note = StatusNote { sent, stored, schema };
        self.remember(|state| state.note_status(entry, Some(note))).await?;
        let Err(error) = written else {
            self.report(&at, Event::StatusAltered);
            return self.wrote(Verb::WriteStatus, at, written);
        };
        let error = if self.agent.is_confidential(&at.kind) { error.discreet() } else { error };
        if let Some(object) = self.objects.get(&at) {
            self.agent.report(object, Event::StatusRefused, Some(&error.to_string()));
        }
        Err(StepError::StatusRefused(self.agent.refused_status(&at)))
    }

    /// Sends a merge patch. If an earlier step of the same plan has replaced the version that it names, it is for the one that followed.
    async fn patch(&mut self, verb: Verb, at: ObjectAddress, patch: &Value) -> Result<(), StepError> {
        let patch = rebased(patch, self.rebased.get(&at));
        let client = self.client(at.side);
        let written = client.merge_patch(&resource(&at.kind), at.namespace.as_deref(), &at.name, &patch).await;
        self.wrote(verb, at, written)
    }

    async fn create(&mut self, at: ObjectAddress, object: Value) -> Result<(), StepError> {
        let (kind, namespace) = (resource(&at.kind), at.namespace.as_deref());
        let client = self.client(at.side);
        let get =
            async || client.get(&kind, namespace, &at.name).await.map_err(|source| failed(Verb::Get, &at, source));
        // Where the name was taken before, it probably still is: that is no reason to write again and again.
        let mut existing = if self.agent.was_taken() { get().await? } else { None };
        if existing.is_none() {
            let created = client.create(&kind, namespace, &object).await;
            let Err(refused) = &created else { return self.wrote(Verb::Create, at, created) };
            let fallback = follows(refused, Access::Create, at.side.role).fallback;
            if fallback == Some(Fallback::MakeNamespace)
                && let Some(namespace) = namespace
            {
                // It may have been deleted since it was last seen.
                self.namespaces.forget(client, namespace);
            }
            if fallback != Some(Fallback::ReadOwner) {
                return self.wrote(Verb::Create, at, created);
            }
            existing = get().await?;
            if existing.is_none() {
                return self.wrote(Verb::Create, at, created);
            }
        }
        let existing = existing.unwrap_or_default();
        match self.agent.adopt(&existing, &object) {
            // Made by an earlier attempt, of which nothing is remembered and which may have known an older source: it is decided again
            // once the copy is seen.
            Adoption::Ours => {
                self.relink(&at, &existing, &object).await?;
                Err(StepError::CopyLeft(at))
            }
            Adoption::Take(taken) => {
                tracing::info!(object = %at, "Taking over an object that was there before.");
                let written = client.replace(&kind, namespace, &taken).await;
                self.wrote(Verb::Adopt, at, written)
            }
            Adoption::Foreign { owner } => {
                Err(StepError::Foreign { at: at.clone(), owner, advice: self.agent.advice().foreign })
            }
            Adoption::Refused => Err(StepError::Refused { at: at.clone(), advice: self.agent.advice().refused }),
        }
    }

    /// Gives a copy the labels of its link that it lacks: without them no watch shows whose it is.
    async fn relink(&self, at: &ObjectAddress, copy: &Value, wanted: &Value) -> Result<(), StepError> {
        let Some(patch) = link_patch(self.agent.vocabulary(), copy, wanted) else { return Ok(()) };
        tracing::info!(object = %at, "A copy has lost labels that lead to its source; it gets them back.");
        let written =
            self.client(at.side).merge_patch(&resource(&at.kind), at.namespace.as_deref(), &at.name, &patch).await;
        written.map(drop).map_err(|source| failed(Verb::Label, at, source))
    }

    async fn ensure_namespace(&self, side: Side, name: &str) -> Result<(), StepError> {
        if self.agent.has_namespace(side, name) {
            return Ok(());
        }
        self.namespaces.ensure(self.client(side), side, name).await
    }

    fn state_failed(&self, verb: Verb, source: Error) -> StepError {
        StepError::Write { verb, at: Target::Memory(self.agent.memory_at()), source }
    }
}

/// Finalizers, and who relies on ours, unless the object has changed since.
fn finalizers_patch(finalizers: &[String], held_by: Option<(&str, Value)>, resource_version: &str) -> Value {
    let mut patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": resource_version}});
    if let Some((key, holders)) = held_by {
        patch["metadata"]["annotations"] = json!({ key: holders });
    }
    patch
}

fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default()
}

/// A patch for the version that followed the one it names.
fn rebased<'a>(patch: &'a Value, moved: Option<&(String, String)>) -> Cow<'a, Value> {
    match moved {
        Some((from, to)) if version(patch) == from => {
            let mut patch = patch.clone();
            patch["metadata"]["resourceVersion"] = json!(to);
            Cow::Owned(patch)
        }
        _ => Cow::Borrowed(patch),
    }
}

/// The patch that gives a copy the labels by which it is found and that it should have; none if it has them.
pub fn link_patch(vocabulary: &Vocabulary, copy: &Value, wanted: &Value) -> Option<Value> {
    // Agents without a name find their copies in other ways.
    let named = (!vocabulary.agent_name.is_empty()).then_some(wanted)?;
    let wanted = named["metadata"]["labels"].as_object().into_iter().flatten();
    let lacking = |(key, value): &(&String, &Value)| {
        key.starts_with(vocabulary.prefix) && copy["metadata"]["labels"].get(key.as_str()) != Some(value)
    };
    let labels: Map<String, Value> = wanted.filter(lacking).map(|(key, value)| (key.clone(), value.clone())).collect();
    let resource_version = &copy["metadata"]["resourceVersion"];
    (!labels.is_empty()).then(|| json!({"metadata": {"labels": labels, "resourceVersion": resource_version}}))
}

/// An object as it is now, if it is still the one that a change was made for.
fn still_meant(live: Option<Value>, guard: &Guard) -> Option<Value> {
    live.filter(|live| guard.holds(live))
}

/// Exactly the object that was seen, not one that has taken its place.
fn delete_options(uid: String, resource_version: Option<String>, dependents: Dependents) -> DeleteOptions {
    let propagation_policy = Some(dependents.policy().to_owned());
    DeleteOptions { uid: Some(uid), resource_version, propagation_policy }
}

fn failed(verb: Verb, at: &ObjectAddress, source: Error) -> StepError {
    StepError::Write { verb, at: at.into(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delete_says_which_object_it_means() {
        let options = delete_options("u".to_owned(), None, Dependents::First);
        assert_eq!((options.uid.as_deref(), options.propagation_policy.as_deref()), (Some("u"), Some("Foreground")));
        let options = delete_options("u".to_owned(), Some("7".to_owned()), Dependents::First);
        assert_eq!(options.resource_version.as_deref(), Some("7"));
    }

    #[test]
    fn a_patch_follows_what_the_same_plan_wrote_before_it_and_nothing_else() {
        let patch = |version: &str| json!({"metadata": {"resourceVersion": version, "annotations": {"a": "1"}}});
        let moved = ("7".to_owned(), "9".to_owned());
        assert_eq!(*rebased(&patch("7"), Some(&moved)), patch("9"));
        assert_eq!(*rebased(&patch("8"), Some(&moved)), patch("8"), "that is a version of somebody else");
        assert_eq!(*rebased(&patch("7"), None), patch("7"));
    }

    #[test]
    fn finalizers_are_set_only_over_the_version_that_was_seen() {
        let patch = |held_by| finalizers_patch(&["f".to_owned()], held_by, "7");
        let expected = json!({"metadata": {"finalizers": ["f"], "resourceVersion": "7"}});
        assert_eq!(patch(None), expected);
        assert_eq!(patch(Some(("by", json!("a"))))["metadata"]["annotations"], json!({"by": "a"}));
        assert_eq!(patch(Some(("by", Value::Null)))["metadata"]["annotations"], json!({"by": null}));
    }

    #[test]
    fn a_change_is_made_only_to_what_it_was_made_for() {
        let guard = Guard::Version("7".to_owned());
        let at_version = |version: &str| Some(json!({"metadata": {"resourceVersion": version}}));
        assert!(still_meant(at_version("7"), &guard).is_some());
        assert!(still_meant(at_version("8"), &guard).is_none() && still_meant(None, &guard).is_none());
    }
}
