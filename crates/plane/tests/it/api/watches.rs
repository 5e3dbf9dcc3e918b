use carrick_plane::{Config, LogLimits, Mode};
use serde_json::json;

use super::client::{MAPS, World, map};

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
    let mut config = Config::new(Mode::Kube);
    config.limits.log = LogLimits { changes: 5, bytes: usize::MAX };
    let world = World::with(config).await;
    world.admin.post(MAPS, map("a", json!({}))).await.expect(201);
    for number in 0..20 {
        world.admin.patch(&format!("{MAPS}/a"), "merge", json!({"data": {"n": number.to_string()}})).await.expect(200);
    }
    let mut watch = world.admin.watch(&format!("{MAPS}?watch=1&resourceVersion=1")).await;
    let event = watch.next().await.unwrap();
    let object = &event["object"];
    assert_eq!((&event["type"], &object["code"], &object["reason"]), (&json!("ERROR"), &json!(410), &json!("Expired")));
    assert_eq!(watch.next().await, None);
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
    const WRITERS: usize = 4;
    const EACH: usize = 250;
    let world = World::start().await;
    let revision = world.admin.get(MAPS).await.expect(200)["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let mut watch = world.admin.watch(&format!("{MAPS}?watch=1&resourceVersion={revision}")).await;
    let writers = (0..WRITERS).map(|writer| {
        let client = world.user("admin");
        tokio::spawn(async move {
            for number in 0..EACH {
                client.post(MAPS, map(&format!("m{writer}-{number}"), json!({}))).await.expect(201);
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut next = [0; WRITERS];
    for _ in 0..WRITERS * EACH {
        let (word, name) = watch.event().await;
        let (writer, number) = name.strip_prefix('m').and_then(|rest| rest.split_once('-')).unwrap();
        let seen = &mut next[writer.parse::<usize>().unwrap()];
        assert_eq!((word.as_str(), number.parse::<usize>().unwrap()), ("ADDED", *seen));
        *seen += 1;
    }
    assert_eq!(next, [EACH; WRITERS]);
    for writer in writers {
        writer.await.unwrap();
    }
}
