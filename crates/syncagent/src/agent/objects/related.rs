//! Related objects: reading them, and noticing their changes.
//!
//! ```text
//!  Reader (one primary) ──▶ RelatedWatches ──▶ Cache, one for each side and kind ◀── watch, one for each endpoint
//!      └── asks the servers where the cache does not know, and before anything is taken back
//! ```

mod cache;
mod ends;
mod marked;
mod patience;
mod watches;

use std::collections::HashSet;

use carrick_client::{Client, Error, ListOptions, Object};
use parking_lot::Mutex;
use serde_json::Value;
use thiserror::Error;

use cache::{Answer, Room};
use watches::{Interest, Wanted};

use super::kinds::{RelatedKind, resource};
use super::syncer::Shared;
use crate::api::Origin;
use crate::decide::state::State;
use crate::decide::{RelatedSeen, RelatedView, Side};
use crate::rules::Rules;
use crate::rules::metadata::SourceKey;
use crate::rules::related::{Found, Gvr, Primaries, Related, RelatedError};
use crate::rules::selector::Selector;

pub(super) use cache::User;
pub(super) use watches::RelatedWatches;

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
    /// The agent lacks a right, or the consumer has not accepted a claim.
    #[error(transparent)]
    Forbidden(Box<Forbidden>),
    /// Something that should go with its primary cannot be reached any more.
    #[error("related resource {identifier:?}: {at} is left behind; {way_out}")]
    LeftBehind {
        /// Identifier of the entry.
        identifier: String,
        /// The object.
        at: String,
        /// What is missing.
        way_out: String,
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

impl ReadError {
    fn of(identifier: &str, side: Side, gvr: &Gvr, source: Error) -> Self {
        let identifier = identifier.to_owned();
        if source.is_forbidden() {
            return Self::Forbidden(Box::new(Forbidden { identifier, way_out: way_out(side, gvr), source }));
        }
        Self::Server { identifier, source }
    }
}

/// A right that is missing.
#[derive(Debug, Error)]
#[error("related resource {identifier:?}: {source}; {way_out}")]
pub(super) struct Forbidden {
    /// Identifier of the entry.
    identifier: String,
    /// What to do about it.
    way_out: String,
    /// What the server said.
    source: Error,
}

/// What to do about missing rights.
fn way_out(side: Side, gvr: &Gvr) -> String {
    let Gvr { group, resource, .. } = gvr;
    match side {
        Side::Kcp if group.is_empty() => format!("the consumer's APIBinding must accept the claim for {resource}"),
        Side::Kcp => format!("the consumer's APIBinding must accept the claim for {resource}.{group}"),
        Side::Service => format!(
            "grant the agent a ClusterRole with {{apiGroups: [{group:?}], resources: [{resource:?}], verbs: [get, list, watch, create, update, patch, delete]}}"
        ),
    }
}

/// What was read of the related objects of one primary.
#[derive(Default)]
pub(super) struct Read {
    /// What is there.
    pub view: RelatedView,
    /// Entries that cannot be read; they do not hinder the others.
    pub problems: Vec<ReadError>,
    /// What no watch will report.
    pub unseen: Unseen,
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
pub(super) struct Reader<'a> {
    pub kcp: &'a Client,
    pub shared: &'a Shared,
    pub rules: &'a Rules,
    pub user: User,
    pub key: &'a SourceKey,
    pub state: &'a State,
    /// The primary in kcp.
    pub source: &'a Value,
    /// Its copy; without one only what is remembered can be found.
    pub copy: Option<&'a Value>,
    /// Workspace path, if the rules ask for it.
    pub path: Option<&'a str>,
}

/// One reading of everything that the rules name.
struct Reading<'a> {
    /// Whether the servers are asked for everything.
    live: bool,
    rules: &'a Related,
    interests: &'a Mutex<HashSet<Interest>>,
    unseen: &'a Mutex<Unseen>,
}

impl Reader<'_> {
    /// What the rules name.
    async fn named(&self, copy: &Value, live: bool) -> Read {
        let primaries = Primaries { remote: self.source, local: copy, cluster: &self.key.cluster, path: self.path };
        let mut read = Read::default();
        let (interests, unseen) = (Mutex::default(), Mutex::default());
        for (entry, rules) in self.rules.related.iter().enumerate() {
            let reading = Reading { live, rules, interests: &interests, unseen: &unseen };
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
        read
    }

    async fn read_entry(
        &self,
        entry: usize,
        reading: &Reading<'_>,
        primaries: Primaries<'_>,
    ) -> Result<Vec<RelatedSeen>, ReadError> {
        let rules = reading.rules;
        let (origin_side, destination_side) = sides(rules.origin);
        let broken = |source| ReadError::Rules { identifier: rules.identifier.clone(), source };
        let origin_kind = self.kind(reading, origin_side, &rules.source).await?;
        let destination_kind = self.kind(reading, destination_side, &rules.destination).await?;
        let namespaces = if origin_kind.kind.namespaced || destination_kind.kind.namespaced {
            match rules.namespaces(primaries).map_err(broken)? {
                Found::Pairs(pairs) => pairs,
                Found::Listed(selector) => {
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
                Found::Pairs(pairs) => {
                    let mut objects = Vec::new();
                    for (name, new_name) in pairs {
                        let object = self.get(reading, origin_side, &origin_kind, from, &name).await?;
                        objects.extend(object.map(|object| (object, new_name)));
                    }
                    objects
                }
                Found::Listed(selector) => {
                    let listed = self.list(reading, origin_side, &origin_kind, from, &selector).await?;
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
        reading: &Reading<'_>,
        side: Side,
        kind: &RelatedKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ReadError> {
        let (gvr, room) = (gvr(kind), self.room(side, namespace));
        reading.want(side, &gvr, &room, Wanted::Object(name.to_owned()));
        let watches = &self.shared.related;
        let answer = watches.get(&self.user, side, &gvr, &room, name);
        let blind = answer == Answer::Blind;
        if let (Answer::Known(object), false) = (answer, reading.live) {
            return Ok(object.as_ref().map(Object::value));
        }
        let object = self.client(side).get(&resource(&kind.kind), Some(namespace), name).await;
        let object = object.map_err(|source| reading.failed(side, &gvr, source))?;
        watches.learn(side, &gvr, &room, name, object.as_ref());
        if blind {
            reading.miss(if object.is_none() { Unseen::Appearance } else { Unseen::Changes });
        }
        Ok(object)
    }

    /// All objects that match, whose changes are noticed from now on.
    async fn list(
        &self,
        reading: &Reading<'_>,
        side: Side,
        kind: &RelatedKind,
        namespace: &str,
        selector: &Selector,
    ) -> Result<Vec<Value>, ReadError> {
        let (gvr, room) = (gvr(kind), self.room(side, namespace));
        reading.want(side, &gvr, &room, Wanted::Matching(selector.clone()));
        let watches = &self.shared.related;
        let answer = watches.list(&self.user, side, &gvr, &room, selector);
        let blind = answer == Answer::Blind;
        let objects = if let (Answer::Known(objects), false) = (answer, reading.live) {
            objects.iter().map(Object::value).collect()
        } else {
            let all = self.client(side).list(&resource(&kind.kind), Some(namespace), &ListOptions::default()).await;
            let mut objects = all.map_err(|source| reading.failed(side, &gvr, source))?;
            objects.retain(|object| selector.matches_object(object));
            watches.learn_list(side, &gvr, &room, selector, &objects);
            objects
        };
        for object in &objects {
            // One that does not match any more must be noticed, too.
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            reading.want(side, &gvr, &room, Wanted::Object(name.clone()));
            let _ = watches.get(&self.user, side, &gvr, &room, &name);
        }
        if blind {
            reading.miss(Unseen::Appearance);
        }
        Ok(objects)
    }

    fn room(&self, side: Side, namespace: &str) -> Room {
        let cluster = if side == Side::Kcp { self.key.cluster.as_str() } else { "" };
        (cluster.to_owned(), namespace.to_owned())
    }

    async fn kind(&self, reading: &Reading<'_>, side: Side, gvr: &Gvr) -> Result<RelatedKind, ReadError> {
        let (kinds, client) = (&self.shared.related.kinds, self.client(side));
        let found = if reading.live { kinds.ask(side, client, gvr).await } else { kinds.find(side, client, gvr).await };
        let found = found.map_err(|source| reading.failed(side, gvr, source))?;
        found.ok_or_else(|| no_kind(reading.rules, side, gvr))
    }

    fn client(&self, side: Side) -> &Client {
        match side {
            Side::Kcp => self.kcp,
            Side::Service => &self.shared.context.local,
        }
    }
}

impl Reading<'_> {
    fn failed(&self, side: Side, gvr: &Gvr, source: Error) -> ReadError {
        ReadError::of(&self.rules.identifier, side, gvr, source)
    }

    fn want(&self, side: Side, gvr: &Gvr, room: &Room, wanted: Wanted) {
        self.interests.lock().insert(Interest { side, gvr: gvr.clone(), room: room.clone(), wanted });
    }

    fn miss(&self, what: Unseen) {
        let mut unseen = self.unseen.lock();
        *unseen = what.max(*unseen);
    }
}

fn no_kind(rules: &Related, side: Side, gvr: &Gvr) -> ReadError {
    ReadError::NoKind {
        identifier: rules.identifier.clone(),
        side: if side == Side::Kcp { "the consumer's workspace" } else { "the service cluster" },
        gvr: gvr.clone(),
    }
}

fn gvr(kind: &RelatedKind) -> Gvr {
    let kind = &kind.kind;
    Gvr { group: kind.group.clone(), version: kind.version.clone(), resource: kind.plural.clone() }
}

/// Origin and destination side.
fn sides(origin: Origin) -> (Side, Side) {
    match origin {
        Origin::Kcp => (Side::Kcp, Side::Service),
        Origin::Service => (Side::Service, Side::Kcp),
    }
}
