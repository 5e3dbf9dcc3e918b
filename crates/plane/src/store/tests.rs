use std::sync::Arc;

use futures::{FutureExt, StreamExt};
use serde_json::{Value, json};

use super::*;

fn key(name: &str) -> Key {
    Key::new(&Kind::new("", "configmaps"), "c", "default", name)
}

fn object(name: &str, value: u64) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"v": value.to_string()}})
}

#[test]
fn an_equal_write_takes_no_revision() {
    let store = Store::default();
    let first = store.commit(&key("a"), Expect::Absent, Some(object("a", 1))).unwrap();
    let second = store.commit(&key("a"), Expect::Revision(first.revision), Some(object("a", 1))).unwrap();
    assert_eq!((first.revision, second.revision, store.revision()), (1, 1, 1));
}

#[test]
fn expectations_are_checked() {
    let store = Store::default();
    assert!(matches!(store.commit(&key("a"), Expect::Revision(1), Some(object("a", 1))), Err(StoreError::Missing)));
    assert!(matches!(store.commit(&key("a"), Expect::Any, None), Err(StoreError::Missing)));
    store.commit(&key("a"), Expect::Absent, Some(object("a", 1))).unwrap();
    assert!(matches!(store.commit(&key("a"), Expect::Absent, Some(object("a", 1))), Err(StoreError::Exists)));
    assert!(matches!(store.commit(&key("a"), Expect::Revision(7), Some(object("a", 2))), Err(StoreError::Stale(1))));
}

#[tokio::test]
async fn a_watch_sees_every_change_once_and_in_order() {
    let store = Arc::new(Store::default());
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
    let store = Arc::new(Store::with_limits(LogLimits { changes: 10, bytes: usize::MAX }));
    let mut watch = store.watch(0).unwrap();
    for value in 0..30 {
        store.commit(&key("a"), Expect::Any, Some(object("a", value))).unwrap();
    }
    assert!(watch.next().now_or_never().unwrap().is_none());
    assert_eq!(store.watch(3).err(), Some(Expired { asked: 3, oldest: 20 }));
}

#[test]
fn a_past_state_is_rebuilt_from_the_log() {
    let store = Store::default();
    store.commit(&key("a"), Expect::Any, Some(object("a", 1))).unwrap();
    store.commit(&key("b"), Expect::Any, Some(object("b", 1))).unwrap();
    store.commit(&key("a"), Expect::Any, Some(object("a", 2))).unwrap();
    store.commit(&key("a"), Expect::Any, None).unwrap();
    store.commit(&key("c"), Expect::Any, Some(object("c", 1))).unwrap();
    let kind = Kind::new("", "configmaps");
    let names = |revision| -> Vec<String> {
        let selection = Selection { kind: &kind, cluster: Some("c"), namespace: None };
        let page = store.page(&selection, Some(revision), None, 0).unwrap();
        page.items.iter().map(|(key, object)| format!("{}={}", key.name, object.value()["data"]["v"])).collect()
    };
    assert_eq!(names(1), [r#"a="1""#]);
    assert_eq!(names(3), [r#"a="2""#, r#"b="1""#]);
    assert_eq!(names(5), [r#"b="1""#, r#"c="1""#]);
}

#[test]
fn pages_together_are_the_state_of_the_first_whatever_is_written_between_them() {
    let kind = Kind::new("", "configmaps");
    for (cluster, namespace) in [(None, None), (Some("c"), None), (Some("c"), Some("default"))] {
        let store = Store::default();
        for number in 0..50 {
            store.commit(&key(&format!("k{number:02}")), Expect::Absent, Some(object("k", number))).unwrap();
        }
        for other in [Key::new(&kind, "b", "default", "x"), Key::new(&kind, "c", "more", "x")] {
            store.commit(&other, Expect::Absent, Some(object("x", 0))).unwrap();
        }
        let selection = Selection { kind: &kind, cluster, namespace };
        let shown = |page: &Page| -> Vec<(Key, u64)> {
            page.items.iter().map(|(key, object)| (key.clone(), object.revision())).collect()
        };
        let whole = shown(&store.page(&selection, None, None, 0).unwrap());
        let mut page = store.page(&selection, None, None, 7).unwrap();
        assert_eq!(page.rest, Some(whole.len() - 7));
        let (revision, mut seen) = (page.revision, shown(&page));
        for turn in 0_u64.. {
            if !page.more {
                break;
            }
            // Changed, deleted, new: before and after the current position.
            store.commit(&key(&format!("k{:02}", turn * 5)), Expect::Any, Some(object("k", 900 + turn))).unwrap();
            let gone = key(&format!("k{:02}", 49 - turn));
            store.commit(&gone, Expect::Any, None).unwrap();
            store.commit(&key(&format!("k{turn:02}-new")), Expect::Any, Some(object("k", 0))).unwrap();
            let last = seen.last().map(|(key, _)| key.clone());
            page = store.page(&selection, Some(revision), last.as_ref(), 7).unwrap();
            assert_eq!((page.revision, page.rest), (revision, None));
            seen.extend(shown(&page));
        }
        assert_eq!(seen, whole);
    }
}

#[test]
fn an_object_read_again_is_the_one_that_was_written() {
    let store = Store::default();
    let written = store.commit(&key("a"), Expect::Absent, Some(object("a", 1))).unwrap();
    // Push it out of the cache of unpacked objects.
    let text = "x".repeat(1_500_000);
    for number in 0..3 {
        let other = json!({"metadata": {"name": "b"}, "data": {"v": number.to_string(), "text": text}});
        store.commit(&key("b"), Expect::Any, Some(other)).unwrap();
    }
    let address = Arc::as_ptr(&written.object);
    let content = (*written.object).clone();
    drop(written);
    let found = store.get(&key("a")).unwrap();
    assert_eq!((found.revision, &*found.object), (1, &content));
    assert_ne!(Arc::as_ptr(&found.object), address, "it should have been unpacked again");
    assert!(Arc::ptr_eq(&found.object, &store.get(&key("a")).unwrap().object));
}

#[test]
fn a_deletion_shows_the_last_state_with_its_own_revision() {
    let store = Store::default();
    store.commit(&key("a"), Expect::Any, Some(object("a", 1))).unwrap();
    let gone = store.commit(&key("a"), Expect::Any, None).unwrap();
    assert_eq!(gone.object["metadata"]["resourceVersion"], "2");
    assert!(store.get(&key("a")).is_none());
    assert!(store.kinds("c").is_empty());
}

#[test]
fn a_reopened_store_has_the_same_objects_and_counter() {
    let folder = std::env::temp_dir().join(format!("carrick-store-{}", uuid::Uuid::new_v4()));
    let store = Store::open(&folder, Durability::default(), LogLimits::default()).unwrap();
    store.commit(&key("a"), Expect::Any, Some(object("a", 1))).unwrap();
    store.commit(&key("b"), Expect::Any, Some(object("b", 1))).unwrap();
    store.commit(&key("b"), Expect::Any, None).unwrap();
    drop(store);
    // A torn last line must not keep the store from opening.
    let mut file = std::fs::OpenOptions::new().append(true).open(folder.join("commits.jsonl")).unwrap();
    std::io::Write::write_all(&mut file, b"{\"revision\":9,\"gro").unwrap();
    for _ in 0..2 {
        let store = Store::open(&folder, Durability::default(), LogLimits::default()).unwrap();
        assert_eq!(store.revision(), 3);
        assert_eq!(store.get(&key("a")).unwrap().revision, 1);
        assert!(store.get(&key("b")).is_none());
        assert!(Arc::new(store).watch(2).is_err());
    }
    std::fs::remove_dir_all(folder).unwrap();
}

fn secret(cluster: &str, name: &str) -> Key {
    Key::new(&Kind::new("", "secrets"), cluster, "default", name)
}

#[tokio::test]
async fn a_watch_of_a_topic_sees_nothing_else_and_survives_the_noise_of_others() {
    let store = Arc::new(Store::with_limits(LogLimits { changes: 10, bytes: usize::MAX }));
    let topic = |cluster: Option<&str>| Topic { kind: Kind::new("", "secrets"), cluster: cluster.map(Into::into) };
    store.commit(&secret("x", "early"), Expect::Absent, Some(object("early", 0))).unwrap();
    let mut one = store.watch_topic(topic(Some("x")), 0).unwrap();
    let mut all = store.watch_topic(topic(None), 1).unwrap();
    assert_eq!(one.next().await.unwrap().revision, 1);
    for value in 0..100 {
        store.commit(&key("a"), Expect::Any, Some(object("a", value))).unwrap();
    }
    assert!(one.next().now_or_never().is_none());
    store.commit(&secret("y", "s"), Expect::Absent, Some(object("s", 0))).unwrap();
    assert!(one.next().now_or_never().is_none());
    store.commit(&secret("x", "s"), Expect::Absent, Some(object("s", 0))).unwrap();
    assert_eq!(one.next().await.unwrap().key, secret("x", "s"));
    assert_eq!(all.next().await.unwrap().key, secret("y", "s"));
    assert_eq!(all.next().await.unwrap().key, secret("x", "s"));
    // Its own changes do cut off a reader that falls behind.
    for value in 0..20 {
        store.commit(&secret("x", "s"), Expect::Any, Some(object("s", value + 1))).unwrap();
    }
    assert!(one.next().now_or_never().unwrap().is_none());
}

#[test]
fn topics_nobody_watches_are_forgotten() {
    let store = Arc::new(Store::default());
    let topic = Topic { kind: Kind::new("", "configmaps"), cluster: None };
    let watch = store.watch_topic(topic, 0).unwrap();
    assert_eq!(store.inner.read().log.size().2, 1);
    drop(watch);
    store.commit(&key("a"), Expect::Absent, Some(object("a", 1))).unwrap();
    assert_eq!(store.inner.read().log.size().2, 0);
}

#[test]
fn the_log_is_bounded_in_bytes() {
    let store = Store::with_limits(LogLimits { changes: 20_000, bytes: 1_000_000 });
    let text = "x".repeat(100_000);
    for value in 0..200 {
        let object = json!({"metadata": {"name": "a"}, "data": {"v": value.to_string(), "text": text}});
        store.commit(&key("a"), Expect::Any, Some(object)).unwrap();
    }
    let (changes, bytes, _) = store.inner.read().log.size();
    assert!(changes <= 16 && bytes < 2_000_000, "{changes} changes of {bytes} bytes");
    assert_eq!(store.oldest(), 200 - changes as u64);
}

#[test]
fn commits_can_wait_for_the_disk() {
    let folder = std::env::temp_dir().join(format!("carrick-store-{}", uuid::Uuid::new_v4()));
    let durability = Durability { fsync: true, ..Durability::default() };
    let store = Store::open(&folder, durability, LogLimits::default()).unwrap();
    store.commit(&key("a"), Expect::Absent, Some(object("a", 1))).unwrap();
    drop(store);
    let again = Store::open(&folder, durability, LogLimits::default()).unwrap();
    assert_eq!(again.get(&key("a")).unwrap().revision, 1);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_file_is_compacted_while_it_is_written() {
    let folder = std::env::temp_dir().join(format!("carrick-store-{}", uuid::Uuid::new_v4()));
    let durability = Durability { fsync: false, compact_at: 10_000 };
    let store = Arc::new(Store::open(&folder, durability, LogLimits::default()).unwrap());
    let size = || std::fs::metadata(folder.join("commits.jsonl")).unwrap().len();
    let (mut before, mut shrunk, mut value) = (0, 0, 0_u64);
    while shrunk < 3 {
        store.commit(&key(&format!("k{}", value % 7)), Expect::Any, Some(object("k", value))).unwrap();
        shrunk += u32::from(size() < before);
        before = size();
        value += 1;
    }
    store.commit(&key("k0"), Expect::Any, None).unwrap();
    let (_, expected) = store.list(&Kind::new("", "configmaps"), Some("c"), None);
    let revision = store.revision();
    drop(store);
    let again = Store::open(&folder, durability, LogLimits::default()).unwrap();
    assert_eq!(again.revision(), revision);
    let (_, found) = again.list(&Kind::new("", "configmaps"), Some("c"), None);
    let states = |list: &[(Key, Object)]| -> Vec<Arc<Value>> { list.iter().map(|(_, o)| o.value()).collect() };
    assert_eq!(states(&found), states(&expected));
    assert_eq!(found.len(), 6);
    std::fs::remove_dir_all(&folder).unwrap();
}
