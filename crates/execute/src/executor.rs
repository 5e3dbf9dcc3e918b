//! Executing steps.
#![allow(clippy::result_large_err)] // failures are rare, and reported at once

use std::collections::HashMap;

use carrick_client::{Client, DeleteOptions, Error};
use carrick_sync::edit::{self, Edit, Guard, json_patch};
use carrick_sync::memory::{Applied, PrimaryState, StatusNote, checksum};
use carrick_sync::ownership::turned_over;
use carrick_sync::{Adoption, Dependents, Event, ObjectAddress, Role, Side, Step};
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::Instrument;

use crate::agent::{Agent, Observer};
use crate::error::StepError;
use crate::namespaces::Namespaces;
use crate::resource::resource;

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
}

impl<A: Agent> Executor<'_, A> {
    /// Executes steps until one fails.
    pub async fn run(&mut self, steps: Vec<Step>, observer: &impl Observer) -> Result<(), StepError> {
        let mut steps = steps.into_iter().peekable();
        while let Some(step) = steps.next() {
            let (verb, role) = (step.verb(), step.role());
            let noted = observer.begins(&step);
            let begun = Instant::now();
            // What is remembered holds the content of the objects it is about.
            let confidential = step.address().map_or(role.is_some(), |at| self.agent.is_confidential(&at.kind));
            let executed = self.execute(step).instrument(tracing::info_span!("step", verb)).await;
            let executed = executed.map_err(|error| if confidential { error.discreet() } else { error });
            observer.ended(noted, role, begun.elapsed(), executed.as_ref().copied());
            if let (Err(error), Some(Step::Remember { entry, value, .. })) = (&executed, steps.peek())
                && !error.is_race()
                && !error.is_transient()
            {
                self.hold(entry, value).await;
            }
            executed?;
        }
        Ok(())
    }

    /// Executes one step.
    async fn execute(&mut self, step: Step) -> Result<(), StepError> {
        let verb = step.verb();
        match step {
            Step::SetFinalizers { at, finalizers, held_by, resource_version } => {
                let held = self.agent.vocabulary().held_by;
                self.patch(verb, at, &finalizers_patch(&finalizers, held_by.map(|it| (held, it)), &resource_version))
                    .await
            }
            Step::EnsureNamespace { side, name } => self.ensure_namespace(side, &name).await,
            Step::Create { at, object } => self.create(at, object).await,
            Step::Edit { at, edits, guard, annotated } => self.edit(at, &edits, &guard, annotated).await,
            Step::Apply { at, object, primary, first } => self.apply(at, object, primary, first).await,
            Step::Patch { at, patch } => self.patch(verb, at, &patch).await,
            Step::Replace { at, object } => {
                let written = self.client(at.side).replace(&resource(&at.kind), at.namespace.as_deref(), &object).await;
                self.wrote(verb, at, written)
            }
            Step::WriteStatus { at, object, entry, schema } => self.write_status(at, &object, &entry, schema).await,
            Step::Delete { at, uid, dependents } => {
                let (client, options) = (self.client(at.side), delete_options(uid, dependents));
                match client.delete(&resource(&at.kind), at.namespace.as_deref(), &at.name, &options).await {
                    Err(source) if !source.is_not_found() => Err(failed(verb, &at, source)),
                    _ => Ok(()),
                }
            }
            Step::ConfirmNoCopy => self.agent.confirm_no_copy().await,
            Step::RememberNext { entry, value, only } => {
                self.remember(verb, |state| state.note_next(&entry, value, only)).await
            }
            Step::Remember { entry, value, copy, instead } => {
                let copy = copy.and_then(|at| Some(self.objects.get(&at)?["metadata"]["uid"].as_str()?.to_owned()));
                let applied = instead.map_or(Applied::Whole(value), Applied::Sum);
                self.remember(verb, |state| state.note_written(&entry, applied, copy.as_deref())).await
            }
            Step::Track { records } => self.remember(verb, |state| state.track_all(records)).await,
            Step::Drop { entry } => self.remember(verb, |state| state.drop_entry(&entry)).await,
            Step::Forget => {
                let written = self.agent.forget().await;
                written.map_err(|source| self.state_failed(verb, source))
            }
            Step::Report { at, event } => {
                self.report(&at, event);
                Ok(())
            }
        }
    }

    /// Remembers an object whose copy cannot be made: it is held already, and must be released should its rules vanish.
    async fn hold(&self, entry: &str, value: &Value) {
        if self.agent.memory().entry(entry).is_some() {
            return;
        }
        let note = |state: &mut PrimaryState| state.note_next(entry, value.clone(), true);
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

    fn wrote(&mut self, verb: &'static str, at: ObjectAddress, written: Result<Value, Error>) -> Result<(), StepError> {
        match written {
            Ok(object) => {
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

    async fn remember(
        &self,
        verb: &'static str,
        change: impl FnOnce(&mut PrimaryState) + Send,
    ) -> Result<(), StepError> {
        let written = self.agent.remember(change).await;
        written.map_err(|source| self.state_failed(verb, source))
    }

    /// Changes a copy if the guard holds when the write arrives. Where patches are not granted, the whole object is replaced.
    async fn edit(
        &mut self,
        at: ObjectAddress,
        edits: &[Edit],
        guard: &Guard,
        annotated: bool,
    ) -> Result<(), StepError> {
        let (kind, namespace) = (resource(&at.kind), at.namespace.as_deref());
        let client = self.client(at.side);
        let patched = client.json_patch(&kind, namespace, &at.name, &json_patch(edits, guard, annotated)).await;
        let refused = match patched {
            // The server reports a test that fails like an object that is not valid.
            Err(error) if error.is_invalid() || error.is_forbidden() => error,
            patched => return self.wrote("edit", at, patched),
        };
        let live = client.get(&kind, namespace, &at.name).await.map_err(|source| failed("get", &at, source))?;
        let Some(mut live) = still_meant(live, guard) else {
            return Err(StepError::Stale(at.to_string()));
        };
        if refused.is_invalid() {
            return Err(failed("edit", &at, refused));
        }
        edit::apply(edits, &mut live);
        match client.replace(&kind, namespace, &live).await {
            Err(error) if error.is_forbidden() => Err(failed("edit", &at, refused)),
            replaced => self.wrote("edit", at, replaced),
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
            let live = client.get(&kind, namespace, &at.name).await.map_err(|source| failed("get", &at, source))?;
            let Some(live) = live.filter(|live| live["metadata"]["uid"] == object["metadata"]["uid"]) else {
                return Err(StepError::Stale(at.to_string()));
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
                let patched = patched.map_err(|source| failed("apply", &at, source))?;
                object["metadata"]["resourceVersion"] = patched["metadata"]["resourceVersion"].clone();
            }
        }
        let applied = client.apply_as(&kind, namespace, &object, &manager).await;
        self.wrote("apply", at, applied)
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
                    self.remember("remember", |state| state.note_status(entry, None)).await?;
                }
                return self.wrote("write-status", at, written);
            }
            Ok(stored) => Some(sum(stored)),
            Err(error) if error.is_invalid() => None,
            Err(_) => return self.wrote("write-status", at, written),
        };
        let note = StatusNote { sent, stored, schema };
        self.remember("remember", |state| state.note_status(entry, Some(note))).await?;
        let Err(error) = written else {
            self.report(&at, Event::StatusAltered);
            return self.wrote("write-status", at, written);
        };
        let error = if self.agent.is_confidential(&at.kind) { error.discreet() } else { error };
        if let Some(object) = self.objects.get(&at) {
            self.agent.report(object, Event::StatusRefused, Some(&error.to_string()));
        }
        Err(StepError::StatusRefused(self.agent.refused_status(&at)))
    }

    async fn patch(&mut self, verb: &'static str, at: ObjectAddress, patch: &Value) -> Result<(), StepError> {
        let client = self.client(at.side);
        let written = client.merge_patch(&resource(&at.kind), at.namespace.as_deref(), &at.name, patch).await;
        self.wrote(verb, at, written)
    }

    async fn create(&mut self, at: ObjectAddress, object: Value) -> Result<(), StepError> {
        let (kind, namespace) = (resource(&at.kind), at.namespace.as_deref());
        let client = self.client(at.side);
        let get = async || client.get(&kind, namespace, &at.name).await.map_err(|source| failed("get", &at, source));
        // Where the name was taken before, it probably still is: that is no reason to write again and again.
        let mut existing = if self.agent.was_taken() { get().await? } else { None };
        if existing.is_none() {
            let created = client.create(&kind, namespace, &object).await;
            let Err(refused) = &created else { return self.wrote("create", at, created) };
            if refused.is_not_found() {
                // The namespace may have been deleted since it was last seen.
                self.namespaces.forget();
            }
            if !refused.is_already_exists() {
                return self.wrote("create", at, created);
            }
            existing = get().await?;
            if existing.is_none() {
                return self.wrote("create", at, created);
            }
        }
        let existing = existing.unwrap_or_default();
        match self.agent.adopt(&existing, &object) {
            // Made by an earlier attempt, of which nothing is remembered and which may have known an older source: it is decided anew
            // once the copy is seen.
            Adoption::Ours => Err(StepError::CopyLeft(at.to_string())),
            Adoption::Take(taken) => {
                tracing::info!(object = %at, "Taking over an object that was there before.");
                let written = client.replace(&kind, namespace, &taken).await;
                self.wrote("adopt", at, written)
            }
            Adoption::Foreign { owner } => {
                Err(StepError::Foreign { at: at.to_string(), owner, advice: self.agent.advice().foreign })
            }
            Adoption::Refused => Err(StepError::Refused { at: at.to_string(), advice: self.agent.advice().refused }),
        }
    }

    async fn ensure_namespace(&self, side: Side, name: &str) -> Result<(), StepError> {
        if self.agent.has_namespace(side, name) {
            return Ok(());
        }
        self.namespaces.ensure(self.client(side), side, name).await
    }

    fn state_failed(&self, verb: &'static str, source: Error) -> StepError {
        StepError::Write { verb, at: self.agent.memory_at(), source }
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

/// An object as it is now, if it is still the one that a change was made for.
fn still_meant(live: Option<Value>, guard: &Guard) -> Option<Value> {
    live.filter(|live| guard.holds(live))
}

/// Exactly the object that was seen, not one that has taken its place.
fn delete_options(uid: String, dependents: Dependents) -> DeleteOptions {
    let propagation_policy = Some(dependents.policy().to_owned());
    DeleteOptions { uid: Some(uid), propagation_policy, ..DeleteOptions::default() }
}

fn failed(verb: &'static str, at: &ObjectAddress, source: Error) -> StepError {
    StepError::Write { verb, at: at.to_string(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delete_says_which_object_it_means() {
        let options = delete_options("u".to_owned(), Dependents::First);
        assert_eq!((options.uid.as_deref(), options.propagation_policy.as_deref()), (Some("u"), Some("Foreground")));
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
