//! Several shards, and fairness between workspaces.

use std::time::Duration;

use carrick_konnector::decide::tenants::FlatKeys;
use carrick_plane::faults::{Effect, Match, Rule};
use serde_json::json;

use super::world::{CONTRACT, KONNECTOR, Shape, World, until};

#[tokio::test(flavor = "multi_thread")]
async fn workspaces_of_all_shards_are_served_and_a_shard_that_vanishes_deletes_nothing() {
    let mut world = World::with_shards(Shape::namespaced(), 3).await;
    let near = world.consumer("near", Some("shard-1")).await;
    let far = world.consumer("far", Some("shard-2")).await;
    for (workspace, cluster) in [("near", &near), ("far", &far)] {
        world.order(workspace, "db", "x").await;
        let copy = world.until_copied(cluster, "db", "x").await;
        world.tell(&copy, "up").await;
        world.until_told(workspace, "db", "up").await;
    }
    world.calm().await;
    // Its shard is away: for the konnector that runs, and for a new one, which has never seen it.
    let shard = world.kcp.endpoints()[3].clone();
    assert_eq!(shard.shard(), Some(2));
    shard.stop().await;
    for _ in 0..2 {
        world.change("near", "db", &json!({"spec": {"intent": "y"}})).await;
        world.until_copied(&near, "db", "y").await;
        world.change("near", "db", &json!({"spec": {"intent": "x"}})).await;
        world.until_copied(&near, "db", "x").await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(world.copies(&far).await.len(), 1);
        world.kill().await;
        world.start();
    }
    shard.start().await.unwrap();
    world.change("far", "db", &json!({"spec": {"intent": "again"}})).await;
    world.until_copied(&far, "db", "again").await;
    assert_eq!(world.source("far", "db").await.unwrap()["status"]["result"], "up");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_that_are_empty_for_a_while_delete_nothing() {
    // Objects, bindings and the slice, each as they were before anything was there.
    for (group, resource) in
        [("wild.io", "widgets"), ("apis.kcp.io", "apibindings"), ("apis.kcp.io", "apiexportendpointslices")]
    {
        let mut world = World::new(Shape::namespaced()).await;
        let one = world.consumer("one", None).await;
        world.order("one", "db", "x").await;
        let copy = world.until_copied(&one, "db", "x").await;
        world.calm().await;
        world.kill().await;
        let lists = Match::any().resource(group, resource).verbs(&["list", "watch"]).user(KONNECTOR);
        world.kcp.faults().add(Rule::new(lists, Effect::Stale(1_000_000)));
        let recordings = world.record();
        world.start();
        until("the konnector has looked", async || {
            let mut records = recordings[0].records().into_iter();
            records.any(|it| it.ask.user == KONNECTOR && it.ask.path.contains(resource))
        })
        .await;
        world.calm().await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let left = world.copy(&one, "db").await.unwrap();
        assert_eq!(left["metadata"]["uid"], copy["metadata"]["uid"], "{resource}");
        assert!(world.source("one", "db").await.is_some_and(|it| it["metadata"].get("deletionTimestamp").is_none()));
        world.kcp.faults().clear();
        world.change("one", "db", &json!({"spec": {"intent": "y"}})).await;
        // Watches begin anew.
        world.kill().await;
        world.start();
        world.until_copied(&one, "db", "y").await;
        assert_eq!(world.copy(&one, "db").await.unwrap()["metadata"]["uid"], copy["metadata"]["uid"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_with_many_objects_does_not_keep_the_others_waiting() {
    let mut world = World::new(Shape::namespaced()).await;
    let mut all = Vec::new();
    for workspace in ["one", "two", "three"] {
        all.push((workspace, world.consumer(workspace, None).await));
    }
    // Whatever is listed is looked at by its key, so without turns the first one would be the first with all it has.
    all.sort_by_cached_key(|(_, cluster)| FlatKeys::new(CONTRACT).namespace(cluster, "team"));
    let ((busy, of_busy), others) = all.split_first().unwrap();
    for (workspace, cluster) in &all {
        world.order(workspace, "first", "x").await;
        world.until_copied(cluster, "first", "x").await;
    }
    world.calm().await;
    world.kill().await;
    let many = 300;
    for number in 0..many {
        world.order(busy, &format!("db-{number:03}"), "x").await;
    }
    for (workspace, _) in others {
        world.order(workspace, "zz-last", "x").await;
    }
    world.start();
    for (_, cluster) in others {
        world.until_copied(cluster, "zz-last", "x").await;
    }
    let done = world.copies(of_busy).await.len();
    assert!(done < many / 2, "those with one object waited for {done} of another workspace");
    until("all are there", async || world.copies(of_busy).await.len() == many + 1).await;
}
