//! What requests need to know of a binding. It is asked for at every request and may have hundreds of entries, so it is read once per change.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use carrick_kcp::names::EXPORT_LABEL;
use parking_lot::Mutex;
use serde_json::Value;

use super::derived::Derived;
use super::object::{deleting, items, label, text};
use super::subject::Subject;
use crate::store::{Key, Kind, Store};

/// A bound kind.
#[derive(Debug)]
pub struct BoundKind {
    /// As it is stored.
    pub kind: Kind,
    /// Uid of its schema.
    pub schema: Arc<str>,
}

/// A binding, as far as requests are concerned.
#[derive(Debug)]
pub struct Bound {
    /// Hash of the export, from the label; none until it is known.
    pub export_hash: Option<Arc<str>>,
    /// Logical cluster of the export, may be empty.
    pub home: String,
    /// Path of the export's workspace in the reference; empty if it is the same.
    pub path: String,
    /// Name of the export.
    pub export: String,
    /// Deletion has begun.
    pub deleting: bool,
    /// The bound kinds, in their order.
    pub kinds: Vec<BoundKind>,
    /// Which claims the consumer accepts or rejects, as in the spec.
    pub accepted: Vec<Value>,
    /// The claims in force: what they are about, and their selectors.
    pub applied: Vec<(Subject, Value)>,
    /// Groups and plurals of the bound kinds.
    served: HashMap<Arc<str>, HashSet<Arc<str>>>,
}

impl Bound {
    fn of(binding: &Value) -> Self {
        let kind = |bound: &Value| BoundKind {
            kind: Kind {
                group: text(bound, "/group").into(),
                resource: text(bound, "/resource").into(),
                identity: text(bound, "/schema/identityHash").into(),
            },
            schema: text(bound, "/schema/UID").into(),
        };
        let kinds: Vec<BoundKind> = items(binding, "/status/boundResources").iter().map(kind).collect();
        let mut served: HashMap<Arc<str>, HashSet<Arc<str>>> = HashMap::new();
        for BoundKind { kind, .. } in &kinds {
            served.entry(kind.group.clone()).or_default().insert(kind.resource.clone());
        }
        let applied = items(binding, "/status/appliedPermissionClaims").iter();
        Self {
            export_hash: label(binding, EXPORT_LABEL).map(Arc::from),
            home: text(binding, "/status/apiExportClusterName").to_owned(),
            path: text(binding, "/spec/reference/export/path").to_owned(),
            export: text(binding, "/spec/reference/export/name").to_owned(),
            deleting: deleting(binding),
            kinds,
            accepted: items(binding, "/spec/permissionClaims").to_vec(),
            applied: applied.map(|claim| (Subject::of(claim), claim["selector"].clone())).collect(),
            served,
        }
    }

    /// Whether a kind of this group and plural is bound.
    pub fn serves(&self, group: &str, plural: &str) -> bool {
        self.served.get(group).is_some_and(|plurals| plurals.contains(plural))
    }

    /// Whether objects that are stored as `kind` belong to this binding.
    pub fn holds(&self, kind: &Kind) -> bool {
        self.serves(&kind.group, &kind.resource) && self.kinds.iter().any(|bound| bound.kind == *kind)
    }

    /// Whether the binding refers to the export with this hash.
    pub fn is_to(&self, export_hash: &str) -> bool {
        self.export_hash.as_deref() == Some(export_hash)
    }
}

/// All bindings as requests see them.
pub struct Bindings {
    kind: Kind,
    each: Derived<Bound>,
    /// Hashes of the exports that somebody binds, and the last write to any binding they were collected after.
    exports: Mutex<(u64, Arc<HashSet<Arc<str>>>)>,
}

impl Bindings {
    /// Of this kind, in any cluster.
    pub fn new(kind: &Kind) -> Self {
        Self { kind: kind.clone(), each: Derived::default(), exports: Mutex::default() }
    }

    /// The bindings of a cluster, in order.
    pub fn in_cluster(&self, store: &Store, cluster: &str) -> Vec<(Key, Arc<Bound>)> {
        if store.touched(&self.kind, cluster) == 0 { Vec::new() } else { self.listed(store, Some(cluster)) }
    }

    /// Whether any cluster binds an export.
    pub fn any_to(&self, store: &Store, export_hash: &str) -> bool {
        let written = store.written(&self.kind);
        let known = self.exports.lock().clone();
        if known.0 == written {
            return known.1.contains(export_hash);
        }
        let all = self.everywhere(store).into_iter().filter_map(|(_, bound)| bound.export_hash.clone());
        let exports: Arc<HashSet<Arc<str>>> = Arc::new(all.collect());
        let found = exports.contains(export_hash);
        // They were read after `written`, so they are at least as new.
        *self.exports.lock() = (written, exports);
        found
    }

    /// The bindings of all clusters.
    pub fn everywhere(&self, store: &Store) -> Vec<(Key, Arc<Bound>)> {
        self.listed(store, None)
    }

    fn listed(&self, store: &Store, cluster: Option<&str>) -> Vec<(Key, Arc<Bound>)> {
        let all = store.list(&self.kind, cluster, None).1.into_iter();
        all.map(|(key, object)| {
            let bound = self.each.of(store, &key, &object, Bound::of);
            (key, bound)
        })
        .collect()
    }
}
