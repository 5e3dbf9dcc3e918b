//! Typed access to the store for everything kcp: which kinds there are, and safe read-modify-write.

use std::sync::Arc;

use carrick_kcp::core::v1alpha1::LogicalCluster;
use carrick_kcp::hash::home_cluster;
use carrick_kcp::kinds::KcpObject;
use serde_json::{Value, json};

use super::bound::Bindings;
use super::object::{child, deleting, finalizers, items, text};
use super::shards::Shards;
pub use super::stored::{
    BINDINGS, BOUND_SCHEMAS, CLUSTER_ROLE_BINDINGS, CLUSTERS, CRDS, EXPORTS, NAMESPACES, ROOT, SCHEMAS, SECRETS, SELF,
    SHARDS, SLICES, SYSTEM_ADMIN, TYPES, WORKSPACES,
};
use crate::store::{Expect, Key, Kind, Store, StoreError};
pub(super) use crate::time::now;

/// The store as kcp sees it.
#[derive(Clone)]
pub struct Data {
    /// All objects.
    pub store: Arc<Store>,
    /// The server's address without a trailing slash.
    pub base: Arc<str>,
    /// Where logical clusters live.
    pub shards: Arc<Shards>,
    /// The bindings, as requests see them.
    pub bindings: Arc<Bindings>,
}

impl Data {
    /// A store, the server's address, and where logical clusters live.
    pub fn new(store: Arc<Store>, url: &str, shards: Arc<Shards>) -> Self {
        Self { store, base: url.trim_end_matches('/').into(), shards, bindings: Arc::new(Bindings::new(&BINDINGS)) }
    }

    /// A cluster-scoped object.
    pub fn get(&self, kind: &Kind, cluster: &str, name: &str) -> Option<Arc<Value>> {
        self.store.get(&Key::new(kind, cluster, "", name)).map(|found| found.object)
    }

    /// An object of one of kcp's kinds, as what it is; nothing if it does not exist.
    pub fn read<K: KcpObject>(&self, cluster: &str, name: &str) -> Option<K> {
        let key = key::<K>(cluster, name);
        let found = self.store.get(&key)?;
        K::deserialize(&*found.object).inspect_err(|error| unreadable(&key, error)).ok()
    }

    /// All objects of a kind in one cluster, or in all of them.
    pub fn list(&self, kind: &Kind, cluster: Option<&str>) -> impl Iterator<Item = (Key, Arc<Value>)> + use<> {
        let store = self.store.clone();
        let all = store.list(kind, cluster, None).1.into_iter();
        all.map(move |(key, found)| (key, store.value(&found)))
    }

    /// The cluster whose export a kind is bound from.
    pub fn exporter(&self, cluster: &str, group: &str, plural: &str) -> Option<Arc<str>> {
        let fits = |bound: &Value| bound["group"] == group && bound["resource"] == plural;
        let mut bindings = self.list(&BINDINGS, Some(cluster));
        let (_, binding) = bindings.find(|(_, binding)| items(binding, "/status/boundResources").iter().any(fits))?;
        Some(text(&binding, "/status/apiExportClusterName").into()).filter(|name: &Arc<str>| !name.is_empty())
    }

    /// The LogicalCluster of a cluster.
    pub fn cluster(&self, cluster: &str) -> Option<Arc<Value>> {
        self.get(&CLUSTERS, cluster, SELF)
    }

    /// The same, as what it is.
    pub fn read_cluster(&self, cluster: &str) -> Option<LogicalCluster> {
        self.read(cluster, SELF)
    }

    /// Creates an object of one of kcp's kinds under its name, unless it exists.
    pub fn create_as<K: KcpObject>(&self, cluster: &str, object: &K) {
        let key = key::<K>(cluster, &object.metadata().name);
        match serde_json::to_value(object) {
            Ok(_) if self.store.has(&key) => {}
            Ok(object) => drop(self.create(&key, object)),
            Err(error) => unreadable(&key, &error),
        }
    }

    /// Changes an object of one of kcp's kinds, see [`Data::edit`].
    pub fn edit_as<K: KcpObject>(&self, cluster: &str, name: &str, mut change: impl FnMut(&mut K)) -> Option<K> {
        let key = key::<K>(cluster, name);
        let edited = self.edit(&key, |object| {
            let changed = K::deserialize(&*object).and_then(|mut typed| {
                change(&mut typed);
                serde_json::to_value(typed)
            });
            match changed {
                Ok(changed) => *object = changed,
                Err(error) => unreadable(&key, &error),
            }
        });
        K::deserialize(&*edited?).ok()
    }

    /// Creates an object with the metadata a server adds; false if it exists or cannot be written.
    pub fn create(&self, key: &Key, mut object: Value) -> bool {
        let metadata = child(&mut object, &["metadata"]);
        metadata.insert("name".to_owned(), (&*key.name).into());
        if !key.namespace.is_empty() {
            metadata.insert("namespace".to_owned(), (&*key.namespace).into());
        }
        metadata.insert("uid".to_owned(), uuid::Uuid::new_v4().to_string().into());
        metadata.insert("creationTimestamp".to_owned(), now().into());
        if object.get("spec").is_some() && *key.kind.group != *"" {
            child(&mut object, &["metadata"]).insert("generation".to_owned(), 1.into());
        }
        report(key, self.store.commit(key, Expect::Absent, Some(object)).map(|_| ()))
    }

    /// Changes an object, retrying on conflicts; nothing is written if nothing changes. An object that is being deleted and has lost its
    /// last finalizer is removed.
    pub fn edit(&self, key: &Key, mut change: impl FnMut(&mut Value)) -> Option<Arc<Value>> {
        loop {
            let found = self.store.get(key)?;
            let mut object = (*found.object).clone();
            change(&mut object);
            if object.get("spec") != found.object.get("spec") {
                let generation = object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0) + 1;
                child(&mut object, &["metadata"]).insert("generation".to_owned(), generation.into());
            }
            let gone = deleting(&object) && finalizers(&object).is_empty() && !finalizers(&found.object).is_empty();
            match self.store.commit(key, Expect::Revision(found.revision), (!gone).then_some(object)) {
                Ok(stored) => return (!gone).then_some(stored.object),
                Err(StoreError::Stale(_)) => {}
                Err(error) => {
                    report(key, Err(error));
                    return None;
                }
            }
        }
    }

    /// Deletes an object, or marks it for deletion if it has finalizers.
    pub fn delete(&self, key: &Key) {
        loop {
            let Some(found) = self.store.get(key) else { return };
            let held = !finalizers(&found.object).is_empty();
            if held && deleting(&found.object) {
                return;
            }
            let after = held.then(|| {
                let mut object = (*found.object).clone();
                let metadata = child(&mut object, &["metadata"]);
                metadata.insert("deletionTimestamp".to_owned(), now().into());
                metadata.insert("deletionGracePeriodSeconds".to_owned(), 0.into());
                // Kinds that count their generations count this one too.
                if let Some(generation) = metadata.get("generation").and_then(Value::as_i64) {
                    metadata.insert("generation".to_owned(), (generation + 1).into());
                }
                object
            });
            match self.store.commit(key, Expect::Revision(found.revision), after) {
                Err(StoreError::Stale(_)) => {}
                other => {
                    report(key, other.map(|_| ()));
                    return;
                }
            }
        }
    }

    /// Makes sure a namespace exists.
    pub fn ensure_namespace(&self, cluster: &str, name: &str, annotations: &Value) {
        let key = Key::new(&NAMESPACES, cluster, "", name);
        if !self.store.has(&key) {
            let mut object = json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"labels": {"kubernetes.io/metadata.name": name}},
                "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
            });
            if !annotations.is_null() {
                object["metadata"]["annotations"] = annotations.clone();
            }
            self.create(&key, object);
        }
    }

    /// The canonical path of a cluster: as users write it, or its name if it has no path.
    pub fn path_of(&self, cluster: &str) -> String {
        let object = self.cluster(cluster);
        let path = object.as_deref().and_then(|object| super::object::annotation(object, carrick_kcp::PATH_ANNOTATION));
        path.unwrap_or(cluster).to_owned()
    }

    /// The logical cluster behind a path or name: the first segment is a name, or `user:` and the name of a user who has a home, each further
    /// one a Workspace below it.
    pub fn resolve(&self, path: &str) -> Option<Arc<str>> {
        if path.starts_with("system:") {
            return Some(path.into());
        }
        let home = path.strip_prefix("user:");
        let mut segments = home.unwrap_or(path).split(':');
        let first = segments.next()?;
        let mut cluster: Arc<str> = if home.is_some() { home_cluster(first).into() } else { first.into() };
        for segment in segments {
            let workspace = self.get(&WORKSPACES, &cluster, segment)?;
            let next = text(&workspace, "/spec/cluster");
            if next.is_empty() || text(&workspace, "/status/phase") == "Scheduling" {
                return None;
            }
            cluster = next.into();
        }
        Some(cluster)
    }

    /// Finds an object by the path or name of its workspace and its own name; an empty path means `here`.
    pub fn referenced(&self, kind: &Kind, path: &str, here: &str, name: &str) -> Option<(Arc<str>, Arc<Value>)> {
        let cluster = if path.is_empty() { here.into() } else { self.resolve(path)? };
        let object = self.get(kind, &cluster, name)?;
        Some((cluster, object))
    }
}

/// Where an object of one of kcp's kinds is stored; all versions of a kind are one.
fn key<K: KcpObject>(cluster: &str, name: &str) -> Key {
    Key::new(&Kind::new(K::KIND.group, K::KIND.plural), cluster, "", name)
}

/// What is stored has passed the schema of its kind, so this is a defect of the plane.
fn unreadable(key: &Key, error: &serde_json::Error) {
    let Key { kind, cluster, name, .. } = key;
    tracing::error!(resource = %kind.resource, %cluster, %name, %error, "cannot read the object as what it is");
}

fn report(key: &Key, result: Result<(), StoreError>) -> bool {
    match result {
        Ok(()) => true,
        Err(error @ (StoreError::Disk(_) | StoreError::TooLarge(_))) => {
            let Key { kind, cluster, namespace, name } = key;
            tracing::error!(resource = %kind.resource, %cluster, %namespace, %name, %error, "cannot store the object");
            false
        }
        // Somebody else was faster; their change will requeue this object.
        Err(StoreError::Exists | StoreError::Missing | StoreError::Stale(_)) => false,
    }
}
