//! One task that keeps everything kcp up to date: it reads the change log, works out which objects a change concerns, and
//! brings each of them up to date. Every step depends only on the current state, so a restart simply does all of them once.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use carrick_kcp::apis::v1alpha2::{ApiBinding, ScopedPermissionClaim};
use carrick_kcp::core::v1alpha1::LogicalCluster;
use carrick_kcp::hash::export_hash;
use carrick_kcp::kinds::KcpObject;
use carrick_kcp::names::EXPORT_LABEL;
use carrick_kcp::tenancy::v1alpha1::Workspace;
use futures::{FutureExt, StreamExt};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::apis::Apis;
use super::bound::Bound;
use super::claim::{self, Subject};
use super::data::{BINDINGS, CLUSTERS, CRDS, Data, EXPORTS, SCHEMAS, SECRETS, SLICES, TYPES, WORKSPACES};
use super::object::{deleting, items, label, text};
use super::{binding, cluster, export, types, workspace};
use crate::store::{Change, Key, Kind, Watch};

/// How many items are processed before the task yields.
const TURN: usize = 32;

/// Cluster and name.
type ClusterAndName = (Arc<str>, Arc<str>);

/// One object that may need attention.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum QueueItem {
    Workspace(Arc<str>, Arc<str>),
    Cluster(Arc<str>),
    Type(Arc<str>, Arc<str>),
    Export(Arc<str>, Arc<str>),
    Slice(Arc<str>, Arc<str>),
    Binding(Arc<str>, Arc<str>),
    /// The copy of a schema that bindings no longer refer to.
    Copy(String),
    /// Claim labels of one object.
    Label(Key),
    /// Claim labels of all objects of a kind in a cluster.
    Relabel(Arc<str>, Kind),
}

/// The queue and what it takes to fill it.
pub struct Controller {
    data: Data,
    apis: Arc<Apis>,
    queue: VecDeque<QueueItem>,
    queued: HashSet<QueueItem>,
    /// Bindings by the hash of their export; those whose export is unknown have an empty one.
    bindings: HashMap<String, BTreeSet<ClusterAndName>>,
    /// Clusters that are being initialized, and may wait for an export.
    initializing: BTreeSet<Arc<str>>,
    /// Everything up to this revision has been seen.
    seen: u64,
}

impl Controller {
    /// A controller that will process everything once.
    pub fn new(data: Data, apis: Arc<Apis>) -> Self {
        let mut new = Self {
            data,
            apis,
            queue: VecDeque::new(),
            queued: HashSet::new(),
            bindings: HashMap::new(),
            initializing: BTreeSet::new(),
            seen: 0,
        };
        new.resync();
        new
    }

    /// Works until nothing is left to do, without waiting for anything.
    pub fn settle(&mut self) {
        loop {
            while self.step() {}
            let mut watch = self.watch();
            let mut news = false;
            while let Some(Some(change)) = watch.next().now_or_never() {
                self.observe(&change);
                news = true;
            }
            if !news {
                return;
            }
        }
    }

    /// Works until stopped.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            let mut watch = self.watch();
            loop {
                let next = tokio::select! {
                    () = stop.cancelled() => return,
                    next = watch.next() => next,
                };
                let Some(change) = next else {
                    // We have fallen behind the log.
                    self.resync();
                    break;
                };
                self.observe(&change);
                while let Some(Some(change)) = watch.next().now_or_never() {
                    self.observe(&change);
                }
                let mut done = 0;
                while self.step() {
                    done += 1;
                    if done % TURN == 0 {
                        tokio::task::yield_now().await;
                    }
                }
            }
            while self.step() {}
        }
    }

    fn watch(&mut self) -> Watch {
        loop {
            match self.data.store.watch(self.seen) {
                Ok(watch) => return watch,
                Err(_) => self.resync(),
            }
        }
    }

    fn resync(&mut self) {
        self.seen = self.data.store.revision();
        self.bindings.clear();
        let all = |kind: &Kind| self.data.list(kind, None);
        let mut work = Vec::new();
        for (key, object) in all(&BINDINGS) {
            let hash = label(&object, EXPORT_LABEL).unwrap_or_default().to_owned();
            work.push(QueueItem::Binding(key.cluster.clone(), key.name.clone()));
            self.bindings.entry(hash).or_default().insert((key.cluster, key.name));
        }
        work.extend(all(&TYPES).map(|(key, _)| QueueItem::Type(key.cluster, key.name)));
        self.initializing.clear();
        for (key, found) in all(&CLUSTERS) {
            if is_initializing(&found) {
                self.initializing.insert(key.cluster.clone());
            }
            let kinds = self.data.store.kinds(&key.cluster).into_iter();
            work.extend(kinds.map(|kind| QueueItem::Relabel(key.cluster.clone(), kind)));
            work.push(QueueItem::Cluster(key.cluster));
        }
        work.extend(all(&WORKSPACES).map(|(key, _)| QueueItem::Workspace(key.cluster, key.name)));
        work.extend(all(&EXPORTS).map(|(key, _)| QueueItem::Export(key.cluster, key.name)));
        work.extend(all(&SLICES).map(|(key, _)| QueueItem::Slice(key.cluster, key.name)));
        for piece in work {
            self.push(piece);
        }
    }

    fn push(&mut self, work: QueueItem) {
        if self.queued.insert(work.clone()) {
            self.queue.push_back(work);
        }
    }

    fn step(&mut self) -> bool {
        let Some(work) = self.queue.pop_front() else { return false };
        self.queued.remove(&work);
        let data = &self.data;
        match work {
            QueueItem::Workspace(cluster, name) => workspace::reconcile(data, &cluster, &name),
            QueueItem::Cluster(name) => cluster::reconcile(data, &name),
            QueueItem::Type(cluster, name) => types::reconcile(data, &cluster, &name),
            QueueItem::Export(cluster, name) => export::reconcile(data, &cluster, &name),
            QueueItem::Binding(cluster, name) => binding::reconcile(data, &self.apis, &cluster, &name),
            QueueItem::Slice(cluster, name) => {
                let bound = |hash: &str| -> BTreeSet<usize> {
                    let places = self.bindings.get(hash).into_iter().flatten();
                    places.map(|(cluster, _)| data.shards.of(&data.store, cluster)).collect()
                };
                export::reconcile_slice(data, &cluster, &name, &bound);
            }
            QueueItem::Copy(uid) => binding::drop_copy(data, &uid),
            QueueItem::Label(key) => relabel(data, &key),
            QueueItem::Relabel(cluster, kind) => {
                for (key, _) in data.list(&kind, Some(&cluster)) {
                    relabel(data, &key);
                }
            }
        }
        true
    }

    fn observe(&mut self, change: &Change) {
        self.seen = change.revision;
        let Key { kind, cluster, name, .. } = &change.key;
        let Some(object) = change.now().or_else(|| change.old()) else { return };
        let object = &*object;
        let gone = change.after.is_none();
        if *kind == *WORKSPACES {
            self.push(QueueItem::Workspace(cluster.clone(), name.clone()));
            let inner = read::<Workspace>(object).spec.cluster;
            if gone && !inner.is_empty() {
                self.push(QueueItem::Cluster(inner.into()));
            }
        } else if *kind == *CLUSTERS {
            if !gone && is_initializing(object) {
                self.initializing.insert(cluster.clone());
            } else {
                self.initializing.remove(cluster);
            }
            let owner = read::<LogicalCluster>(object).spec.owner.unwrap_or_default();
            self.push(QueueItem::Workspace(owner.cluster.into(), owner.name.into()));
            self.push(QueueItem::Cluster(cluster.clone()));
        } else if *kind == *TYPES {
            self.push(QueueItem::Type(cluster.clone(), name.clone()));
        } else if *kind == *EXPORTS {
            self.push(QueueItem::Export(cluster.clone(), name.clone()));
            self.export_changed(cluster, name);
        } else if *kind == *SLICES {
            self.push(QueueItem::Slice(cluster.clone(), name.clone()));
            self.push(QueueItem::Export(cluster.clone(), name.clone()));
        } else if *kind == *SCHEMAS {
            for (key, export) in self.data.list(&EXPORTS, Some(cluster)) {
                if items(&export, "/spec/resources").iter().any(|resource| resource["schema"] == **name) {
                    self.export_changed(cluster, &key.name);
                }
            }
        } else if *kind == *SECRETS {
            for (key, export) in self.data.list(&EXPORTS, Some(cluster)) {
                if text(&export, "/spec/identity/secretRef/name") == &**name {
                    self.push(QueueItem::Export(cluster.clone(), key.name));
                }
            }
        } else if *kind == *BINDINGS {
            self.binding_changed(change);
        } else if *kind == *CRDS {
            self.all_bindings_of(cluster, |_| true);
            self.push(QueueItem::Cluster(cluster.clone()));
        }
        self.content_changed(change, object);
    }

    fn export_changed(&mut self, cluster: &str, name: &str) {
        for hash in [export_hash(cluster, name), String::new()] {
            for (cluster, name) in self.bindings.get(&hash).cloned().unwrap_or_default() {
                self.push(QueueItem::Binding(cluster, name));
            }
        }
        for (cluster, name) in export::slices_of(&self.data, cluster, name) {
            self.push(QueueItem::Slice(cluster.into(), name.into()));
        }
        // New workspaces may wait for this export.
        for cluster in self.initializing.clone() {
            self.push(QueueItem::Cluster(cluster));
        }
    }

    fn binding_changed(&mut self, change: &Change) {
        let Key { cluster, name, .. } = &change.key;
        let place = (cluster.clone(), name.clone());
        let old = change.old().map(|object| read::<ApiBinding>(&object));
        let new = change.now().map(|object| read::<ApiBinding>(&object));
        let hash = |binding: &ApiBinding| binding.metadata.label(EXPORT_LABEL).unwrap_or_default().to_owned();
        let (before, after) = (old.as_ref().map(hash), new.as_ref().map(hash));
        let gone = new.is_none();
        if let Some(before) = &before {
            self.bindings.get_mut(before).map(|all| all.remove(&place));
        }
        if let Some(after) = &after {
            self.bindings.entry(after.clone()).or_default().insert(place.clone());
        }
        self.push(QueueItem::Binding(cluster.clone(), name.clone()));
        self.push(QueueItem::Cluster(cluster.clone()));
        if before != after {
            let ApiBinding { spec, status, .. } = new.as_ref().or(old.as_ref()).cloned().unwrap_or_default();
            let (home, export) = (status.api_export_cluster_name, spec.reference.export);
            let home = match (home.is_empty(), export.path.is_empty()) {
                (false, _) => Some(home.into()),
                (true, true) => Some(cluster.clone()),
                (true, false) => self.data.resolve(&export.path),
            };
            if let Some(home) = home {
                for (cluster, name) in export::slices_of(&self.data, &home, &export.name) {
                    self.push(QueueItem::Slice(cluster.into(), name.into()));
                }
            }
        }
        let (before, after) = (old.unwrap_or_default().status, new.unwrap_or_default().status);
        if before.bound_resources != after.bound_resources || gone {
            self.all_bindings_of(cluster, |_| true);
            for bound in before.bound_resources.iter().filter(|bound| gone || !after.bound_resources.contains(bound)) {
                self.push(QueueItem::Copy(bound.schema.uid.clone()));
            }
        }
        let (before, after) = (before.applied_permission_claims, after.applied_permission_claims);
        // Nobody reconciles the objects of a binding that is gone: they keep their labels until they are written next, as in kcp.
        if before != after && !gone {
            for claim in before.iter().chain(&after) {
                self.push(QueueItem::Relabel(cluster.clone(), kind_of(claim)));
            }
        }
    }

    fn all_bindings_of(&mut self, cluster: &str, wanted: impl Fn(&Bound) -> bool) {
        for (key, binding) in self.data.bindings.in_cluster(&self.data.store, cluster) {
            if wanted(&binding) {
                self.push(QueueItem::Binding(key.cluster, key.name));
            }
        }
    }

    /// What a change of any object may lead to: claim labels to set, a clean-up to continue.
    fn content_changed(&mut self, change: &Change, object: &Value) {
        let Key { kind, cluster, .. } = &change.key;
        if cluster.starts_with("system:") || cluster.is_empty() {
            return;
        }
        if self.data.cluster(cluster).is_none_or(|found| deleting(&found)) {
            self.push(QueueItem::Cluster(cluster.clone()));
        }
        if change.after.is_some() && claim::present(object) != claim::wanted(&self.data, cluster, kind, object) {
            self.push(QueueItem::Label(change.key.clone()));
        }
        if kind.identity.is_empty() {
            return;
        }
        if change.after.is_none() {
            self.all_bindings_of(cluster, |binding| binding.deleting);
        } else if change.before.is_none() {
            // A creation that was in progress when its binding was deleted.
            let bindings = self.data.bindings.in_cluster(&self.data.store, cluster);
            if !bindings.iter().any(|(_, found)| found.holds(kind)) {
                self.data.delete(&change.key);
            }
        }
    }
}

fn is_initializing(cluster: &Value) -> bool {
    text(cluster, "/status/phase") == "Initializing"
}

/// A stored object as what it is. What cannot be read tells nothing, and is reported by whoever works on it.
fn read<K: KcpObject + Default>(object: &Value) -> K {
    K::deserialize(object).unwrap_or_default()
}

fn kind_of(claim: &ScopedPermissionClaim) -> Kind {
    let Subject { group, resource, identity } = claim.key().into();
    Kind { group: group.into(), resource: resource.into(), identity: identity.into() }
}

fn relabel(data: &Data, key: &Key) {
    let wanted = |object: &Value| claim::wanted(data, &key.cluster, &key.kind, object);
    if data.store.get(key).is_some_and(|found| claim::present(&found.object) != wanted(&found.object)) {
        data.edit(key, |object| claim::mark(object, &wanted(object)));
    }
}
