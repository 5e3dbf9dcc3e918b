//! The store against sequences of watch events.

use carrick_client::Object;
use carrick_client::watch::Event;
use carrick_multicluster::{Change, ClusterKey, FleetStore, Request};
use serde_json::json;

const A: &str = "https://a";
const B: &str = "https://b";

fn object(cluster: &str, name: &str, version: u32) -> Object {
    labelled(cluster, name, version, "none")
}

#[allow(clippy::unwrap_used)] // a helper of tests
fn labelled(cluster: &str, name: &str, version: u32, label: &str) -> Object {
    Object::from_value(&json!({"metadata": {
        "name": name, "namespace": "ns", "uid": name, "resourceVersion": version.to_string(),
        "annotations": {"kcp.io/cluster": cluster}, "labels": {"l": label},
    }}))
    .unwrap()
}

fn words(changes: Vec<Change>) -> Vec<String> {
    let mut words: Vec<String> = changes
        .into_iter()
        .map(|change| match change {
            Change::Added(object) => format!("+{object:?}"),
            Change::Changed { old, new } => format!("{old:?} -> {new:?}"),
            Change::Deleted(object) => format!("-{object:?}"),
        })
        .collect();
    words.sort();
    words
}

fn apply(store: &FleetStore, endpoint: &str, events: Vec<Event>) -> Vec<String> {
    events.into_iter().flat_map(|event| words(store.apply(endpoint, event))).collect()
}

fn names(objects: &[Object]) -> Vec<String> {
    let mut names: Vec<String> = objects.iter().map(|object| format!("{}/{}", object.cluster, object.name)).collect();
    names.sort();
    names
}

#[test]
fn objects_of_the_same_name_in_different_clusters_are_different_objects() {
    let store = FleetStore::new(ClusterKey::Annotation);
    let events =
        vec![Event::Begin, Event::Listed(object("c", "x", 1)), Event::Listed(object("d", "x", 2)), Event::Synced];
    assert_eq!(apply(&store, A, events), ["+c|ns/x@1", "+d|ns/x@2"]);
    assert_eq!(store.len(), 2);
    assert_eq!(store.get("d", "ns", "x").unwrap().resource_version.as_ref(), "2");
    assert!(store.get("d", "other", "x").is_none());
    assert_eq!(store.lookup(&Request::new("c", "ns", "x")).unwrap().resource_version.as_ref(), "1");
    assert_eq!(names(&store.list_cluster("c")), ["c/x"]);
    assert_eq!(names(&store.list_namespace("d", "ns")), ["d/x"]);
    assert_eq!(names(&store.list()), ["c/x", "d/x"]);
    assert!(store.is_synced(A) && !store.is_synced(B));
}

#[test]
fn only_real_changes_are_told() {
    let store = FleetStore::new(ClusterKey::Annotation);
    apply(&store, A, vec![Event::Begin, Event::Listed(object("c", "x", 1)), Event::Synced]);
    assert!(apply(&store, A, vec![Event::Applied(object("c", "x", 1))]).is_empty());
    assert_eq!(apply(&store, A, vec![Event::Applied(object("c", "x", 2))]), ["c|ns/x@1 -> c|ns/x@2"]);
    assert_eq!(apply(&store, A, vec![Event::Deleted(object("c", "x", 3))]), ["-c|ns/x@3"]);
    assert!(apply(&store, A, vec![Event::Deleted(object("c", "x", 3))]).is_empty());
    assert!(store.is_empty() && store.clusters().is_empty());
}

#[test]
fn a_new_list_reports_deletes_that_were_missed() {
    let store = FleetStore::new(ClusterKey::Annotation);
    let list = |names: &[(&str, u32)]| {
        let mut events = vec![Event::Begin];
        events.extend(names.iter().map(|(name, version)| Event::Listed(object("c", name, *version))));
        events.push(Event::Synced);
        events
    };
    apply(&store, A, list(&[("x", 1), ("y", 2), ("z", 3)]));
    let told = apply(&store, A, list(&[("x", 1), ("z", 4), ("new", 5)]));
    assert_eq!(told, ["c|ns/z@3 -> c|ns/z@4", "+c|ns/new@5", "-c|ns/y@2"]);
}

#[test]
fn an_unfinished_list_deletes_nothing() {
    let store = FleetStore::new(ClusterKey::Annotation);
    let both = vec![Event::Listed(object("c", "x", 1)), Event::Listed(object("c", "y", 2))];
    apply(&store, A, [vec![Event::Begin], both.clone(), vec![Event::Synced]].concat());
    assert!(apply(&store, A, vec![Event::Begin, Event::Listed(object("c", "x", 1))]).is_empty());
    let again = [vec![Event::Begin], both, vec![Event::Synced]].concat();
    assert!(apply(&store, A, again).is_empty());
}

#[test]
fn endpoints_do_not_disturb_each_other() {
    let store = FleetStore::new(ClusterKey::Annotation);
    apply(&store, A, vec![Event::Begin, Event::Listed(object("c", "x", 1)), Event::Synced]);
    assert!(apply(&store, B, vec![Event::Begin, Event::Synced]).is_empty());
    // The cluster moves from A to B: late deletes and lists of A do not count.
    assert_eq!(apply(&store, B, vec![Event::Applied(object("c", "x", 2))]), ["c|ns/x@1 -> c|ns/x@2"]);
    assert!(apply(&store, A, vec![Event::Deleted(object("c", "x", 1)), Event::Begin, Event::Synced]).is_empty());
    assert_eq!(store.forget_endpoint(A), 0);
    assert_eq!(store.forget_endpoint(B), 1);
    assert!(store.is_empty() && !store.is_synced(B));
}

#[test]
fn indexes_follow_the_objects() {
    let store = FleetStore::new(ClusterKey::Annotation);
    apply(&store, A, vec![Event::Applied(labelled("c", "x", 1, "red")), Event::Applied(labelled("d", "x", 1, "red"))]);
    store.index_label("l");
    store.index("version", |object| vec![object.resource_version.to_string()]);
    assert_eq!(names(&store.by_index("l", "red")), ["c/x", "d/x"]);
    apply(
        &store,
        A,
        vec![Event::Applied(labelled("c", "x", 2, "blue")), Event::Applied(labelled("e", "y", 2, "blue"))],
    );
    assert_eq!(names(&store.by_index("l", "red")), ["d/x"]);
    assert_eq!(names(&store.by_index("l", "blue")), ["c/x", "e/y"]);
    assert_eq!(names(&store.by_index("version", "2")), ["c/x", "e/y"]);
    assert_eq!(store.forget_cluster("e"), 1);
    apply(&store, A, vec![Event::Deleted(object("d", "x", 3))]);
    assert_eq!(names(&store.by_index("l", "red")), [""; 0]);
    assert_eq!(names(&store.by_index("l", "blue")), ["c/x"]);
    assert_eq!(names(&store.by_index("unknown", "x")), [""; 0]);
}

#[test]
fn a_store_of_one_cluster_ignores_the_annotation() {
    let store = FleetStore::new(ClusterKey::Fixed("local".into()));
    assert_eq!(apply(&store, A, vec![Event::Applied(object("c", "x", 1))]), ["+local|ns/x@1"]);
    assert!(store.get("local", "ns", "x").is_some());
    assert_eq!(apply(&store, A, vec![Event::Deleted(object("c", "x", 2))]), ["-local|ns/x@2"]);
}

#[test]
fn the_same_version_with_other_content_is_a_change() {
    let store = FleetStore::new(ClusterKey::Annotation);
    let list = |label: &str| vec![Event::Begin, Event::Listed(labelled("c", "x", 1, label)), Event::Synced];
    assert_eq!(apply(&store, A, list("pruned")), ["+c|ns/x@1"]);
    assert!(apply(&store, A, list("pruned")).is_empty());
    assert_eq!(apply(&store, A, list("whole")), ["c|ns/x@1 -> c|ns/x@1"]);
}
