//! Kinds of related resources: a PublishedResource names group, version and resource; writing needs the kind too.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrick_client::{Client, Error, Resource};
use parking_lot::Mutex;

use crate::decide::Side;
use crate::rules::ApiKind;
use crate::rules::related::Gvr;

/// How long an answer is good for: a CRD may get another scope or a status subresource.
const FRESH: Duration = Duration::from_mins(1);

/// A kind of related objects on one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RelatedKind {
    /// The kind.
    pub kind: Arc<ApiKind>,
    /// Whether it has a status subresource.
    pub status: bool,
}

/// Kinds that were asked for, by side.
#[derive(Default)]
pub(super) struct Kinds(Mutex<HashMap<(Side, Gvr), (Instant, RelatedKind)>>);

impl Kinds {
    /// The kind of a resource on one side; none if the server does not have it.
    pub async fn find(&self, side: Side, client: &Client, gvr: &Gvr) -> Result<Option<RelatedKind>, Error> {
        let known = self.0.lock().get(&(side, gvr.clone())).cloned();
        if let Some((since, kind)) = known
            && since.elapsed() < FRESH
        {
            return Ok(Some(kind));
        }
        self.ask(side, client, gvr).await
    }

    /// The same, as the server says now.
    pub async fn ask(&self, side: Side, client: &Client, gvr: &Gvr) -> Result<Option<RelatedKind>, Error> {
        let kind = discover(client, gvr).await?;
        let mut known = self.0.lock();
        match &kind {
            Some(kind) => drop(known.insert((side, gvr.clone()), (Instant::now(), kind.clone()))),
            None => drop(known.remove(&(side, gvr.clone()))),
        }
        Ok(kind)
    }
}

/// Asks a server for a resource.
pub(super) async fn discover(client: &Client, gvr: &Gvr) -> Result<Option<RelatedKind>, Error> {
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
        Err(error) if error.is_not_found() => return Ok(None),
        list => list?,
    };
    let named = |name: &str| list["resources"].as_array().into_iter().flatten().find(|r| r["name"] == name);
    let status = named(&format!("{}/status", gvr.resource)).is_some();
    Ok(named(&gvr.resource).map(|r| kind(r["kind"].as_str().unwrap_or_default(), r["namespaced"] == true, status)))
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
