//! Objects, one revision counter, and the log of recent changes. Pure data: no HTTP, no kcp.
//!
//! ```text
//!   commit ─▶ disk (if there is one) ─▶ objects ─▶ log ─▶ topics: the part of the log somebody watches ─▶ watchers
//! ```
//!
//! Every write takes the next revision. Watchers read a shared log at their own pace with a cursor each, so a slow one never
//! holds up a writer; when the log has moved past its cursor its stream ends. A watcher of one kind reads, and is woken by,
//! the changes of that kind only. The log is bounded in number and in bytes.

mod disk;
mod log;
mod object;
mod page;
mod size;
mod watch;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use tokio::sync::watch as signal;

use disk::Disk;
pub use disk::Durability;
use log::Log;
pub use log::{LogLimits, Topic};
pub use object::Object;
use object::{Recent, at_revision, pack};
pub use page::{Page, Selection};
pub use watch::Watch;

/// What is stored together: group, resource, and the identity of the export it is bound from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    /// API group, empty for core.
    pub group: Arc<str>,
    /// Plural resource name.
    pub resource: Arc<str>,
    /// Identity hash of the export, empty unless bound.
    pub identity: Arc<str>,
}

impl Kind {
    /// A kind without identity.
    pub fn new(group: &str, resource: &str) -> Self {
        Self { group: group.into(), resource: resource.into(), identity: "".into() }
    }
}

/// The full address of one object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// What it is.
    pub kind: Kind,
    /// Logical cluster, empty on a plain service cluster.
    pub cluster: Arc<str>,
    /// Namespace, empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    /// Object name.
    pub name: Arc<str>,
}

impl Key {
    /// The address of one object of `kind`.
    pub fn new(kind: &Kind, cluster: &str, namespace: &str, name: &str) -> Self {
        Self { kind: kind.clone(), cluster: cluster.into(), namespace: namespace.into(), name: name.into() }
    }
}

/// An object as it is worked with, in its storage version.
#[derive(Debug, Clone)]
pub struct Stored {
    /// Revision of the last write to this object.
    pub revision: u64,
    /// The object; `metadata.resourceVersion` equals `revision`.
    pub object: Arc<Value>,
}

/// One write.
#[derive(Debug)]
pub struct Change {
    /// Revision this write took.
    pub revision: u64,
    /// The object written.
    pub key: Key,
    /// State before, none for a creation.
    pub before: Option<Object>,
    /// State after, none for a deletion.
    pub after: Option<Object>,
}

impl Change {
    /// State before, unpacked.
    pub fn old(&self) -> Option<Arc<Value>> {
        self.before.as_ref().map(Object::value)
    }

    /// State after, unpacked.
    pub fn now(&self) -> Option<Arc<Value>> {
        self.after.as_ref().map(Object::value)
    }
}

/// The state that a writer expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// The object does not exist.
    Absent,
    /// The object exists at this revision.
    Revision(u64),
    /// Anything goes.
    Any,
}

/// Why a write was refused.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The object exists although it was expected to be absent.
    #[error("the object exists already")]
    Exists,
    /// The object does not exist although a state was expected.
    #[error("the object does not exist")]
    Missing,
    /// The object was written since the expected revision.
    #[error("the object is at revision {0}, not at the expected one")]
    Stale(u64),
    /// The object is larger than a database accepts; the size is that of the request to it.
    #[error("a request of {0} bytes is too large")]
    TooLarge(usize),
    /// The data folder could not be written; nothing was changed.
    #[error("cannot write the data folder: {0}")]
    Disk(#[from] std::io::Error),
}

/// The revision is older than the log reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {asked} ({oldest})")]
pub struct Expired {
    /// The revision asked for.
    pub asked: u64,
    /// The oldest revision a watch may start after.
    pub oldest: u64,
}

/// Cluster, namespace and name with zero bytes between them: one piece of memory, in the order of lists.
type ObjectAddress = Box<str>;
type Objects = BTreeMap<ObjectAddress, Object>;

#[derive(Debug, Default)]
struct Inner {
    revision: u64,
    objects: BTreeMap<Kind, Objects>,
    log: Log,
    /// Revision of the last write per kind and cluster, to invalidate what is derived from it.
    touched: HashMap<(Kind, Arc<str>), u64>,
    /// The same per kind, whatever the cluster.
    written: HashMap<Kind, u64>,
    disk: Option<Disk>,
}

/// All objects of the plane.
#[derive(Debug)]
pub struct Store {
    inner: Arc<RwLock<Inner>>,
    newest: signal::Sender<u64>,
    recent: Mutex<Recent>,
}

impl Default for Store {
    fn default() -> Self {
        Self::with_limits(LogLimits::default())
    }
}

impl Store {
    /// An empty store in memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store whose log is bounded as given.
    pub fn with_limits(limits: LogLimits) -> Self {
        Self::from_inner(Inner { log: Log::new(limits), ..Inner::default() })
    }

    /// The store kept in `folder`: reads and compacts what is there, appends every write.
    pub fn open(folder: &Path, durability: Durability, limits: LogLimits) -> std::io::Result<Self> {
        let mut inner = Inner { log: Log::new(limits), ..Inner::default() };
        inner.disk = Some(Disk::open(folder, durability, &mut inner)?);
        inner.log.begin(inner.revision);
        Ok(Self::from_inner(inner))
    }

    fn from_inner(inner: Inner) -> Self {
        let (newest, _) = signal::channel(inner.revision);
        Self { inner: Arc::new(RwLock::new(inner)), newest, recent: Mutex::default() }
    }

    /// The newest revision.
    pub fn revision(&self) -> u64 {
        self.inner.read().revision
    }

    /// The oldest revision that can still be read.
    pub fn oldest(&self) -> u64 {
        self.inner.read().log.oldest()
    }

    /// One object.
    pub fn get(&self, key: &Key) -> Option<Stored> {
        let found = self.inner.read().objects.get(&key.kind)?.get(&*place(key)).cloned()?;
        Some(Stored { revision: found.revision(), object: self.value(&found) })
    }

    /// One object as it is kept, without unpacking it: for those who only need to know whether it has changed.
    pub fn peek(&self, key: &Key) -> Option<Object> {
        self.inner.read().objects.get(&key.kind)?.get(&*place(key)).cloned()
    }

    /// Whether an object exists.
    pub fn has(&self, key: &Key) -> bool {
        self.inner.read().objects.get(&key.kind).is_some_and(|objects| objects.contains_key(&*place(key)))
    }

    /// An unpacked object, cached for a while because some objects are read often.
    pub fn value(&self, object: &Object) -> Arc<Value> {
        let value = object.value();
        // A value that only this call holds was unpacked just now.
        if Arc::strong_count(&value) == 1 {
            self.recent.lock().keep(object.text().len(), value.clone());
        }
        value
    }

    /// Objects of a kind with the revision they were read at, sorted by cluster, namespace and name.
    pub fn list(&self, kind: &Kind, cluster: Option<&str>, namespace: Option<&str>) -> (u64, Vec<(Key, Object)>) {
        let inner = self.inner.read();
        (inner.revision, page::all(&inner, &Selection { kind, cluster, namespace }))
    }

    /// Up to `limit` objects (zero: all) after an address, now or at a past revision: the log is undone as far as needed.
    pub fn page(
        &self,
        selection: &Selection<'_>,
        at: Option<u64>,
        behind: Option<&Key>,
        limit: usize,
    ) -> Result<Page, Expired> {
        let limit = if limit == 0 { usize::MAX } else { limit };
        page::read(&self.inner.read(), selection, at, behind, limit)
    }

    /// Kinds that have objects in a cluster.
    pub fn kinds(&self, cluster: &str) -> Vec<Kind> {
        let inner = self.inner.read();
        inner
            .objects
            .iter()
            .filter(|(kind, objects)| {
                let selection = Selection { kind, cluster: Some(cluster), namespace: None };
                page::range(objects, &selection, None).next().is_some()
            })
            .map(|(kind, _)| kind.clone())
            .collect()
    }

    /// Kinds that have objects anywhere.
    pub fn all_kinds(&self) -> Vec<Kind> {
        self.inner.read().objects.keys().cloned().collect()
    }

    /// Revision of the last write to a kind in a cluster, zero if there was none.
    pub fn touched(&self, kind: &Kind, cluster: &str) -> u64 {
        self.inner.read().touched.get(&(kind.clone(), cluster.into())).copied().unwrap_or(0)
    }

    /// Revision of the last write to a kind in any cluster, zero if there was none.
    pub fn written(&self, kind: &Kind) -> u64 {
        self.inner.read().written.get(kind).copied().unwrap_or(0)
    }

    /// Writes or (with `None`) deletes one object. Content equal to what is stored changes nothing: no revision, no event.
    pub fn commit(&self, key: &Key, expect: Expect, mut after: Option<Value>) -> Result<Stored, StoreError> {
        let place = place(key);
        let text = after.as_mut().map(pack);
        if let (Some(object), Some(text)) = (&after, &text) {
            let size = size::of_request(key, object, text);
            if size > size::LARGEST {
                return Err(StoreError::TooLarge(size));
            }
        }
        let mut inner = self.inner.write();
        let before = inner.objects.get(&key.kind).and_then(|objects| objects.get(&*place)).cloned();
        match (expect, &before) {
            (Expect::Absent, Some(_)) => return Err(StoreError::Exists),
            (Expect::Revision(_), None) => return Err(StoreError::Missing),
            (Expect::Revision(wanted), Some(found)) if wanted != found.revision() => {
                return Err(StoreError::Stale(found.revision()));
            }
            _ => {}
        }
        if let (Some(new), Some(found)) = (&text, &before)
            && **new == *found.text()
        {
            drop(inner);
            return Ok(Stored { revision: found.revision(), object: self.value(found) });
        }
        let revision = inner.revision + 1;
        let value = match (after, &before) {
            (Some(value), _) => value,
            (None, Some(found)) => Value::clone(&found.value()),
            (None, None) => return Err(StoreError::Missing),
        };
        let value = Arc::new(at_revision(value, revision));
        let object = text.map(|text| Object::new(revision, text));
        if let Some(disk) = &mut inner.disk {
            disk.append(revision, key, object.as_ref())?;
        }
        inner.revision = revision;
        inner.touch(key, revision);
        let objects = inner.objects.entry(key.kind.clone()).or_default();
        match &object {
            Some(object) => {
                object.share(&value);
                self.recent.lock().keep(object.text().len(), value.clone());
                objects.insert(place, object.clone());
            }
            None => {
                objects.remove(&*place);
            }
        }
        inner.log.push(Arc::new(Change { revision, key: key.clone(), before, after: object }));
        if inner.disk.as_ref().is_some_and(Disk::wants_compaction) {
            self.compact(&mut inner);
        }
        drop(inner);
        self.newest.send_replace(revision);
        Ok(Stored { revision, object: value })
    }

    /// Rewrites the file without history while writes continue: they are kept in memory until it is done.
    fn compact(&self, inner: &mut Inner) {
        let revision = inner.revision;
        let objects: Vec<(Key, Object)> = inner.all().collect();
        let Some(disk) = &mut inner.disk else { return };
        let snapshot = disk.begin_compaction();
        let shared = Arc::downgrade(&self.inner);
        std::thread::spawn(move || {
            let written = snapshot.write(revision, objects);
            let Some(shared) = shared.upgrade() else { return snapshot.discard() };
            if let Some(disk) = &mut shared.write().disk
                && let Err(error) = disk.finish_compaction(&snapshot, written)
            {
                tracing::warn!(%error, "cannot compact the data file; it keeps growing");
                snapshot.discard();
            }
        });
    }

    /// All changes after a revision, in order and without gaps. The stream ends when its reader falls behind the log.
    pub fn watch(self: &Arc<Self>, after: u64) -> Result<Watch, Expired> {
        self.inner.read().log.check(after)?;
        Ok(Watch::new(self.clone(), None, after, self.newest.subscribe()))
    }

    /// The same for one kind, in one cluster or in all of them; other changes cost this reader nothing.
    pub fn watch_topic(self: &Arc<Self>, topic: Topic, after: u64) -> Result<Watch, Expired> {
        let mut inner = self.inner.write();
        inner.log.check(after)?;
        let newest = inner.log.subscribe(&topic);
        drop(inner);
        Ok(Watch::new(self.clone(), Some(topic), after, newest))
    }

    /// Completes when the newest revision is at least `revision`.
    pub async fn reached(&self, revision: u64) {
        let mut newest = self.newest.subscribe();
        // An error means the store is gone, and this borrow keeps it alive.
        let _ = newest.wait_for(|now| *now >= revision).await;
    }

    /// Up to `limit` changes after a revision, or none if the log no longer reaches back that far.
    fn changes(&self, topic: Option<&Topic>, after: u64, limit: usize) -> Option<Vec<Arc<Change>>> {
        self.inner.read().log.changes(topic, after, limit)
    }
}

impl Inner {
    /// Remembers that a kind was written in a cluster.
    fn touch(&mut self, key: &Key, revision: u64) {
        self.touched.insert((key.kind.clone(), key.cluster.clone()), revision);
        match self.written.get_mut(&key.kind) {
            Some(last) => *last = revision,
            None => drop(self.written.insert(key.kind.clone(), revision)),
        }
    }

    fn all(&self) -> impl Iterator<Item = (Key, Object)> {
        self.objects
            .iter()
            .flat_map(|(kind, objects)| objects.iter().map(|(place, object)| (key_at(kind, place), object.clone())))
    }
}

fn place(key: &Key) -> ObjectAddress {
    [&*key.cluster, &*key.namespace, &*key.name].join("\0").into()
}

fn key_at(kind: &Kind, place: &str) -> Key {
    let mut parts = place.splitn(3, '\0');
    let mut part = || parts.next().unwrap_or_default().into();
    Key { kind: kind.clone(), cluster: part(), namespace: part(), name: part() }
}

/// The revision written in an object's metadata.
pub fn revision_of(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
