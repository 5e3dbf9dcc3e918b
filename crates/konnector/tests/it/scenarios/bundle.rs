//! Bundles: one Secret, all exports.

use carrick_plane::faults::{Effect, Match, Rule};
use serde_json::Value;

use super::world::{World, has, message};
use crate::clusters::{Provider, bindings, bundles, cluster_bindings, crd, crd_kind, exports};

async fn world() -> (World, Provider) {
    let (world, provider) = (World::start().await, Provider::start("c-1").await);
    provider.export("sheriffs").await;
    world.store("provider", &provider).await;
    world.bundle("all", "provider").await;
    world.ready("sheriffs").await;
    (world, provider)
}

fn synced(bundle: &Value) -> bool {
    has(bundle, "Ready", "True", "") && has(bundle, "Synced", "True", "") && has(bundle, "SecretValid", "True", "")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_follows_the_exports_of_its_contract() {
    let (world, provider) = world().await;
    let bundle = world.consumer.until(&bundles(), None, "all", synced).await;
    let binding = world.consumer.get(&bindings(), None, "sheriffs").await.unwrap();
    assert_eq!(binding["metadata"]["ownerReferences"][0]["uid"], bundle["metadata"]["uid"]);
    provider.export_crd("cowboys", &crd("cowboys", "Cowboy")).await;
    world.ready("cowboys").await;
    provider.cluster.delete(&exports(), Some("c-1"), "cowboys").await;
    world.consumer.until_gone(&bindings(), None, "cowboys").await;
    world.consumer.until_gone(&crd_kind(), None, "cowboys.wild.io").await;
    world.ready("sheriffs").await;
    world.consumer.until(&bundles(), None, "all", synced).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_contract_and_a_lost_right_delete_nothing() {
    let (world, provider) = world().await;
    let at = Some("c-1");
    // The right to list exports is gone.
    let refused = Match::any().resource("kube-bind.io", "apiserviceexports").verbs(&["list", "watch"]);
    let rule = provider.cluster.plane().faults().add(Rule::new(refused.clone(), Effect::refuse(403)));
    provider.cluster.plane().faults().cut_watches(&refused);
    let bundle =
        world.consumer.until(&bundles(), None, "all", |it| has(it, "Synced", "False", "ListExportsFailed")).await;
    assert!(message(&bundle, "Synced").contains("so no binding is deleted"), "{bundle}");
    provider.cluster.plane().faults().remove(rule);
    world.consumer.until(&bundles(), None, "all", synced).await;

    // The ClusterBinding is gone, and with it the exports: no empty list to be believed.
    provider.cluster.delete(&cluster_bindings(), at, "cluster").await;
    provider.cluster.delete(&exports(), at, "sheriffs").await;
    world.binding("sheriffs", "Heartbeating", "False", "ClusterBindingUpdateFailed").await;
    // A contract of the same name that is another one is not believed either.
    provider.write_contract("Somebody else").await;
    let binding = world.binding("sheriffs", "Connected", "False", "ContractChanged").await;
    assert!(binding["metadata"].get("deletionTimestamp").is_none());
    let bundle = world.consumer.until(&bundles(), None, "all", |it| has(it, "Synced", "False", "SyncErrors")).await;
    assert!(message(&bundle, "Synced").contains("is kept"), "{bundle}");
    assert!(world.consumer.get(&crd_kind(), None, "sheriffs.wild.io").await.is_some());
}
