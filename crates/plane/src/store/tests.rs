use futures::{FutureExt, StreamExt};
use serde_json::json;

use super::*;

fn key(name: &str) -> Key {
    Key::new(&Kind::new("", "configmaps"), "c", "default", name)
}

fn object(name: &str, value: u64) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"v": value.to_string()}})
}

#[test]
fn an_equal_write_takes_no_revision() {
    let store = Store::new();
    let first = store.commit(&key("a"), Expect::Absent, Some(object("a", 1))).unwrap();
    let second = store.commit(&key("a"), Expect::Revision(first.revision), Some(object("a", 1))).unwrap();
    assert_eq!((first.revision, second.revision, store.revision()), (1, 1, 1));
}

#[test]
fn expectations_are_checked() {
    let store = Store::new();
    assert!(matches!(store.commit(&key("a"), Expect::Revision(1), Some(object("a", 1))), Err(StoreError::Missing)));
    assert!(matches!(store.commit(&key("a"), Expect::Any, None), Err(StoreError::Missing)));
    store.commit(&key("a"), Expect::Absent, Some(object("a", 1))).unwrap();
    assert!(matches!(store.commit(&key("a"), Expect::Absent, Some(object("a", 1))), Err(StoreError::Exists)));
    assert!(matches!(store.commit(&key("a"), Expect::Revision(7), Some(object("a", 2))), Err(StoreError::Stale(1))));
}

#[tokio::test]
async fn a_watch_sees_every_change_once_and_in_order() {
    let store = Arc::new(Store::new());
    let watch = store.watch(0).unwrap();
    let writer = store.clone();
    let task = tokio::spawn(async move {
        for value in 0..1000 {
            writer.commit(&key("a"), Expect::Any, Some(object("a", value))).unwrap();
            tokio::task::yield_now().await;
        }
    });
    let seen: Vec<u64> = watch.take(1000).map(|change| change.revision).collect().await;
    task.await.unwrap();
    assert_eq!(seen, (1..=1000).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_reader_that_falls_behind_is_cut_off() {
    let store = Arc::new(Store::with_log_length(10));
    let mut watch = store.watch(0).unwrap();
    for value in 0..30 {
        store.commit(&key("a"), Expect::Any, Some(object("a", value))).unwrap();
    }
    assert!(watch.next().now_or_never().unwrap().is_none());
    assert_eq!(store.watch(3).err(), Some(Expired { asked: 3, oldest: 20 }));
}

#[test]
fn a_past_state_is_rebuilt_from_the_log() {
    let store = Store::new();
    store.commit(&key("a"), Expect::Any, Some(object("a", 1))).unwrap();
    store.commit(&key("b"), Expect::Any, Some(object("b", 1))).unwrap();
    store.commit(&key("a"), Expect::Any, Some(object("a", 2))).unwrap();
    store.commit(&key("a"), Expect::Any, None).unwrap();
    store.commit(&key("c"), Expect::Any, Some(object("c", 1))).unwrap();
    let kind = Kind::new("", "configmaps");
    let names = |revision| -> Vec<String> {
        let items = store.list_at(revision, &kind, Some("c"), None).unwrap();
        items.iter().map(|(key, stored)| format!("{}={}", key.name, stored.object["data"]["v"])).collect()
    };
    assert_eq!(names(1), [r#"a="1""#]);
    assert_eq!(names(3), [r#"a="2""#, r#"b="1""#]);
    assert_eq!(names(5), [r#"b="1""#, r#"c="1""#]);
}

#[test]
fn a_deletion_shows_the_last_state_with_its_own_revision() {
    let store = Store::new();
    store.commit(&key("a"), Expect::Any, Some(object("a", 1))).unwrap();
    let gone = store.commit(&key("a"), Expect::Any, None).unwrap();
    assert_eq!(gone.object["metadata"]["resourceVersion"], "2");
    assert!(store.get(&key("a")).is_none());
    assert!(store.kinds("c").is_empty());
}

#[test]
fn a_reopened_store_has_the_same_objects_and_counter() {
    let folder = std::env::temp_dir().join(format!("carrick-store-{}", uuid::Uuid::new_v4()));
    let store = Store::open(&folder).unwrap();
    store.commit(&key("a"), Expect::Any, Some(object("a", 1))).unwrap();
    store.commit(&key("b"), Expect::Any, Some(object("b", 1))).unwrap();
    store.commit(&key("b"), Expect::Any, None).unwrap();
    drop(store);
    // A torn last line must not keep the store from opening.
    let mut file = std::fs::OpenOptions::new().append(true).open(folder.join("commits.jsonl")).unwrap();
    std::io::Write::write_all(&mut file, b"{\"revision\":9,\"gro").unwrap();
    for _ in 0..2 {
        let store = Store::open(&folder).unwrap();
        assert_eq!(store.revision(), 3);
        assert_eq!(store.get(&key("a")).unwrap().revision, 1);
        assert!(store.get(&key("b")).is_none());
        assert!(Arc::new(store).watch(2).is_err());
    }
    std::fs::remove_dir_all(folder).unwrap();
}
