//! Ends: copies before objects, objects before APIs, bindings before Connections, Connections before Secrets.

use serde_json::{Value, json};

use super::world::{TEAM, WIDGETS, World, cluster_bindings, connections, has, message, widgets};
use crate::clusters::{BINDER, crd_kind, secrets};

#[tokio::test(flavor = "multi_thread")]
async fn unbinding_waits_for_copies_and_then_takes_the_api_along_and_the_secret_goes_last() {
    let world = World::bound().await;
    world.order("held", 1).await;
    world.order("free", 1).await;
    let hold = json!({"metadata": {"finalizers": ["example.io/operator"]}});
    world.provider.client.merge_patch(&widgets(), Some(TEAM), "held", &hold).await.unwrap();
    world.consumer.delete(&secrets(), Some("kbind"), "west").await;
    world.consumer.delete(&connections(), None, "west").await;
    let drains = |it: &Value| has(it, "Ready", "False", "DrainingBindings");
    let connection = world.consumer.until(&connections(), None, "west", drains).await;
    assert_eq!(message(&connection, "Ready"), "waiting for 1 binding(s) to finish unbinding");
    world.consumer.delete(&cluster_bindings(), None, "west").await;
    world.provider.until_gone(&widgets(), Some(TEAM), "free").await;
    let waits = |it: &Value| {
        message(it, "Ready") == format!("waiting: 1 object(s) of {WIDGETS} wait for their copies to be deleted")
    };
    world.consumer.until(&cluster_bindings(), None, "west", waits).await;
    world.copy_is("held", |it| it["metadata"]["deletionTimestamp"].is_string()).await;
    assert!(world.consumer.get(&crd_kind(), None, WIDGETS).await.is_some());
    assert!(world.consumer.get(&widgets(), Some(TEAM), "held").await.is_some());
    assert!(world.consumer.get(&secrets(), Some("kbind"), "west").await.is_some(), "the Secret is held");
    let release = json!({"metadata": {"finalizers": null}});
    world.provider.client.merge_patch(&widgets(), Some(TEAM), "held", &release).await.unwrap();
    world.consumer.until_gone(&cluster_bindings(), None, "west").await;
    world.consumer.until_gone(&connections(), None, "west").await;
    world.consumer.until_gone(&secrets(), Some("kbind"), "west").await;
    assert!(world.consumer.get(&crd_kind(), None, WIDGETS).await.is_none());
    assert!(world.provider.get(&widgets(), Some(TEAM), "held").await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orphan_stays_on_the_provider() {
    let world = World::bound().await;
    world.order("a", 1).await;
    let orphan = json!({"metadata": {"annotations": {"core.kbind.io/deletion-policy": "Orphan"}}});
    world.consumer.client.merge_patch(&widgets(), Some(TEAM), "a", &orphan).await.unwrap();
    world.consumer.delete(&widgets(), Some(TEAM), "a").await;
    world.consumer.until_gone(&widgets(), Some(TEAM), "a").await;
    world.probe("b").await;
    let copy = world.provider.get(&widgets(), Some(TEAM), "a").await.unwrap();
    assert!(copy["metadata"].get("deletionTimestamp").is_none(), "{copy}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binding_whose_provider_is_gone_says_how_to_give_its_copies_up() {
    let world = World::bound().await;
    world.order("a", 1).await;
    world.store_text("west", "apiVersion: v1").await;
    world.consumer.until(&connections(), None, "west", |it| has(it, "Ready", "False", "SecretNotFound")).await;
    world.consumer.delete(&cluster_bindings(), None, "west").await;
    let drains = |it: &Value| has(it, "Ready", "False", "Draining");
    let binding = world.consumer.until(&cluster_bindings(), None, "west", drains).await;
    assert!(message(&binding, "Ready").contains("core.kbind.io/deletion-policy=Orphan"), "{binding}");
    let source = world.consumer.get(&widgets(), Some(TEAM), "a").await.unwrap();
    assert_eq!(source["metadata"]["finalizers"], json!(["core.kbind.io/syncer"]));
    let orphan = json!({"metadata": {"annotations": {"core.kbind.io/deletion-policy": "Orphan"}}});
    world.consumer.client.merge_patch(&cluster_bindings(), None, "west", &orphan).await.unwrap();
    world.consumer.until_gone(&cluster_bindings(), None, "west").await;
    let source = world.consumer.get(&widgets(), Some(TEAM), "a").await.unwrap();
    assert!(source["metadata"].get("finalizers").is_none(), "{source}");
    assert!(world.provider.get(&widgets(), Some(TEAM), "a").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_of_two_connections_is_held_until_the_last_one_goes() {
    let world = World::start().await;
    world.store("west", BINDER).await;
    world.connect("west", json!({})).await;
    world.connect("east", json!({"kubeconfigSecretRef": {"name": "west"}})).await;
    for name in ["west", "east"] {
        world.is_ready(&connections(), name).await;
    }
    world.consumer.delete(&secrets(), Some("kbind"), "west").await;
    world.consumer.delete(&connections(), None, "west").await;
    world.consumer.until_gone(&connections(), None, "west").await;
    let secret = world.consumer.get(&secrets(), Some("kbind"), "west").await.unwrap();
    assert_eq!(secret["metadata"]["finalizers"], json!(["core.kbind.io/cleanup"]));
    world.consumer.delete(&connections(), None, "east").await;
    world.consumer.until_gone(&secrets(), Some("kbind"), "west").await;
}
