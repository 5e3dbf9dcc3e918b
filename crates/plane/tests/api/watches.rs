use carrick_plane::LogLimits;
use serde_json::json;

use crate::client::{MAPS, World, map};

#[tokio::test]
async fn a_watch_shows_the_state_and_then_every_change() {
    let world = World::start().await;
    let client = &world.admin;
    client.post(MAPS, map("a", json!({}))).await.expect(201);
    let mut watch = client.watch(&format!("{MAPS}?watch=1&fieldSelector=metadata.name%3Da")).await;
    assert_eq!(watch.event().await, ("ADDED".into(), "a".into()));
    client.post(MAPS, map("b", json!({}))).await.expect(201);
    client.patch(&format!("{MAPS}/a"), "merge", json!({"data": {"x": "1"}})).await.expect(200);
    assert_eq!(watch.event().await, ("MODIFIED".into(), "a".into()));
    client.delete(&format!("{MAPS}/a")).await.expect(200);
    let gone = watch.next().await.unwrap();
    assert_eq!((&gone["type"], &gone["object"]["data"]["x"]), (&json!("DELETED"), &json!("1")));
}

#[tokio::test]
async fn labels_that_change_let_objects_come_and_go() {
    let world = World::start().await;
    let client = &world.admin;
    let list = client.get(MAPS).await.expect(200);
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    client.post(MAPS, map("a", json!({}))).await.expect(201);
    let mut watch = client.watch(&format!("{MAPS}?watch=true&resourceVersion={revision}&labelSelector=on%3Dyes")).await;
    client.patch(&format!("{MAPS}/a"), "merge", json!({"metadata": {"labels": {"on": "yes"}}})).await.expect(200);
    assert_eq!(watch.event().await, ("ADDED".into(), "a".into()));
    let off =
        client.patch(&format!("{MAPS}/a"), "merge", json!({"metadata": {"labels": {"on": "no"}}})).await.expect(200);
    let gone = watch.next().await.unwrap();
    assert_eq!(gone["type"], "DELETED");
    assert_eq!(gone["object"]["metadata"]["labels"]["on"], "yes");
    assert_eq!(gone["object"]["metadata"]["resourceVersion"], off["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn a_streaming_list_ends_with_a_marked_bookmark() {
    let world = World::start().await;
    let client = &world.admin;
    client.post(MAPS, map("a", json!({}))).await.expect(201);
    let query =
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=!x";
    let mut watch = client.watch(&format!("{MAPS}?{query}&fieldSelector=metadata.name!%3Dkube-root-ca.crt")).await;
    assert_eq!(watch.event().await, ("ADDED".into(), "a".into()));
    let bookmark = watch.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    client.post(MAPS, map("b", json!({}))).await.expect(201);
    assert_eq!(watch.event().await, ("ADDED".into(), "b".into()));
    client.get(&format!("{MAPS}?watch=true&sendInitialEvents=true")).await.expect(422);
    client.get(&format!("{MAPS}?sendInitialEvents=true&resourceVersionMatch=NotOlderThan")).await.expect(422);
}

#[tokio::test]
async fn a_watch_ends_after_its_timeout_with_a_bookmark() {
    let world = World::start().await;
    let path = format!("{MAPS}?watch=true&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion=1");
    let mut watch = world.admin.watch(&path).await;
    let mut last = None;
    while let Some(event) = watch.next().await {
        last = Some(event);
    }
    assert_eq!(last.unwrap()["type"], "BOOKMARK");
}

#[tokio::test]
async fn an_expired_revision_is_an_error_event() {
    let store = std::sync::Arc::new(carrick_plane::Store::with_limits(LogLimits { changes: 5, bytes: usize::MAX }));
    let kind = carrick_plane::Kind::new("", "configmaps");
    for number in 0..20 {
        let key = carrick_plane::Key::new(&kind, "", "default", "a");
        let object = json!({"metadata": {"name": "a"}, "data": {"n": number.to_string()}});
        store.commit(&key, carrick_plane::Expect::Any, Some(object)).unwrap();
    }
    let api = carrick_plane::Api::new(store, carrick_plane::Mode::Kube, String::new(), String::new(), None);
    let scope = api.scope("", "", "configmaps").unwrap();
    let options = carrick_plane::api::WatchOptions { revision: Some(1), ..Default::default() };
    let events: Vec<_> = futures::StreamExt::collect(std::sync::Arc::new(api).watch(scope, options).unwrap()).await;
    assert_eq!(events.len(), 1);
    assert_eq!((&events[0].object["code"], &events[0].object["reason"]), (&json!(410), &json!("Expired")));
}

#[tokio::test]
async fn watches_can_be_tables_and_use_the_old_path() {
    let world = World::start().await;
    world.admin.post(MAPS, map("a", json!({"x": "1"}))).await.expect(201);
    let mut watch = world.admin.watch("/api/v1/watch/namespaces/default/configmaps/a").await;
    assert_eq!(watch.event().await, ("ADDED".into(), "a".into()));
}

#[tokio::test]
async fn many_writes_reach_a_watcher_exactly_once() {
    let world = World::start().await;
    let revision = world.admin.get(MAPS).await.expect(200)["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let mut watch = world.admin.watch(&format!("{MAPS}?watch=1&resourceVersion={revision}")).await;
    let api = world.plane.api().clone();
    let writer = tokio::spawn(async move {
        let scope = api.scope("", "", "configmaps").unwrap().in_namespace("default");
        let caller = carrick_plane::Caller::system();
        for number in 0..2000 {
            api.create(
                &caller,
                &scope,
                map(&format!("m{number:04}"), json!({})),
                &carrick_plane::WriteOptions::default(),
            )
            .unwrap();
            tokio::task::yield_now().await;
        }
    });
    for number in 0..2000 {
        assert_eq!(watch.event().await, ("ADDED".into(), format!("m{number:04}")));
    }
    writer.await.unwrap();
}
