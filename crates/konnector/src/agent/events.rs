//! Events: what people should notice even if they do not read conditions.

use carrick_bind_api::clock;
use carrick_bind_api::jiff::Timestamp;
use carrick_client::Resource;
use serde_json::{Value, json};

/// Where events of cluster-wide objects are.
const NAMESPACE: &str = "default";
const LONGEST_NAME: usize = 253;

/// Events as the client knows them.
pub fn events() -> Resource {
    Resource::namespaced("", "v1", "Event", "events")
}

/// A warning about an object. Its name follows from the object and a word, so that it is said once.
pub fn warning(component: &str, object: &Value, word: &str, reason: &str, message: &str, now: Timestamp) -> Value {
    let metadata = &object["metadata"];
    let text = |field: &str| metadata[field].as_str().unwrap_or_default();
    let namespace = metadata["namespace"].as_str().unwrap_or(NAMESPACE);
    let (time, end) = (clock::show(now), format!(".{word}-{}", text("uid")));
    let room = LONGEST_NAME.saturating_sub(end.len());
    let name: String = text("name").chars().take(room).chain(end.chars()).collect();
    json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {"apiVersion": object["apiVersion"], "kind": object["kind"], "name": text("name"),
            "namespace": metadata["namespace"], "uid": text("uid")},
        "type": "Warning", "reason": reason, "message": message, "count": 1, "firstTimestamp": time, "lastTimestamp": time,
        "source": {"component": component}, "reportingComponent": component, "reportingInstance": ""})
}
