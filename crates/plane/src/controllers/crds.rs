//! Deletion of a CRD: its objects are deleted first.

use serde_json::{Value, json};
use tracing::warn;

use super::run::Reconcile;
use crate::api::{Api, CLEANUP_FINALIZER, DeleteOptions, ListOptions, Scope, WriteOptions};
use crate::caller::Caller;
use crate::resource::Resource;
use crate::store::{Change, Key, Kind};
use crate::time::now;

pub(super) struct Crds;

impl Reconcile for Crds {
    fn kinds(&self) -> Option<Vec<Kind>> {
        Some(vec![Kind::new("apiextensions.k8s.io", "customresourcedefinitions")])
    }

    fn noticed(&mut self, change: &Change) -> Vec<Key> {
        let ours = &*change.key.kind.resource == "customresourcedefinitions"
            && &*change.key.kind.group == "apiextensions.k8s.io";
        // Only CRDs are unpacked.
        let deleting = || change.now().is_some_and(|crd| crd["metadata"]["deletionTimestamp"].is_string());
        if ours && deleting() { vec![change.key.clone()] } else { Vec::new() }
    }

    fn reconcile(&mut self, api: &Api, key: &Key) -> bool {
        let Some(crd) = api.store.get(key) else { return true };
        let holds = |object: &Value| {
            object["metadata"]["finalizers"]
                .as_array()
                .is_some_and(|list| list.iter().any(|name| name == CLEANUP_FINALIZER))
        };
        if !holds(&crd.object) {
            return true;
        }
        let Some(crds) = api.scope(&key.cluster, "apiextensions.k8s.io", "customresourcedefinitions") else {
            return true;
        };
        let caller = Caller::system();
        let mut object = Value::clone(&crd.object);
        if set_terminating(&mut object) {
            // Either this write or its own change event leads to the next step.
            return api
                .put(&caller, &crds, &key.name, "status", object, &WriteOptions::default())
                .is_err_and(|status| status.code == 404);
        }
        if !clear(api, &caller, key, &crd.object) {
            return false;
        }
        let kept = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        object["metadata"]["finalizers"] = kept.into_iter().filter(|name| name != CLEANUP_FINALIZER).collect();
        api.update(&caller, &crds, &key.name, object, &WriteOptions::default())
            .map_or_else(|status| status.code == 404, |_| true)
    }
}

/// Adds the Terminating condition; false if it is there.
fn set_terminating(crd: &mut Value) -> bool {
    let conditions = &mut crd["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(list) = conditions.as_array_mut() else { return false };
    if list.iter().any(|one| one["type"] == "Terminating" && one["status"] == "True") {
        return false;
    }
    list.retain(|one| one["type"] != "Terminating");
    list.push(json!({
        "type": "Terminating", "status": "True", "reason": "InstanceDeletionInProgress",
        "message": "CustomResource deletion is in progress", "lastTransitionTime": now(),
    }));
    true
}

/// Deletes all objects of the kind; true when none is left.
fn clear(api: &Api, caller: &Caller, key: &Key, crd: &Value) -> bool {
    let Ok(resource) = Resource::from_crd(crd) else { return true };
    let Some(version) = resource.storage_version().map(|version| version.name.clone()) else { return true };
    let scope = Scope::new(&key.cluster, resource.into(), &version);
    if let Err(status) = api.delete_collection(caller, &scope, &ListOptions::default(), &DeleteOptions::default()) {
        warn!(error = %status, crd = %key.name, "cannot delete the objects of a CRD");
        return false;
    }
    api.list(&scope, &ListOptions::default()).is_ok_and(|listed| listed.objects.is_empty())
}
