//! Kinds of related resources: a PublishedResource names group, version and resource; writing needs the kind too.

use std::collections::HashMap;
use std::sync::Arc;

use carrick_client::{Client, Error, Resource};
use parking_lot::Mutex;

use crate::decide::Side;
use crate::rules::ApiKind;
use crate::rules::related::Gvr;

/// Kinds that were asked for, by side.
#[derive(Default)]
pub(super) struct Kinds(Mutex<HashMap<(Side, Gvr), Arc<ApiKind>>>);

impl Kinds {
    /// The kind of a resource on one side; none if the server does not have it.
    pub async fn find(&self, side: Side, client: &Client, gvr: &Gvr) -> Result<Option<Arc<ApiKind>>, Error> {
        if let Some(kind) = self.0.lock().get(&(side, gvr.clone())) {
            return Ok(Some(kind.clone()));
        }
        let Some(kind) = discover(client, gvr).await?.map(Arc::new) else { return Ok(None) };
        self.0.lock().insert((side, gvr.clone()), kind.clone());
        Ok(Some(kind))
    }
}

async fn discover(client: &Client, gvr: &Gvr) -> Result<Option<ApiKind>, Error> {
    let kind = |kind: &str, namespaced| ApiKind {
        group: gvr.group.clone(),
        version: gvr.version.clone(),
        kind: kind.to_owned(),
        plural: gvr.resource.clone(),
        namespaced,
    };
    match (gvr.group.as_str(), gvr.resource.as_str()) {
        ("", "secrets") => return Ok(Some(kind("Secret", true))),
        ("", "configmaps") => return Ok(Some(kind("ConfigMap", true))),
        _ => {}
    }
    let path = if gvr.group.is_empty() {
        format!("/api/{}", gvr.version)
    } else {
        format!("/apis/{}/{}", gvr.group, gvr.version)
    };
    let list = match client.raw_get(&path).await {
        Err(error) if error.is_not_found() => return Ok(None),
        list => list?,
    };
    let found = list["resources"].as_array().into_iter().flatten().find(|r| r["name"] == gvr.resource.as_str());
    Ok(found.map(|r| kind(r["kind"].as_str().unwrap_or_default(), r["namespaced"] == true)))
}

/// How the client calls a kind.
pub(super) fn resource(kind: &ApiKind) -> Resource {
    Resource {
        group: kind.group.as_str().into(),
        version: kind.version.as_str().into(),
        kind: kind.kind.as_str().into(),
        plural: kind.plural.as_str().into(),
        namespaced: kind.namespaced,
    }
}
