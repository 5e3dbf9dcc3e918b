//! The store against sequences of watch events.

use std::sync::Arc;

use carrick_client::Object;
use carrick_client::watch::Event;
use carrick_multicluster::{Change, ClusterKey, ClusterName, EndpointId, FleetStore, Key, Priority, Update};
use serde_json::json;

const A: &str = "https://a";
const B: &str = "https://b";

fn object(cluster: &str, name: &str, version: u32) -> Object {
    labelled(cluster, name, version, "none")
}

fn labelled(cluster: &str, name: &str, version: u32, label: &str) -> Object {
    Object::from_value(&json!({"metadata": {
        "name": name, "namespace": "ns", "uid": name, "resourceVersion": version.to_string(),
        "annotations": {"kcp.io/cluster": cluster}, "labels": {"l": label},
    }}))
    .unwrap()
}

type Store = FleetStore<Object>;

fn cluster(name: &str) -> ClusterName {
    name.parse().unwrap()
}

fn words(updates: Vec<Update<Object>>) -> Vec<String> {
    let mut words: Vec<String> = updates
        .into_iter()
        .map(|update| match update.change {
            Change::Added(object) => format!("+{object:?}"),
            Change::Changed { old, new } => format!("{old:?} -> {new:?}"),
            Change::Deleted(object) => format!("-{object:?}"),
        })
        .collect();
    words.sort();
    words
}

fn apply(store: &Store, endpoint: &str, events: Vec<Event>) -> Vec<String> {
    apply_with(store, endpoint, &ClusterKey::KCP, events)
}

fn apply_with(store: &Store, endpoint: &str, key: &ClusterKey, events: Vec<Event>) -> Vec<String> {
    let endpoint = EndpointId::new(endpoint);
    events.into_iter().flat_map(|event| words(store.apply(&endpoint, key, event).updates)).collect()
}

fn values(entries: Vec<(Key, Arc<Object>)>) -> Vec<Arc<Object>> {
    entries.into_iter().map(|(_, object)| object).collect()
}

fn names(objects: &[Arc<Object>]) -> Vec<String> {
    let mut names: Vec<String> = objects.iter().map(|object| format!("{}/{}", object.cluster, object.name)).collect();
    names.sort();
    names
}

#[test]
fn objects_of_the_same_name_in_different_clusters_are_different_objects() {
    let store = FleetStore::compact();
    let events =
        vec![Event::Begin, Event::Listed(object("c", "x", 1)), Event::Listed(object("d", "x", 2)), Event::Synced];
    assert_eq!(apply(&store, A, events), ["+c|ns/x@1", "+d|ns/x@2"]);
    assert_eq!(store.len(), 2);
    assert_eq!(store.get("d", "ns", "x").unwrap().resource_version.as_ref(), "2");
    assert!(store.get("d", "other", "x").is_none());
    assert_eq!(store.lookup(&Key::new(cluster("c"), "ns", "x")).unwrap().resource_version.as_ref(), "1");
    assert_eq!(names(&store.list("c")), ["c/x"]);
    assert_eq!(names(&store.list_ns("d", "ns")), ["d/x"]);
    assert_eq!(names(&values(store.list_all())), ["c/x", "d/x"]);
    assert!(store.is_synced(&A.into()) && !store.is_synced(&B.into()));
}

#[test]
fn only_real_changes_are_told() {
    let store = FleetStore::compact();
    apply(&store, A, vec![Event::Begin, Event::Listed(object("c", "x", 1)), Event::Synced]);
    assert!(apply(&store, A, vec![Event::Applied(object("c", "x", 1))]).is_empty());
    assert_eq!(apply(&store, A, vec![Event::Applied(object("c", "x", 2))]), ["c|ns/x@1 -> c|ns/x@2"]);
    assert_eq!(apply(&store, A, vec![Event::Deleted(object("c", "x", 3))]), ["-c|ns/x@3"]);
    assert!(apply(&store, A, vec![Event::Deleted(object("c", "x", 3))]).is_empty());
    assert!(store.is_empty() && store.clusters().is_empty());
}

#[test]
fn a_new_list_reports_deletes_that_were_missed() {
    let store = FleetStore::compact();
    let list = |names: &[(&str, u32)]| {
        let mut events = vec![Event::Begin];
        events.extend(names.iter().map(|(name, version)| Event::Listed(object("c", name, *version))));
        events.push(Event::Synced);
        events
    };
    apply(&store, A, list(&[("x", 1), ("y", 2), ("z", 3)]));
    let reported = apply(&store, A, list(&[("x", 1), ("z", 4), ("new", 5)]));
    assert_eq!(reported, ["c|ns/z@3 -> c|ns/z@4", "+c|ns/new@5", "-c|ns/y@2"]);
}

#[test]
fn an_unfinished_list_deletes_nothing() {
    let store = FleetStore::compact();
    let both = vec![Event::Listed(object("c", "x", 1)), Event::Listed(object("c", "y", 2))];
    apply(&store, A, [vec![Event::Begin], both.clone(), vec![Event::Synced]].concat());
    assert!(apply(&store, A, vec![Event::Begin, Event::Listed(object("c", "x", 1))]).is_empty());
    let again = [vec![Event::Begin], both, vec![Event::Synced]].concat();
    assert!(apply(&store, A, again).is_empty());
}

#[test]
fn endpoints_do_not_disturb_each_other() {
    let store = FleetStore::compact();
    apply(&store, A, vec![Event::Begin, Event::Listed(object("c", "x", 1)), Event::Synced]);
    assert!(apply(&store, B, vec![Event::Begin, Event::Synced]).is_empty());
    // Whoever delivered an object last may delete it: late deletes and lists of A do not count.
    assert_eq!(apply(&store, B, vec![Event::Applied(object("c", "x", 2))]), ["c|ns/x@1 -> c|ns/x@2"]);
    assert!(apply(&store, A, vec![Event::Deleted(object("c", "x", 1)), Event::Begin, Event::Synced]).is_empty());
    assert_eq!(store.forget_endpoint(&A.into()), 0);
    assert_eq!(store.forget_endpoint(&B.into()), 1);
    assert!(store.is_empty() && !store.is_synced(&B.into()));
}

#[test]
fn indexes_follow_the_objects() {
    let store = FleetStore::compact();
    apply(&store, A, vec![Event::Applied(labelled("c", "x", 1, "red")), Event::Applied(labelled("d", "x", 1, "red"))]);
    store.index("l", |object| object.label("l").into_iter().collect());
    store.index("version", |object| vec![object.resource_version.to_string()]);
    assert_eq!(names(&values(store.by_index_all("l", "red"))), ["c/x", "d/x"]);
    apply(
        &store,
        A,
        vec![Event::Applied(labelled("c", "x", 2, "blue")), Event::Applied(labelled("e", "y", 2, "blue"))],
    );
    assert_eq!(names(&values(store.by_index_all("l", "red"))), ["d/x"]);
    assert_eq!(names(&values(store.by_index_all("l", "blue"))), ["c/x", "e/y"]);
    assert_eq!(names(&values(store.by_index_all("version", "2"))), ["c/x", "e/y"]);
    assert_eq!(names(&store.by_index("c", "l", "blue")), ["c/x"]);
    assert_eq!(names(&store.by_index("d", "l", "blue")), [""; 0]);
    assert_eq!(store.forget_cluster("e"), 1);
    apply(&store, A, vec![Event::Deleted(object("d", "x", 3))]);
    assert_eq!(names(&values(store.by_index_all("l", "red"))), [""; 0]);
    assert_eq!(names(&values(store.by_index_all("l", "blue"))), ["c/x"]);
    assert_eq!(names(&values(store.by_index_all("unknown", "x"))), [""; 0]);
}

#[test]
fn a_store_of_one_cluster_ignores_the_annotation() {
    let store = FleetStore::compact();
    let key = ClusterKey::Fixed(cluster("local"));
    assert_eq!(apply_with(&store, A, &key, vec![Event::Applied(object("c", "x", 1))]), ["+local|ns/x@1"]);
    assert!(store.get("local", "ns", "x").is_some());
    assert_eq!(apply_with(&store, A, &key, vec![Event::Deleted(object("c", "x", 2))]), ["-local|ns/x@2"]);
}

#[test]
fn the_same_version_with_other_content_is_a_change() {
    let store = FleetStore::compact();
    let list = |label: &str| vec![Event::Begin, Event::Listed(labelled("c", "x", 1, label)), Event::Synced];
    assert_eq!(apply(&store, A, list("pruned")), ["+c|ns/x@1"]);
    assert!(apply(&store, A, list("pruned")).is_empty());
    assert_eq!(apply(&store, A, list("whole")), ["c|ns/x@1 -> c|ns/x@1"]);
}

#[test]
fn a_cluster_that_moves_loses_nothing_and_hears_only_its_new_endpoint() {
    let store = FleetStore::compact();
    let list = |names: &[&str]| {
        let mut events = vec![Event::Begin];
        events.extend(names.iter().map(|name| Event::Listed(object("c", name, 1))));
        events.push(Event::Synced);
        events
    };
    assert!(!store.settle(&cluster("c"), &A.into()));
    apply(&store, A, list(&["x", "y"]));
    apply(&store, B, list(&[]));
    assert!(store.settle(&cluster("c"), &B.into()), "there are objects of A");
    // A empties, changes and lists anew: none of this counts any more.
    assert!(apply(&store, A, vec![Event::Deleted(object("c", "x", 1))]).is_empty());
    assert!(apply(&store, A, vec![Event::Applied(object("c", "y", 9))]).is_empty());
    assert!(apply(&store, A, list(&[])).is_empty());
    assert_eq!(store.forget_endpoint(&A.into()), 0);
    assert_eq!(store.len(), 2);
    // Objects may arrive a while after their cluster.
    assert!(apply(&store, B, list(&["x"])).is_empty());
    // Once they must be there, the next list of B tells what was deleted during the move.
    store.expect_everything(&B.into());
    assert_eq!(apply(&store, B, list(&["x"])), ["-c|ns/y@1"]);
    assert!(!store.settle(&cluster("c"), &B.into()));
    assert_eq!(apply(&store, B, vec![Event::Deleted(object("c", "x", 2))]), ["-c|ns/x@2"]);
}

#[test]
fn an_object_that_cannot_be_read_keeps_its_last_good_version() {
    let store: FleetStore<u32> = FleetStore::with(|object| {
        let version = object.resource_version.parse();
        version.map_err(|_| serde::de::Error::custom("not a number"))
    });
    let endpoint = EndpointId::new(A);
    let bad = |name: &str| {
        let mut object = object("c", name, 0);
        object.resource_version = "x".into();
        object
    };
    let apply = |event| store.apply(&endpoint, &ClusterKey::KCP, event);
    for event in [Event::Begin, Event::Listed(object("c", "x", 1)), Event::Synced] {
        assert!(apply(event).undecodable.is_none());
    }
    let problem = apply(Event::Applied(bad("x"))).undecodable.unwrap();
    assert_eq!(problem.key.to_string(), "cluster://c/ns/x");
    assert!(apply(Event::Applied(bad("never-good"))).undecodable.is_some());
    apply(Event::Begin);
    assert!(apply(Event::Listed(bad("x"))).undecodable.is_some());
    assert!(apply(Event::Synced).updates.is_empty(), "an unreadable object is not a deleted object");
    assert_eq!(store.get("c", "ns", "x").as_deref(), Some(&1));
    let deleted = apply(Event::Deleted(bad("x"))).updates;
    assert!(matches!(&deleted[0].change, Change::Deleted(last) if **last == 1));
}

#[test]
fn objects_of_no_cluster_are_left_out() {
    let store = FleetStore::compact();
    let applied = store.apply(&A.into(), &ClusterKey::KCP, Event::Applied(object("", "x", 1)));
    assert!(applied.unkeyed && applied.updates.is_empty() && store.is_empty());
}

#[test]
fn what_somebody_wants_is_more_urgent_than_what_is_merely_seen() {
    let store = FleetStore::compact();
    let endpoint = EndpointId::new(A);
    let version = |name: &str, version: u32, generation: i64| {
        let mut object = object("c", name, version);
        object.generation = generation;
        object
    };
    let script = [
        (Event::Listed(version("x", 1, 1)), Priority::Low),
        (Event::Applied(version("x", 2, 1)), Priority::Normal),
        (Event::Applied(version("x", 3, 2)), Priority::High),
        (Event::Applied(version("new", 4, 1)), Priority::High),
        (Event::Deleted(version("x", 5, 2)), Priority::High),
    ];
    for (event, wanted) in script {
        let text = format!("{event:?}");
        assert_eq!(store.apply(&endpoint, &ClusterKey::KCP, event).updates[0].priority, wanted, "{text}");
    }
}
