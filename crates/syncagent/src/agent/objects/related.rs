//! Related objects: reading them, and noticing their changes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use carrick_client::{Client, Error, ListOptions, Object};
use carrick_multicluster::Key;
use parking_lot::Mutex;
use serde_json::Value;
use thiserror::Error;

use super::kinds::{Kinds, resource};
use crate::api::Origin;
use crate::decide::{RelatedSeen, Side};
use crate::rules::related::{Found, Gvr, Primaries, Related, RelatedError};

/// Why related objects cannot be read.
#[derive(Debug, Error)]
pub(super) enum ReadError {
    /// The rules fail on these primaries.
    #[error(transparent)]
    Rules(#[from] RelatedError),
    /// A server refused or did not answer.
    #[error("related resource {identifier:?}: {source}")]
    Server {
        /// Identifier of the entry.
        identifier: String,
        /// What the server said.
        source: Error,
    },
    /// A server does not have the resource.
    #[error("related resource {identifier:?}: {side} has no resource {}.{}/{}", .gvr.resource, .gvr.group, .gvr.version)]
    NoKind {
        /// Identifier of the entry.
        identifier: String,
        /// Which side.
        side: &'static str,
        /// The resource.
        gvr: Gvr,
    },
}

/// Which primaries care about an object on the origin side, whether it exists or not.
#[derive(Default)]
pub(super) struct Interest {
    by_object: Mutex<HashMap<Origin3, HashSet<Key>>>,
    by_primary: Mutex<HashMap<Key, Vec<Origin3>>>,
}

/// An object on the origin side: resource, cluster (empty on the service cluster), namespace and name.
type Origin3 = (Gvr, String, String, String);

impl Interest {
    /// Replaces what a primary cares about; nothing, once it is gone.
    pub fn set(&self, primary: &Key, objects: Vec<Origin3>) {
        let mut by_object = self.by_object.lock();
        let mut by_primary = self.by_primary.lock();
        for old in by_primary.remove(primary).into_iter().flatten() {
            if let Some(primaries) = by_object.get_mut(&old) {
                primaries.remove(primary);
                if primaries.is_empty() {
                    by_object.remove(&old);
                }
            }
        }
        for object in &objects {
            by_object.entry(object.clone()).or_default().insert(primary.clone());
        }
        if !objects.is_empty() {
            by_primary.insert(primary.clone(), objects);
        }
    }

    /// Primaries that care about a changed object.
    pub fn primaries(&self, gvr: &Gvr, object: &Object) -> Vec<Key> {
        let key = (gvr.clone(), object.cluster.to_string(), object.namespace.to_string(), object.name.to_string());
        self.by_object.lock().get(&key).into_iter().flatten().cloned().collect()
    }
}

/// Reads the related objects of one primary.
pub(super) struct Reader<'a> {
    pub kcp: &'a Client,
    pub local: &'a Client,
    pub kinds: &'a Kinds,
    pub interest: &'a Interest,
}

impl Reader<'_> {
    /// All related objects that exist on their origin side, sorted by entry, namespace and name.
    pub async fn read(
        &self,
        primary: &Key,
        related: &[Related],
        primaries: Primaries<'_>,
    ) -> Result<Vec<RelatedSeen>, ReadError> {
        let mut seen = Vec::new();
        let mut wanted = Vec::new();
        for (entry, rules) in related.iter().enumerate() {
            let mut found = self.read_entry(entry, rules, primaries, &mut wanted).await?;
            let key = |o: &RelatedSeen| {
                let text = |key: &str| o.origin["metadata"][key].as_str().unwrap_or_default().to_owned();
                (text("namespace"), text("name"))
            };
            found.sort_by_cached_key(key);
            seen.append(&mut found);
        }
        self.interest.set(primary, wanted);
        Ok(seen)
    }

    async fn read_entry(
        &self,
        entry: usize,
        rules: &Related,
        primaries: Primaries<'_>,
        wanted: &mut Vec<Origin3>,
    ) -> Result<Vec<RelatedSeen>, ReadError> {
        let (origin_side, destination_side) = sides(rules.origin);
        let (origin, destination) = (self.client(origin_side), self.client(destination_side));
        let server = |source| ReadError::Server { identifier: rules.identifier.clone(), source };
        let kind = async |side, client, gvr: &Gvr| {
            let found = self.kinds.find(side, client, gvr).await.map_err(server)?;
            found.ok_or_else(|| ReadError::NoKind {
                identifier: rules.identifier.clone(),
                side: if side == Side::Kcp { "the consumer's workspace" } else { "the service cluster" },
                gvr: gvr.clone(),
            })
        };
        let namespaces =
            match rules.namespaces(primaries)? {
                Found::Pairs(pairs) => pairs,
                Found::Listed(selector) => {
                    let all = carrick_client::Resource::cluster_wide("", "v1", "Namespace", "namespaces");
                    let listed = origin.list(&all, None, &ListOptions::default()).await.map_err(server)?;
                    let chosen = listed.iter().filter(|namespace| selector.matches_object(namespace));
                    let names = chosen.filter_map(|namespace| namespace["metadata"]["name"].as_str());
                    names
                        .map(|name| Ok((name.to_owned(), rules.rewrite_namespace(name, primaries)?)))
                        .collect::<Result<_, RelatedError>>()?
                }
            };
        let origin_kind = kind(origin_side, origin, &rules.source).await?;
        let destination_kind = kind(destination_side, destination, &rules.destination).await?;
        let cluster = if rules.origin == Origin::Kcp { primaries.cluster } else { "" };
        let mut seen = Vec::new();
        for (from, to) in namespaces {
            let objects: Vec<(Value, String)> = match rules.names(primaries)? {
                Found::Pairs(pairs) => {
                    let mut objects = Vec::new();
                    for (name, new_name) in pairs {
                        wanted.push((rules.source.clone(), cluster.to_owned(), from.clone(), name.clone()));
                        let object = origin.get(&resource(&origin_kind), Some(&from), &name).await.map_err(server)?;
                        objects.extend(object.map(|object| (object, new_name)));
                    }
                    objects
                }
                Found::Listed(selector) => {
                    let (kind, all) = (resource(&origin_kind), ListOptions::default());
                    let listed = origin.list(&kind, Some(&from), &all).await.map_err(server)?;
                    let chosen = listed.into_iter().filter(|object| selector.matches_object(object));
                    chosen
                        .map(|object| {
                            let name = rules.rewrite_name(&object, primaries)?;
                            Ok((object, name))
                        })
                        .collect::<Result<_, RelatedError>>()?
                }
            };
            for (origin, destination_name) in objects {
                let kind = resource(&destination_kind);
                seen.push(RelatedSeen {
                    entry,
                    origin_kind: origin_kind.clone(),
                    destination_kind: destination_kind.clone(),
                    origin,
                    destination: destination.get(&kind, Some(&to), &destination_name).await.map_err(server)?,
                    destination_namespace: to.clone(),
                    destination_name,
                });
            }
        }
        Ok(seen)
    }

    fn client(&self, side: Side) -> &Client {
        match side {
            Side::Kcp => self.kcp,
            Side::Service => self.local,
        }
    }
}

/// Origin and destination side.
fn sides(origin: Origin) -> (Side, Side) {
    match origin {
        Origin::Kcp => (Side::Kcp, Side::Service),
        Origin::Service => (Side::Service, Side::Kcp),
    }
}

/// Resources whose changes on the origin side must be noticed.
pub(super) fn watched(related: &[Related], origin: Origin) -> Vec<Gvr> {
    let mut gvrs: Vec<Gvr> = Vec::new();
    for rules in related.iter().filter(|r| r.origin == origin) {
        if !gvrs.contains(&rules.source) {
            gvrs.push(rules.source.clone());
        }
    }
    gvrs
}

/// Name of the owner of an object, if it is of the given kind.
pub(super) fn owner(object: &Value, group: &str, kind: &str) -> Option<String> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| {
        let api_version = owner["apiVersion"].as_str().unwrap_or_default();
        let owner_group = api_version.split_once('/').map_or("", |(group, _)| group);
        owner["kind"] == kind && owner_group == group
    })?;
    owner["name"].as_str().map(str::to_owned)
}

/// Shared by the tasks of a syncer.
pub(super) type SharedInterest = Arc<Interest>;
