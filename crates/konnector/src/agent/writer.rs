//! The one place that writes what bindings, bundles and contracts need.

use std::sync::Arc;

use carrick_bind_api::carrick_kcp::meta::ObjectMeta;
use carrick_bind_api::kinds::{ApiObject, Kind};
use carrick_client::{Client, DeleteOptions, Error, Resource};
use carrick_sync::executor::refusal::{Access, is_done};
use serde::Serialize;
use serde_json::{Value, json};

use super::metrics::Metrics;
use super::resources;

/// Writes to one cluster. Every write says which version or uid it is for, so that one that comes late does no harm.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    side: &'static str,
    metrics: Arc<Metrics>,
}

impl Writer {
    /// Writes to a cluster; `side` is one word for it.
    pub fn new(client: Client, side: &'static str, metrics: Arc<Metrics>) -> Self {
        Self { client, side, metrics }
    }

    /// Writes to another cluster of the same side.
    #[must_use]
    pub fn at(&self, client: Client) -> Self {
        Self { client, ..self.clone() }
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    fn count<T>(&self, resource: &Resource, verb: &'static str, result: Result<T, Error>) -> Result<T, Error> {
        let shown = result.as_ref().map_or_else(Error::reason, |_| "ok".to_owned());
        self.metrics.wrote(self.side, &resource.plural, verb, shown);
        result
    }

    /// Creates an object. False if there is one of that name already: whoever watches will see it.
    pub async fn create(&self, resource: &Resource, object: &Value) -> Result<bool, Error> {
        let namespace = object["metadata"]["namespace"].as_str();
        match self.count(resource, "create", self.client.create(resource, namespace, object).await) {
            Ok(_) => Ok(true),
            Err(error) if error.is_already_exists() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Replaces an object, unless it has changed since it was seen.
    pub async fn replace(&self, resource: &Resource, object: &Value) -> Result<(), Error> {
        let namespace = object["metadata"]["namespace"].as_str();
        self.count(resource, "replace", self.client.replace(resource, namespace, object).await).map(drop)
    }

    /// Replaces the status of an object, unless it has changed since it was seen.
    pub async fn status<K: ApiObject>(&self, object: &K) -> Result<(), Error> {
        self.status_of(K::KIND, object).await
    }

    /// The same for an object whose kind is not that of its type.
    pub async fn status_of(&self, kind: Kind, object: &impl Serialize) -> Result<(), Error> {
        let (resource, value) = (resources::of(kind), serde_json::to_value(object).unwrap_or_default());
        let namespace = value["metadata"]["namespace"].as_str();
        self.count(&resource, "write-status", self.client.replace_status(&resource, namespace, &value).await).map(drop)
    }

    /// Writes finalizers and annotations of an object as they are in `wanted`, unless it has changed since it was seen.
    pub async fn metadata<K: ApiObject>(&self, wanted: &K) -> Result<(), Error> {
        self.metadata_of(K::KIND, wanted.metadata()).await
    }

    /// The same for an object whose kind is not that of its type.
    pub async fn metadata_of(&self, kind: Kind, metadata: &ObjectMeta) -> Result<(), Error> {
        let resource = resources::of(kind);
        let patch = json!({"metadata": {
            "resourceVersion": metadata.resource_version,
            "finalizers": metadata.finalizers,
            "annotations": metadata.annotations,
        }});
        let namespace = Some(metadata.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let written = self.client.merge_patch(&resource, namespace, &metadata.name, &patch).await;
        self.count(&resource, "patch", written).map(drop)
    }

    /// Takes a finalizer off any object, unless that has changed since it was seen.
    pub async fn finalizers(&self, resource: &Resource, object: &Value, finalizers: &[Value]) -> Result<(), Error> {
        let metadata = &object["metadata"];
        let patch = json!({"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": finalizers}});
        let (namespace, name) = (metadata["namespace"].as_str(), metadata["name"].as_str().unwrap_or_default());
        let written = self.client.merge_patch(resource, namespace, name, &patch).await;
        self.count(resource, "set-finalizers", written).map(drop)
    }

    /// Deletes exactly this cluster-wide object; one that is gone already is fine.
    pub async fn delete(&self, resource: &Resource, name: &str, uid: &str) -> Result<(), Error> {
        let options = DeleteOptions { uid: Some(uid.to_owned()), ..DeleteOptions::default() };
        match self.count(resource, "delete", self.client.delete(resource, None, name, &options).await) {
            Err(error) if !is_done(&error, Access::Delete) => Err(error),
            _ => Ok(()),
        }
    }
}
