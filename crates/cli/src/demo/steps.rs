//! What must happen, in order.

mod consumer;
mod farewell;
mod provider;

use anyhow::Context;
use carrick_client::{Client, Resource};
use serde_json::Value;

/// Where the copy of a team's HttpBin is on the service cluster.
#[derive(Debug, Clone)]
pub struct Copy {
    /// The team's logical cluster.
    pub cluster: String,
    /// Namespace of the copy.
    pub namespace: String,
    /// Name of the copy.
    pub name: String,
}

/// An object that should exist.
async fn existing(client: &Client, resource: &Resource, namespace: Option<&str>, name: &str) -> anyhow::Result<Value> {
    let found = client.get(resource, namespace, name).await?;
    found.with_context(|| format!("{} {name} does not exist at {}", resource.kind, client.url()))
}

/// A text that should be in an object.
fn text_at(object: &Value, pointer: &str) -> anyhow::Result<String> {
    let found = object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    let field =
        || format!("{} {} has no {}", object["kind"], object["metadata"]["name"], pointer[1..].replace('/', "."));
    Ok(found.with_context(field)?.to_owned())
}

/// The status of a condition, with its message if it is not `True`.
fn require_condition(object: &Value, name: &str) -> anyhow::Result<()> {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let condition = conditions.into_iter().find(|condition| condition["type"] == name);
    let condition = condition.with_context(|| format!("condition {name} is not there yet"))?;
    if condition["status"] == "True" {
        return Ok(());
    }
    anyhow::bail!("condition {name} is {}: {}", condition["status"], condition["message"])
}
