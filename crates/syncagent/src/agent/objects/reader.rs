//! ReadPass the related objects of one primary: from the caches, and from the servers where those do not know.

mod error;
mod withdrawals;

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use carrick_client::{Client, Error, ListOptions, Object};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use error::{CACHED_BYTES, no_kind};

use super::related::kinds::resource;
use super::related::{CacheAnswer, ClusterNamespace, Interest, PrimaryKey, Wanted};
use super::shared::Shared;
use crate::agent::discovery::RelatedKind;
use crate::api::{Access, Origin};
use crate::decide::state::PrimaryState;
use crate::decide::{ObjectAddress, RelatedSeen, RelatedView, Role, Side};
use crate::rules::metadata::{KCP_SIDE, SERVICE_SIDE, SourceKey, is_deleting};
use crate::rules::related::{Gvr, NameSource, Primaries, Related, RelatedError};
use crate::rules::selector::Selector;
use crate::rules::{Rules, access, reads};

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
    /// Bytes of what was read, of all entries.
    bytes: &'a AtomicUsize,
    unseen: &'a Mutex<Unseen>,
    absent: &'a Mutex<Vec<String>>,
}

/// What is noted while objects are read.
#[derive(Default)]
struct Notes {
    bytes: AtomicUsize,
    unseen: Mutex<Unseen>,
    absent: Mutex<Vec<String>>,
    kept: Mutex<HashSet<Interest>>,
    released: Mutex<HashSet<Interest>>,
}

impl Notes {
    /// A pass over one entry.
    fn pass<'a>(&'a self, live: bool, rules: &'a Related, interests: &'a Mutex<HashSet<Interest>>) -> ReadPass<'a> {
        ReadPass { live, rules, interests, bytes: &self.bytes, unseen: &self.unseen, absent: &self.absent }
    }

    /// Takes in what a pass was interested in. What the caches hold of an entry that does not fit is let go.
    fn settle(&self, interests: Mutex<HashSet<Interest>>, before: usize, problem: Option<&ReadError>) {
        let is_kept = !problem.is_some_and(ReadError::is_for_want_of_room);
        if !is_kept {
            self.bytes.store(before, Ordering::Relaxed);
        }
        let of = if is_kept { &self.kept } else { &self.released };
        of.lock().extend(interests.into_inner());
    }
}

impl RelatedReader<'_> {
    /// What the rules name.
    async fn named(&self, copy: &Value, live: bool) -> RelatedRead {
        let primaries = Primaries { remote: self.source, local: copy, cluster: &self.key.cluster, path: self.path };
        let mut read = RelatedRead { complete: true, ..RelatedRead::default() };
        let notes = Notes::default();
        // The end of an order writes nothing that rules make, so nothing is looked at for it.
        if !is_deleting(self.source) {
            self.look(&mut read, primaries, live, &notes).await;
        }
        for (entry, rules) in self.rules.related.iter().enumerate() {
            if reads::lacking_any(&rules.mutation.objects_read(), &read.view.unread) {
                read.view.unknown.insert(entry);
                continue;
            }
            let (interests, before) = (Mutex::default(), notes.bytes.load(Ordering::Relaxed));
            let found = self.read_entry(entry, &notes.pass(live, rules, &interests), primaries).await;
            notes.settle(interests, before, found.as_ref().err());
            match found {
                Ok(found) if read.view.seen.len() + found.len() > self.rules.budget.objects => {
                    let found = read.view.seen.len() + found.len();
                    read.view.unknown.insert(entry);
                    read.problems.push(self.too_many(rules, found));
                }
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
                    read.view.unclaimed.extend(problem.unclaimed().map(|kind| (entry, kind)));
                    read.problems.push(problem);
                }
            }
        }
        let (kept, released) = (notes.kept.into_inner(), notes.released.into_inner());
        let watches = &self.shared.related;
        if !released.is_empty() {
            watches.set_interests(&self.user, &kept.union(&released).cloned().collect());
        }
        watches.set_interests(&self.user, &kept);
        watches.settle_bytes(&self.user, notes.bytes.into_inner(), !released.is_empty());
        read.unseen = notes.unseen.into_inner();
        read.absent = notes.absent.into_inner();
        read
    }

    /// Reads what rules look at. An entry that cannot be read makes unknown what depends on it, and nothing else.
    async fn look(&self, read: &mut RelatedRead, primaries: Primaries<'_>, live: bool, notes: &Notes) {
        let mut objects = Map::new();
        for entry in &self.rules.reads {
            let (interests, before) = (Mutex::default(), notes.bytes.load(Ordering::Relaxed));
            let found = self.first(&notes.pass(live, &entry.rules, &interests), primaries).await;
            notes.settle(interests, before, found.as_ref().err());
            match found {
                Ok(found) => {
                    objects.insert(entry.identifier.clone(), found.unwrap_or_default());
                }
                Err(problem) => {
                    read.view.unread.insert(entry.identifier.clone());
                    read.problems.push(problem);
                }
            }
        }
        if !self.rules.reads.is_empty() {
            read.view.objects = objects.into();
        }
    }

    /// The first object that an entry of `spec.reads` finds.
    async fn first(&self, reading: &ReadPass<'_>, primaries: Primaries<'_>) -> Result<Option<Value>, ReadError> {
        let rules = reading.rules;
        let kind = self.kind(reading, SERVICE_SIDE, &rules.source).await?;
        let mut named = 0;
        let mut found = Vec::new();
        for (from, _) in self.namespaces(reading, (&kind, &kind), primaries).await? {
            let from = if kind.kind.namespaced { from.as_str() } else { "" };
            let broken = |source| ReadError::Rules { identifier: rules.identifier.clone(), source };
            self.check_place(rules, from, from, primaries).map_err(broken)?;
            found.append(&mut self.originals(reading, &kind, from, (primaries, &mut named)).await?);
        }
        let name = |(object, _): &(Value, String)| {
            let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
            (text("namespace"), text("name"))
        };
        Ok(found.into_iter().min_by_key(name).map(|(object, _)| object))
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
        let kinds = (&origin_kind, &destination_kind);
        let mut seen = Vec::new();
        let mut named = 0;
        for (from, to) in self.namespaces(reading, kinds, primaries).await? {
            let from = if origin_kind.kind.namespaced { from.as_str() } else { "" };
            let to = if destination_kind.kind.namespaced { to.as_str() } else { "" };
            self.check_place(rules, from, to, primaries).map_err(broken)?;
            let objects = self.originals(reading, &origin_kind, from, (primaries, &mut named)).await?;
            for (origin, destination_name) in objects {
                if destination_side == SERVICE_SIDE {
                    rules.check_name(&destination_name, &self.rules.reserved).map_err(broken)?;
                }
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
                    ordered: false,
                    wanted: false,
                });
            }
        }
        Ok(seen)
    }

    /// Pairs of namespaces on the origin and the destination side.
    async fn namespaces(
        &self,
        reading: &ReadPass<'_>,
        (origin, destination): (&RelatedKind, &RelatedKind),
        primaries: Primaries<'_>,
    ) -> Result<Vec<(String, String)>, ReadError> {
        let rules = reading.rules;
        let broken = |source| ReadError::Rules { identifier: rules.identifier.clone(), source };
        if !origin.kind.namespaced && !destination.kind.namespaced {
            return Ok(vec![(String::new(), String::new())]);
        }
        let pairs = match rules.namespaces(primaries).map_err(broken)? {
            NameSource::Pairs(pairs) => pairs,
            NameSource::Listed(selector) => {
                let (origin_side, _) = sides(rules.origin);
                let namespaces = Gvr { group: String::new(), version: "v1".into(), resource: "namespaces".into() };
                let kind = self.kind(reading, origin_side, &namespaces).await?;
                let listed = self.list(reading, origin_side, &kind, "", &selector).await?;
                let names = listed.iter().filter_map(|namespace| namespace["metadata"]["name"].as_str());
                // A label is no way into a reserved namespace, but it must not keep the others from being read.
                let open = names.filter(|name| origin_side != SERVICE_SIDE || !self.rules.reserved.refuses(name, None));
                open.map(|name| Ok((name.to_owned(), rules.rewrite_namespace(name, primaries)?)))
                    .collect::<Result<_, RelatedError>>()
                    .map_err(broken)?
            }
        };
        self.within_names(rules, pairs.len())?;
        Ok(pairs)
    }

    /// Refuses namespaces of the service cluster that the entry must not lead to.
    fn check_place(&self, rules: &Related, from: &str, to: &str, primaries: Primaries<'_>) -> Result<(), RelatedError> {
        let there = if rules.origin == Origin::Service { from } else { to };
        rules.check_namespace(there, &self.rules.reserved)?;
        if rules.origin == Origin::Kcp && !access::may_place_in(rules.access, there, primaries.local) {
            return Err(RelatedError::Elsewhere { at: rules.at().to_owned(), namespace: there.to_owned() });
        }
        Ok(())
    }

    /// The originals in one namespace that the entry may carry, and the names of their copies.
    async fn originals(
        &self,
        reading: &ReadPass<'_>,
        kind: &RelatedKind,
        from: &str,
        (primaries, named): (Primaries<'_>, &mut usize),
    ) -> Result<Vec<(Value, String)>, ReadError> {
        let rules = reading.rules;
        let (side, _) = sides(rules.origin);
        let broken = |source| ReadError::Rules { identifier: rules.identifier.clone(), source };
        let mut objects = Vec::new();
        match rules.names(primaries).map_err(broken)? {
            NameSource::Pairs(pairs) => {
                *named += pairs.len();
                self.within_names(rules, *named)?;
                if pairs.is_empty() {
                    reading.lack("the primary names no object yet");
                }
                for (name, new_name) in pairs {
                    if side == SERVICE_SIDE {
                        rules.check_name(&name, &self.rules.reserved).map_err(broken)?;
                    }
                    let found = self.get(reading, side, kind, from, &name).await?;
                    match found.filter(|object| reading.carries(object, side, primaries)) {
                        Some(object) => objects.push((object, new_name)),
                        None => reading.lack(&reading.absence(&address(side, kind, from, &name))),
                    }
                }
            }
            NameSource::Listed(selector) => {
                let mut listed = self.list(reading, side, kind, from, &selector).await?;
                listed.retain(|object| reading.carries(object, side, primaries));
                *named += listed.len();
                self.within_names(rules, *named)?;
                if listed.is_empty() {
                    let (side, kind) = (side.name, &kind.kind.kind);
                    let place = if from.is_empty() { String::new() } else { format!(" in namespace {from}") };
                    reading.lack(&format!("no {side} {kind}{place} matches its selector"));
                }
                for object in listed {
                    let name = rules.rewrite_name(&object, primaries).map_err(broken)?;
                    objects.push((object, name));
                }
            }
        }
        Ok(objects)
    }

    /// Refuses what one entry may not ask for, before any of it is read.
    fn within_names(&self, rules: &Related, found: usize) -> Result<(), ReadError> {
        let most = self.rules.budget.names;
        if found <= most {
            return Ok(());
        }
        let at = rules.at().to_owned();
        let source = RelatedError::TooMany { at, what: "names", found, most, flag: "--max-related-names" };
        Err(ReadError::Rules { identifier: rules.identifier.clone(), source })
    }

    fn too_many(&self, rules: &Related, found: usize) -> ReadError {
        let (at, most) = (rules.at().to_owned(), self.rules.budget.objects);
        let what = "related objects of one order";
        let source = RelatedError::TooMany { at, what, found, most, flag: "--max-related-objects" };
        ReadError::Rules { identifier: rules.identifier.clone(), source }
    }

    /// Refuses objects for which the workspace has no room, before they are decoded.
    fn within_bytes(&self, reading: &ReadPass<'_>, bytes: usize) -> Result<(), ReadError> {
        let most = self.rules.budget.cached_bytes;
        let total = reading.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let (at, identifier) = (reading.rules.at(), &reading.rules.identifier);
        self.shared.related.reserve_bytes(&self.user, total, most).map_err(|found| {
            let what = "bytes of related objects of this workspace";
            let source = RelatedError::TooMany { at: at.to_owned(), what, found, most, flag: CACHED_BYTES };
            ReadError::Rules { identifier: identifier.clone(), source }
        })
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
            self.within_bytes(reading, object.as_ref().map_or(0, Object::kept))?;
            return object.as_ref().map(Object::read).transpose().map_err(|source| reading.failed(side, &gvr, source));
        }
        let asked = watches.asked(side, &gvr, &scope.0);
        let object = match self.client(side).get_served(&resource(&kind.kind), Some(namespace), name).await {
            Err(error) if error.is_not_found() && !self.is_served(&reading.rules.identifier, side, &gvr).await? => {
                return Err(no_kind(reading.rules, side, &gvr));
            }
            object => object.map_err(|source| reading.failed(side, &gvr, source))?,
        };
        self.within_bytes(reading, object.as_ref().and_then(Object::from_value).map_or(0, |object| object.kept()))?;
        if let Some(asked) = asked {
            asked.learn(&scope, name, object.as_ref());
        }
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
            self.within_names(reading.rules, objects.len())?;
            self.within_bytes(reading, objects.iter().map(Object::kept).sum())?;
            let objects = objects.iter().map(Object::read).collect::<Result<Vec<_>, _>>();
            objects.map_err(|source| reading.failed(side, &gvr, source))?
        } else {
            let (all, asked) = (ListOptions::default(), watches.asked(side, &gvr, &scope.0));
            let all = self.client(side).list_compact(&resource(&kind.kind), Some(namespace), &all).await;
            let failed = |source| reading.failed(side, &gvr, source);
            let mut all = all.map_err(failed)?;
            all.retain(|object| selector.matches_object(&object.value()));
            self.within_names(reading.rules, all.len())?;
            self.within_bytes(reading, all.iter().map(Object::kept).sum())?;
            let objects = all.iter().map(Object::read).collect::<Result<Vec<_>, _>>().map_err(failed)?;
            if let Some(asked) = asked {
                asked.learn_list(&scope, selector, &objects);
            }
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

    /// Whether a server has a resource, as it says now.
    async fn is_served(&self, identifier: &str, side: Side, gvr: &Gvr) -> Result<bool, ReadError> {
        let found = self.shared.related.kinds.ask(side, self.client(side), gvr).await;
        found.map(|kind| kind.is_some()).map_err(|source| ReadError::of(identifier, side, gvr, source))
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

    /// Whether the entry carries an object: it may reach it, and it is no credential of a cluster.
    fn carries(&self, object: &Value, side: Side, primaries: Primaries<'_>) -> bool {
        let rules = self.rules;
        if let Some(type_) = rules.refused_type(object) {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let at = rules.at().trim_end_matches(".object");
            self.lack(&format!(
                "Secret {name} is of type {type_}, a credential of its cluster: it travels only if {at}.secretTypes lists that type"
            ));
            return false;
        }
        side != SERVICE_SIDE || access::denies(rules.access, object, primaries.local, rules.given).is_none()
    }

    /// What is said of an object that is not there. Whether one exists that is not to be handed out is not said.
    fn absence(&self, at: &ObjectAddress) -> String {
        match self.rules.access {
            None | Some(Access::Any) => format!("{at} does not exist"),
            Some(access) => format!("{at} does not exist, or is none that access {access:?} hands out"),
        }
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
