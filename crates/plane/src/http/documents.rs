//! Documents about the kinds of a cluster or virtual workspace: made when first asked for, then kept as long as the kinds stay the same.

use serde_json::Value;

use super::negotiate::Format;
use super::reply::{self, Reply};
use super::root::ApiRoot;
use crate::api::Api;
use crate::status::Status;

/// A document by the name it has in URLs. JSON is kept as it is sent; other forms are for people and are made each time.
pub(super) fn reply(
    api: &Api,
    root: &ApiRoot,
    name: &str,
    format: Format,
    make: impl FnOnce() -> Result<Value, Status>,
) -> Result<Reply, Status> {
    if format != Format::Json {
        return make().map(|document| reply::object(200, &document, format));
    }
    // Virtual workspaces may serve the same kinds as a cluster, but describe them in another way.
    let name = if root.is_virtual() { format!("virtual {name}") } else { name.to_owned() };
    let content = root.resources(api).document(&name, || make().map(|document| format!("{document}\n").into()))?;
    Ok(reply::raw(200, "application/json", content))
}
