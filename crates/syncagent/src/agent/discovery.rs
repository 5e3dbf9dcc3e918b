//! Asking a server what it has: a PublishedResource names group, version and resource; writing needs the kind too.

use std::sync::Arc;

use carrick_client::{Client, Error};
use carrick_sync::executor::refusal::is_unserved;

use crate::rules::ApiKind;
use crate::rules::related::Gvr;

/// A kind of related objects, as a server has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RelatedKind {
    /// The kind.
    pub kind: Arc<ApiKind>,
    /// Whether it has a status subresource.
    pub status: bool,
}

/// Whether a server has a resource.
pub(crate) async fn is_served(client: &Client, gvr: &Gvr) -> Result<bool, Error> {
    Ok(discover(client, gvr).await?.is_some())
}

/// Asks a server for a resource; none if it does not have it.
pub(crate) async fn discover(client: &Client, gvr: &Gvr) -> Result<Option<RelatedKind>, Error> {
    let kind = |kind: &str, namespaced, status| {
        let kind = ApiKind {
            group: gvr.group.clone(),
            version: gvr.version.clone(),
            kind: kind.to_owned(),
            plural: gvr.resource.clone(),
            namespaced,
        };
        RelatedKind { kind: Arc::new(kind), status }
    };
    match (gvr.group.as_str(), gvr.resource.as_str()) {
        ("", "secrets") => return Ok(Some(kind("Secret", true, false))),
        ("", "configmaps") => return Ok(Some(kind("ConfigMap", true, false))),
        ("", "namespaces") => return Ok(Some(kind("Namespace", false, true))),
        _ => {}
    }
    let path = if gvr.group.is_empty() {
        format!("/api/{}", gvr.version)
    } else {
        format!("/apis/{}/{}", gvr.group, gvr.version)
    };
    let list = match client.raw_get(&path).await {
        Err(error) if is_unserved(&error) => return Ok(None),
        list => list?,
    };
    let named = |name: &str| list["resources"].as_array().into_iter().flatten().find(|r| r["name"] == name);
    let status = named(&format!("{}/status", gvr.resource)).is_some();
    Ok(named(&gvr.resource).map(|r| kind(r["kind"].as_str().unwrap_or_default(), r["namespaced"] == true, status)))
}
