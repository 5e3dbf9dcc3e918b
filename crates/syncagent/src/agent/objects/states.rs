//! Remembered state, in Secrets on the service cluster.
//!
//! All state Secrets are read once at the start; after that this agent is their only writer, so nothing needs to be watched.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use carrick_client::{Client, DeleteOptions, Error, ListOptions, Resource};
use data_encoding::BASE64;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::uses::{Told, Uses};
use crate::agent::backoff::Backoff;
use crate::agent::health::Part;
use crate::api::OBJECT_STATE;
use crate::decide::state::{State, secret_labels, secret_name};
use crate::decide::{Other, Record};
use crate::rules::ApiKind;
use crate::rules::metadata::SourceKey;

/// The state of all objects.
pub(super) struct States {
    client: Client,
    namespace: String,
    /// Secrets by name.
    known: Mutex<HashMap<Box<str>, Arc<Kept>>>,
    /// Which related objects they tell of.
    uses: Mutex<Uses>,
    /// Names of Secrets that may or may not exist: creating them failed, or the answer was lost.
    doubtful: Mutex<HashSet<String>>,
    /// Whether it was said that Secrets must not be deleted.
    said: AtomicBool,
}

/// What is kept of a state Secret: there are as many as objects.
struct Kept {
    version: Box<str>,
    data: Box<[Entry]>,
    /// All metadata, if somebody has added something.
    metadata: Option<Box<Value>>,
}

/// A key and its text.
type Entry = (Box<str>, Box<[u8]>);

impl Kept {
    fn of(secret: &Value) -> Self {
        let metadata = &secret["metadata"];
        let decoded = |(key, text): (&String, &Value)| {
            let bytes = BASE64.decode(text.as_str()?.as_bytes()).ok()?;
            Some((key.as_str().into(), bytes.into()))
        };
        let extended = ["annotations", "ownerReferences", "finalizers"].iter().any(|field| !metadata[field].is_null());
        Self {
            version: metadata["resourceVersion"].as_str().unwrap_or_default().into(),
            data: secret["data"].as_object().into_iter().flatten().filter_map(decoded).collect(),
            metadata: extended.then(|| Box::new(metadata.clone())),
        }
    }

    fn state(&self) -> State {
        State::from_data(self.data.iter().map(|(key, text)| (&**key, &**text)))
    }
}

impl States {
    /// Nothing is known yet.
    pub fn new(client: Client, namespace: &str) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
            known: Mutex::default(),
            uses: Mutex::default(),
            doubtful: Mutex::default(),
            said: AtomicBool::new(false),
        }
    }

    /// Reads all state Secrets, for as long as it takes. False if told to stop before.
    pub async fn load(&self, part: &Part, stop: &CancellationToken) -> bool {
        let (kind, options) = (secrets(), ListOptions::labels(format!("{OBJECT_STATE}=true")));
        let mut backoff = Backoff::for_servers();
        loop {
            let listed = tokio::select! {
                () = stop.cancelled() => return false,
                listed = self.client.list_compact(&kind, Some(&self.namespace), &options) => listed,
            };
            match listed {
                Ok(secrets) => {
                    *self.uses.lock() = Uses::default();
                    self.known.lock().clear();
                    for secret in secrets {
                        self.learn(&secret.name, Some(&secret.value()));
                    }
                    part.works();
                    return true;
                }
                Err(error) => part.fails(&format!("Secrets in namespace {}: {error}", self.namespace)),
            }
            tokio::select! {
                () = stop.cancelled() => return false,
                () = self.client.pause(backoff.pause()) => {}
            }
        }
    }

    /// What is remembered about a primary.
    pub fn get(&self, kind: &ApiKind, source: &SourceKey) -> State {
        let kept = self.known.lock().get(&*secret_name(kind, source)).cloned();
        kept.map(|kept| kept.state()).unwrap_or_default()
    }

    /// Whether any object of a kind is remembered.
    pub fn remembers(&self, kind: &ApiKind) -> bool {
        self.known.lock().values().any(|kept| kept.state().remembers(&kind.group, &kind.kind))
    }

    /// Changes what is remembered about a primary.
    pub async fn update(
        &self,
        kind: &ApiKind,
        source: &SourceKey,
        change: impl FnOnce(&mut State),
    ) -> Result<(), Error> {
        let name = secret_name(kind, source);
        let known = self.known.lock().get(&*name).cloned();
        let mut state = known.as_ref().map(|kept| kept.state()).unwrap_or_default();
        change(&mut state);
        let data: BTreeMap<_, _> =
            state.to_data().into_iter().map(|(key, text)| (key, BASE64.encode(text.as_bytes()))).collect();
        let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque"});
        if let Some(kept) = &known {
            secret["metadata"] = kept.metadata.as_deref().cloned().unwrap_or_default();
            secret["metadata"]["resourceVersion"] = json!(kept.version);
        }
        secret["metadata"]["name"] = json!(name);
        secret["metadata"]["namespace"] = json!(self.namespace);
        secret["metadata"]["labels"] = json!(secret_labels(source));
        secret["data"] = json!(data);
        let written = match &known {
            Some(_) => self.client.replace(&secrets(), Some(&self.namespace), &secret).await,
            None => self.client.create(&secrets(), Some(&self.namespace), &secret).await,
        };
        match written {
            Ok(secret) => {
                self.learn(&name, Some(&secret));
                Ok(())
            }
            Err(error) => {
                // Somebody else wrote or deleted it: look again, and let the object be decided anew.
                if error.is_conflict() || error.is_already_exists() || error.is_not_found() {
                    let current = self.client.get(&secrets(), Some(&self.namespace), &name).await?;
                    self.learn(&name, current.as_ref());
                } else if known.is_none() {
                    self.doubtful.lock().insert(name);
                }
                Err(error)
            }
        }
    }

    /// Removes everything that is remembered about a primary.
    ///
    /// The rights that other agents ask for do not include deleting Secrets; without that right the Secret is emptied.
    pub async fn forget(&self, kind: &ApiKind, source: &SourceKey) -> Result<(), Error> {
        let name = secret_name(kind, source);
        if !self.known.lock().contains_key(&*name) && !self.doubtful.lock().contains(&name) {
            return Ok(());
        }
        match self.client.delete(&secrets(), Some(&self.namespace), &name, &DeleteOptions::default()).await {
            Err(error) if error.is_forbidden() => {
                if !self.said.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        namespace = self.namespace,
                        %error,
                        "Cannot delete state Secrets, emptying them instead. Grant the agent delete on Secrets."
                    );
                }
                self.update(kind, source, |state| *state = State::default()).await
            }
            Err(error) if !error.is_not_found() => Err(error),
            _ => {
                self.learn(&name, None);
                Ok(())
            }
        }
    }

    /// What other primaries than this one remember about the original or the copy of a record.
    pub fn others(&self, kind: &ApiKind, source: &SourceKey, record: &Record) -> Vec<(Told, Other)> {
        self.uses.lock().others(&secret_name(kind, source), &source.cluster, record)
    }

    /// Another original that another primary has the same copy made of, in words.
    pub fn rival(&self, kind: &ApiKind, source: &SourceKey, record: &Record) -> Option<String> {
        self.uses.lock().rival(&secret_name(kind, source), &source.cluster, record)
    }

    fn learn(&self, name: &str, secret: Option<&Value>) {
        self.uses.lock().set(name, secret.and_then(told));
        self.doubtful.lock().remove(name);
        let mut known = self.known.lock();
        match secret {
            Some(secret) => drop(known.insert(name.into(), Arc::new(Kept::of(secret)))),
            None => drop(known.remove(name)),
        }
    }
}

fn secrets() -> Resource {
    Resource::namespaced("", "v1", "Secret", "secrets")
}

/// What a Secret tells of related objects. One entry alone is that of the primary and needs no look.
fn told(secret: &Value) -> Option<Told> {
    let several = secret["data"].as_object().is_some_and(|data| data.len() > 1);
    several.then(|| Told::by(&secret["metadata"]["labels"], &Kept::of(secret).state())).flatten()
}
