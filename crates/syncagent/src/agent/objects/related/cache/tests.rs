//! What the cache answers, event by event.

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

fn live() -> RelatedCache {
    let mut cache = RelatedCache::default();
    for event in [Event::Begin, Event::Listed(object("other", 1, "x")), Event::Synced] {
        assert!(cache.apply("e", &event, |_| ServedBy::Here).is_empty());
    }
    assert!(cache.is_empty(), "nobody needs it");
    cache
}

fn learn(cache: &mut RelatedCache, name: &str, object: Option<Object>) {
    let origin = cache.origin("e");
    cache.learn("e", origin, &scope(), name, object);
}

fn learn_list(cache: &mut RelatedCache, selector: &Selector, objects: Vec<Object>) {
    let origin = cache.origin("e");
    cache.learn_list("e", origin, &scope(), selector, objects);
}

fn version_in(answer: CacheAnswer<Option<Object>>) -> Option<String> {
    match answer {
        CacheAnswer::Known(object) => object.map(|object| object.resource_version.to_string()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_object_is_asked_for_once_and_then_followed() {
    let mut cache = live();
    let a = &user("a");
    assert_eq!(cache.get(a, "e", &scope(), "s"), CacheAnswer::Unknown);
    learn(&mut cache, "s", Some(object("s", 5, "x")));
    assert_eq!(version_in(cache.get(a, "e", &scope(), "s")), Some("5".into()));
    assert!(
        cache.apply("e", &Event::Applied(object("s", 4, "x")), |_| ServedBy::Here).is_empty(),
        "an old event is ignored"
    );
    assert_eq!(cache.apply("e", &Event::Applied(object("s", 6, "x")), |_| ServedBy::Here), [a.clone()].into());
    assert_eq!(version_in(cache.get(a, "e", &scope(), "s")), Some("6".into()));
    assert_eq!(cache.apply("e", &Event::Deleted(object("s", 7, "x")), |_| ServedBy::Here), [a.clone()].into());
    assert_eq!(version_in(cache.get(a, "e", &scope(), "s")), None);
    learn(&mut cache, "s", Some(object("s", 6, "x")));
    assert_eq!(version_in(cache.get(a, "e", &scope(), "s")), None, "that answer came too late");
    assert_eq!(cache.apply("e", &Event::Applied(object("s", 8, "x")), |_| ServedBy::Here), [a.clone()].into());
    cache.doubt(&scope(), "s");
    assert_eq!(cache.get(a, "e", &scope(), "s"), CacheAnswer::Unknown);
    cache.leave(a, &scope(), "s");
    assert!(cache.is_empty());
}

#[test]
fn what_the_watch_said_meanwhile_wins_over_an_answer() {
    let mut cache = live();
    assert_eq!(cache.get(&user("a"), "e", &scope(), "s"), CacheAnswer::Unknown);
    cache.apply("e", &Event::Applied(object("s", 6, "x")), |_| ServedBy::Here);
    learn(&mut cache, "s", None);
    assert_eq!(version_in(cache.get(&user("a"), "e", &scope(), "s")), Some("6".into()));
    learn(&mut cache, "s", Some(object("s", 5, "x")));
    assert_eq!(version_in(cache.get(&user("a"), "e", &scope(), "s")), Some("6".into()));
}

#[test]
fn a_list_is_asked_for_once_and_then_followed() {
    let mut cache = live();
    let (a, x) = (&user("a"), &selector("x"));
    assert_eq!(cache.list(a, "e", &scope(), x), CacheAnswer::Unknown);
    learn_list(&mut cache, x, vec![object("s", 5, "x")]);
    let names = |cache: &mut RelatedCache| match cache.list(a, "e", &scope(), x) {
        CacheAnswer::Known(objects) => objects.iter().map(|object| object.name.to_string()).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(names(&mut cache), ["s"]);
    assert_eq!(cache.apply("e", &Event::Applied(object("t", 6, "x")), |_| ServedBy::Here), [a.clone()].into());
    assert!(cache.apply("e", &Event::Applied(object("u", 7, "y")), |_| ServedBy::Here).is_empty());
    assert_eq!(names(&mut cache), ["s", "t"]);
    assert!(matches!(cache.get(a, "e", &scope(), "t"), CacheAnswer::Known(Some(_))), "what was found is followed");
    assert_eq!(cache.apply("e", &Event::Applied(object("t", 8, "y")), |_| ServedBy::Here), [a.clone()].into());
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
        learn(&mut cache, name, Some(object(name, 5, "x")));
    }
    cache.apply("e", &Event::Begin, |_| ServedBy::Here);
    cache.get(&user("u"), "e", &scope(), "u");
    learn(&mut cache, "u", Some(object("u", 9, "x")));
    cache.apply("e", &Event::Listed(object("s", 5, "x")), |_| ServedBy::Here);
    assert_eq!(cache.apply("e", &Event::Synced, |_| ServedBy::Here), [user("t")].into());
    assert_eq!(version_in(cache.get(&user("u"), "e", &scope(), "u")), Some("9".into()));
    assert_eq!(version_in(cache.get(&user("t"), "e", &scope(), "t")), None);
    cache.apply("e", &Event::Begin, |_| ServedBy::Here);
    assert!(
        cache.apply("e", &Event::Synced, |_| ServedBy::Elsewhere).is_empty(),
        "clusters of other endpoints are not concerned"
    );
}

#[test]
fn what_an_old_list_lacks_comes_back_with_the_watch() {
    let mut cache = live();
    let a = &user("a");
    cache.get(a, "e", &scope(), "s");
    cache.apply("e", &Event::Applied(object("s", 5, "x")), |_| ServedBy::Here);
    cache.apply("e", &Event::Begin, |_| ServedBy::Here);
    assert_eq!(cache.apply("e", &Event::Synced, |_| ServedBy::Here), [a.clone()].into());
    assert_eq!(version_in(cache.get(a, "e", &scope(), "s")), None);
    learn(&mut cache, "s", Some(object("s", 5, "x")));
    assert_eq!(version_in(cache.get(a, "e", &scope(), "s")), None, "the answer may be older than the list");
    assert_eq!(cache.apply("e", &Event::Applied(object("s", 5, "x")), |_| ServedBy::Here), [a.clone()].into());
    assert_eq!(version_in(cache.get(a, "e", &scope(), "s")), Some("5".into()), "the watch goes on after the list");
}

#[test]
fn marked_objects_are_known_although_nobody_cares_about_them() {
    let mut cache = RelatedCache::default();
    let marked = |name: &str, version: u64| {
        let metadata = json!({"name": name, "namespace": "ns", "resourceVersion": version.to_string(),
            "annotations": {"kcp.io/cluster": "c"}, "labels": {RELATED_OWNER: "o", RELATED_IDENTIFIER: "i"}});
        Object::from_value(&json!({"metadata": metadata})).unwrap()
    };
    let a = &user("a");
    assert_eq!(cache.marked(a, "e", "c", "o/i"), None, "nothing is known without a watch");
    for event in [Event::Begin, Event::Listed(marked("a", 1)), Event::Listed(marked("b", 2))] {
        assert!(cache.apply("e", &event, |_| ServedBy::Here).is_empty());
    }
    assert_eq!(
        cache.apply("e", &Event::Synced, |_| ServedBy::Here),
        [a.clone()].into(),
        "who asked too early is requeued"
    );
    let names = |cache: &mut RelatedCache| -> Vec<String> {
        cache.marked(a, "e", "c", "o/i").unwrap().into_iter().map(|(_, name)| name).collect()
    };
    assert_eq!(names(&mut cache), ["a", "b"]);
    cache.apply("e", &Event::Deleted(marked("a", 3)), |_| ServedBy::Here);
    cache.apply("e", &Event::Applied(object("b", 4, "x")), |_| ServedBy::Here);
    cache.apply("e", &Event::Applied(marked("d", 5)), |_| ServedBy::Here);
    assert_eq!(names(&mut cache), ["d"]);
    for event in [Event::Begin, Event::Synced] {
        assert!(cache.apply("e", &event, |_| ServedBy::Here).is_empty());
    }
    assert!(names(&mut cache).is_empty() && cache.is_empty());
}

#[test]
fn without_a_watch_the_server_is_asked_each_time() {
    let mut cache = RelatedCache::default();
    let a = &user("a");
    assert_eq!(cache.get(a, "e", &scope(), "s"), CacheAnswer::Blind);
    cache.apply("e", &Event::Begin, |_| ServedBy::Here);
    cache.apply("e", &Event::Synced, |_| ServedBy::Here);
    assert_eq!(version_in(cache.get(a, "e", &scope(), "s")), None);
    let error = carrick_client::Error::from(carrick_client::Status::default());
    cache.apply("e", &Event::Failing(error), |_| ServedBy::Here);
    assert_eq!(cache.get(a, "e", &scope(), "s"), CacheAnswer::Blind);
    cache.apply("e", &Event::Recovered, |_| ServedBy::Here);
    assert_eq!(version_in(cache.get(a, "e", &scope(), "s")), None);
    cache.lose("e");
    assert_eq!(cache.list(a, "e", &scope(), &selector("x")), CacheAnswer::Blind);
}

#[test]
fn what_was_deleted_is_not_brought_back_by_an_older_event() {
    let mut cache = live();
    let a = &user("a");
    cache.get(a, "e", &scope(), "s");
    learn(&mut cache, "s", Some(object("s", 5, "x")));
    cache.apply("e", &Event::Deleted(object("s", 7, "x")), |_| ServedBy::Here);
    cache.apply("e", &Event::Applied(object("s", 6, "x")), |_| ServedBy::Here);
    assert_eq!(version_in(cache.get(a, "e", &scope(), "s")), None);
}

#[test]
fn a_cluster_that_moved_is_asked_about_anew() {
    let mut cache = live();
    let a = &user("a");
    cache.list(a, "e", &scope(), &selector("x"));
    learn_list(&mut cache, &selector("x"), vec![object("s", 5, "x")]);
    assert!(matches!(cache.list(a, "e", &scope(), &selector("x")), CacheAnswer::Known(_)));
    assert_eq!(cache.settle("c", "e"), (false, [a.clone()].into()));
    assert_eq!(cache.list(a, "e", &scope(), &selector("x")), CacheAnswer::Unknown);
}

/// A cache that knows `s` at version 1000 of endpoint `e`, and `t` as deleted there at 1001.
fn known_at_high_versions(a: &PrimaryKey) -> RelatedCache {
    let mut cache = live();
    for name in ["s", "t"] {
        cache.get(a, "e", &scope(), name);
        cache.apply("e", &Event::Applied(object(name, 1000, "x")), |_| ServedBy::Here);
    }
    cache.apply("e", &Event::Deleted(object("t", 1001, "x")), |_| ServedBy::Here);
    cache
}

#[test]
fn versions_of_the_endpoint_that_a_cluster_moved_to_are_not_compared_with_those_of_the_old_one() {
    let a = &user("a");
    for late in [Event::Applied(object("s", 1002, "x")), Event::Deleted(object("s", 1002, "x"))] {
        let mut cache = known_at_high_versions(a);
        let at = |home: &'static str, endpoint: &'static str| {
            move |_: &str| if home == endpoint { ServedBy::Here } else { ServedBy::Elsewhere }
        };
        let asked = cache.origin("e");
        // Before anybody knows of the move, the old endpoint counts.
        assert!(cache.apply("f", &Event::Applied(object("s", 6, "x")), at("e", "f")).is_empty());
        assert_eq!(version_in(cache.get(a, "e", &scope(), "s")), Some("1000".into()));
        assert_eq!(cache.settle("c", "f"), (true, [a.clone()].into()));
        cache.apply("f", &Event::Begin, at("f", "f"));
        cache.apply("f", &Event::Synced, |_| ServedBy::Elsewhere);
        assert_eq!(cache.get(a, "f", &scope(), "s"), CacheAnswer::Unknown);
        // What comes late from the old endpoint says nothing, neither from its watch nor as an answer.
        assert!(cache.apply("e", &late, at("f", "e")).is_empty());
        cache.learn("f", asked, &scope(), "s", Some(object("s", 1003, "x")));
        assert_eq!(cache.get(a, "f", &scope(), "s"), CacheAnswer::Unknown);
        for name in ["s", "t"] {
            let users = cache.apply("f", &Event::Applied(object(name, 7, "x")), at("f", "f"));
            assert_eq!(users, [a.clone()].into(), "{name} is new here");
            assert_eq!(version_in(cache.get(a, "f", &scope(), name)), Some("7".into()));
        }
        // And back again, where versions are high: those of the first stay are not compared either.
        assert!(cache.settle("c", "e").0);
        cache.apply("e", &Event::Applied(object("t", 1000, "x")), at("e", "e"));
        assert_eq!(version_in(cache.get(a, "e", &scope(), "t")), Some("1000".into()));
        assert!(!cache.settle("c", "e").0, "once it is known there is nothing new about it");
    }
}

#[test]
fn after_a_server_went_back_its_older_objects_win() {
    let a = &user("a");
    let mut cache = known_at_high_versions(a);
    let before = cache.origin("e");
    let list = [
        Event::Begin,
        Event::WentBack { known: 1001, found: 900 },
        Event::Listed(object("s", 800, "x")),
        Event::Listed(object("t", 801, "x")),
    ];
    let told: Vec<_> = list.iter().map(|event| cache.apply("e", event, |_| ServedBy::Here).len()).collect();
    assert_eq!(told, [0, 0, 1, 1], "both are new");
    cache.apply("e", &Event::Synced, |_| ServedBy::Here);
    for (name, version) in [("s", "800"), ("t", "801")] {
        assert_eq!(version_in(cache.get(a, "e", &scope(), name)), Some(version.into()));
    }
    cache.learn("e", before, &scope(), "s", Some(object("s", 1005, "x")));
    assert_eq!(version_in(cache.get(a, "e", &scope(), "s")), Some("800".into()), "an answer of the life before");
    assert_eq!(cache.apply("e", &Event::Applied(object("s", 901, "x")), |_| ServedBy::Here).len(), 1);
    assert!(cache.apply("e", &Event::Applied(object("s", 900, "x")), |_| ServedBy::Here).is_empty(), "late as ever");
}
