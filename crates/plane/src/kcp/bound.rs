//! What requests need to know of a binding. It is asked for at every request and may have hundreds of entries, so it is read once per change.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use carrick_kcp::names::EXPORT_LABEL;
use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest, Sha256};

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
    pub kinds: Arc<[BoundKind]>,
    /// Which claims the consumer accepts or rejects, as in the spec.
    pub accepted: Vec<Value>,
    /// The accepted ones: what they are about, and their selectors. Admission goes by them, whether they are in force already or not.
    pub granted: Vec<(Subject, Value)>,
    served: Arc<Served>,
}

/// Groups and plurals of bound kinds.
type Served = HashMap<Arc<str>, HashSet<Arc<str>>>;

/// Bound kinds and their names, as long as somebody uses them.
type WeakKinds = (Weak<[BoundKind]>, Weak<Served>);

/// The kinds of all bindings. Whoever binds the same export has the same ones, so they are kept once.
#[derive(Default)]
struct SharedKinds {
    /// By the hash of their list in the binding.
    known: HashMap<[u8; 32], WeakKinds>,
    /// With more entries than this, those that nobody uses any more are removed.
    limit: usize,
}

impl SharedKinds {
    fn of(&mut self, bound: &[Value]) -> (Arc<[BoundKind]>, Arc<Served>) {
        let mut hash = Sha256::new();
        for one in bound {
            hash.update(one.to_string().as_bytes());
        }
        let hash: [u8; 32] = hash.finalize().into();
        if let Some((kinds, served)) = self.known.get(&hash)
            && let (Some(kinds), Some(served)) = (kinds.upgrade(), served.upgrade())
        {
            return (kinds, served);
        }
        let kind = |bound: &Value| BoundKind {
            kind: Kind {
                group: text(bound, "/group").into(),
                resource: text(bound, "/resource").into(),
                identity: text(bound, "/schema/identityHash").into(),
            },
            schema: text(bound, "/schema/UID").into(),
        };
        let kinds: Arc<[BoundKind]> = bound.iter().map(kind).collect();
        let mut served = Served::new();
        for BoundKind { kind, .. } in &*kinds {
            served.entry(kind.group.clone()).or_default().insert(kind.resource.clone());
        }
        let served = Arc::new(served);
        self.known.insert(hash, (Arc::downgrade(&kinds), Arc::downgrade(&served)));
        if self.known.len() > self.limit {
            self.known.retain(|_, (kinds, _)| kinds.strong_count() > 0);
            self.limit = self.known.len() * 2 + 16;
        }
        (kinds, served)
    }
}

impl Bound {
    fn of(binding: &Value, shared: &Mutex<SharedKinds>) -> Self {
        let (kinds, served) = shared.lock().of(items(binding, "/status/boundResources"));
        let granted = items(binding, "/spec/permissionClaims").iter().filter(|claim| claim["state"] == "Accepted");
        Self {
            export_hash: label(binding, EXPORT_LABEL).map(Arc::from),
            home: text(binding, "/status/apiExportClusterName").to_owned(),
            path: text(binding, "/spec/reference/export/path").to_owned(),
            export: text(binding, "/spec/reference/export/name").to_owned(),
            deleting: deleting(binding),
            kinds,
            accepted: items(binding, "/spec/permissionClaims").to_vec(),
            granted: granted.map(|claim| (Subject::of(claim), claim["selector"].clone())).collect(),
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
    kinds: Mutex<SharedKinds>,
    /// Hashes of the exports that somebody binds, and the last write to any binding they were collected after.
    exports: Mutex<(u64, Arc<HashSet<Arc<str>>>)>,
}

impl Bindings {
    /// Of this kind, in any cluster.
    pub fn new(kind: &Kind) -> Self {
        Self { kind: kind.clone(), each: Derived::default(), kinds: Mutex::default(), exports: Mutex::default() }
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
            let bound = self.each.of(store, &key, &object, |binding| Bound::of(binding, &self.kinds));
            (key, bound)
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bindings_to_the_same_export_share_their_kinds() {
        let shared = Mutex::default();
        let binding = |name: &str, uid: &str| {
            let bound =
                json!({"group": "example.io", "resource": "widgets", "schema": {"UID": uid, "identityHash": "i"}});
            let claim =
                json!({"resource": "secrets", "verbs": ["*"], "selector": {"matchAll": true}, "state": "Accepted"});
            let binding = json!({"metadata": {"name": name, "labels": {EXPORT_LABEL: "hash"}},
                "spec": {"reference": {"export": {"path": "root:prov", "name": "e"}}, "permissionClaims": [claim]},
                "status": {"boundResources": [bound]}});
            Bound::of(&binding, &shared)
        };
        let (one, two, other) = (binding("one", "u"), binding("two", "u"), binding("other", "v"));
        assert!(Arc::ptr_eq(&one.kinds, &two.kinds) && !Arc::ptr_eq(&one.kinds, &other.kinds));
        assert!(one.serves("example.io", "widgets") && !one.serves("", "widgets") && !one.serves("example.io", "x"));
        assert!(one.holds(&one.kinds[0].kind) && !one.holds(&Kind::new("example.io", "widgets")));
        assert!(one.is_to("hash") && !one.is_to("") && one.path == "root:prov" && one.export == "e");
        assert_eq!(one.granted.len(), 1);
        drop((one, two, other));
        for number in 0..100 {
            binding("n", &number.to_string());
        }
        assert!(shared.lock().known.len() < 50);
    }
}
