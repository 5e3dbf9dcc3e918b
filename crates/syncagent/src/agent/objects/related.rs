//! Related objects: reading them, and noticing their changes.
//!
//! ```text
//!  Reader (one primary) ──▶ RelatedWatches ──▶ Cache, one for each side and kind ◀── watch, one for each endpoint
//!      └── asks the servers where the cache does not know, and before anything is taken back
//! ```

mod cache;
mod watches;

use std::collections::HashSet;

use carrick_client::{Client, Error, ListOptions, Object};
use parking_lot::Mutex;
use serde_json::Value;
use thiserror::Error;

use cache::{Answer, Room};
use watches::{Interest, Wanted};

use super::kinds::{RelatedKind, resource};
use super::reach::Reaching;
use super::syncer::Shared;
use crate::api::Origin;
use crate::decide::state::State;
use crate::decide::{DroppedSeen, Place, Record, RelatedSeen, RelatedView, Side, unnamed};
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
        /// What was to be read, if it was an object or a list of them.
        at: Option<Box<Place>>,
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

/// What was read of the related objects of one primary.
#[derive(Default)]
pub(super) struct Read {
    /// What is there.
    pub view: RelatedView,
    /// Entries that cannot be read; they do not hinder the others.
    pub problems: Vec<ReadError>,
    /// What no watch will report.
    pub unseen: Unseen,
    /// What cannot be cleaned up, because the consumer does not let us.
    pub lost: Vec<String>,
    /// Whether anything was read at all.
    is_read: bool,
}

impl Read {
    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        !self.is_read
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
    /// All related objects of a primary that stays.
    pub async fn read(&self) -> Result<Read, ReadError> {
        let Some(copy) = self.copy else { return Ok(Read { is_read: true, ..Read::default() }) };
        let mut read = self.named(copy, false).await;
        // Nothing is taken back on the word of a cache, nor unless both primaries are really there.
        if !self.unnamed(&read).is_empty() && self.are_there(copy).await? {
            read = self.named(copy, true).await;
            for (key, record) in self.unnamed(&read) {
                read.view.dropped.push(self.dropped(key, record).await?);
            }
        }
        self.add_others(&mut read);
        for seen in &mut read.view.seen {
            if let Some(rules) = self.rules.related.get(seen.entry) {
                seen.rival = self.shared.rival(self.rules, self.key, &seen.record(rules));
            }
        }
        Ok(read)
    }

    /// All related objects of a primary that is being deleted.
    pub async fn read_last(&self) -> Result<Read, ReadError> {
        let mut read = match self.copy {
            Some(copy) => self.named(copy, true).await,
            None => Read { is_read: true, ..Read::default() },
        };
        // A server that does not answer may hide what must be taken back, unless its consumer does not let us see it any more. Rules that
        // fail hide nothing: what was done is remembered.
        let mut lost = Vec::new();
        for problem in std::mem::take(&mut read.problems) {
            match problem {
                ReadError::Server { identifier, at: Some(at), source } if self.reach().is_lost(&at, &source).await => {
                    lost.push(format!("{} of related resource {identifier:?}", at.kind.resource()));
                }
                problem @ ReadError::Server { .. } => return Err(problem),
                problem => read.problems.push(problem),
            }
        }
        for (key, record) in unnamed(self.state, &self.rules.related, &read.view.seen) {
            let mut dropped = DroppedSeen { key, origin: None, copy: None, others: Vec::new(), record };
            for (at, slot) in [(&dropped.record.origin, &mut dropped.origin), (&dropped.record.copy, &mut dropped.copy)]
            {
                match self.look_up(at).await {
                    Ok(found) => *slot = found,
                    Err(source) if self.reach().is_lost(at, &source).await => lost.push(at.to_string()),
                    Err(source) => {
                        let identifier = dropped.record.identifier.clone();
                        return Err(ReadError::Server { identifier, at: Some(Box::new(at.clone())), source });
                    }
                }
            }
            dropped.others = self.shared.others(self.rules, self.key, &dropped.record);
            read.view.dropped.push(dropped);
        }
        self.add_others(&mut read);
        read.lost = lost;
        Ok(read)
    }

    async fn look_up(&self, at: &Place) -> Result<Option<Value>, Error> {
        self.client(at.side).get(&resource(&at.kind), at.namespace.as_deref(), &at.name).await
    }

    fn reach(&self) -> Reaching<'_> {
        Reaching { reach: &self.shared.reach, kcp: self.kcp, order: &self.user.1 }
    }

    /// What the rules name.
    async fn named(&self, copy: &Value, live: bool) -> Read {
        let primaries = Primaries { remote: self.source, local: copy, cluster: &self.key.cluster, path: self.path };
        let mut read = Read { is_read: true, ..Read::default() };
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
            let found =
                found.map_err(|source| ReadError::Server { identifier: self.rules.name.clone(), at: None, source })?;
            Ok::<_, ReadError>(found.is_some_and(|found| found["metadata"]["uid"] == object["metadata"]["uid"]))
        };
        Ok(there(self.kcp, &self.rules.remote, self.source).await?
            && there(self.client(Side::Service), &self.rules.local, copy).await?)
    }

    async fn dropped(&self, key: String, record: Record) -> Result<DroppedSeen, ReadError> {
        let get = async |at: &Place| {
            let at_place = || Some(Box::new(at.clone()));
            let failed = |source| ReadError::Server { identifier: record.identifier.clone(), at: at_place(), source };
            self.look_up(at).await.map_err(failed)
        };
        let (origin, copy) = (get(&record.origin).await?, get(&record.copy).await?);
        Ok(DroppedSeen { key, origin, copy, others: self.shared.others(self.rules, self.key, &record), record })
    }

    /// Adds who else uses the objects.
    fn add_others(&self, read: &mut Read) {
        for seen in &mut read.view.seen {
            if let Some(rules) = self.rules.related.get(seen.entry) {
                seen.others = self.shared.others(self.rules, self.key, &seen.record(rules));
            }
        }
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
            return object.as_ref().map(Object::read).transpose().map_err(|source| reading.failed(None, source));
        }
        let object = self.client(side).get(&resource(&kind.kind), Some(namespace), name).await;
        let object = object.map_err(|source| reading.failed(Some((side, kind, namespace, name)), source))?;
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
            let objects = objects.iter().map(Object::read).collect::<Result<Vec<_>, _>>();
            objects.map_err(|source| reading.failed(None, source))?
        } else {
            let all = ListOptions::default();
            let all = self.client(side).list_compact(&resource(&kind.kind), Some(namespace), &all).await;
            let failed = |source| reading.failed(Some((side, kind, namespace, "*")), source);
            let mut all = all.map_err(failed)?;
            all.retain(|object| selector.matches_object(&object.value()));
            let objects = all.iter().map(Object::read).collect::<Result<Vec<_>, _>>().map_err(failed)?;
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
        found.map_err(|source| reading.failed(None, source))?.ok_or_else(|| ReadError::NoKind {
            identifier: reading.rules.identifier.clone(),
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

impl Reading<'_> {
    fn failed(&self, at: Option<(Side, &RelatedKind, &str, &str)>, source: Error) -> ReadError {
        let at = at.map(|(side, kind, namespace, name)| {
            let namespace = kind.kind.namespaced.then(|| namespace.to_owned());
            Box::new(Place { side, kind: kind.kind.clone(), namespace, name: name.to_owned() })
        });
        ReadError::Server { identifier: self.rules.identifier.clone(), at, source }
    }

    fn want(&self, side: Side, gvr: &Gvr, room: &Room, wanted: Wanted) {
        self.interests.lock().insert(Interest { side, gvr: gvr.clone(), room: room.clone(), wanted });
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

/// Origin and destination side.
fn sides(origin: Origin) -> (Side, Side) {
    match origin {
        Origin::Kcp => (Side::Kcp, Side::Service),
        Origin::Service => (Side::Service, Side::Kcp),
    }
}
