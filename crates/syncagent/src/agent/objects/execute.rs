//! Executing steps: the one place that writes.

use std::collections::HashMap;
use std::sync::Arc;

use carrick_client::{Client, DeleteOptions, Error, ListOptions, Resource};
use parking_lot::Mutex;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::sync::OnceCell;

use super::kinds::resource;
use super::states::States;
use crate::agent::events::{Recorder, Type};
use crate::api::AGENT_NAME;
use crate::decide::adopt::{Adoption, adopt};
use crate::decide::state::State;
use crate::decide::{Place, Side, Step};
use crate::rules::Rules;
use crate::rules::metadata::{Link, SourceKey, label};

/// Why a step could not be executed.
#[derive(Debug, Error)]
pub(super) enum StepError {
    /// A server refused or did not answer.
    #[error("cannot {verb} {at}: {source}")]
    Write {
        /// What was tried.
        verb: &'static str,
        /// On which object.
        at: String,
        /// What the server said.
        source: Error,
    },
    /// The place of a new copy is taken.
    #[error(
        "{at} exists already and belongs to {owner}; change spec.naming of the PublishedResource or remove that object"
    )]
    Foreign {
        /// The object.
        at: String,
        /// Who owns it.
        owner: String,
    },
    /// A copy was not visible before.
    #[error("a copy is still there: {0}; it is looked at again")]
    CopyLeft(String),
}

impl StepError {
    /// Whether somebody else was faster: nothing is wrong, the object is just decided anew.
    pub fn is_race(&self) -> bool {
        match self {
            Self::Write { source, .. } => source.is_conflict() || source.is_already_exists(),
            Self::Foreign { .. } => false,
            Self::CopyLeft(_) => true,
        }
    }

    /// The object, in words, that the agent may not write.
    pub fn refused(&self) -> Option<&str> {
        match self {
            Self::Write { at, source, .. } if source.is_forbidden() => Some(at),
            _ => None,
        }
    }

    /// Whether a server has too much to do.
    pub fn is_overload(&self) -> bool {
        matches!(self, Self::Write { source, .. } if source.is_overload())
    }

    /// Whether a server is at fault, so that it may work by itself later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Write { source, .. } if source.is_transient())
    }
}

/// Namespaces that are known to exist, by the URL of their server, so that they are not asked for again and again.
#[derive(Default)]
pub(super) struct Namespaces(Mutex<HashMap<(String, String), Known>>);

/// Whether a namespace is known to exist; whoever asks while another one finds out waits for that.
type Known = Arc<OnceCell<()>>;

/// Executes the steps of one object.
pub(super) struct Executor<'a> {
    pub kcp: &'a Client,
    pub local: &'a Client,
    pub states: &'a States,
    pub namespaces: &'a Namespaces,
    pub recorder: &'a Recorder,
    pub rules: &'a Rules,
    pub key: &'a SourceKey,
    /// Objects as they were seen or written last, for events.
    pub objects: HashMap<Place, Value>,
}

impl Executor<'_> {
    /// Executes one step.
    pub async fn execute(&mut self, step: Step) -> Result<(), StepError> {
        let verb = step.verb();
        match step {
            Step::SetFinalizers { at, finalizers, resource_version } => {
                let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": resource_version}});
                self.patch(verb, at, &patch).await
            }
            Step::EnsureNamespace { side, name } => self.ensure_namespace(side, &name).await,
            Step::Create { at, object } => self.create(at, object).await,
            Step::Patch { at, patch } => self.patch(verb, at, &patch).await,
            Step::Replace { at, object } => {
                let written = self.client(at.side).replace(&resource(&at.kind), at.namespace.as_deref(), &object).await;
                self.wrote(verb, at, written)
            }
            Step::WriteStatus { at, object } => {
                let kind = resource(&at.kind);
                let written = self.client(at.side).replace_status(&kind, at.namespace.as_deref(), &object).await;
                self.wrote(verb, at, written)
            }
            Step::Delete { at, uid, dependents } => {
                let propagation_policy = Some(dependents.policy().to_owned());
                let options = DeleteOptions { uid: Some(uid), propagation_policy, ..DeleteOptions::default() };
                let client = self.client(at.side);
                match client.delete(&resource(&at.kind), at.namespace.as_deref(), &at.name, &options).await {
                    Err(source) if !source.is_not_found() => Err(failed(verb, &at, source)),
                    _ => Ok(()),
                }
            }
            Step::ConfirmNoCopy => self.confirm_no_copy().await,
            Step::RememberNext { entry, value } => {
                let written = self.states.update(&self.rules.remote, self.key, |state| state.note_next(&entry, value));
                written.await.map_err(|source| self.state_failed(verb, source))
            }
            Step::Remember { entry, value } => {
                let written = self.states.update(&self.rules.remote, self.key, |state| state.note(&entry, value));
                written.await.map_err(|source| self.state_failed(verb, source))
            }
            Step::Track { records } => {
                let track = |state: &mut State| records.into_iter().for_each(|(key, record)| state.track(&key, record));
                let written = self.states.update(&self.rules.remote, self.key, track).await;
                written.map_err(|source| self.state_failed(verb, source))
            }
            Step::Drop { entry } => {
                let written = self.states.update(&self.rules.remote, self.key, |state| state.drop_entry(&entry));
                written.await.map_err(|source| self.state_failed(verb, source))
            }
            Step::Forget => {
                let written = self.states.forget(&self.rules.remote, self.key).await;
                written.map_err(|source| self.state_failed(verb, source))
            }
            Step::Report { at, event } => {
                if let Some(object) = self.objects.get(&at) {
                    let (reason, message) = event.texts();
                    let kind = if event.is_warning() { Type::Warning } else { Type::Normal };
                    self.recorder.event(self.kcp, object, kind, reason, message);
                }
                Ok(())
            }
        }
    }

    /// Leaves a trace of an object whose copy cannot be made: it is held already, and must be let go should its rules vanish.
    pub async fn hold(&self, entry: &str, value: &Value) {
        if self.states.get(&self.rules.remote, self.key).entry(entry).is_some() {
            return;
        }
        let written = self.states.update(&self.rules.remote, self.key, |state| state.note_next(entry, value.clone()));
        if let Err(error) = written.await {
            tracing::debug!(%error, "Cannot leave a trace.");
        }
    }

    fn client(&self, side: Side) -> &Client {
        match side {
            Side::Kcp => self.kcp,
            Side::Service => self.local,
        }
    }

    fn wrote(&mut self, verb: &'static str, at: Place, written: Result<Value, Error>) -> Result<(), StepError> {
        match written {
            Ok(object) => {
                self.objects.insert(at, object);
                Ok(())
            }
            Err(source) => Err(failed(verb, &at, source)),
        }
    }

    async fn patch(&mut self, verb: &'static str, at: Place, patch: &Value) -> Result<(), StepError> {
        let client = self.client(at.side);
        let written = client.merge_patch(&resource(&at.kind), at.namespace.as_deref(), &at.name, patch).await;
        self.wrote(verb, at, written)
    }

    async fn create(&mut self, at: Place, object: Value) -> Result<(), StepError> {
        let (kind, namespace) = (resource(&at.kind), at.namespace.as_deref());
        let client = self.client(at.side);
        let created = client.create(&kind, namespace, &object).await;
        let Err(refused) = &created else { return self.wrote("create", at, created) };
        if refused.is_not_found() {
            // The namespace may have been deleted since it was last seen.
            self.namespaces.0.lock().clear();
        }
        if !refused.is_already_exists() {
            return self.wrote("create", at, created);
        }
        let existing = client.get(&kind, namespace, &at.name).await.map_err(|source| failed("get", &at, source))?;
        let Some(existing) = existing else { return self.wrote("create", at, created) };
        match adopt(&existing, &object) {
            // Made by an earlier attempt, of which nothing is remembered and which may have known an older source: it is decided anew with
            // the copy in sight.
            Adoption::Ours => Err(StepError::CopyLeft(at.to_string())),
            Adoption::Take(taken) => {
                tracing::info!(object = %at, "Taking over an object that belongs to nobody.");
                let written = client.replace(&kind, namespace, &taken).await;
                self.wrote("adopt", at, written)
            }
            Adoption::Foreign { owner } => Err(StepError::Foreign { at: at.to_string(), owner }),
        }
    }

    async fn ensure_namespace(&self, side: Side, name: &str) -> Result<(), StepError> {
        // A primary is in its namespace, so that exists.
        if side == Side::Kcp && name == self.key.namespace {
            return Ok(());
        }
        let client = self.client(side);
        let known = self.namespaces.0.lock().entry((client.url().to_owned(), name.to_owned())).or_default().clone();
        // Of many objects for one namespace only the first one asks.
        known.get_or_try_init(|| make_namespace(client, side, name)).await.copied()
    }

    /// The cache is behind the server now and then; before a source is let go the server itself is asked.
    async fn confirm_no_copy(&self) -> Result<(), StepError> {
        if self.rules.blind {
            return Ok(());
        }
        let labels: Vec<String> = Link::to(self.key, None).labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let kind = resource(&self.rules.local);
        let options = ListOptions::labels(labels.join(","));
        let left = self.local.list(&kind, None, &options).await.map_err(|source| StepError::Write {
            verb: "list",
            at: format!("copies of {}/{}", self.key.namespace, self.key.name),
            source,
        })?;
        // Another agent's copy of a source with the same name is that agent's business.
        let ours = |copy: &&Value| label(copy, AGENT_NAME).is_none_or(|agent| agent == self.rules.agent_name);
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

fn failed(verb: &'static str, at: &Place, source: Error) -> StepError {
    StepError::Write { verb, at: at.to_string(), source }
}

/// Makes sure that a namespace exists. Consumers' namespaces mostly do, those for copies mostly do not.
async fn make_namespace(client: &Client, side: Side, name: &str) -> Result<(), StepError> {
    let namespaces = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
    let fail = |verb, source| StepError::Write { verb, at: format!("namespace {name}"), source };
    let exists = async || client.get(&namespaces, None, name).await.map(|found| found.is_some());
    if side == Side::Kcp && exists().await.map_err(|source| fail("get", source))? {
        return Ok(());
    }
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    match client.create(&namespaces, None, &namespace).await {
        // Who may not create namespaces may have been given this one.
        Err(source) if source.is_forbidden() && exists().await.unwrap_or(false) => Ok(()),
        Err(source) if !source.is_already_exists() => Err(fail("create", source)),
        _ => Ok(()),
    }
}
