//! Executing steps: the one place that writes.
#![allow(clippy::result_large_err)] // failures are rare, and reported at once

use std::collections::HashMap;
use std::sync::Arc;

use carrick_client::{Client, DeleteOptions, Error, ListOptions, Object};
use serde_json::{Value, json};

use super::kinds::resource;
use super::namespaces::Namespaces;
use super::states::States;
use super::step_error::StepError;
use crate::agent::events::{Recorder, Type};
use crate::api::{AGENT_NAME, FIELD_MANAGER, HELD_BY, REMOTE_NAMESPACE_HASH, REMOTE_UID};
use crate::decide::adopt::{Adoption, adopt};
use crate::decide::edit::{self, Edit, Guard, json_patch};
use crate::decide::events::{refused_status, texts};
use crate::decide::ownership::turned_over;
use crate::decide::state::{Applied, PrimaryState, StatusNote, checksum};
use crate::decide::{Claim, Dependents, Event, ObjectAddress, Role, Side, Step, claim};
use crate::rules::Rules;
use crate::rules::metadata::{KCP_SIDE, SourceKey, annotation, label, link_to};

/// Executes the steps of one object.
pub(super) struct StepExecutor<'a> {
    pub kcp: &'a Client,
    pub local: &'a Client,
    pub states: &'a States,
    pub namespaces: &'a Namespaces,
    pub recorder: &'a Recorder,
    pub rules: &'a Rules,
    /// Whether another object had the name of the copy at the last reconcile.
    pub was_taken: bool,
    pub key: &'a SourceKey,
    /// The primary.
    pub source: &'a Value,
    /// Other sources of the same name whose copies are of the same kind.
    pub rivals: &'a [(Arc<Rules>, Value)],
    /// Objects as they were seen or written last, for events.
    pub objects: HashMap<ObjectAddress, Value>,
}

impl StepExecutor<'_> {
    /// Executes one step.
    pub async fn execute(&mut self, step: Step) -> Result<(), StepError> {
        let verb = step.verb();
        match step {
            Step::SetFinalizers { at, finalizers, held_by, resource_version } => {
                self.patch(verb, at, &finalizers_patch(&finalizers, held_by, &resource_version)).await
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
            Step::ConfirmNoCopy => self.confirm_no_copy().await,
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
                let written = self.states.forget(&self.rules.remote, self.key).await;
                written.map_err(|source| self.state_failed(verb, source))
            }
            Step::Report { at, event } => {
                self.report(&at, event);
                Ok(())
            }
        }
    }

    /// Remembers an object whose copy cannot be made: it is held already, and must be released should its rules vanish.
    pub async fn hold(&self, entry: &str, value: &Value) {
        if self.states.get(&self.rules.remote, self.key).entry(entry).is_some() {
            return;
        }
        let note = |state: &mut PrimaryState| state.note_next(entry, value.clone(), true);
        if let Err(error) = self.states.update(&self.rules.remote, self.key, note).await {
            tracing::debug!(%error, "Cannot remember an object whose copy cannot be made.");
        }
    }

    fn client(&self, side: Side) -> &Client {
        match side.role {
            Role::Consumer => self.kcp,
            Role::Provider => self.local,
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
            let (reason, message) = texts(event);
            let kind = if event.is_warning() { Type::Warning } else { Type::Normal };
            self.recorder.event(self.kcp, object, kind, reason, message);
        }
    }

    async fn remember(&self, verb: &'static str, change: impl FnOnce(&mut PrimaryState)) -> Result<(), StepError> {
        let written = self.states.update(&self.rules.remote, self.key, change).await;
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
        let (client, manager) = (self.client(at.side), self.rules.field_manager(primary));
        if first {
            let live = client.get(&kind, namespace, &at.name).await.map_err(|source| failed("get", &at, source))?;
            let Some(live) = live.filter(|live| live["metadata"]["uid"] == object["metadata"]["uid"]) else {
                return Err(StepError::Stale(at.to_string()));
            };
            let entries = live["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
            if let Some(entries) = turned_over(entries, &[&manager, FIELD_MANAGER], &manager) {
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
                let state = self.states.get(&self.rules.remote, self.key);
                if state.entry(entry).is_some_and(|entry| entry.status.is_some()) {
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
        let error = if self.rules.is_confidential(&at.kind) { error.discreet() } else { error };
        if let Some(object) = self.objects.get(&at) {
            let (reason, message) = texts(Event::StatusRefused);
            self.recorder.event(self.kcp, object, Type::Warning, reason, &format!("{message} {error}"));
        }
        Err(StepError::StatusRefused(refused_status(&at)))
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
        let mut existing = if self.was_taken { get().await? } else { None };
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
        match adopt(&existing, &object, self.rules.adoption, &self.rules.subresources) {
            // Made by an earlier attempt, of which nothing is remembered and which may have known an older source: it is decided anew
            // once the copy is seen.
            Adoption::Ours => Err(StepError::CopyLeft(at.to_string())),
            Adoption::Take(taken) => {
                tracing::info!(object = %at, "Taking over an object that was there before.");
                let written = client.replace(&kind, namespace, &taken).await;
                self.wrote("adopt", at, written)
            }
            Adoption::Foreign { owner } => Err(StepError::Foreign { at: at.to_string(), owner }),
            Adoption::Refused => Err(StepError::Refused(at.to_string())),
        }
    }

    async fn ensure_namespace(&self, side: Side, name: &str) -> Result<(), StepError> {
        // A primary is in its namespace, so that exists.
        if side == KCP_SIDE && name == &*self.key.namespace {
            return Ok(());
        }
        self.namespaces.ensure(self.client(side), side, name).await
    }

    /// The cache is behind the server now and then; before a source is released, the server itself is asked.
    async fn confirm_no_copy(&self) -> Result<(), StepError> {
        if self.rules.blind {
            return Ok(());
        }
        let link = link_to(self.key, None).labels;
        let mut labels: Vec<String> = link.iter().map(|(k, v)| format!("{k}={v}")).collect();
        // A source without a namespace has nothing to do with one of the same name in some namespace.
        if self.key.namespace.is_empty() {
            labels.push(format!("!{REMOTE_NAMESPACE_HASH}"));
        }
        let kind = resource(&self.rules.local);
        let options = ListOptions::labels(labels.join(","));
        let left = self.local.list_compact(&kind, None, &options).await.map_err(|source| StepError::Write {
            verb: "list",
            at: format!("copies of {}/{}", self.key.namespace, self.key.name),
            source,
        })?;
        // Metadata will do, so that one that nests too deep is found as well.
        let left: Vec<Value> = left.iter().map(Object::value).collect();
        // The copy of another agent is that agent's business, that of another source is that source's, and so is that of an earlier object of
        // the same name.
        let uid = self.source["metadata"]["uid"].as_str();
        let ours = |copy: &&Value| {
            label(copy, AGENT_NAME).is_none_or(|agent| agent == self.rules.agent_name)
                && annotation(copy, REMOTE_UID).is_none_or(|theirs| Some(theirs) == uid)
                && !matches!(claim(self.rules, self.key, self.source, self.rivals, copy), Ok(Claim::Theirs))
        };
        let Some(copy) = left.iter().find(ours) else { return Ok(()) };
        let text = |key: &str| copy["metadata"][key].as_str();
        let (namespace, name) = (text("namespace"), text("name").unwrap_or_default());
        let at = format!("{} {}/{name}", kind.kind, namespace.unwrap_or_default());
        if label(copy, AGENT_NAME).is_none() {
            // Without the label no watch shows it.
            let resource_version = &copy["metadata"]["resourceVersion"];
            let labels = json!({AGENT_NAME: self.rules.agent_name});
            let patch = json!({"metadata": {"labels": labels, "resourceVersion": resource_version}});
            let patched = self.local.merge_patch(&kind, namespace, name, &patch).await;
            patched.map_err(|source| StepError::Write { verb: "label", at: at.clone(), source })?;
        }
        Err(StepError::CopyLeft(at))
    }

    fn state_failed(&self, verb: &'static str, source: Error) -> StepError {
        let at =
            format!("state Secret of {}/{} in logical cluster {}", self.key.namespace, self.key.name, self.key.cluster);
        StepError::Write { verb, at, source }
    }
}

/// Finalizers, and who relies on ours, unless the object has changed since.
fn finalizers_patch(finalizers: &[String], held_by: Option<Value>, resource_version: &str) -> Value {
    let mut patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": resource_version}});
    if let Some(held_by) = held_by {
        patch["metadata"]["annotations"] = json!({ HELD_BY: held_by });
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
        assert_eq!(patch(Some(json!("a")))["metadata"]["annotations"], json!({HELD_BY: "a"}));
        assert_eq!(patch(Some(Value::Null))["metadata"]["annotations"], json!({HELD_BY: null}));
    }

    #[test]
    fn a_change_is_made_only_to_what_it_was_made_for() {
        let guard = Guard::Version("7".to_owned());
        let at_version = |version: &str| Some(json!({"metadata": {"resourceVersion": version}}));
        assert!(still_meant(at_version("7"), &guard).is_some());
        assert!(still_meant(at_version("8"), &guard).is_none() && still_meant(None, &guard).is_none());
    }
}
