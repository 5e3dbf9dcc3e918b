//! The store itself.

use std::path::Path;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use tokio::sync::watch as signal;

use super::change::{Change, Expect, Stored};
use super::contents::{Contents, place};
use super::disk::{Disk, Durability};
use super::error::{Expired, StoreError};
use super::key::{Key, Kind};
use super::log::{Log, LogLimits, Now};
use super::object::{Object, Recent, at_revision, pack};
use super::page::{self, Page, Selection};
use super::size;
use super::snapshot::Snapshot;

#[derive(Debug, Default)]
pub(super) struct Inner {
    pub(super) contents: Contents,
    pub(super) log: Log,
    disk: Option<Disk>,
}

impl Inner {
    /// One write as part of many. The file of a store that is kept on disk gets it as well; an error there shows at the next commit.
    fn record(&mut self, key: &Key, before: Option<Object>, after: Option<Object>) {
        let revision = self.contents.revision + 1;
        if let Some(disk) = &mut self.disk
            && let Err(error) = disk.append(revision, key, after.as_ref())
        {
            tracing::error!(%error, "cannot write the data file");
        }
        self.contents.revision = revision;
        self.contents.touch(key);
        let objects = self.contents.objects.entry(key.kind.clone()).or_default();
        match &after {
            Some(object) => drop(objects.insert(place(key), object.clone())),
            None => drop(objects.remove(&*place(key))),
        }
        self.log.push(Arc::new(Change { revision, key: key.clone(), before, after }));
    }
}

impl Now {
    fn of(inner: &Inner) -> Self {
        Self { life: inner.log.life(), revision: inner.contents.revision }
    }
}

/// All objects of the plane.
#[derive(Debug)]
pub struct Store {
    pub(super) inner: Arc<RwLock<Inner>>,
    pub(super) newest: signal::Sender<Now>,
    recent: Mutex<Recent>,
}

impl Default for Store {
    fn default() -> Self {
        Self::with_limits(LogLimits::default())
    }
}

impl Store {
    /// An empty store whose log is bounded as given.
    pub(crate) fn with_limits(limits: LogLimits) -> Self {
        Self::from_inner(Inner { log: Log::new(limits), ..Inner::default() })
    }

    /// The store kept in `folder`: reads and compacts what is there, appends every write.
    pub(crate) fn open(folder: &Path, durability: Durability, limits: LogLimits) -> std::io::Result<Self> {
        let mut inner = Inner { log: Log::new(limits), ..Inner::default() };
        inner.disk = Some(Disk::open(folder, durability, &mut inner.contents)?);
        inner.log.begin(inner.contents.revision);
        Ok(Self::from_inner(inner))
    }

    fn from_inner(inner: Inner) -> Self {
        let (newest, _) = signal::channel(Now::of(&inner));
        Self { inner: Arc::new(RwLock::new(inner)), newest, recent: Mutex::default() }
    }

    /// The newest revision.
    pub fn revision(&self) -> u64 {
        self.inner.read().contents.revision
    }

    /// The oldest revision that can still be read.
    pub(crate) fn oldest(&self) -> u64 {
        self.inner.read().log.oldest()
    }

    /// One object.
    pub(crate) fn get(&self, key: &Key) -> Option<Stored> {
        let found = self.inner.read().contents.objects.get(&key.kind)?.get(&*place(key)).cloned()?;
        Some(Stored { revision: found.revision(), object: self.value(&found) })
    }

    /// One object as it is kept, without unpacking it: for those who only need to know whether it has changed.
    pub(crate) fn peek(&self, key: &Key) -> Option<Object> {
        self.inner.read().contents.objects.get(&key.kind)?.get(&*place(key)).cloned()
    }

    /// Whether an object exists.
    pub fn has(&self, key: &Key) -> bool {
        self.inner.read().contents.objects.get(&key.kind).is_some_and(|objects| objects.contains_key(&*place(key)))
    }

    /// An unpacked object, cached for a while because some objects are read often.
    pub(crate) fn value(&self, object: &Object) -> Arc<Value> {
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
        (inner.contents.revision, page::all(&inner.contents, &Selection { kind, cluster, namespace }))
    }

    /// Up to `limit` objects (zero: all) after an address, now or at a past revision: the log is undone as far as needed.
    pub(crate) fn page(
        &self,
        selection: &Selection<'_>,
        at: Option<u64>,
        behind: Option<&Key>,
        limit: usize,
    ) -> Result<Page, Expired> {
        let limit = if limit == 0 { usize::MAX } else { limit };
        let inner = self.inner.read();
        page::read(&inner.contents, &inner.log, selection, at, behind, limit)
    }

    /// Kinds that have objects in a cluster.
    pub fn kinds(&self, cluster: &str) -> Vec<Kind> {
        let inner = self.inner.read();
        inner
            .contents
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
        self.inner.read().contents.objects.keys().cloned().collect()
    }

    /// A number that changes with every write to a kind in a cluster and never comes back, zero if there was none.
    pub(crate) fn touched(&self, kind: &Kind, cluster: &str) -> u64 {
        self.inner.read().contents.touched.get(&(kind.clone(), cluster.into())).copied().unwrap_or(0)
    }

    /// The same for a kind in any cluster.
    pub(crate) fn written(&self, kind: &Kind) -> u64 {
        self.inner.read().contents.written.get(kind).copied().unwrap_or(0)
    }

    /// Writes or (with `None`) deletes one object. Content equal to what is stored changes nothing: no revision, no event.
    pub(crate) fn commit(&self, key: &Key, expect: Expect, mut after: Option<Value>) -> Result<Stored, StoreError> {
        let place = place(key);
        let text = after.as_mut().map(pack);
        if let (Some(object), Some(text)) = (&after, &text) {
            let size = size::of_request(key, object, text);
            if size > size::LARGEST {
                return Err(StoreError::TooLarge(size));
            }
        }
        let mut inner = self.inner.write();
        let before = inner.contents.objects.get(&key.kind).and_then(|objects| objects.get(&*place)).cloned();
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
        let revision = inner.contents.revision + 1;
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
        inner.contents.revision = revision;
        inner.contents.touch(key);
        let objects = inner.contents.objects.entry(key.kind.clone()).or_default();
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
        let now = Now::of(&inner);
        drop(inner);
        self.announce(now);
        Ok(Stored { revision, object: value })
    }

    /// Deletes all objects of a cluster and makes them again, at once for everybody who reads. In between, `depart` is called with the
    /// revision of the first that is made; `arrive` may change each of them.
    pub(crate) fn relocate(&self, cluster: &str, depart: impl FnOnce(u64), arrive: impl Fn(&Key, &mut Value)) {
        let mut inner = self.inner.write();
        let objects: Vec<(Key, Object)> = inner.contents.all().filter(|(key, _)| *key.cluster == *cluster).collect();
        for (key, before) in &objects {
            inner.record(key, Some(before.clone()), None);
        }
        depart(inner.contents.revision + 1);
        for (key, before) in &objects {
            let mut value = Value::clone(&before.value());
            arrive(key, &mut value);
            let object = Object::new(inner.contents.revision + 1, pack(&mut value));
            inner.record(key, None, Some(object));
        }
        let now = Now::of(&inner);
        drop(inner);
        self.announce(now);
    }

    /// Everything that is stored now, and the counter. Cheap: objects are shared until they change.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(&self.inner.read().contents)
    }

    /// Goes back to a snapshot, counter included. Readers of the change log are cut off; nobody gets an event.
    pub fn restore(&self, snapshot: &Snapshot) -> std::io::Result<()> {
        let mut inner = self.inner.write();
        let contents = snapshot.contents(inner.contents.touches);
        if let Some(disk) = &mut inner.disk {
            disk.replace(&contents)?;
        }
        inner.log.restart(contents.revision);
        inner.contents = contents;
        let now = Now::of(&inner);
        drop(inner);
        self.announce(now);
        Ok(())
    }

    /// Wakes readers; what others have announced in the meantime is not taken back.
    fn announce(&self, now: Now) {
        self.newest.send_if_modified(|newest| std::mem::replace(newest, now.max(*newest)) != now.max(*newest));
    }

    /// How often the store has gone back in time. Revisions of different lives say nothing about each other.
    pub fn life(&self) -> u64 {
        self.inner.read().log.life()
    }

    /// Rewrites the file without history while writes continue: they are kept in memory until it is done.
    fn compact(&self, inner: &mut Inner) {
        let revision = inner.contents.revision;
        let objects: Vec<(Key, Object)> = inner.contents.all().collect();
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

    /// Completes when the newest revision is at least `revision`.
    pub async fn reached(&self, revision: u64) {
        let mut newest = self.newest.subscribe();
        // An error means the store is gone, and this borrow keeps it alive.
        let _ = newest.wait_for(|now| now.revision >= revision).await;
    }
}
