//! Workspaces that move between shards whose versions differ, as kcp moves them with its feature `LogicalClusterMigration`.

use std::collections::BTreeMap;
use std::time::Instant;

use futures::{StreamExt, stream};
use serde_json::{Value, json};

use super::world::{Shape, World, until};
use crate::clusters::{secret, secrets};

/// So much is done at one time.
const AT_ONCE: usize = 16;

/// A workspace that moves, and the copy of its first order.
struct Consumer {
    name: String,
    cluster: String,
    copy: Value,
}

#[tokio::test(flavor = "multi_thread")]
async fn workspaces_that_move_to_a_shard_with_lower_versions_and_back_are_served_and_no_copy_is_made_again() {
    let (workspaces, orders) = if std::env::var_os("CARRICK_WIDE").is_some() { (100, 10) } else { (5, 3) };
    let claim = json!([{"group": "", "resource": "secrets", "selector": {"labelSelector": {"matchLabels": {"app": "shop"}},
        "references": [{"group": "wild.io", "resource": "widgets", "versions": ["v1"], "jsonPath": {"name": "spec.intent"}}]}}]);
    let world = World::with_versions_apart(Shape::namespaced().claiming(claim), &[0, 1_000_000]).await;
    let consumers: Vec<Consumer> = stream::iter(0..workspaces)
        .map(|number| furnish(&world, format!("moving-{number}"), orders))
        .buffered(AT_ONCE)
        .collect()
        .await;
    for (round, shard) in [("there", 0), ("back", 1)] {
        world.calm().await;
        let before = copies(&world).await;
        assert_eq!(before.len(), workspaces * orders);
        for consumer in &consumers {
            assert!(world.kcp.move_cluster(&consumer.cluster, shard), "{} does not move", consumer.cluster);
        }
        let moved = Instant::now();
        stream::iter(&consumers).for_each_concurrent(AT_ONCE, |consumer| flows(&world, consumer, round)).await;
        println!("{workspaces} workspaces × {orders} orders moved {round}: all flows {:?} after it", moved.elapsed());
        world.calm().await;
        assert_eq!(copies(&world).await, before, "copies were written or made again by a move {round}");
    }
}

/// A workspace on the shard with the higher versions, with orders of which the first names a Secret.
async fn furnish(world: &World, name: String, orders: usize) -> Consumer {
    let cluster = world.consumer(&name, Some("shard-1")).await;
    world.at(&name).create(&secrets(), Some("team"), &secret("team", "creds", "first")).await.unwrap();
    for number in 0..orders {
        world.order(&name, &format!("db-{number}"), "creds").await;
    }
    until("all orders are copied", async || world.copies(&cluster).await.len() == orders).await;
    let copy = world.until_copied(&cluster, "db-0", "creds").await;
    Consumer { name, cluster, copy }
}

/// Sees that Secrets of both sides and a status arrive.
async fn flows(world: &World, consumer: &Consumer, word: &str) {
    let Consumer { name, copy, .. } = consumer;
    let (home, provider) = (world.at(name), &world.provider.cluster);
    let there = copy["metadata"]["namespace"].as_str().unwrap();
    let wanted = secret("team", "creds", word);
    home.merge_patch(&secrets(), Some("team"), "creds", &json!({"data": wanted["data"]})).await.unwrap();
    until("the consumer's Secret arrives", async || {
        provider.get(&secrets(), Some(there), "creds").await.is_some_and(|it| it["data"] == wanted["data"])
    })
    .await;
    let mut answer = secret(there, "answer", word);
    answer["metadata"]["labels"] = json!({"app": "shop"});
    provider.apply(&secrets(), &answer).await;
    until("the provider's Secret arrives", async || {
        let found = home.get(&secrets(), Some("team"), "answer").await.unwrap();
        found.is_some_and(|it| it["data"] == answer["data"])
    })
    .await;
    world.tell(copy, word).await;
    world.until_told(name, "db-0", word).await;
}

/// UID and generation of all copies, by where they are.
async fn copies(world: &World) -> BTreeMap<String, (Value, Value)> {
    let client = &world.provider.cluster.client;
    let all = client.list(&world.widgets()[1], None, &carrick_client::ListOptions::default()).await.unwrap();
    let place = |metadata: &Value| format!("{}/{}", metadata["namespace"], metadata["name"]);
    let copy = |copy: &Value| {
        let metadata = &copy["metadata"];
        (place(metadata), (metadata["uid"].clone(), metadata["generation"].clone()))
    };
    all.iter().map(copy).collect()
}
