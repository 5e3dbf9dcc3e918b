//! Applies and removes objects.

use carrick_client::discovery::find_kind;
use carrick_client::{Client, DeleteOptions, Error, Resource};
use serde_json::{Value, json};

use super::documents::Document;
use super::ledger::{ApplyError, ObjectLocation};
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
        drop_nulls(&mut object);
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
        match applied.map_err(|error| refused(&error))? {
            left if left["metadata"]["deletionTimestamp"] != Value::Null => {
                Err(ApplyError { text: "it is still being deleted".to_owned(), passes: true })
            }
            _ => Ok(()),
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

/// Removes keys with nothing below them. What kubectl creates loses them on the server; what is applied there keeps them, and is refused.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// The server's message, shortened to what the author of a file needs.
fn refused(error: &Error) -> ApplyError {
    let Error::Api(status) = error else { return ApplyError { text: error.to_string(), passes: false } };
    let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
    let causes: Vec<String> =
        causes
            .iter()
            .filter(|cause| !cause.message.is_empty())
            .map(|cause| {
                if cause.field.is_empty() {
                    cause.message.clone()
                } else {
                    format!("{}: {}", cause.field, cause.message)
                }
            })
            .collect();
    let text = if causes.is_empty() { status.to_string() } else { causes.join("; ") };
    // A namespace or kind that does not exist yet gives a 404.
    ApplyError { text, passes: status.code == 404 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_with_nothing_below_are_not_sent() {
        let mut object = json!({ "spec": { "related": null, "list": [null, { "a": null, "b": 1 }] }, "status": null });
        drop_nulls(&mut object);
        assert_eq!(object, json!({ "spec": { "list": [null, { "b": 1 }] } }));
    }
}
