//! What must happen, in order.

mod consumer;
mod farewell;
mod provider;

use anyhow::{Context, ensure};
use carrick_client::{Client, Resource};
use carrick_kcp::condition::{self, Condition};
use carrick_kcp::kinds::KcpObject;
use serde::Deserialize;
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

/// The same for a kind of kcp.
async fn existing_kcp<K: KcpObject>(client: &Client, name: &str) -> anyhow::Result<K> {
    let found = client.get_kcp(name).await?;
    found.with_context(|| format!("{} {name} does not exist at {}", K::KIND.kind, client.url()))
}

/// That a condition of an object holds; its message if it does not.
fn require_condition(object: &Value, name: &str) -> anyhow::Result<()> {
    require(&Vec::deserialize(&object["status"]["conditions"]).unwrap_or_default(), name)
}

fn require(conditions: &[Condition], name: &str) -> anyhow::Result<()> {
    let condition = condition::find(conditions, name);
    let condition = condition.with_context(|| format!("condition {name} is not there yet"))?;
    ensure!(condition.is_true(), "condition {name} is {}: {}", condition.status, condition.message);
    Ok(())
}
