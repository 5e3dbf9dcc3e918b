//! Applies and removes objects.

use carrick_client::discovery::find_kind;
use carrick_client::{Client, DeleteOptions, Error, Resource};
use carrick_json::manifest;
use serde_json::{Value, json};

use super::documents::Document;
use super::ledger::{ApplyError, ObjectLocation};
use super::refusal::{is_obscure, refused};
use super::sources::Side;

/// The field manager.
const MANAGER: &str = "carrick-dev";
/// Marks the PublishedResources of a run, so that its agent serves no others.
pub const LABEL: &str = "dev.carrick.io/run";

/// Applies objects to the two places where they belong.
#[derive(Debug, Clone)]
pub struct Applier {
    /// The service cluster.
    pub service: Client,
    /// The consumer's workspace.
    pub consumer: Client,
    /// Name of this run.
    pub run: String,
}

/// The resource of PublishedResources.
pub fn published_resources() -> Resource {
    use carrick_syncagent::api::{GROUP, VERSION};
    Resource::cluster_wide(GROUP, VERSION, "PublishedResource", "publishedresources")
}

impl Applier {
    /// Finds out where an object belongs and whether it exists already. Changes nothing.
    pub async fn find(&self, document: &Document) -> Result<ObjectLocation, ApplyError> {
        let Document { id, version, .. } = document;
        let client = self.client(id.side);
        let found = find_kind(client, &id.group, &id.kind).await.map_err(|error| refused(&error))?;
        let Some(resource) = found.as_ref().and_then(|found| found.resource(version)) else {
            let place = match id.side {
                Side::Service => "the service cluster",
                Side::Consumer => "the consumer's workspace",
            };
            let kind = if id.group.is_empty() { version.clone() } else { format!("{}/{version}", id.group) };
            return Err(ApplyError { text: format!("{place} does not serve {} of {kind}", id.kind), passes: true });
        };
        let named = if id.namespace.is_empty() { "default" } else { &id.namespace };
        let namespace = resource.namespaced.then(|| named.to_owned());
        let existing = client.get(&resource, namespace.as_deref(), &id.name).await.map_err(|error| refused(&error))?;
        if let Some(existing) = &existing
            && id.kind == "PublishedResource"
            && existing["metadata"]["labels"][LABEL] != self.run.as_str()
        {
            let text = "it exists already, and another agent may serve it; give yours another name".to_owned();
            return Err(ApplyError { text, passes: false });
        }
        Ok(ObjectLocation { resource, namespace, ours: existing.is_none() })
    }

    /// Applies an object.
    pub async fn apply(&self, document: &Document, place: &ObjectLocation) -> Result<(), ApplyError> {
        let mut object = document.object.clone();
        manifest::drop_nulls(&mut object);
        let labels = &document.object["metadata"]["labels"];
        if let Some(metadata) = object["metadata"].as_object_mut() {
            // kubectl and API servers take a namespace where there is none for a slip.
            if place.namespace.is_none() {
                metadata.remove("namespace");
            }
            // Fields that a server sets and that were saved with the file must not be sent back.
            for field in ["managedFields", "resourceVersion", "uid", "generation", "creationTimestamp"] {
                metadata.remove(field);
            }
        }
        // If labels is not a map, the server will say so.
        if document.id.kind == "PublishedResource" && (labels.is_null() || labels.is_object()) {
            object["metadata"]["labels"][LABEL] = json!(self.run);
        }
        let client = self.client(document.id.side);
        let applied = client.apply(&place.resource, place.namespace.as_deref(), &object, MANAGER).await;
        let applied = match applied {
            Ok(applied) => applied,
            Err(error) if is_obscure(&error) => {
                return Err(refused(&self.ask_again(document, place, &object, error).await));
            }
            Err(error) => return Err(refused(&error)),
        };
        match applied {
            left if left["metadata"]["deletionTimestamp"] != Value::Null => {
                Err(ApplyError { text: "it is still being deleted".to_owned(), passes: true })
            }
            _ => Ok(()),
        }
    }

    /// Why an object is refused, by asking whether it could be created.
    async fn ask_again(&self, document: &Document, place: &ObjectLocation, object: &Value, error: Error) -> Error {
        let list = place.resource.list_path(place.namespace.as_deref());
        let path = format!("{list}?dryRun=All&fieldValidation=Strict");
        match self.client(document.id.side).raw_post(&path, object).await {
            Err(clearer @ Error::Api(_)) if !clearer.is_already_exists() => clearer,
            _ => error,
        }
    }

    /// Deletes an object; it may be gone already.
    pub async fn remove(&self, side: Side, place: &ObjectLocation, name: &str) -> Result<(), Error> {
        let namespace = place.namespace.as_deref();
        match self.client(side).delete(&place.resource, namespace, name, &DeleteOptions::default()).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    fn client(&self, side: Side) -> &Client {
        match side {
            Side::Service => &self.service,
            Side::Consumer => &self.consumer,
        }
    }
}
