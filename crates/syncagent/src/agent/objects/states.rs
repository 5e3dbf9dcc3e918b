//! Remembered state, in Secrets on the service cluster.
//!
//! All state Secrets are read once at the start; after that this agent is their only writer, so nothing needs to be watched. They are kept
//! in memory up to a limit. Beyond that, only checksums are kept: they are enough to see that nothing has changed, and the Secret is read
//! again when something has.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use carrick_client::{Client, DeleteOptions, Error, ListOptions, Resource};
use carrick_sync::executor::refusal::{Access, Fallback, follows, is_done, is_race};
use data_encoding::BASE64;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::deletion::ended::EndedOrders;
use super::related::users::{Leaving, Primary, RelatedUses, SecretUses};
use crate::agent::health::Part;
use crate::agent::retry::Backoff;
use crate::api::{
    OBJECT_STATE, REMOTE_CLUSTER, REMOTE_KIND, REMOTE_NAME_HASH, REMOTE_NAMESPACE_HASH, STATE_OF_NAME,
    STATE_OF_NAMESPACE,
};
use crate::decide::state::{self, PrimaryState, kind_of_primary, secret_labels, secret_name};
use crate::decide::{OtherUser, Record, Role};
use crate::rules::ApiKind;
use crate::rules::metadata::SourceKey;

/// How many bytes of states are kept in memory; beyond that there are only checksums.
const BUDGET: usize = 24 << 20;

/// The state of all objects.
pub(super) struct States {
    client: Client,
    namespace: String,
    known: Mutex<KnownSecrets>,
    /// Which related objects they note.
    uses: Mutex<RelatedUses>,
    /// Records that will be written with the next write of a Secret, by its name.
    implied: Mutex<HashMap<String, Vec<(String, Record)>>>,
    /// Whether it was logged that Secrets cannot be deleted.
    said: AtomicBool,
    /// Orders of which nothing else is left.
    ended: EndedOrders,
}

/// Secrets by name, and by what they are about.
#[derive(Default)]
struct KnownSecrets {
    secrets: HashMap<Arc<str>, Arc<KeptSecret>>,
    /// The name of a Secret contains the version of the kind, which may change. Several mean that a change was not finished.
    names: HashMap<Subject, Vec<Arc<str>>>,
    /// How many Secrets there are for each kind, as `Kind.group`.
    kinds: HashMap<Arc<str>, usize>,
    /// How many bytes of states are in memory.
    spent: usize,
}

/// A hash of what a Secret is about: the kind, and where the object is.
type Subject = u64;

/// What is kept of a state Secret; kept small, because there is one per object.
struct KeptSecret {
    version: Box<str>,
    subject: Subject,
    kind: Arc<str>,
    data: Box<[DataEntry]>,
    /// Whether the Secret holds more than is kept.
    partial: bool,
    /// All metadata, if somebody has added something.
    metadata: Option<Box<Value>>,
}

/// A key and its text.
type DataEntry = (Box<str>, Box<[u8]>);

impl KeptSecret {
    fn state(&self) -> PrimaryState {
        let mut state = state::read(self.data.iter().map(|(key, text)| (&**key, &**text)));
        state.partial = self.partial;
        state
    }

    fn size(&self) -> usize {
        if self.partial { 0 } else { self.data.iter().map(|(_, text)| text.len()).sum() }
    }
}

impl States {
    /// Nothing is known yet.
    pub fn new(client: Client, namespace: &str, agent: &str) -> Self {
        Self {
            ended: EndedOrders::new(client.clone(), namespace, agent),
            client,
            namespace: namespace.to_owned(),
            known: Mutex::default(),
            uses: Mutex::default(),
            implied: Mutex::default(),
            said: AtomicBool::new(false),
        }
    }

    /// Reads all state Secrets, for as long as it takes. False if told to stop before.
    pub async fn load(&self, part: &Part, stop: &CancellationToken) -> bool {
        let (kind, options) = (secrets(), ListOptions::labels(format!("{OBJECT_STATE}=true")));
        let mut backoff = Backoff::for_servers();
        loop {
            let reading = async {
                self.ended.load().await?;
                self.client.list_compact(&kind, Some(&self.namespace), &options).await
            };
            let listed = tokio::select! {
                () = stop.cancelled() => return false,
                listed = reading => listed,
            };
            match listed {
                Ok(secrets) => {
                    *self.uses.lock() = RelatedUses::default();
                    *self.known.lock() = KnownSecrets::default();
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

    /// What is in memory about a primary.
    pub fn get(&self, kind: &ApiKind, source: &SourceKey) -> PrimaryState {
        let Some((name, kept)) = self.find(kind, source) else { return PrimaryState::default() };
        self.with_implied(&name, kept.state())
    }

    /// Everything that is remembered about a primary.
    pub async fn read(&self, kind: &ApiKind, source: &SourceKey) -> Result<PrimaryState, Error> {
        let Some((name, kept)) = self.find(kind, source) else { return Ok(PrimaryState::default()) };
        Ok(self.with_implied(&name, self.whole(&name, &kept).await?))
    }

    /// Whether any object of a kind is remembered.
    pub fn remembers(&self, kind: &ApiKind) -> bool {
        self.known.lock().kinds.contains_key(&*kind_name(kind))
    }

    /// Notes related objects that the reference agent remembers in its own way. They are stored with the next write.
    pub fn imply(&self, kind: &ApiKind, source: &SourceKey, records: Vec<(String, Record)>) {
        if let Some((name, _)) = self.find(kind, source) {
            self.implied.lock().insert(name.to_string(), records);
        }
    }

    /// Changes what is remembered about a primary.
    pub async fn update(
        &self,
        kind: &ApiKind,
        source: &SourceKey,
        change: impl FnOnce(&mut PrimaryState),
    ) -> Result<(), Error> {
        let name = secret_name(kind, source);
        let found = self.find(kind, source);
        let mut state = match &found {
            Some((old, kept)) => self.with_implied(old, self.whole(old, kept).await?),
            None => PrimaryState::default(),
        };
        let before = state.clone();
        change(&mut state);
        let known = self.known.lock().secrets.get(&*name).cloned();
        if known.is_some() && state == before {
            return Ok(());
        }
        let secret = self.secret(kind, source, &name, known.as_deref(), &state);
        let mut written = match &known {
            Some(_) => self.client.replace(&secrets(), Some(&self.namespace), &secret).await,
            None => self.client.create(&secrets(), Some(&self.namespace), &secret).await,
        };
        if known.is_some() && written.as_ref().is_err_and(Error::is_not_found) {
            // Somebody has deleted it; what it said is still known.
            let secret = self.secret(kind, source, &name, None, &state);
            written = self.client.create(&secrets(), Some(&self.namespace), &secret).await;
        }
        if written.as_ref().is_err_and(Error::is_invalid) && self.thaw(&name).await? {
            let secret = self.secret(kind, source, &name, None, &state);
            written = self.client.create(&secrets(), Some(&self.namespace), &secret).await;
        }
        match written {
            Ok(secret) => {
                self.learn(&name, Some(&secret));
                self.remove_others(kind, source, &name).await;
                Ok(())
            }
            Err(error) => {
                // Somebody else wrote or deleted it: read it again, and let the object be decided anew.
                if is_race(&error, if known.is_some() { Access::Change } else { Access::Create }) {
                    let current = self.client.get(&secrets(), Some(&self.namespace), &name).await?;
                    self.learn(&name, current.as_ref());
                }
                Err(error)
            }
        }
    }

    /// Removes a Secret that somebody has made immutable, so that it can be written anew. Whether there was such a one.
    async fn thaw(&self, name: &str) -> Result<bool, Error> {
        let current = self.client.get(&secrets(), Some(&self.namespace), name).await?;
        let Some(frozen) = current.filter(|secret| secret["immutable"] == true) else { return Ok(false) };
        tracing::warn!(secret = name, "A state Secret was made immutable; it is replaced.");
        let text = |field: &str| frozen["metadata"][field].as_str().map(str::to_owned);
        let (uid, resource_version) = (text("uid"), text("resourceVersion"));
        let options = DeleteOptions { uid, resource_version, ..DeleteOptions::default() };
        self.client.delete(&secrets(), Some(&self.namespace), name, &options).await?;
        Ok(true)
    }

    /// Whether an order was carried to its end.
    pub fn has_ended(&self, uid: &str) -> bool {
        self.ended.contains(uid)
    }

    /// Removes everything that is remembered about a primary, but for the fact that it has ended.
    pub async fn forget(&self, kind: &ApiKind, source: &SourceKey, uid: &str) -> Result<(), Error> {
        self.ended.note(uid).await?;
        let name = secret_name(kind, source);
        let mut names: Vec<Arc<str>> = self.known.lock().names.get(&subject(kind, source)).cloned().unwrap_or_default();
        // One that is not known may exist all the same: the answer was lost, or it was sent by an earlier process and came late.
        if !names.iter().any(|known| **known == *name) {
            names.push(name.as_str().into());
        }
        for name in names {
            self.remove(&name).await?;
        }
        Ok(())
    }

    /// Deletes a Secret.
    ///
    /// The rights that other agents ask for do not include deleting Secrets; without that right the Secret is emptied.
    async fn remove(&self, name: &str) -> Result<(), Error> {
        // Exactly the known version: somebody else may have written something since. One that is not known is read first.
        let mut resource_version = self.known.lock().secrets.get(name).map(|kept| kept.version.to_string());
        if resource_version.is_none() {
            let current = self.client.get(&secrets(), Some(&self.namespace), name).await?;
            self.learn(name, current.as_ref());
            let Some(current) = current else { return Ok(()) };
            resource_version = current["metadata"]["resourceVersion"].as_str().map(str::to_owned);
        }
        let options = DeleteOptions { resource_version, ..DeleteOptions::default() };
        match self.client.delete(&secrets(), Some(&self.namespace), name, &options).await {
            Err(error) if is_race(&error, Access::Delete) => {
                let current = self.client.get(&secrets(), Some(&self.namespace), name).await?;
                self.learn(name, current.as_ref());
                Err(error)
            }
            Err(error) if follows(&error, Access::Delete, Role::Provider).fallback == Some(Fallback::Empty) => {
                if !self.said.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        namespace = self.namespace,
                        %error,
                        "Cannot delete state Secrets, emptying them instead. Grant the agent delete on Secrets."
                    );
                }
                let Some(mut secret) = self.client.get(&secrets(), Some(&self.namespace), name).await? else {
                    self.learn(name, None);
                    return Ok(());
                };
                if secret["data"].as_object().is_some_and(|data| !data.is_empty()) {
                    secret["data"] = json!({});
                    secret = self.client.replace(&secrets(), Some(&self.namespace), &secret).await?;
                }
                self.learn(name, Some(&secret));
                Ok(())
            }
            Err(error) if !is_done(&error, Access::Delete) => Err(error),
            _ => {
                self.learn(name, None);
                Ok(())
            }
        }
    }

    /// Removes Secrets of the same object under the names of other versions of its kind.
    async fn remove_others(&self, kind: &ApiKind, source: &SourceKey, name: &str) {
        let names = self.known.lock().names.get(&subject(kind, source)).cloned().unwrap_or_default();
        for other in names.iter().filter(|other| ***other != *name) {
            let is_empty = self.known.lock().secrets.get(other).is_none_or(|kept| kept.data.is_empty());
            if is_empty {
                continue;
            }
            if let Err(error) = self.remove(other).await {
                tracing::debug!(secret = %other, %error, "Cannot remove the state Secret of another version.");
            }
        }
    }

    /// What primaries other than this one remember about the original or the copy of a record.
    pub fn others(&self, kind: &ApiKind, source: &SourceKey, record: &Record) -> Vec<(SecretUses, OtherUser)> {
        self.uses.lock().others(&self.name(kind, source), &source.cluster, record)
    }

    /// Other primaries of the workspace that remember the original of a record, with the names of their Secrets.
    pub fn users(&self, kind: &ApiKind, source: &SourceKey, record: &Record) -> Vec<(String, Primary)> {
        self.uses.lock().users(&self.name(kind, source), &source.cluster, record)
    }

    /// Notes how a primary stops using what it shares with others; nothing if it goes on.
    pub fn leave(&self, kind: &ApiKind, source: &SourceKey, leaving: Option<Leaving>) {
        if leaving.is_some() || !self.uses.lock().all_stay() {
            let name = self.name(kind, source);
            self.uses.lock().leave(&name, leaving);
        }
    }

    /// Notes that the primary of a Secret holds nothing.
    pub fn holds_nothing(&self, secret: &str) {
        self.uses.lock().leave(secret, Some(Leaving::Released));
    }

    /// A different original that another primary copies to the same place, in words.
    pub fn rival(&self, kind: &ApiKind, source: &SourceKey, record: &Record) -> Option<String> {
        self.uses.lock().rival(&self.name(kind, source), &source.cluster, record)
    }

    /// The name of the Secret of a primary: for the version in use, or for the version that was in use before.
    fn name(&self, kind: &ApiKind, source: &SourceKey) -> Arc<str> {
        self.find(kind, source).map_or_else(|| secret_name(kind, source).into(), |(name, _)| name)
    }

    fn find(&self, kind: &ApiKind, source: &SourceKey) -> Option<(Arc<str>, Arc<KeptSecret>)> {
        let name = secret_name(kind, source);
        let known = self.known.lock();
        if let Some((name, kept)) = known.secrets.get_key_value(&*name) {
            return Some((name.clone(), kept.clone()));
        }
        let name = known.names.get(&subject(kind, source))?.last()?;
        Some((name.clone(), known.secrets.get(name)?.clone()))
    }

    async fn whole(&self, name: &str, kept: &KeptSecret) -> Result<PrimaryState, Error> {
        if !kept.partial {
            return Ok(kept.state());
        }
        let secret = self.client.get(&secrets(), Some(&self.namespace), name).await?;
        self.learn(name, secret.as_ref());
        Ok(secret.map(|secret| state_of(&secret)).unwrap_or_default())
    }

    fn with_implied(&self, name: &str, mut state: PrimaryState) -> PrimaryState {
        for (key, record) in self.implied.lock().get(name).into_iter().flatten() {
            if state.record(key).is_none() && state.entry(key).is_some() {
                state.track(key, record.clone());
            }
        }
        state
    }

    fn secret(
        &self,
        kind: &ApiKind,
        source: &SourceKey,
        name: &str,
        known: Option<&KeptSecret>,
        state: &PrimaryState,
    ) -> Value {
        let data: BTreeMap<_, _> = state.to_data().into_iter().map(|(key, text)| (key, BASE64.encode(&text))).collect();
        let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque"});
        if let Some(kept) = known {
            secret["metadata"] = kept.metadata.as_deref().cloned().unwrap_or_default();
            secret["metadata"]["resourceVersion"] = json!(kept.version);
        }
        secret["metadata"]["name"] = json!(name);
        secret["metadata"]["namespace"] = json!(self.namespace);
        secret["metadata"]["labels"] = json!(secret_labels(source));
        let annotations = &mut secret["metadata"]["annotations"];
        annotations[REMOTE_KIND] = json!(kind_name(kind));
        annotations[STATE_OF_NAME] = json!(&*source.name);
        if !source.namespace.is_empty() {
            annotations[STATE_OF_NAMESPACE] = json!(&*source.namespace);
        }
        secret["data"] = json!(data);
        secret
    }

    fn learn(&self, name: &str, secret: Option<&Value>) {
        self.uses.lock().set(name, secret.and_then(secret_uses));
        if secret.is_none() {
            self.implied.lock().remove(name);
        }
        self.known.lock().set(name, secret);
    }
}

impl KnownSecrets {
    fn set(&mut self, name: &str, secret: Option<&Value>) {
        if let Some((name, old)) = self.secrets.remove_entry(name) {
            self.spent -= old.size();
            if let Some(names) = self.names.get_mut(&old.subject) {
                names.retain(|known| *known != name);
                if names.is_empty() {
                    self.names.remove(&old.subject);
                }
            }
            if let Some(count) = self.kinds.get_mut(&old.kind) {
                *count -= 1;
                if *count == 0 {
                    self.kinds.remove(&old.kind);
                }
            }
        }
        let Some(secret) = secret else { return };
        let (name, kept) = (Arc::<str>::from(name), self.keep(secret));
        self.spent += kept.size();
        self.names.entry(kept.subject).or_default().push(name.clone());
        *self.kinds.entry(kept.kind.clone()).or_default() += 1;
        self.secrets.insert(name, Arc::new(kept));
    }

    fn keep(&self, secret: &Value) -> KeptSecret {
        let (metadata, labels) = (&secret["metadata"], &secret["metadata"]["labels"]);
        let state = state_of(secret);
        let kind = metadata["annotations"][REMOTE_KIND].as_str().map(str::to_owned);
        let kind = kind.or_else(|| kind_of_primary(&state, labels)).unwrap_or_default();
        let kind = self.kinds.get_key_value(&*kind).map_or_else(|| kind.as_str().into(), |(kind, _)| kind.clone());
        let own = [REMOTE_KIND, STATE_OF_NAME, STATE_OF_NAMESPACE];
        let others =
            metadata["annotations"].as_object().into_iter().flatten().any(|(key, _)| !own.contains(&key.as_str()));
        let extended = others || ["ownerReferences", "finalizers"].iter().any(|field| !metadata[field].is_null());
        let data = data_of(secret);
        let size: usize = data.iter().map(|(_, text)| text.len()).sum();
        // Only the content of the reference agent's entries says what they are about.
        let is_clear = state.entries().filter(|(key, _)| state.record(key).is_none()).count() <= 1;
        let partial = is_clear && self.spent + size > BUDGET;
        let text = |key: &str| labels[key].as_str().unwrap_or_default();
        KeptSecret {
            version: metadata["resourceVersion"].as_str().unwrap_or_default().into(),
            subject: hash(&kind, text(REMOTE_CLUSTER), text(REMOTE_NAMESPACE_HASH), text(REMOTE_NAME_HASH)),
            kind,
            data: if partial {
                state.sums().to_data().into_iter().map(|(key, text)| (key.into(), text.into())).collect()
            } else {
                data
            },
            partial,
            metadata: extended.then(|| Box::new(metadata.clone())),
        }
    }
}

fn secrets() -> Resource {
    Resource::namespaced("", "v1", "Secret", "secrets")
}

/// A kind as `Kind.group`.
fn kind_name(kind: &ApiKind) -> String {
    format!("{}.{}", kind.kind, kind.group)
}

fn subject(kind: &ApiKind, source: &SourceKey) -> Subject {
    let labels = secret_labels(source);
    let text = |key: &str| labels.get(key).map(String::as_str).unwrap_or_default();
    hash(&kind_name(kind), text(REMOTE_CLUSTER), text(REMOTE_NAMESPACE_HASH), text(REMOTE_NAME_HASH))
}

fn hash(kind: &str, cluster: &str, namespace: &str, name: &str) -> Subject {
    let mut hasher = DefaultHasher::new();
    (kind, cluster, namespace, name).hash(&mut hasher);
    hasher.finish()
}

fn data_of(secret: &Value) -> Box<[DataEntry]> {
    let decoded = |(key, text): (&String, &Value)| {
        let bytes = BASE64.decode(text.as_str()?.as_bytes()).ok()?;
        Some((key.as_str().into(), bytes.into()))
    };
    secret["data"].as_object().into_iter().flatten().filter_map(decoded).collect()
}

fn state_of(secret: &Value) -> PrimaryState {
    state::read(data_of(secret).iter().map(|(key, text)| (&**key, &**text)))
}

/// What a Secret notes about related objects. One entry alone is that of the primary and need not be read.
fn secret_uses(secret: &Value) -> Option<SecretUses> {
    let several = secret["data"].as_object().is_some_and(|data| data.len() > 1);
    several.then(|| SecretUses::by(&secret["metadata"], &state_of(secret))).flatten()
}

#[cfg(test)]
mod tests;
