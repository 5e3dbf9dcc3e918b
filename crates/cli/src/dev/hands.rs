//! Applies and removes objects.

use carrick_client::discovery::find_kind;
use carrick_client::{Client, DeleteOptions, Error, Resource};
use serde_json::{Value, json};

use super::documents::Document;
use super::ledger::Trouble;
use super::sources::Side;

/// By whom fields are said to be written.
const MANAGER: &str = "carrick-dev";
/// Marks the PublishedResources of a run, so that its agent takes no others.
pub const LABEL: &str = "dev.carrick.io/run";

/// Where an object is.
#[derive(Debug, Clone)]
pub struct Place {
    /// What its kind is called.
    pub resource: Resource,
    /// Its namespace.
    pub namespace: Option<String>,
    /// Whether it was not there before.
    pub ours: bool,
}

/// The two places where objects are applied.
#[derive(Debug, Clone)]
pub struct Hands {
    /// The service cluster.
    pub service: Client,
    /// The consumer's workspace.
    pub consumer: Client,
    /// Name of this run.
    pub run: String,
}

impl Hands {
    /// Where an object belongs, and whether it is there already. Nothing is changed.
    pub async fn find(&self, document: &Document) -> Result<Place, Trouble> {
        let Document { id, version, .. } = document;
        let client = self.client(id.side);
        let found = find_kind(client, &id.group, &id.kind).await.map_err(|error| refused(&error))?;
        let Some(resource) = found.as_ref().and_then(|found| found.resource(version)) else {
            let place = match id.side {
                Side::Service => "the service cluster",
                Side::Consumer => "the consumer's workspace",
            };
            let kind = if id.group.is_empty() { version.clone() } else { format!("{}/{version}", id.group) };
            return Err(Trouble { text: format!("{place} does not serve {} of {kind}", id.kind), passes: true });
        };
        let named = if id.namespace.is_empty() { "default" } else { &id.namespace };
        let namespace = resource.namespaced.then(|| named.to_owned());
        let existing = client.get(&resource, namespace.as_deref(), &id.name).await.map_err(|error| refused(&error))?;
        if let Some(existing) = &existing
            && id.kind == "PublishedResource"
            && existing["metadata"]["labels"][LABEL] != self.run.as_str()
        {
            let text = "it exists already, and another agent may work for it; give yours another name".to_owned();
            return Err(Trouble { text, passes: false });
        }
        Ok(Place { resource, namespace, ours: existing.is_none() })
    }

    /// Applies an object.
    pub async fn apply(&self, document: &Document, place: &Place) -> Result<(), Trouble> {
        let mut object = document.object.clone();
        let labels = &document.object["metadata"]["labels"];
        if let Some(metadata) = object["metadata"].as_object_mut() {
            // What a server wrote into a file that it gave out is not for it.
            for field in ["managedFields", "resourceVersion", "uid", "generation", "creationTimestamp"] {
                metadata.remove(field);
            }
        }
        // Labels that are none are for the server to refuse.
        if document.id.kind == "PublishedResource" && (labels.is_null() || labels.is_object()) {
            object["metadata"]["labels"][LABEL] = json!(self.run);
        }
        let client = self.client(document.id.side);
        let applied = client.apply(&place.resource, place.namespace.as_deref(), &object, MANAGER).await;
        match applied.map_err(|error| refused(&error))? {
            left if left["metadata"]["deletionTimestamp"] != Value::Null => {
                Err(Trouble { text: "it is still being deleted".to_owned(), passes: true })
            }
            _ => Ok(()),
        }
    }

    /// Removes an object; it may be gone already.
    pub async fn remove(&self, side: Side, place: &Place, name: &str) -> Result<(), Error> {
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

/// The server's words, shortened to what the author of a file needs.
fn refused(error: &Error) -> Trouble {
    let Error::Api(status) = error else { return Trouble { text: error.to_string(), passes: false } };
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
    // A namespace or a kind that is not there yet comes with a 404.
    Trouble { text, passes: status.code == 404 }
}
