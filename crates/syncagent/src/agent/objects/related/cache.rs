//! What is known of related objects of one kind on one side.
//!
//! A watch reports every object, but only those that some primary needs are kept: the cost grows with the primaries, not with the cluster.
//! An object that is needed for the first time is read once from the server, and kept up to date by the watch from then on.
//!
//! Versions are compared to sort out what arrives late. They say nothing across endpoints, whose servers count for themselves, nor across
//! the lives of a server that was restored from a backup: everything carries the `Origin` of its versions.

use std::collections::{BTreeMap, HashMap, HashSet};

use carrick_client::Object;
use carrick_client::watch::Event;

use super::keys::{ClusterNamespace, PrimaryKey};
use super::marked::MarkedObjects;
use crate::rules::provenance::Provenance;
use crate::rules::selector::Selector;

/// What the cache knows.
#[derive(Debug, PartialEq)]
pub(in crate::agent::objects) enum CacheAnswer<T> {
    /// This is the current state.
    Known(T),
    /// The server must be asked once.
    Unknown,
    /// The server must be asked each time: there is no watch.
    Blind,
}

/// One life of the server behind one endpoint: only versions of the same origin can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::agent::objects) struct Origin(u32);

/// Who serves a cluster, as seen from one endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServedBy {
    /// This endpoint.
    Here,
    /// Another one: the cluster has left, or it is about to come.
    Elsewhere,
    /// Nobody knows yet.
    Nobody,
}

/// One object that some primary needs, whether it exists or not.
#[derive(Default)]
struct CachedObject {
    object: Option<Object>,
    /// Whether that is current; otherwise the server must be asked.
    known: bool,
    users: HashSet<PrimaryKey>,
    /// Where its versions come from.
    origin: Origin,
    /// Whether the object is still of another origin, so that whatever comes is better.
    foreign: bool,
    /// In which round the watch reported it last.
    round: u64,
    /// The version of its deletion: whatever is not newer arrived too late.
    gone: Option<u64>,
    /// The last version before a list lacked it: answers that are not newer arrived too late. A list may be old and lack what the watch
    /// reports next.
    unlisted: Option<u64>,
}

/// A selection of objects that some primary needs.
struct Selection {
    selector: Selector,
    /// Whether all objects that match are cached.
    complete: bool,
    users: HashSet<PrimaryKey>,
    /// Who said last what matches.
    origin: Origin,
    round: u64,
}

/// Objects of one kind that some primary needs.
#[derive(Default)]
pub(super) struct RelatedCache {
    slots: HashMap<ClusterNamespace, BTreeMap<String, CachedObject>>,
    queries: HashMap<ClusterNamespace, Vec<Selection>>,
    /// Copies that are marked as made for a primary, whether or not any primary needs them.
    marked: MarkedObjects,
    /// Who asked for marked objects while no watch knew, by endpoint.
    waiting: HashMap<String, HashSet<PrimaryKey>>,
    endpoints: HashMap<String, EndpointWatch>,
    /// Grows with every list, to know what was reported since.
    round: u64,
    /// The last origin that was given out.
    origins: u32,
}

/// The watch of one endpoint.
#[derive(Default)]
struct EndpointWatch {
    origin: Origin,
    begun: u64,
    synced: bool,
    failing: bool,
}

impl RelatedCache {
    /// One object, which the user needs from now on.
    pub fn get(
        &mut self,
        user: &PrimaryKey,
        endpoint: &str,
        scope: &ClusterNamespace,
        name: &str,
    ) -> CacheAnswer<Option<Object>> {
        let (live, round) = (self.is_live(endpoint), self.round);
        let slot = self.slots.entry(scope.clone()).or_default().entry(name.to_owned());
        let slot = slot.or_insert_with(|| CachedObject { round, ..CachedObject::default() });
        slot.users.insert(user.clone());
        match (live, slot.known) {
            (false, _) => CacheAnswer::Blind,
            (true, false) => CacheAnswer::Unknown,
            (true, true) => CacheAnswer::Known(slot.object.clone()),
        }
    }

    /// All objects that match, which the user needs from now on.
    pub fn list(
        &mut self,
        user: &PrimaryKey,
        endpoint: &str,
        scope: &ClusterNamespace,
        selector: &Selector,
    ) -> CacheAnswer<Vec<Object>> {
        let (live, round) = (self.is_live(endpoint), self.round);
        let queries = self.queries.entry(scope.clone()).or_default();
        let at = queries.iter().position(|query| query.selector == *selector).unwrap_or_else(|| {
            let (selector, origin) = (selector.clone(), Origin::default());
            queries.push(Selection { selector, complete: false, users: HashSet::new(), origin, round });
            queries.len() - 1
        });
        queries[at].users.insert(user.clone());
        match (live, queries[at].complete) {
            (false, _) => CacheAnswer::Blind,
            (true, false) => CacheAnswer::Unknown,
            (true, true) => {
                let objects = self.slots.get(scope).into_iter().flat_map(BTreeMap::values);
                let objects = objects.filter_map(|slot| slot.object.clone());
                CacheAnswer::Known(objects.filter(|object| selector.matches(&object.labels())).collect())
            }
        }
    }

    /// Namespaces and names of objects that carry the marks of an entry of a primary. None if no watch knows yet; the user is requeued
    /// once one does.
    pub fn marked(
        &mut self,
        user: &PrimaryKey,
        endpoint: &str,
        cluster: &str,
        owner: &str,
    ) -> Option<Vec<(String, String)>> {
        if self.is_live(endpoint) {
            return Some(self.marked.of(cluster, owner));
        }
        self.waiting.entry(endpoint.to_owned()).or_default().insert(user.clone());
        None
    }

    /// The origin of what an endpoint answers now.
    pub fn origin(&mut self, endpoint: &str) -> Origin {
        self.watch(endpoint).origin
    }

    /// Takes in what the server answered about one object. An answer of another origin than the endpoint has now came too late.
    pub fn learn(
        &mut self,
        endpoint: &str,
        asked: Origin,
        scope: &ClusterNamespace,
        name: &str,
        object: Option<Object>,
    ) {
        if self.origin(endpoint) != asked {
            return;
        }
        let round = self.round;
        let Some(slot) = self.slots.get_mut(scope).and_then(|slots| slots.get_mut(name)) else { return };
        slot.settle(asked);
        match object {
            Some(object) => slot.answer(object, round),
            // What the watch reported meanwhile is newer.
            None if slot.known => {}
            None => slot.vanish(round),
        }
    }

    /// Takes in a list from the server.
    pub fn learn_list(
        &mut self,
        endpoint: &str,
        asked: Origin,
        scope: &ClusterNamespace,
        selector: &Selector,
        objects: Vec<Object>,
    ) {
        if self.origin(endpoint) != asked {
            return;
        }
        let round = self.round;
        for object in objects {
            let slots = self.slots.entry(scope.clone()).or_default();
            let slot = slots.entry(object.name.to_string()).or_default();
            slot.settle(asked);
            slot.answer(object, round);
        }
        let queries = self.queries.get_mut(scope).into_iter().flatten();
        for query in queries.filter(|query| query.selector == *selector) {
            (query.complete, query.origin) = (true, asked);
        }
    }

    /// The server must be asked again about an object.
    pub fn doubt(&mut self, scope: &ClusterNamespace, name: &str) {
        if let Some(slot) = self.slots.get_mut(scope).and_then(|slots| slots.get_mut(name)) {
            slot.known = false;
        }
    }

    /// A cluster is served by an endpoint from now on: the server must be asked again about everything in it. Returns whether it was served
    /// by another one before, and who needs its objects.
    pub fn settle(&mut self, cluster: &str, endpoint: &str) -> (bool, HashSet<PrimaryKey>) {
        let origin = self.origin(endpoint);
        let (mut moved, mut users) = (false, HashSet::new());
        for (_, slots) in self.slots.iter_mut().filter(|(scope, _)| scope.0 == cluster) {
            for slot in slots.values_mut() {
                slot.known = false;
                moved |= slot.settle(origin);
                users.extend(slot.users.iter().cloned());
            }
        }
        for (_, queries) in self.queries.iter_mut().filter(|(scope, _)| scope.0 == cluster) {
            for query in queries {
                query.complete = false;
                let before = std::mem::replace(&mut query.origin, origin);
                moved |= before != origin && before != Origin::default();
                users.extend(query.users.iter().cloned());
            }
        }
        moved |= self.marked.settle(cluster, origin);
        (moved, users)
    }

    /// A user no longer needs an object.
    pub fn leave(&mut self, user: &PrimaryKey, scope: &ClusterNamespace, name: &str) {
        if let Some(slot) = self.slots.get_mut(scope).and_then(|slots| slots.get_mut(name)) {
            slot.users.remove(user);
        }
        self.tidy(scope, name);
    }

    /// A user no longer needs the objects that match.
    pub fn leave_list(&mut self, user: &PrimaryKey, scope: &ClusterNamespace, selector: &Selector) {
        let Some(queries) = self.queries.get_mut(scope) else { return };
        for query in queries.iter_mut().filter(|query| query.selector == *selector) {
            query.users.remove(user);
        }
        queries.retain(|query| !query.users.is_empty());
        if queries.is_empty() {
            self.queries.remove(scope);
        }
        let names: Vec<String> = self.slots.get(scope).into_iter().flat_map(BTreeMap::keys).cloned().collect();
        for name in &names {
            self.tidy(scope, name);
        }
    }

    /// Whether no object is needed.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.queries.is_empty()
    }

    /// Takes in one event of the watch of an endpoint, and returns who needs the object. `serves` says who serves a cluster.
    pub fn apply(&mut self, endpoint: &str, event: &Event, serves: impl Fn(&str) -> ServedBy) -> HashSet<PrimaryKey> {
        match event {
            // What an endpoint still says about a cluster that has left it is not true any more, and one that comes is listed when it is there.
            Event::Listed(object) | Event::Applied(object) | Event::Deleted(object)
                if serves(&object.cluster) == ServedBy::Elsewhere =>
            {
                HashSet::new()
            }
            Event::Begin => {
                self.round += 1;
                self.watch(endpoint).begun = self.round;
                HashSet::new()
            }
            Event::Listed(object) | Event::Applied(object) => self.upsert(endpoint, object),
            Event::Deleted(object) => self.remove(endpoint, object),
            Event::WentBack { .. } => {
                let origin = self.next_origin();
                self.watch(endpoint).origin = origin;
                HashSet::new()
            }
            Event::Synced => self.finish(endpoint, serves),
            Event::Failing(_) => {
                self.watch(endpoint).failing = true;
                HashSet::new()
            }
            Event::Recovered => {
                self.watch(endpoint).failing = false;
                self.waited(endpoint)
            }
        }
    }

    /// The watch of an endpoint has ended.
    pub fn lose(&mut self, endpoint: &str) {
        self.endpoints.remove(endpoint);
    }

    fn watch(&mut self, endpoint: &str) -> &mut EndpointWatch {
        if !self.endpoints.contains_key(endpoint) {
            let origin = self.next_origin();
            self.endpoints.insert(endpoint.to_owned(), EndpointWatch { origin, ..EndpointWatch::default() });
        }
        self.endpoints.entry(endpoint.to_owned()).or_default()
    }

    fn next_origin(&mut self) -> Origin {
        self.origins += 1;
        Origin(self.origins)
    }

    fn is_live(&self, endpoint: &str) -> bool {
        self.endpoints.get(endpoint).is_some_and(|watch| watch.synced && !watch.failing)
    }

    /// Who waited for the watch of an endpoint and can be requeued now.
    fn waited(&mut self, endpoint: &str) -> HashSet<PrimaryKey> {
        if self.is_live(endpoint) { self.waiting.remove(endpoint).unwrap_or_default() } else { HashSet::new() }
    }

    fn upsert(&mut self, endpoint: &str, object: &Object) -> HashSet<PrimaryKey> {
        let scope = (object.cluster.to_string(), object.namespace.to_string());
        let labels = object.labels();
        let origin = self.origin(endpoint);
        self.marked.set(&scope, &object.name, Provenance::key_of(&labels).as_deref(), origin, self.round);
        let queries = self.queries.get(&scope).into_iter().flatten();
        let mut users: HashSet<PrimaryKey> = queries
            .filter(|query| query.selector.matches(&labels))
            .flat_map(|query| query.users.iter().cloned())
            .collect();
        let known = self.slots.get(&scope).is_some_and(|slots| slots.contains_key(&*object.name));
        if !known && users.is_empty() {
            return users;
        }
        let round = self.round;
        let slot = self.slots.entry(scope.clone()).or_default().entry(object.name.to_string()).or_default();
        let before = slot.object.as_ref().map(|object| object.resource_version.clone());
        let elsewhere = slot.settle(origin);
        slot.renew(object.clone(), round);
        if !elsewhere && before == slot.object.as_ref().map(|object| object.resource_version.clone()) {
            return HashSet::new();
        }
        users.extend(slot.users.iter().cloned());
        self.tidy(&scope, &object.name);
        users
    }

    fn remove(&mut self, endpoint: &str, object: &Object) -> HashSet<PrimaryKey> {
        let scope = (object.cluster.to_string(), object.namespace.to_string());
        let (origin, round) = (self.origin(endpoint), self.round);
        self.marked.remove(&scope, &object.name);
        let Some(slot) = self.slots.get_mut(&scope).and_then(|slots| slots.get_mut(&*object.name)) else {
            return HashSet::new();
        };
        slot.settle(origin);
        if !slot.foreign && slot.object.as_ref().is_some_and(|known| is_newer(known, object)) {
            return HashSet::new();
        }
        slot.vanish(round);
        slot.gone = version(object).max(slot.unlisted).max(slot.gone);
        let users = slot.users.clone();
        self.tidy(&scope, &object.name);
        users
    }

    /// A list is complete: what was known before and is not in it no longer exists.
    fn finish(&mut self, endpoint: &str, serves: impl Fn(&str) -> ServedBy) -> HashSet<PrimaryKey> {
        let serves = |cluster: &str| serves(cluster) == ServedBy::Here;
        let round = self.round;
        let watch = self.watch(endpoint);
        watch.synced = true;
        let (begun, origin) = (watch.begun, watch.origin);
        self.marked.finish(begun, serves);
        let mut users = self.waited(endpoint);
        let mut gone = Vec::new();
        for (scope, slots) in self.slots.iter_mut().filter(|(scope, _)| serves(&scope.0)) {
            for (name, slot) in slots.iter_mut().filter(|(_, slot)| slot.round < begun) {
                if slot.object.is_some() {
                    users.extend(slot.users.iter().cloned());
                }
                slot.settle(origin);
                slot.vanish(round);
                gone.push((scope.clone(), name.clone()));
            }
        }
        for (_, queries) in self.queries.iter_mut().filter(|(scope, _)| serves(&scope.0)) {
            for query in queries.iter_mut().filter(|query| query.round < begun) {
                (query.complete, query.origin) = (true, origin);
            }
        }
        for (scope, name) in &gone {
            self.tidy(scope, name);
        }
        users
    }

    /// Forgets an object that nobody needs.
    fn tidy(&mut self, scope: &ClusterNamespace, name: &str) {
        let Some(slots) = self.slots.get_mut(scope) else { return };
        let Some(slot) = slots.get(name) else { return };
        let labels = slot.object.as_ref().map(Object::labels);
        let queries = self.queries.get(scope).into_iter().flatten();
        let matched = labels.is_some_and(|labels| queries.into_iter().any(|query| query.selector.matches(&labels)));
        if slot.users.is_empty() && !matched {
            slots.remove(name);
        }
        if slots.is_empty() {
            self.slots.remove(scope);
        }
    }
}

impl CachedObject {
    /// From now on its versions are those of an origin. Returns whether they were others: then nothing that comes is too late.
    fn settle(&mut self, origin: Origin) -> bool {
        if self.origin == origin {
            return false;
        }
        let known = std::mem::replace(&mut self.origin, origin) != Origin::default();
        (self.gone, self.unlisted) = (None, None);
        self.foreign = self.object.is_some();
        known
    }

    /// Takes in what the watch says.
    fn renew(&mut self, object: Object, round: u64) {
        self.round = round;
        self.known = true;
        let too_late = is_at_most(&object, self.gone);
        if !too_late && (self.foreign || self.object.as_ref().is_none_or(|known| !is_newer(known, &object))) {
            self.object = Some(object);
            self.foreign = false;
        }
    }

    /// Takes in what the server answered, which may be older than what the watch said meanwhile.
    fn answer(&mut self, object: Object, round: u64) {
        if is_at_most(&object, self.unlisted) {
            self.round = round;
            self.known = true;
        } else {
            self.renew(object, round);
        }
    }

    /// The object is not there.
    fn vanish(&mut self, round: u64) {
        self.round = round;
        self.known = true;
        let last = self.object.take();
        let comparable = !std::mem::take(&mut self.foreign);
        self.unlisted = last.as_ref().filter(|_| comparable).and_then(version).max(self.unlisted);
    }
}

fn is_at_most(object: &Object, limit: Option<u64>) -> bool {
    limit.is_some_and(|limit| version(object).is_some_and(|version| version <= limit))
}

fn is_newer(a: &Object, b: &Object) -> bool {
    matches!((version(a), version(b)), (Some(a), Some(b)) if a > b)
}

fn version(object: &Object) -> Option<u64> {
    object.resource_version.parse().ok()
}

#[cfg(test)]
mod tests;
