//! Waiting for what somebody else writes.

use std::time::Duration;

use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, Resource};
use futures::StreamExt;
use serde_json::Value;

/// Waits until an object says something.
pub async fn until<T>(
    client: &Client,
    resource: Resource,
    namespace: &str,
    name: &str,
    patience: Duration,
    says: impl Fn(&Value) -> Option<T>,
) -> Option<T> {
    let options =
        WatchOptions { namespace: Some(namespace.to_owned()), ..WatchOptions::fields(format!("metadata.name={name}")) };
    let said = async {
        let mut events = std::pin::pin!(watch(client.clone(), resource, options));
        while let Some(event) = events.next().await {
            if let Event::Listed(object) | Event::Applied(object) = event
                && &*object.name == name
                && let Some(said) = says(&object.value())
            {
                return Some(said);
            }
        }
        None
    };
    tokio::time::timeout(patience, said).await.ok().flatten()
}
