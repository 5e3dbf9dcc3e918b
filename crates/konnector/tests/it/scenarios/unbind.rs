//! Unbinding: nothing is left, and nothing is deleted by accident.

use serde_json::{Value, json};

use super::world::{World, has, message};
use crate::clusters::{Provider, bindings, crd_kind, secrets, sheriffs};

/// The copy of wyatt.
const COPY: &str = "c-1-wyatt";

async fn world() -> (World, Provider) {
    let (world, provider) = (World::start().await, Provider::start("c-1").await);
    provider.export("sheriffs").await;
    world.store("provider", &provider).await;
    world.bind("sheriffs", "provider").await;
    world.ready("sheriffs").await;
    let sheriff = json!({"apiVersion": "wild.io/v1", "kind": "Sheriff",
        "metadata": {"name": "wyatt"}, "spec": {"intent": "x"}});
    world.consumer.apply(&sheriffs(), &sheriff).await;
    provider.cluster.until(&sheriffs(), None, COPY, |copy| copy["spec"]["intent"] == "x").await;
    (world, provider)
}

async fn keep_copies(world: &World) {
    let patch = json!({"metadata": {"annotations": {"kube-bind.io/keep-copies": "true"}}});
    world.consumer.client.merge_patch(&bindings(), None, "sheriffs", &patch).await.unwrap();
}

async fn is_gone(world: &World) {
    world.consumer.until_gone(&bindings(), None, "sheriffs").await;
    assert_eq!(
        world.consumer.get(&crd_kind(), None, "sheriffs.wild.io").await,
        None,
        "the CRD goes before the binding"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_binding_takes_its_objects_and_its_crd_along() {
    let (world, provider) = world().await;
    world.consumer.delete(&bindings(), None, "sheriffs").await;
    is_gone(&world).await;
    assert_eq!(provider.cluster.get(&sheriffs(), None, COPY).await, None);
    // And it can be bound again.
    world.bind("sheriffs", "provider").await;
    world.ready("sheriffs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_provider_a_binding_stays_until_somebody_says_that_copies_may() {
    let (world, provider) = world().await;
    provider.cluster.plane().endpoints()[0].stop().await;
    world.binding("sheriffs", "Heartbeating", "False", "ClusterBindingUpdateFailed").await;
    world.consumer.delete(&bindings(), None, "sheriffs").await;
    let binding = world.binding("sheriffs", "Drained", "False", "DrainBlocked").await;
    assert!(message(&binding, "Drained").contains("kube-bind.io/keep-copies=true"), "{binding}");
    assert!(world.consumer.get(&sheriffs(), None, "wyatt").await.is_some());
    keep_copies(&world).await;
    is_gone(&world).await;
    provider.cluster.plane().endpoints()[0].start().await.unwrap();
    assert!(provider.cluster.get(&sheriffs(), None, COPY).await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_stay_where_somebody_says_so() {
    let (world, provider) = world().await;
    keep_copies(&world).await;
    world.consumer.delete(&bindings(), None, "sheriffs").await;
    is_gone(&world).await;
    let copy = provider.cluster.get(&sheriffs(), None, COPY).await.unwrap();
    assert!(copy["metadata"].get("deletionTimestamp").is_none(), "{copy}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_does_not_go_holds_everything_up() {
    let (world, provider) = world().await;
    let held = json!({"metadata": {"finalizers": ["wild.io/hideout"]}});
    provider.cluster.client.merge_patch(&sheriffs(), None, COPY, &held).await.unwrap();
    world.consumer.delete(&bindings(), None, "sheriffs").await;
    provider.cluster.until(&sheriffs(), None, COPY, |copy| copy["metadata"]["deletionTimestamp"].is_string()).await;
    let binding = world.binding("sheriffs", "Drained", "False", "Draining").await;
    assert_eq!(message(&binding, "Drained"), "the copies on the provider are being deleted");
    assert!(world.consumer.get(&sheriffs(), None, "wyatt").await.is_some());
    let free = json!({"metadata": {"finalizers": null}});
    provider.cluster.client.merge_patch(&sheriffs(), None, COPY, &free).await.unwrap();
    is_gone(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_secret_a_binding_stays_until_somebody_says_that_copies_may() {
    let (world, _provider) = world().await;
    world.consumer.delete(&secrets(), Some("kube-bind"), "provider").await;
    world.binding("sheriffs", "SecretValid", "False", "KubeconfigSecretNotFound").await;
    world.consumer.delete(&bindings(), None, "sheriffs").await;
    world.binding("sheriffs", "Drained", "False", "DrainBlocked").await;
    assert!(world.consumer.get(&sheriffs(), None, "wyatt").await.is_some());
    keep_copies(&world).await;
    is_gone(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binding_that_never_worked_goes_at_once() {
    let world = World::start().await;
    world.bind("sheriffs", "nowhere").await;
    world.binding("sheriffs", "SecretValid", "False", "KubeconfigSecretNotFound").await;
    world.consumer.delete(&bindings(), None, "sheriffs").await;
    world.consumer.until_gone(&bindings(), None, "sheriffs").await;
    // Nor is one held up whose export never came.
    let provider = Provider::start("c-1").await;
    world.store("provider", &provider).await;
    world.bind("cowboys", "provider").await;
    let pinned = |it: &Value| {
        it["metadata"]["finalizers"].is_array() && has(it, "Connected", "False", "APIServiceExportNotFound")
    };
    world.consumer.until(&bindings(), None, "cowboys", pinned).await;
    world.consumer.delete(&bindings(), None, "cowboys").await;
    world.consumer.until_gone(&bindings(), None, "cowboys").await;
}
