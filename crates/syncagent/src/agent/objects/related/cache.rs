//! What is known of related objects of one kind on one side.
//!
//! A watch reports everything there is, but only what some primary cares about is kept: the cost grows with the primaries, not with the
//! cluster. What nobody cared about before is read once from the server, and kept fresh by the watch from then on.

use std::collections::{BTreeMap, HashMap, HashSet};

use carrick_client::Object;
use carrick_client::watch::Event;

use super::keys::{ClusterNamespace, PrimaryKey};
use super::marked::Marked;
use crate::rules::provenance::Provenance;
use crate::rules::selector::Selector;

/// What the cache knows.
#[derive(Debug, PartialEq)]
pub(in crate::agent::objects) enum Answer<T> {
    /// This is the current state.
    Known(T),
    /// The server must be asked once.
    Unknown,
    /// The server must be asked each time: there is no watch.
    Blind,
}

/// One object that somebody cares about, there or not.
#[derive(Default)]
struct CachedObject {
    object: Option<Object>,
    /// Whether that is current; otherwise the server must be asked.
    known: bool,
    users: HashSet<PrimaryKey>,
    /// In which round the watch reported it last.
    round: u64,
    /// The version of its deletion: what is not newer came too late.
    gone: Option<u64>,
    /// The last version before a list lacked it: answers that are not newer came too late. An old list may lack what the watch reports
    /// next.
    unlisted: Option<u64>,
}

/// A selection of objects that somebody cares about.
struct Selection {
    selector: Selector,
    /// Whether all objects that match are in slots.
    complete: bool,
    users: HashSet<PrimaryKey>,
    round: u64,
}

/// Objects of one kind that somebody cares about.
#[derive(Default)]
pub(super) struct Cache {
    slots: HashMap<ClusterNamespace, BTreeMap<String, CachedObject>>,
    queries: HashMap<ClusterNamespace, Vec<Selection>>,
    /// Copies that somebody made for a primary, whether or not anybody cares about them.
    marked: Marked,
    /// Who asked for marked objects while no watch knew, by endpoint.
    waiting: HashMap<String, HashSet<PrimaryKey>>,
    endpoints: HashMap<String, EndpointWatch>,
    /// Grows with every list, to know what was reported since.
    round: u64,
}

/// The watch of one endpoint.
#[derive(Default)]
struct EndpointWatch {
    begun: u64,
    synced: bool,
    failing: bool,
}

impl Cache {
    /// One object, in which the user is interested from now on.
    pub fn get(
        &mut self,
        user: &PrimaryKey,
        endpoint: &str,
        scope: &ClusterNamespace,
        name: &str,
    ) -> Answer<Option<Object>> {
        let (live, round) = (self.is_live(endpoint), self.round);
        let slot = self.slots.entry(scope.clone()).or_default().entry(name.to_owned());
        let slot = slot.or_insert_with(|| CachedObject { round, ..CachedObject::default() });
        slot.users.insert(user.clone());
        match (live, slot.known) {
            (false, _) => Answer::Blind,
            (true, false) => Answer::Unknown,
            (true, true) => Answer::Known(slot.object.clone()),
        }
    }

    /// All objects that match, in which the user is interested from now on.
    pub fn list(
        &mut self,
        user: &PrimaryKey,
        endpoint: &str,
        scope: &ClusterNamespace,
        selector: &Selector,
    ) -> Answer<Vec<Object>> {
        let (live, round) = (self.is_live(endpoint), self.round);
        let queries = self.queries.entry(scope.clone()).or_default();
        let at = queries.iter().position(|query| query.selector == *selector).unwrap_or_else(|| {
            queries.push(Selection { selector: selector.clone(), complete: false, users: HashSet::new(), round });
            queries.len() - 1
        });
        queries[at].users.insert(user.clone());
        match (live, queries[at].complete) {
            (false, _) => Answer::Blind,
            (true, false) => Answer::Unknown,
            (true, true) => {
                let objects = self.slots.get(scope).into_iter().flat_map(BTreeMap::values);
                let objects = objects.filter_map(|slot| slot.object.clone());
                Answer::Known(objects.filter(|object| selector.matches(&object.labels())).collect())
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

    /// Takes in what the server answered about one object.
    pub fn learn(&mut self, scope: &ClusterNamespace, name: &str, object: Option<Object>) {
        let round = self.round;
        let Some(slot) = self.slots.get_mut(scope).and_then(|slots| slots.get_mut(name)) else { return };
        match object {
            Some(object) => slot.answer(object, round),
            // What the watch reported meanwhile is newer.
            None if slot.known => {}
            None => slot.vanish(round),
        }
    }

    /// Takes in a list from the server.
    pub fn learn_list(&mut self, scope: &ClusterNamespace, selector: &Selector, objects: Vec<Object>) {
        let round = self.round;
        for object in objects {
            let slots = self.slots.entry(scope.clone()).or_default();
            slots.entry(object.name.to_string()).or_default().answer(object, round);
        }
        let queries = self.queries.get_mut(scope).into_iter().flatten();
        for query in queries.filter(|query| query.selector == *selector) {
            query.complete = true;
        }
    }

    /// The server must be asked again about an object.
    pub fn doubt(&mut self, scope: &ClusterNamespace, name: &str) {
        if let Some(slot) = self.slots.get_mut(scope).and_then(|slots| slots.get_mut(name)) {
            slot.known = false;
        }
    }

    /// The server must be asked again about everything in a cluster.
    pub fn doubt_cluster(&mut self, cluster: &str) {
        for (_, slots) in self.slots.iter_mut().filter(|(scope, _)| scope.0 == cluster) {
            for slot in slots.values_mut() {
                slot.known = false;
            }
        }
        for (_, queries) in self.queries.iter_mut().filter(|(scope, _)| scope.0 == cluster) {
            for query in queries {
                query.complete = false;
            }
        }
    }

    /// A user does not care about an object any more.
    pub fn leave(&mut self, user: &PrimaryKey, scope: &ClusterNamespace, name: &str) {
        if let Some(slot) = self.slots.get_mut(scope).and_then(|slots| slots.get_mut(name)) {
            slot.users.remove(user);
        }
        self.tidy(scope, name);
    }

    /// A user does not care about the objects that match any more.
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

    /// Whether nobody cares about anything.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.queries.is_empty()
    }

    /// Takes in one event of the watch of an endpoint, and says who cares. `serves` says whether the endpoint serves a cluster.
    pub fn apply(&mut self, endpoint: &str, event: &Event, serves: impl Fn(&str) -> bool) -> HashSet<PrimaryKey> {
        match event {
            Event::Begin => {
                self.round += 1;
                self.watch(endpoint).begun = self.round;
                HashSet::new()
            }
            Event::Listed(object) | Event::Applied(object) => self.upsert(object),
            Event::Deleted(object) => self.remove(object),
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
        self.endpoints.entry(endpoint.to_owned()).or_default()
    }

    fn is_live(&self, endpoint: &str) -> bool {
        self.endpoints.get(endpoint).is_some_and(|watch| watch.synced && !watch.failing)
    }

    /// Who waited for the watch of an endpoint and can be requeued now.
    fn waited(&mut self, endpoint: &str) -> HashSet<PrimaryKey> {
        if self.is_live(endpoint) { self.waiting.remove(endpoint).unwrap_or_default() } else { HashSet::new() }
    }

    fn upsert(&mut self, object: &Object) -> HashSet<PrimaryKey> {
        let scope = (object.cluster.to_string(), object.namespace.to_string());
        let labels = object.labels();
        self.marked.set(&scope, &object.name, Provenance::key_of(&labels).as_deref(), self.round);
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
        slot.renew(object.clone(), round);
        if before == slot.object.as_ref().map(|object| object.resource_version.clone()) {
            return HashSet::new();
        }
        users.extend(slot.users.iter().cloned());
        self.tidy(&scope, &object.name);
        users
    }

    fn remove(&mut self, object: &Object) -> HashSet<PrimaryKey> {
        let scope = (object.cluster.to_string(), object.namespace.to_string());
        let round = self.round;
        self.marked.remove(&scope, &object.name);
        let Some(slot) = self.slots.get_mut(&scope).and_then(|slots| slots.get_mut(&*object.name)) else {
            return HashSet::new();
        };
        if slot.object.as_ref().is_some_and(|known| is_newer(known, object)) {
            return HashSet::new();
        }
        slot.vanish(round);
        slot.gone = version(object).max(slot.unlisted).max(slot.gone);
        let users = slot.users.clone();
        self.tidy(&scope, &object.name);
        users
    }

    /// A list is complete: what was known before and is not in it does not exist any more.
    fn finish(&mut self, endpoint: &str, serves: impl Fn(&str) -> bool) -> HashSet<PrimaryKey> {
        let round = self.round;
        let watch = self.watch(endpoint);
        watch.synced = true;
        let begun = watch.begun;
        self.marked.finish(begun, &serves);
        let mut users = self.waited(endpoint);
        let mut gone = Vec::new();
        for (scope, slots) in self.slots.iter_mut().filter(|(scope, _)| serves(&scope.0)) {
            for (name, slot) in slots.iter_mut().filter(|(_, slot)| slot.round < begun) {
                if slot.object.is_some() {
                    users.extend(slot.users.iter().cloned());
                }
                slot.vanish(round);
                gone.push((scope.clone(), name.clone()));
            }
        }
        for (_, queries) in self.queries.iter_mut().filter(|(scope, _)| serves(&scope.0)) {
            for query in queries.iter_mut().filter(|query| query.round < begun) {
                query.complete = true;
            }
        }
        for (scope, name) in &gone {
            self.tidy(scope, name);
        }
        users
    }

    /// Forgets an object about which nobody cares.
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
    /// Takes in what the watch says.
    fn renew(&mut self, object: Object, round: u64) {
        self.round = round;
        self.known = true;
        let too_late = is_at_most(&object, self.gone);
        if !too_late && self.object.as_ref().is_none_or(|known| !is_newer(known, &object)) {
            self.object = Some(object);
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
        self.unlisted = self.object.take().as_ref().and_then(version).max(self.unlisted);
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
mod tests {
    use super::*;
    use crate::api::{LabelSelector, RELATED_IDENTIFIER, RELATED_OWNER};
    use crate::rules::metadata::SourceKey;
    use serde_json::json;

    fn object(name: &str, version: u64, label: &str) -> Object {
        let metadata = json!({"name": name, "namespace": "ns", "resourceVersion": version.to_string(),
            "annotations": {"kcp.io/cluster": "c"}, "labels": {"l": label}});
        Object::from_value(&json!({"metadata": metadata, "version": version})).unwrap()
    }

    fn user(name: &str) -> PrimaryKey {
        ("pr".into(), SourceKey { cluster: "c".into(), namespace: "ns".into(), name: name.into() })
    }

    fn scope() -> ClusterNamespace {
        ("c".into(), "ns".into())
    }

    fn selector(label: &str) -> Selector {
        let labels = [("l".to_owned(), label.to_owned())].into();
        Selector::compile(&LabelSelector { match_labels: labels, ..LabelSelector::default() }).unwrap()
    }

    fn live() -> Cache {
        let mut cache = Cache::default();
        for event in [Event::Begin, Event::Listed(object("other", 1, "x")), Event::Synced] {
            assert!(cache.apply("e", &event, |_| true).is_empty());
        }
        assert!(cache.is_empty(), "nobody cares");
        cache
    }

    fn version_in(answer: Answer<Option<Object>>) -> Option<String> {
        match answer {
            Answer::Known(object) => object.map(|object| object.resource_version.to_string()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_object_is_asked_for_once_and_then_followed() {
        let mut cache = live();
        let a = &user("a");
        assert_eq!(cache.get(a, "e", &scope(), "s"), Answer::Unknown);
        cache.learn(&scope(), "s", Some(object("s", 5, "x")));
        assert_eq!(version_in(cache.get(a, "e", &scope(), "s")), Some("5".into()));
        assert!(cache.apply("e", &Event::Applied(object("s", 4, "x")), |_| true).is_empty(), "an old event is ignored");
        assert_eq!(cache.apply("e", &Event::Applied(object("s", 6, "x")), |_| true), [a.clone()].into());
        assert_eq!(version_in(cache.get(a, "e", &scope(), "s")), Some("6".into()));
        assert_eq!(cache.apply("e", &Event::Deleted(object("s", 7, "x")), |_| true), [a.clone()].into());
        assert_eq!(version_in(cache.get(a, "e", &scope(), "s")), None);
        cache.learn(&scope(), "s", Some(object("s", 6, "x")));
        assert_eq!(version_in(cache.get(a, "e", &scope(), "s")), None, "that answer came too late");
        assert_eq!(cache.apply("e", &Event::Applied(object("s", 8, "x")), |_| true), [a.clone()].into());
        cache.doubt(&scope(), "s");
        assert_eq!(cache.get(a, "e", &scope(), "s"), Answer::Unknown);
        cache.leave(a, &scope(), "s");
        assert!(cache.is_empty());
    }

    #[test]
    fn what_the_watch_said_meanwhile_wins_over_an_answer() {
        let mut cache = live();
        assert_eq!(cache.get(&user("a"), "e", &scope(), "s"), Answer::Unknown);
        cache.apply("e", &Event::Applied(object("s", 6, "x")), |_| true);
        cache.learn(&scope(), "s", None);
        assert_eq!(version_in(cache.get(&user("a"), "e", &scope(), "s")), Some("6".into()));
        cache.learn(&scope(), "s", Some(object("s", 5, "x")));
        assert_eq!(version_in(cache.get(&user("a"), "e", &scope(), "s")), Some("6".into()));
    }

    #[test]
    fn a_list_is_asked_for_once_and_then_followed() {
        let mut cache = live();
        let (a, x) = (&user("a"), &selector("x"));
        assert_eq!(cache.list(a, "e", &scope(), x), Answer::Unknown);
        cache.learn_list(&scope(), x, vec![object("s", 5, "x")]);
        let names = |cache: &mut Cache| match cache.list(a, "e", &scope(), x) {
            Answer::Known(objects) => objects.iter().map(|object| object.name.to_string()).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        assert_eq!(names(&mut cache), ["s"]);
        assert_eq!(cache.apply("e", &Event::Applied(object("t", 6, "x")), |_| true), [a.clone()].into());
        assert!(cache.apply("e", &Event::Applied(object("u", 7, "y")), |_| true).is_empty());
        assert_eq!(names(&mut cache), ["s", "t"]);
        assert!(matches!(cache.get(a, "e", &scope(), "t"), Answer::Known(Some(_))), "what was found is followed");
        assert_eq!(cache.apply("e", &Event::Applied(object("t", 8, "y")), |_| true), [a.clone()].into());
        assert_eq!(names(&mut cache), ["s"]);
        cache.leave(a, &scope(), "t");
        cache.leave_list(a, &scope(), x);
        assert!(cache.is_empty());
    }

    #[test]
    fn a_new_list_finds_what_vanished_but_not_what_came_meanwhile() {
        let mut cache = live();
        for name in ["s", "t"] {
            cache.get(&user(name), "e", &scope(), name);
            cache.learn(&scope(), name, Some(object(name, 5, "x")));
        }
        cache.apply("e", &Event::Begin, |_| true);
        cache.get(&user("u"), "e", &scope(), "u");
        cache.learn(&scope(), "u", Some(object("u", 9, "x")));
        cache.apply("e", &Event::Listed(object("s", 5, "x")), |_| true);
        assert_eq!(cache.apply("e", &Event::Synced, |_| true), [user("t")].into());
        assert_eq!(version_in(cache.get(&user("u"), "e", &scope(), "u")), Some("9".into()));
        assert_eq!(version_in(cache.get(&user("t"), "e", &scope(), "t")), None);
        cache.apply("e", &Event::Begin, |_| true);
        assert!(
            cache.apply("e", &Event::Synced, |_| false).is_empty(),
            "clusters of other endpoints are not concerned"
        );
    }

    #[test]
    fn what_an_old_list_lacks_comes_back_with_the_watch() {
        let mut cache = live();
        let a = &user("a");
        cache.get(a, "e", &scope(), "s");
        cache.apply("e", &Event::Applied(object("s", 5, "x")), |_| true);
        cache.apply("e", &Event::Begin, |_| true);
        assert_eq!(cache.apply("e", &Event::Synced, |_| true), [a.clone()].into());
        assert_eq!(version_in(cache.get(a, "e", &scope(), "s")), None);
        cache.learn(&scope(), "s", Some(object("s", 5, "x")));
        assert_eq!(version_in(cache.get(a, "e", &scope(), "s")), None, "the answer may be older than the list");
        assert_eq!(cache.apply("e", &Event::Applied(object("s", 5, "x")), |_| true), [a.clone()].into());
        assert_eq!(version_in(cache.get(a, "e", &scope(), "s")), Some("5".into()), "the watch goes on after the list");
    }

    #[test]
    fn marked_objects_are_known_although_nobody_cares_about_them() {
        let mut cache = Cache::default();
        let marked = |name: &str, version: u64| {
            let metadata = json!({"name": name, "namespace": "ns", "resourceVersion": version.to_string(),
                "annotations": {"kcp.io/cluster": "c"}, "labels": {RELATED_OWNER: "o", RELATED_IDENTIFIER: "i"}});
            Object::from_value(&json!({"metadata": metadata})).unwrap()
        };
        let a = &user("a");
        assert_eq!(cache.marked(a, "e", "c", "o/i"), None, "nothing is known without a watch");
        for event in [Event::Begin, Event::Listed(marked("a", 1)), Event::Listed(marked("b", 2))] {
            assert!(cache.apply("e", &event, |_| true).is_empty());
        }
        assert_eq!(cache.apply("e", &Event::Synced, |_| true), [a.clone()].into(), "who asked too early is requeued");
        let names = |cache: &mut Cache| -> Vec<String> {
            cache.marked(a, "e", "c", "o/i").unwrap().into_iter().map(|(_, name)| name).collect()
        };
        assert_eq!(names(&mut cache), ["a", "b"]);
        cache.apply("e", &Event::Deleted(marked("a", 3)), |_| true);
        cache.apply("e", &Event::Applied(object("b", 4, "x")), |_| true);
        cache.apply("e", &Event::Applied(marked("d", 5)), |_| true);
        assert_eq!(names(&mut cache), ["d"]);
        for event in [Event::Begin, Event::Synced] {
            assert!(cache.apply("e", &event, |_| true).is_empty());
        }
        assert!(names(&mut cache).is_empty() && cache.is_empty());
    }

    #[test]
    fn without_a_watch_the_server_is_asked_each_time() {
        let mut cache = Cache::default();
        let a = &user("a");
        assert_eq!(cache.get(a, "e", &scope(), "s"), Answer::Blind);
        cache.apply("e", &Event::Begin, |_| true);
        cache.apply("e", &Event::Synced, |_| true);
        assert_eq!(version_in(cache.get(a, "e", &scope(), "s")), None);
        let error = carrick_client::Error::from(carrick_client::Status::default());
        cache.apply("e", &Event::Failing(error), |_| true);
        assert_eq!(cache.get(a, "e", &scope(), "s"), Answer::Blind);
        cache.apply("e", &Event::Recovered, |_| true);
        assert_eq!(version_in(cache.get(a, "e", &scope(), "s")), None);
        cache.lose("e");
        assert_eq!(cache.list(a, "e", &scope(), &selector("x")), Answer::Blind);
    }

    #[test]
    fn what_was_deleted_is_not_brought_back_by_an_older_event() {
        let mut cache = live();
        let a = &user("a");
        cache.get(a, "e", &scope(), "s");
        cache.learn(&scope(), "s", Some(object("s", 5, "x")));
        cache.apply("e", &Event::Deleted(object("s", 7, "x")), |_| true);
        cache.apply("e", &Event::Applied(object("s", 6, "x")), |_| true);
        assert_eq!(version_in(cache.get(a, "e", &scope(), "s")), None);
    }

    #[test]
    fn a_cluster_that_moved_is_asked_about_anew() {
        let mut cache = live();
        let a = &user("a");
        cache.list(a, "e", &scope(), &selector("x"));
        cache.learn_list(&scope(), &selector("x"), vec![object("s", 5, "x")]);
        assert!(matches!(cache.list(a, "e", &scope(), &selector("x")), Answer::Known(_)));
        cache.doubt_cluster("c");
        assert_eq!(cache.list(a, "e", &scope(), &selector("x")), Answer::Unknown);
    }
}
