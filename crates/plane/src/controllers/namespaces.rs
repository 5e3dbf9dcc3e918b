//! Namespaces: their default content, and their deletion.

use serde_json::{Value, json};
use tracing::warn;

use super::ensure::ensure;
use super::remains::Remains;
use super::run::Reconcile;
use crate::api::{Api, DeleteOptions, ListOptions, WriteOptions};
use crate::caller::Caller;
use crate::status::Status;
use crate::store::{Change, Key, Kind};
use crate::time::now;

/// Creates a namespace for the plane itself; an existing one is fine.
pub fn create_namespace(api: &Api, cluster: &str, name: &str) {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    ensure(api, cluster, "", "namespaces", object);
}

pub(super) struct Namespaces;

impl Reconcile for Namespaces {
    fn kinds(&self) -> Option<Vec<Kind>> {
        Some(vec![Kind::new("", "namespaces")])
    }

    fn noticed(&mut self, change: &Change) -> Vec<Key> {
        let kind = &change.key.kind;
        let ours = kind.group.is_empty() && kind.identity.is_empty();
        match (&*kind.resource, &change.after) {
            ("namespaces", Some(_)) if ours => vec![change.key.clone()],
            // The two default objects are created again when somebody deletes them.
            ("serviceaccounts" | "configmaps", None) if ours => {
                vec![Key::new(&Kind::new("", "namespaces"), &change.key.cluster, "", &change.key.namespace)]
            }
            _ => Vec::new(),
        }
    }

    fn reconcile(&mut self, api: &Api, key: &Key) -> bool {
        let Some(stored) = api.store.get(key) else { return true };
        if stored.object["metadata"]["deletionTimestamp"].is_string() {
            return finish(api, key, &stored.object);
        }
        let (cluster, name) = (&*key.cluster, &*key.name);
        if has(api, key, "serviceaccounts", "default") && has(api, key, "configmaps", "kube-root-ca.crt") {
            return true;
        }
        let account =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}});
        ensure(api, cluster, name, "serviceaccounts", account);
        let note = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";
        let bundle = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "kube-root-ca.crt", "namespace": name, "annotations": {"kubernetes.io/description": note}},
            "data": {"ca.crt": api.ca_pem},
        });
        ensure(api, cluster, name, "configmaps", bundle);
        true
    }
}

fn has(api: &Api, namespace: &Key, plural: &str, name: &str) -> bool {
    api.store.has(&Key::new(&Kind::new("", plural), &namespace.cluster, &namespace.name, name))
}

/// Deletes the content, then releases the namespace; returns false while something remains.
fn finish(api: &Api, key: &Key, object: &Value) -> bool {
    let caller = Caller::system();
    let mut remains = Remains::default();
    for resource in api.resources(&key.cluster).iter() {
        if !resource.namespaced || resource.stored_group != resource.group || !resource.allows("delete") {
            continue;
        }
        let Some(version) = resource.storage_version().map(|version| version.name.clone()) else { continue };
        let scope = crate::api::Scope::new(&key.cluster, resource.clone(), &version).in_namespace(&key.name);
        if let Err(status) = api.delete_collection(&caller, &scope, &ListOptions::default(), &DeleteOptions::default())
        {
            warn!(error = %status, namespace = %key.name, "cannot delete the content of a namespace");
        }
        for (left, _) in api.list(&scope, &ListOptions::default()).map(|listed| listed.objects).unwrap_or_default() {
            if let Some(stored) = api.store.get(&left) {
                remains.add(&resource.group, &resource.plural, &stored.object);
            }
        }
    }
    let result = if remains.is_empty() {
        release(api, &caller, key, object)
    } else {
        report(api, &caller, key, object, &remains)
    };
    match result {
        Ok(()) => remains.is_empty(),
        Err(status) => status.code == 404,
    }
}

fn release(api: &Api, caller: &Caller, key: &Key, object: &Value) -> Result<(), Status> {
    let Some(scope) = api.scope(&key.cluster, "", "namespaces") else { return Ok(()) };
    let mut object = object.clone();
    let finalizers = object["spec"]["finalizers"].as_array().cloned().unwrap_or_default();
    object["spec"]["finalizers"] = finalizers.into_iter().filter(|name| name != "kubernetes").collect();
    api.put(caller, &scope, &key.name, "finalize", object, &WriteOptions::default()).map(|_| ())
}

/// Reports in conditions what keeps the namespace from being deleted.
fn report(api: &Api, caller: &Caller, key: &Key, object: &Value, remains: &Remains) -> Result<(), Status> {
    let Some(scope) = api.scope(&key.cluster, "", "namespaces") else { return Ok(()) };
    let mut object = object.clone();
    if !remains.report(&mut object, &now()) {
        return Ok(());
    }
    api.put(caller, &scope, &key.name, "status", object, &WriteOptions::default()).map(|_| ())
}
