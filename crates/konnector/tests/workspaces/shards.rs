//! Several shards, and fairness between workspaces.

use std::time::Duration;

use crate::world::{EXPORT, Shape, World, slices, until};
use serde_json::json;

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
async fn a_slice_that_lists_nothing_for_a_while_deletes_nothing() {
    let mut world = World::new(Shape::namespaced()).await;
    let one = world.consumer("one", None).await;
    world.order("one", "db", "x").await;
    let copy = world.until_copied(&one, "db", "x").await;
    world.calm().await;
    let home = world.at("prov");
    let slice = home.get(&slices(), None, EXPORT).await.unwrap().unwrap();
    assert!(slice["status"]["endpoints"][0]["url"].is_string());
    // A slice of its own, which an administrator has emptied.
    world.kill().await;
    world.start();
    world.change("one", "db", &json!({"spec": {"intent": "y"}})).await;
    world.until_copied(&one, "db", "y").await;
    assert_eq!(world.copy(&one, "db").await.unwrap()["metadata"]["uid"], copy["metadata"]["uid"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_with_many_objects_does_not_keep_the_others_waiting() {
    let mut world = World::new(Shape::namespaced()).await;
    let busy = world.consumer("busy", None).await;
    let calm = world.consumer("calm", None).await;
    world.order("calm", "first", "x").await;
    world.until_copied(&calm, "first", "x").await;
    world.kill().await;
    let many = 300;
    for number in 0..many {
        world.order("busy", &format!("db-{number}"), "x").await;
    }
    world.start();
    until("the many are on their way", async || !world.copies(&busy).await.is_empty()).await;
    world.order("calm", "db", "x").await;
    world.until_copied(&calm, "db", "x").await;
    let done = world.copies(&busy).await.len();
    assert!(done < many, "one that came last waited for all {done} that came before");
    until("all are there", async || world.copies(&busy).await.len() == many).await;
}
