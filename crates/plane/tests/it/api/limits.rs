//! The limits of a plane.

use std::time::Duration;

use carrick_plane::{Config, Limits, LogLimits, Mode};
use serde_json::json;

use super::client::{MAPS, PATIENCE, World, map};

async fn limited(limits: Limits) -> World {
    let mut config = Config::new(Mode::Kube);
    config.limits = limits;
    World::with(config).await
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let world = limited(Limits { body: 10_000, ..Limits::default() }).await;
    let text = |length: usize| map("a", json!({"text": "x".repeat(length)}));
    world.admin.post(MAPS, text(20_000)).await.refused(413, "Request entity too large: limit is 10000");
    world.admin.post(MAPS, text(5_000)).await.expect(201);
    let patch = json!({"data": {"text": "y".repeat(20_000)}});
    world.admin.patch(&format!("{MAPS}/a"), "merge", patch).await.expect(413);
}

#[tokio::test]
async fn a_client_that_does_not_read_its_watch_is_cut_off_and_holds_up_nobody() {
    let world = limited(Limits { slow_reader: Duration::from_millis(300), ..Limits::default() }).await;
    let lazy = world.with_token(world.plane.token("admin").as_deref());
    let mut stuck = lazy.watch(&format!("{MAPS}?watch=1")).await;
    let mut awake = world.admin.watch(&format!("{MAPS}?watch=1&fieldSelector=metadata.name%3Dlast")).await;
    // More than all buffers on the way hold.
    let text = "x".repeat(500_000);
    for number in 0..40 {
        world.admin.post(MAPS, map(&format!("m{number}"), json!({"text": text}))).await.expect(201);
    }
    let cut_off = async {
        while world.plane.faults().open_watches().len() != 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, cut_off).await.expect("the stuck watch is still open");
    world.admin.post(MAPS, map("last", json!({}))).await.expect(201);
    assert_eq!(awake.event().await.1, "last");
    let mut seen = 0;
    while stuck.next().await.is_some() {
        seen += 1;
    }
    assert!(seen < 40, "{seen}");
}

#[tokio::test]
async fn a_watch_from_a_revision_beyond_the_log_is_told_to_list_again() {
    let log = LogLimits { changes: 1000, bytes: 200_000 };
    let world = limited(Limits { log, ..Limits::default() }).await;
    let start = world.admin.get(MAPS).await.expect(200)["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    for number in 0..30 {
        world.admin.post(MAPS, map(&format!("m{number}"), json!({"text": "x".repeat(50_000)}))).await.expect(201);
    }
    let mut watch = world.admin.watch(&format!("{MAPS}?watch=1&resourceVersion={start}")).await;
    let event = watch.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(watch.next().await, None);
    let exact = format!("{MAPS}?resourceVersion={start}&resourceVersionMatch=Exact");
    world.admin.get(&exact).await.expect(410);
}
