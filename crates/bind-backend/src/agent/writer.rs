//! The one place that carries out plans.

use carrick_client::{Client, DeleteOptions, Error};
use carrick_sync::executor::refusal::{Access, is_done};

use super::resources;
use crate::decide::plan::Write;

/// Carries out a write. Each says which version or uid it is for, so that one that comes late does no harm.
pub async fn carry_out(client: &Client, write: &Write) -> Result<(), Error> {
    let object = write.object();
    let Some(resource) = resources::of_object(object) else {
        let (request, problem) = ("a write".to_owned(), format!("kind {} is not known", object["kind"]));
        return Err(Error::Request { request, problem });
    };
    let namespace = object["metadata"]["namespace"].as_str();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    tracing::debug!(kind = %resource.kind, namespace, name, verb = verb(write), "Writing.");
    match write {
        Write::Create(object) => client.create(&resource, namespace, object).await.map(drop),
        Write::Replace(object) => client.replace(&resource, namespace, object).await.map(drop),
        Write::Status(object) => client.replace_status(&resource, namespace, object).await.map(drop),
        Write::Delete(object) => {
            let uid = object["metadata"]["uid"].as_str().map(str::to_owned);
            // Somebody may have come to share it since.
            let version = object["metadata"]["resourceVersion"].as_str().filter(|_| object["kind"] == "Namespace");
            let resource_version = version.map(str::to_owned);
            let options = DeleteOptions { uid, resource_version, ..DeleteOptions::default() };
            match client.delete(&resource, namespace, name, &options).await {
                Err(error) if is_done(&error, Access::Delete) => Ok(()),
                result => result,
            }
        }
    }
}

fn verb(write: &Write) -> &'static str {
    match write {
        Write::Create(_) => "create",
        Write::Replace(_) => "replace",
        Write::Status(_) => "write-status",
        Write::Delete(_) => "delete",
    }
}
