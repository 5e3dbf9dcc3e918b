//! Owner references: dependents are deleted when none of their owners exists any more.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;
use tracing::warn;

use super::run::Reconcile;
use crate::api::{Api, DeleteOptions, Scope, WriteOptions};
use crate::caller::Caller;
use crate::patch::Patch;
use crate::resource::{Resource, api_version};
use crate::store::{Change, Key, Kind, Object};

/// Dependents by the UID of their owner.
#[derive(Default)]
pub(super) struct Garbage {
    dependents: HashMap<String, HashSet<Key>>,
}

impl Reconcile for Garbage {
    fn kinds(&self) -> Option<Vec<Kind>> {
        None
    }

    fn noticed(&mut self, change: &Change) -> Vec<Key> {
        let key = &change.key;
        // Almost all objects have no owner and are not being deleted. They are not even unpacked.
        let concerned = |object: &Object| object.mentions("ownerReferences") || object.mentions("deletionTimestamp");
        if change.after.is_some() && !change.before.iter().chain(&change.after).any(concerned) {
            return Vec::new();
        }
        let (before, after) = (change.old(), change.now());
        let old = owners(before.as_deref());
        let new = owners(after.as_deref());
        for uid in old.iter().filter(|uid| !new.contains(uid)) {
            if let Some(keys) = self.dependents.get_mut(uid) {
                keys.remove(key);
                if keys.is_empty() {
                    self.dependents.remove(uid);
                }
            }
        }
        for uid in &new {
            self.dependents.entry(uid.clone()).or_default().insert(key.clone());
        }
        let mut work = Vec::new();
        match (before, after) {
            (before, None) => {
                let uid = before.as_deref().map(uid_of).unwrap_or_default();
                work.extend(self.dependents.get(&uid).into_iter().flatten().cloned());
            }
            (_, Some(object)) => {
                let waits = object["metadata"]["deletionTimestamp"].is_string() && policy_finalizer(&object).is_some();
                if waits || !new.is_empty() {
                    work.push(key.clone());
                }
            }
        }
        work
    }

    fn reconcile(&mut self, api: &Api, key: &Key) -> bool {
        let Some(stored) = api.store.get(key) else { return true };
        let Some(scope) = scope_of(api, key) else { return true };
        let object = &stored.object;
        if object["metadata"]["deletionTimestamp"].is_string() {
            return match policy_finalizer(object) {
                Some(finalizer) => self.settle(api, &scope, key, object, finalizer),
                None => true,
            };
        }
        let references = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        if references.is_empty() || references.iter().any(|owner| exists(api, key, owner)) {
            return true;
        }
        let uid = uid_of(object);
        let options = DeleteOptions { uid: Some(uid), ..DeleteOptions::default() };
        match api.delete(&Caller::system(), &scope, &key.name, &options) {
            Ok(_) => true,
            Err(status) if matches!(status.code, 404 | 409) => true,
            Err(status) => {
                warn!(error = %status, object = %key.name, "cannot delete an orphaned dependent");
                true
            }
        }
    }
}

impl Garbage {
    /// Processes the finalizer of a deletion policy; returns false while dependents remain.
    fn settle(&self, api: &Api, scope: &Scope, key: &Key, object: &Value, finalizer: &str) -> bool {
        let uid = uid_of(object);
        let caller = Caller::system();
        let dependents: Vec<Key> = self.dependents.get(&uid).into_iter().flatten().cloned().collect();
        let mut blocked = false;
        for dependent in dependents {
            let (Some(stored), Some(scope)) = (api.store.get(&dependent), scope_of(api, &dependent)) else { continue };
            let references = stored.object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
            if finalizer == "orphan" {
                let kept: Vec<Value> = references.into_iter().filter(|owner| owner["uid"] != *uid).collect();
                let kept = if kept.is_empty() { Value::Null } else { kept.into() };
                let patch = Patch::Merge(serde_json::json!({"metadata": {"ownerReferences": kept}}));
                let result = api.patch(&caller, &scope, &dependent.name, "", &patch, &WriteOptions::default());
                blocked |= result.is_err_and(|status| status.code != 404);
                continue;
            }
            let ours = references.iter().find(|owner| owner["uid"] == *uid);
            let others = references.iter().any(|owner| owner["uid"] != *uid && exists(api, &dependent, owner));
            if !others {
                let options = DeleteOptions::default();
                if !stored.object["metadata"]["deletionTimestamp"].is_string() {
                    let _ = api.delete(&caller, &scope, &dependent.name, &options);
                }
                blocked |= ours.is_some_and(|owner| owner["blockOwnerDeletion"] == true) && api.store.has(&dependent);
            }
        }
        if blocked {
            return false;
        }
        let kept: Vec<&Value> = object["metadata"]["finalizers"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|name| *name != finalizer)
            .collect();
        let patch = Patch::Merge(serde_json::json!({"metadata": {"finalizers": kept}}));
        let result = api.patch(&caller, scope, &key.name, "", &patch, &WriteOptions::default());
        result.map_or_else(|status| status.code == 404, |_| true)
    }
}

fn owners(object: Option<&Value>) -> Vec<String> {
    let list = object.and_then(|object| object["metadata"]["ownerReferences"].as_array());
    list.into_iter().flatten().filter_map(|owner| owner["uid"].as_str()).map(str::to_owned).collect()
}

fn uid_of(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

fn policy_finalizer(object: &Value) -> Option<&'static str> {
    let list = object["metadata"]["finalizers"].as_array()?;
    ["orphan", "foregroundDeletion"].into_iter().find(|wanted| list.iter().any(|name| name == wanted))
}

/// The scope in which a stored object is found again.
fn scope_of(api: &Api, key: &Key) -> Option<Scope> {
    let fits = |resource: &&Arc<Resource>| {
        resource.plural == key.kind.resource
            && resource.group == key.kind.group
            && resource.identity == key.kind.identity
    };
    let resource = api.resources(&key.cluster).iter().find(fits).cloned()?;
    let version = resource.storage_version()?.name.clone();
    Some(Scope::new(&key.cluster, resource, &version).in_namespace(&key.namespace))
}

/// Whether an owner exists, with its uid, in the same namespace or at cluster scope.
fn exists(api: &Api, dependent: &Key, owner: &Value) -> bool {
    let text = |key: &str| owner[key].as_str().unwrap_or_default();
    let resources = api.resources(&dependent.cluster);
    let found = resources.iter().find(|resource| {
        *resource.kind == *text("kind")
            && resource.versions.iter().any(|version| api_version(&resource.group, &version.name) == text("apiVersion"))
    });
    // It is not known whether an owner of an unserved kind exists: its dependents stay.
    let Some(resource) = found else { return true };
    let namespace = if resource.namespaced { &*dependent.namespace } else { "" };
    let key = Key::new(&resource.stored_kind(), &dependent.cluster, namespace, text("name"));
    api.store.get(&key).is_some_and(|stored| stored.object["metadata"]["uid"] == owner["uid"])
}
