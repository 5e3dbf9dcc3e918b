//! Events on consumers' objects.

use carrick_bind_api::clock;
use carrick_bind_api::core::names::EVENT_SOURCE;
use carrick_bind_api::jiff::Timestamp;
use carrick_client::{Client, Resource};
use serde_json::{Value, json};

/// Where events of cluster-wide objects are.
const NAMESPACE: &str = "default";
const LONGEST_NAME: usize = 253;

/// Warns of something about an object. The name of the event follows from the object and the reason, so that it is said once.
pub(super) async fn warn(client: &Client, object: &Value, reason: &str, message: &str) {
    let metadata = &object["metadata"];
    let text = |field: &str| metadata[field].as_str().unwrap_or_default();
    let namespace = metadata["namespace"].as_str().unwrap_or(NAMESPACE);
    let (time, end) = (clock::show(Timestamp::now()), format!(".{}-{}", reason.to_lowercase(), text("uid")));
    let room = LONGEST_NAME.saturating_sub(end.len());
    let name: String = text("name").chars().take(room).chain(end.chars()).collect();
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {"apiVersion": object["apiVersion"], "kind": object["kind"], "name": text("name"),
            "namespace": metadata["namespace"], "uid": text("uid")},
        "type": "Warning", "reason": reason, "message": message, "count": 1, "firstTimestamp": time, "lastTimestamp": time,
        "source": {"component": EVENT_SOURCE}, "reportingComponent": EVENT_SOURCE, "reportingInstance": ""});
    let written = client.create(&Resource::namespaced("", "v1", "Event", "events"), Some(namespace), &event).await;
    if let Err(error) = written
        && !error.is_already_exists()
    {
        tracing::debug!(%error, "An event could not be written; an annotation says the same.");
    }
}
