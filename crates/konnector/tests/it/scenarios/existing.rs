//! What an account had before, on a cluster that binds it: by annotation of the bundle or the binding, and with no more rights than that needs.

use serde_json::{Value, json};

use super::world::{World, has, message};
use crate::clusters::{Provider, bindings, bundles, crd, crd_kind, sheriffs};

const ANNOTATION: &str = "kube-bind.io/existing-objects";

fn object(kind: &str, name: &str, existing: &Value) -> Value {
    json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": kind, "metadata": {"name": name, "annotations": {ANNOTATION: existing}},
        "spec": {"kubeconfigSecretRef": {"namespace": "kube-bind", "name": "provider", "key": "kubeconfig"}}})
}

/// A provider with a sheriff of its own, at the place that belongs to the contract, and one elsewhere.
async fn world() -> (World, Provider) {
    let (world, provider) = (World::start().await, Provider::start("c-1").await);
    provider.export("sheriffs").await;
    let established = |crd: &Value| {
        let mut conditions = crd["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|it| it["type"] == "Established" && it["status"] == "True")
    };
    provider.cluster.until(&crd_kind(), None, "sheriffs.wild.io", established).await;
    for name in ["c-1-wyatt", "c-2-doc"] {
        let sheriff = json!({"apiVersion": "wild.io/v1", "kind": "Sheriff", "metadata": {"name": name}, "spec": {"intent": "peace"}});
        provider.cluster.client.create(&sheriffs(), None, &sheriff).await.unwrap();
    }
    world.store("provider", &provider).await;
    (world, provider)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_shows_what_the_account_has_and_new_apis_too() {
    let (world, provider) = world().await;
    world.consumer.apply(&bundles(), &object("APIServiceBindingBundle", "all", &json!("Show"))).await;
    world.ready("sheriffs").await;
    let shown = |it: &Value| it["spec"]["intent"] == "peace";
    world.consumer.until(&sheriffs(), None, "wyatt", shown).await;
    let list = world.consumer.client.list(&sheriffs(), None, &carrick_client::ListOptions::default()).await.unwrap();
    assert_eq!(list.len(), 1, "what does not map back belongs to somebody else: {list:#?}");
    provider.export_crd("cowboys", &crd("cowboys", "Cowboy")).await;
    world.ready("cowboys").await;
    let recordings = world.record(&provider);
    assert_eq!(recordings.silence().await, Vec::<String>::new());
    provider.cluster.delete(&sheriffs(), None, "c-1-wyatt").await;
    world.consumer.until_gone(&sheriffs(), None, "wyatt").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binding_adopts_what_the_account_has_and_unbinding_may_leave_it_there() {
    let (world, provider) = world().await;
    world.consumer.apply(&bindings(), &object("APIServiceBinding", "sheriffs", &json!("Adopt"))).await;
    world.ready("sheriffs").await;
    let ours = |it: &Value| it["metadata"]["annotations"]["kube-bind.io/cluster-namespace"] == "c-1";
    provider.cluster.until(&sheriffs(), None, "c-1-wyatt", ours).await;
    let patch = json!({"spec": {"intent": "law"}});
    world.consumer.client.merge_patch(&sheriffs(), None, "wyatt", &patch).await.unwrap();
    provider.cluster.until(&sheriffs(), None, "c-1-wyatt", |it| it["spec"]["intent"] == "law").await;
    let keep = json!({"metadata": {"annotations": {"kube-bind.io/keep-copies": "true"}}});
    world.consumer.client.merge_patch(&bindings(), None, "sheriffs", &keep).await.unwrap();
    world.consumer.delete(&bindings(), None, "sheriffs").await;
    world.consumer.until_gone(&bindings(), None, "sheriffs").await;
    assert!(provider.cluster.get(&sheriffs(), None, "c-1-wyatt").await.is_some());
    let other = provider.cluster.get(&sheriffs(), None, "c-2-doc").await.unwrap();
    assert_eq!(other["metadata"].get("annotations"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_that_nobody_knows_becomes_a_condition_with_those_that_there_are() {
    let (world, _provider) = world().await;
    world.consumer.apply(&bindings(), &object("APIServiceBinding", "sheriffs", &json!("show"))).await;
    let binding = world.binding("sheriffs", "ExistingObjects", "False", "UnknownExistingObjects").await;
    let words = message(&binding, "ExistingObjects");
    assert!(words.contains("\"show\"") && words.contains("Show or Adopt"), "{words}");
    let binding = world.binding("sheriffs", "InformersSynced", "True", "").await;
    assert!(has(&binding, "Ready", "False", "UnknownExistingObjects"));
    assert_eq!(world.consumer.get(&sheriffs(), None, "wyatt").await, None);
    let right = json!({"metadata": {"annotations": {ANNOTATION: "Show"}}});
    world.consumer.client.merge_patch(&bindings(), None, "sheriffs", &right).await.unwrap();
    world.consumer.until(&sheriffs(), None, "wyatt", |it| it["spec"]["intent"] == "peace").await;
    let binding = world.ready("sheriffs").await;
    assert_eq!(message(&binding, "ExistingObjects"), "");
}
