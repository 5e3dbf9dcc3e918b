//! ReadPass the related objects of one primary: from the caches, and from the servers where those do not know.

mod ends;
mod error;

use std::collections::HashSet;

use carrick_client::{Client, Error, ListOptions, Object};
use parking_lot::Mutex;
use serde_json::Value;

use error::no_kind;

use super::kinds::resource;
use super::related::{CacheAnswer, ClusterNamespace, Interest, PrimaryKey, Wanted};
use super::shared::Shared;
use crate::agent::discovery::RelatedKind;
use crate::api::Origin;
use crate::decide::state::PrimaryState;
use crate::decide::{ObjectAddress, RelatedSeen, RelatedView, Role, Side};
use crate::rules::Rules;
use crate::rules::metadata::{KCP_SIDE, SERVICE_SIDE, SourceKey};
use crate::rules::related::{Gvr, NameSource, Primaries, Related, RelatedError};
use crate::rules::selector::Selector;

pub(super) use error::ReadError;

/// What was read of the related objects of one primary.
#[derive(Default)]
pub(super) struct RelatedRead {
    /// What is there.
    pub view: RelatedView,
    /// Why some entries cannot be read; they do not block the others.
    pub problems: Vec<ReadError>,
    /// What no watch will report.
    pub unseen: Unseen,
    /// What cannot be cleaned up, because the consumer does not let us.
    pub lost: Vec<String>,
    /// What the rules name and nobody has created yet, in words.
    pub absent: Vec<String>,
    /// Whether anything was read at all.
    complete: bool,
}

impl RelatedRead {
    /// There was nothing to read.
    fn nothing() -> Self {
        Self { complete: true, ..Self::default() }
    }

    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        !self.complete
    }
}

/// What no watch will report.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unseen {
    /// Nothing.
    #[default]
    Nothing,
    /// Changes of objects that exist.
    Changes,
    /// The appearance of an object that is waited for.
    Appearance,
}

/// Reads the related objects of one primary.
pub(super) struct RelatedReader<'a> {
    pub kcp: &'a Client,
    pub shared: &'a Shared,
    pub rules: &'a Rules,
    pub user: PrimaryKey,
    pub key: &'a SourceKey,
    pub state: &'a PrimaryState,
    /// The primary in kcp.
    pub source: &'a Value,
    /// Its copy; without one only what is remembered can be found.
    pub copy: Option<&'a Value>,
    /// Workspace path, if the rules ask for it.
    pub path: Option<&'a str>,
}

/// One pass over everything that the rules name.
struct ReadPass<'a> {
    /// Whether the servers are asked for everything.
    live: bool,
    rules: &'a Related,
    interests: &'a Mutex<HashSet<Interest>>,
    unseen: &'a Mutex<Unseen>,
    absent: &'a Mutex<Vec<String>>,
}

impl RelatedReader<'_> {
    /// What the rules name.
    async fn named(&self, copy: &Value, live: bool) -> RelatedRead {
        let primaries = Primaries { remote: self.source, local: copy, cluster: &self.key.cluster, path: self.path };
        let mut read = RelatedRead { complete: true, ..RelatedRead::default() };
        let (interests, unseen, absent) = (Mutex::default(), Mutex::default(), Mutex::default());
        for (entry, rules) in self.rules.related.iter().enumerate() {
            let reading = ReadPass { live, rules, interests: &interests, unseen: &unseen, absent: &absent };
            match self.read_entry(entry, &reading, primaries).await {
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
        self.shared.related.set_interests(&self.user, &interests.into_inner());
        read.unseen = unseen.into_inner();
        read.absent = absent.into_inner();
        read
    }

    async fn read_entry(
        &self,
        entry: usize,
        reading: &ReadPass<'_>,
        primaries: Primaries<'_>,
    ) -> Result<Vec<RelatedSeen>, ReadError> {
        let rules = reading.rules;
        let (origin_side, destination_side) = sides(rules.origin);
        let broken = |source| ReadError::Rules { identifier: rules.identifier.clone(), source };
        let origin_kind = self.kind(reading, origin_side, &rules.source).await?;
        let destination_kind = self.kind(reading, destination_side, &rules.destination).await?;
        let namespaces = if origin_kind.kind.namespaced || destination_kind.kind.namespaced {
            match rules.namespaces(primaries).map_err(broken)? {
                NameSource::Pairs(pairs) => pairs,
                NameSource::Listed(selector) => {
                    let namespaces = Gvr { group: String::new(), version: "v1".into(), resource: "namespaces".into() };
                    let kind = self.kind(reading, origin_side, &namespaces).await?;
                    let listed = self.list(reading, origin_side, &kind, "", &selector).await?;
                    let names = listed.iter().filter_map(|namespace| namespace["metadata"]["name"].as_str());
                    names
                        .map(|name| Ok((name.to_owned(), rules.rewrite_namespace(name, primaries)?)))
                        .collect::<Result<_, RelatedError>>()
                        .map_err(broken)?
                }
            }
        } else {
            vec![(String::new(), String::new())]
        };
        let mut seen = Vec::new();
        for (from, to) in namespaces {
            let from = if origin_kind.kind.namespaced { from.as_str() } else { "" };
            let objects: Vec<(Value, String)> = match rules.names(primaries).map_err(broken)? {
                NameSource::Pairs(pairs) => {
                    if pairs.is_empty() {
                        reading.lack("the primary names no object yet");
                    }
                    let mut objects = Vec::new();
                    for (name, new_name) in pairs {
                        let object = self.get(reading, origin_side, &origin_kind, from, &name).await?;
                        if object.is_none() {
                            reading
                                .lack(&format!("{} does not exist", address(origin_side, &origin_kind, from, &name)));
                        }
                        objects.extend(object.map(|object| (object, new_name)));
                    }
                    objects
                }
                NameSource::Listed(selector) => {
                    let listed = self.list(reading, origin_side, &origin_kind, from, &selector).await?;
                    if listed.is_empty() {
                        let (side, kind) = (origin_side.name, &origin_kind.kind.kind);
                        let place = if from.is_empty() { String::new() } else { format!(" in namespace {from}") };
                        reading.lack(&format!("no {side} {kind}{place} matches its selector"));
                    }
                    listed
                        .into_iter()
                        .map(|object| {
                            let name = rules.rewrite_name(&object, primaries)?;
                            Ok((object, name))
                        })
                        .collect::<Result<_, RelatedError>>()
                        .map_err(broken)?
                }
            };
            let to = if destination_kind.kind.namespaced { to.as_str() } else { "" };
            for (origin, destination_name) in objects {
                let destination = self.get(reading, destination_side, &destination_kind, to, &destination_name).await?;
                seen.push(RelatedSeen {
                    entry,
                    origin_kind: origin_kind.kind.clone(),
                    destination_kind: destination_kind.kind.clone(),
                    destination_status: destination_kind.status,
                    origin,
                    destination,
                    destination_namespace: to.to_owned(),
                    destination_name,
                    others: Vec::new(),
                    rival: None,
                });
            }
        }
        Ok(seen)
    }

    /// One object, whose changes are noticed from now on.
    async fn get(
        &self,
        reading: &ReadPass<'_>,
        side: Side,
        kind: &RelatedKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ReadError> {
        let (gvr, scope) = (gvr(kind), self.scope(side, namespace));
        reading.want(side, &gvr, &scope, Wanted::Object(name.to_owned()));
        let watches = &self.shared.related;
        let answer = watches.get(&self.user, side, &gvr, &scope, name);
        let blind = answer == CacheAnswer::Blind;
        if let (CacheAnswer::Known(object), false) = (answer, reading.live) {
            return object.as_ref().map(Object::read).transpose().map_err(|source| reading.failed(side, &gvr, source));
        }
        let object = self.client(side).get(&resource(&kind.kind), Some(namespace), name).await;
        let object = object.map_err(|source| reading.failed(side, &gvr, source))?;
        watches.learn(side, &gvr, &scope, name, object.as_ref());
        if blind {
            reading.miss(if object.is_none() { Unseen::Appearance } else { Unseen::Changes });
        }
        Ok(object)
    }

    /// All objects that match, whose changes are noticed from now on.
    async fn list(
        &self,
        reading: &ReadPass<'_>,
        side: Side,
        kind: &RelatedKind,
        namespace: &str,
        selector: &Selector,
    ) -> Result<Vec<Value>, ReadError> {
        let (gvr, scope) = (gvr(kind), self.scope(side, namespace));
        reading.want(side, &gvr, &scope, Wanted::Matching(selector.clone()));
        let watches = &self.shared.related;
        let answer = watches.list(&self.user, side, &gvr, &scope, selector);
        let blind = answer == CacheAnswer::Blind;
        let objects = if let (CacheAnswer::Known(objects), false) = (answer, reading.live) {
            let objects = objects.iter().map(Object::read).collect::<Result<Vec<_>, _>>();
            objects.map_err(|source| reading.failed(side, &gvr, source))?
        } else {
            let all = ListOptions::default();
            let all = self.client(side).list_compact(&resource(&kind.kind), Some(namespace), &all).await;
            let failed = |source| reading.failed(side, &gvr, source);
            let mut all = all.map_err(failed)?;
            all.retain(|object| selector.matches_object(&object.value()));
            let objects = all.iter().map(Object::read).collect::<Result<Vec<_>, _>>().map_err(failed)?;
            watches.learn_list(side, &gvr, &scope, selector, &objects);
            objects
        };
        for object in &objects {
            // One that no longer matches must be noticed, too.
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            reading.want(side, &gvr, &scope, Wanted::Object(name.clone()));
            let _ = watches.get(&self.user, side, &gvr, &scope, &name);
        }
        if blind {
            reading.miss(Unseen::Appearance);
        }
        Ok(objects)
    }

    fn scope(&self, side: Side, namespace: &str) -> ClusterNamespace {
        let cluster = if side == KCP_SIDE { &*self.key.cluster } else { "" };
        (cluster.to_owned(), namespace.to_owned())
    }

    async fn kind(&self, reading: &ReadPass<'_>, side: Side, gvr: &Gvr) -> Result<RelatedKind, ReadError> {
        let (kinds, client) = (&self.shared.related.kinds, self.client(side));
        let found = if reading.live { kinds.ask(side, client, gvr).await } else { kinds.find(side, client, gvr).await };
        let found = found.map_err(|source| reading.failed(side, gvr, source))?;
        found.ok_or_else(|| no_kind(reading.rules, side, gvr))
    }

    fn client(&self, side: Side) -> &Client {
        match side.role {
            Role::Consumer => self.kcp,
            Role::Provider => &self.shared.context.local,
        }
    }
}

impl ReadPass<'_> {
    fn failed(&self, side: Side, gvr: &Gvr, source: Error) -> ReadError {
        ReadError::of(&self.rules.identifier, side, gvr, source)
    }

    fn want(&self, side: Side, gvr: &Gvr, scope: &ClusterNamespace, wanted: Wanted) {
        self.interests.lock().insert(Interest { side, gvr: gvr.clone(), scope: scope.clone(), wanted });
    }

    fn lack(&self, what: &str) {
        self.absent.lock().push(format!("related resource {:?}: {what}", self.rules.identifier));
    }

    fn miss(&self, what: Unseen) {
        let mut unseen = self.unseen.lock();
        *unseen = what.max(*unseen);
    }
}

fn gvr(kind: &RelatedKind) -> Gvr {
    let kind = &kind.kind;
    Gvr { group: kind.group.clone(), version: kind.version.clone(), resource: kind.plural.clone() }
}

/// How an object is called in messages.
fn address(side: Side, kind: &RelatedKind, namespace: &str, name: &str) -> ObjectAddress {
    let namespace = (!namespace.is_empty()).then(|| namespace.to_owned());
    ObjectAddress { side, kind: kind.kind.clone(), namespace, name: name.to_owned() }
}

/// Origin and destination side.
fn sides(origin: Origin) -> (Side, Side) {
    match origin {
        Origin::Kcp => (KCP_SIDE, SERVICE_SIDE),
        Origin::Service => (SERVICE_SIDE, KCP_SIDE),
    }
}
