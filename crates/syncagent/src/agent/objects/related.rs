//! Related objects: reading them, and noticing their changes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use carrick_client::{Client, Error, ListOptions, Object, Resource};
use carrick_multicluster::Key;
use parking_lot::Mutex;
use serde_json::Value;
use thiserror::Error;

use super::kinds::{RelatedKind, resource};
use super::syncer::Shared;
use crate::api::Origin;
use crate::decide::state::State;
use crate::decide::{DroppedSeen, Place, Record, RelatedSeen, RelatedView, Side, unnamed};
use crate::rules::Rules;
use crate::rules::metadata::SourceKey;
use crate::rules::related::{Found, Gvr, Primaries, Related, RelatedError};
use crate::rules::selector::Selector;

/// Why related objects cannot be read.
#[derive(Debug, Error)]
pub(super) enum ReadError {
    /// The rules fail on these primaries.
    #[error("related resource {identifier:?}: {source}")]
    Rules {
        /// Identifier of the entry.
        identifier: String,
        /// What is wrong.
        source: RelatedError,
    },
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
    selections: Mutex<HashMap<Key, Vec<Selection>>>,
}

/// Objects on the origin side that are found by their labels: resource, cluster, namespace and what they must carry.
type Selection = (Gvr, String, String, Selector);

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

    /// A primary that is gone cares about nothing.
    pub fn forget(&self, primary: &Key) {
        self.set(primary, Vec::new());
        self.unselect(primary);
    }

    /// A primary cares about all objects of a namespace with these labels.
    fn select(&self, primary: &Key, selection: Selection) {
        self.selections.lock().entry(primary.clone()).or_default().push(selection);
    }

    /// A primary cares no longer about labels.
    fn unselect(&self, primary: &Key) {
        self.selections.lock().remove(primary);
    }

    /// Primaries that care about a changed object.
    pub fn primaries(&self, gvr: &Gvr, object: &Object) -> HashSet<Key> {
        let key = (gvr.clone(), object.cluster.to_string(), object.namespace.to_string(), object.name.to_string());
        let mut primaries: HashSet<Key> = self.by_object.lock().get(&key).into_iter().flatten().cloned().collect();
        let selections = self.selections.lock();
        if !selections.is_empty() {
            let labels = object.labels();
            let chosen = |(of, cluster, namespace, selector): &Selection| {
                *of == key.0 && *cluster == key.1 && *namespace == key.2 && selector.matches(&labels)
            };
            let caring = selections.iter().filter(|(_, all)| all.iter().any(chosen));
            primaries.extend(caring.map(|(primary, _)| primary.clone()));
        }
        primaries
    }
}

/// What was read of the related objects of one primary.
#[derive(Default)]
pub(super) struct Read {
    /// What is there.
    pub view: RelatedView,
    /// Entries that cannot be read; they do not hinder the others.
    pub problems: Vec<ReadError>,
}

/// Reads the related objects of one primary.
pub(super) struct Reader<'a> {
    pub kcp: &'a Client,
    pub shared: &'a Shared,
    pub rules: &'a Rules,
    pub primary: &'a Key,
    pub key: &'a SourceKey,
    pub state: &'a State,
    /// The primary in kcp.
    pub source: &'a Value,
    /// Its copy; without one only what is remembered can be found.
    pub copy: Option<&'a Value>,
    /// Workspace path, if the rules ask for it.
    pub path: Option<&'a str>,
}

impl Reader<'_> {
    /// All related objects of a primary that stays.
    pub async fn read(&self) -> Result<Read, ReadError> {
        let Some(copy) = self.copy else { return Ok(Read::default()) };
        let mut read = self.named(copy).await;
        let unnamed = self.unnamed(&read);
        // Nothing is taken back unless both primaries are really there.
        if !unnamed.is_empty() && self.are_there(copy).await? {
            for (key, record) in unnamed {
                read.view.dropped.push(self.dropped(key, record).await?);
            }
        }
        self.add_others(&mut read, |seen| seen.origin["metadata"]["deletionTimestamp"].is_string());
        Ok(read)
    }

    /// All related objects of a primary that is being deleted.
    pub async fn read_last(&self) -> Result<Read, ReadError> {
        let mut read = match self.copy {
            Some(copy) => self.named(copy).await,
            None => Read::default(),
        };
        // A server that does not answer may hide what must be taken back. Rules that fail hide nothing: what was done is remembered.
        if let Some(at) = read.problems.iter().position(|problem| matches!(problem, ReadError::Server { .. })) {
            return Err(read.problems.swap_remove(at));
        }
        for (key, record) in unnamed(self.state, &self.rules.related, &read.view.seen) {
            read.view.dropped.push(self.dropped(key, record).await?);
        }
        self.add_others(&mut read, |_| true);
        Ok(read)
    }

    /// What the rules name.
    async fn named(&self, copy: &Value) -> Read {
        let primaries = Primaries { remote: self.source, local: copy, cluster: &self.key.cluster, path: self.path };
        let mut read = Read::default();
        let mut wanted = Vec::new();
        self.shared.interest.unselect(self.primary);
        for (entry, rules) in self.rules.related.iter().enumerate() {
            match self.read_entry(entry, rules, primaries, &mut wanted).await {
                Ok(mut found) => {
                    let name = |o: &RelatedSeen| {
                        let text = |key: &str| o.origin["metadata"][key].as_str().unwrap_or_default().to_owned();
                        (text("namespace"), text("name"))
                    };
                    found.sort_by_cached_key(name);
                    read.view.seen.append(&mut found);
                }
                Err(problem) => {
                    read.view.unknown.insert(entry);
                    read.problems.push(problem);
                }
            }
        }
        self.shared.interest.set(self.primary, wanted);
        read
    }

    /// What is remembered and not named any more, as far as that is known.
    fn unnamed(&self, read: &Read) -> Vec<(String, Record)> {
        let related = &self.rules.related;
        let mut unnamed = unnamed(self.state, related, &read.view.seen);
        unnamed.retain(|(_, record)| {
            let entry = related.iter().position(|rules| rules.identifier == record.identifier);
            entry.is_none_or(|entry| !read.view.unknown.contains(&entry))
        });
        unnamed
    }

    /// Whether the servers themselves have both primaries.
    async fn are_there(&self, copy: &Value) -> Result<bool, ReadError> {
        let there = async |client: &Client, kind, object: &Value| {
            let text = |key: &str| object["metadata"][key].as_str();
            let found = client.get(&resource(kind), text("namespace"), text("name").unwrap_or_default()).await;
            let found = found.map_err(|source| ReadError::Server { identifier: self.rules.name.clone(), source })?;
            Ok::<_, ReadError>(found.is_some_and(|found| found["metadata"]["uid"] == object["metadata"]["uid"]))
        };
        Ok(there(self.kcp, &self.rules.remote, self.source).await?
            && there(self.client(Side::Service), &self.rules.local, copy).await?)
    }

    async fn dropped(&self, key: String, record: Record) -> Result<DroppedSeen, ReadError> {
        let get = async |at: &Place| {
            let found = self.client(at.side).get(&resource(&at.kind), at.namespace.as_deref(), &at.name).await;
            found.map_err(|source| ReadError::Server { identifier: record.identifier.clone(), source })
        };
        let (origin, copy) = (get(&record.origin).await?, get(&record.copy).await?);
        Ok(DroppedSeen { key, origin, copy, others: self.shared.others(self.rules, self.key, &record), record })
    }

    /// Adds who else uses the objects, where that matters.
    fn add_others(&self, read: &mut Read, matters: impl Fn(&RelatedSeen) -> bool) {
        for seen in read.view.seen.iter_mut().filter(|seen| matters(seen)) {
            if let Some(rules) = self.rules.related.get(seen.entry) {
                seen.others = self.shared.others(self.rules, self.key, &seen.record(rules));
            }
        }
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
        let broken = |source| ReadError::Rules { identifier: rules.identifier.clone(), source };
        let origin_kind = self.kind(rules, origin_side, &rules.source).await?;
        let destination_kind = self.kind(rules, destination_side, &rules.destination).await?;
        let namespaces = if origin_kind.kind.namespaced || destination_kind.kind.namespaced {
            match rules.namespaces(primaries).map_err(broken)? {
                Found::Pairs(pairs) => pairs,
                Found::Listed(selector) => {
                    let all = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
                    let listed = origin.list(&all, None, &ListOptions::default()).await.map_err(server)?;
                    let chosen = listed.iter().filter(|namespace| selector.matches_object(namespace));
                    let names = chosen.filter_map(|namespace| namespace["metadata"]["name"].as_str());
                    names
                        .map(|name| Ok((name.to_owned(), rules.rewrite_namespace(name, primaries)?)))
                        .collect::<Result<_, RelatedError>>()
                        .map_err(broken)?
                }
            }
        } else {
            vec![(String::new(), String::new())]
        };
        let cluster = if rules.origin == Origin::Kcp { primaries.cluster } else { "" };
        let mut seen = Vec::new();
        for (from, to) in namespaces {
            let objects: Vec<(Value, String)> = match rules.names(primaries).map_err(broken)? {
                Found::Pairs(pairs) => {
                    let mut objects = Vec::new();
                    for (name, new_name) in pairs {
                        wanted.push((rules.source.clone(), cluster.to_owned(), from.clone(), name.clone()));
                        let object =
                            origin.get(&resource(&origin_kind.kind), Some(&from), &name).await.map_err(server)?;
                        objects.extend(object.map(|object| (object, new_name)));
                    }
                    objects
                }
                Found::Listed(selector) => {
                    let (kind, all) = (resource(&origin_kind.kind), ListOptions::default());
                    // Before the list, so that no change is missed in between.
                    let place = (rules.source.clone(), cluster.to_owned(), from.clone());
                    let selection = (place.0.clone(), place.1.clone(), place.2.clone(), selector.clone());
                    self.shared.interest.select(self.primary, selection);
                    let listed = origin.list(&kind, Some(&from), &all).await.map_err(server)?;
                    let chosen = listed.into_iter().filter(|object| selector.matches_object(object));
                    chosen
                        .map(|object| {
                            // It may lose its label.
                            let found = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                            wanted.push((place.0.clone(), place.1.clone(), place.2.clone(), found));
                            let name = rules.rewrite_name(&object, primaries)?;
                            Ok((object, name))
                        })
                        .collect::<Result<_, RelatedError>>()
                        .map_err(broken)?
                }
            };
            for (origin, destination_name) in objects {
                let kind = resource(&destination_kind.kind);
                seen.push(RelatedSeen {
                    entry,
                    origin_kind: origin_kind.kind.clone(),
                    destination_kind: destination_kind.kind.clone(),
                    destination_status: destination_kind.status,
                    origin,
                    destination: destination.get(&kind, Some(&to), &destination_name).await.map_err(server)?,
                    destination_namespace: to.clone(),
                    destination_name,
                    others: Vec::new(),
                });
            }
        }
        Ok(seen)
    }

    async fn kind(&self, rules: &Related, side: Side, gvr: &Gvr) -> Result<RelatedKind, ReadError> {
        let identifier = || rules.identifier.clone();
        let found = self.shared.kinds.find(side, self.client(side), gvr).await;
        let found = found.map_err(|source| ReadError::Server { identifier: identifier(), source })?;
        found.ok_or_else(|| ReadError::NoKind {
            identifier: identifier(),
            side: if side == Side::Kcp { "the consumer's workspace" } else { "the service cluster" },
            gvr: gvr.clone(),
        })
    }

    fn client(&self, side: Side) -> &Client {
        match side {
            Side::Kcp => self.kcp,
            Side::Service => &self.shared.context.local,
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
