//! Kinds of related resources: a PublishedResource names group, version and resource; writing needs the kind too.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use carrick_client::discovery::find_kind;
use carrick_client::{Client, Error, ListOptions, Resource};
use parking_lot::Mutex;

use crate::agent::discovery::{RelatedKind, discover};
use crate::decide::Side;
use crate::rules::ApiKind;
use crate::rules::related::Gvr;

pub(in crate::agent::objects) use carrick_sync::executor::resource;

/// How long an answer is valid: a CRD may get a different scope or a status subresource.
const FRESH: Duration = Duration::from_mins(1);

/// Kinds that were asked for, by side.
#[derive(Default)]
pub(in crate::agent::objects) struct RelatedKinds(Mutex<HashMap<(Side, Gvr), (Instant, RelatedKind)>>);

impl RelatedKinds {
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

    /// The same, always asking the server.
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

/// Whether a server does not have a kind any more. It says so itself, by a list of definitions that lacks this one: a 404 alone may come from anywhere.
pub(in crate::agent::objects) async fn is_gone(client: &Client, kind: &ApiKind) -> Result<bool, Error> {
    // What comes with the server does not go.
    if kind.group.is_empty() {
        return Ok(false);
    }
    let crds =
        Resource::cluster_wide("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions");
    let named =
        ListOptions { field_selector: Some(format!("metadata.name={}", kind.resource())), label_selector: None };
    if !client.metadata_only().list_compact(&crds, None, &named).await?.is_empty() {
        return Ok(false);
    }
    Ok(find_kind(client, &kind.group, &kind.kind).await?.is_none())
}
