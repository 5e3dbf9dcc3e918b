//! What claims never reach, whatever they select: credentials of the consumer, its namespaces, and what it has not asked for itself.

use carrick_bind_api::existing::Existing;
use carrick_bind_api::v1alpha2::InformerScope;
use carrick_client::Resource;
use carrick_konnector::agent::objects::SyncMode;
use serde_json::{Value, json};

use super::world::{Shape, World, namespaces, secret, secrets, service_namespaces, until};

/// A claim that selects every Secret there is.
fn everything() -> Value {
    json!({"group": "", "resource": "secrets", "selector": {"labelSelector": {}}})
}

fn by_label() -> Value {
    json!({"group": "", "resource": "secrets", "selector": {"labelSelector": {"matchLabels": {"app": "shop"}}}})
}

fn by_reference() -> Value {
    json!({"group": "", "resource": "secrets", "selector": {"references": [
        {"group": "example.io", "resource": "widgets", "jsonPath": {"name": "spec.secrets.#.name", "namespace": "metadata.namespace"}}]}})
}

async fn world(claims: &[Value], existing: Existing) -> World {
    let mut world = World::at_rest(Shape::namespaced(InformerScope::Namespaced)).await;
    world.existing = existing;
    world.want(SyncMode::Keep, claims);
    world
}

async fn start(world: &mut World) {
    world.start();
    world.until_told("all is known", |told| told.informers_synced.is_ok()).await;
}

async fn create(world: &World, namespace: &str, object: &Value) {
    let made = json!({"metadata": {"name": namespace}});
    let _ = world.here.create(&namespaces(), None, &made).await;
    world.here.create(&secrets(), Some(namespace), object).await.unwrap();
}

/// The provider hands over a namespace of its choice.
async fn assign(world: &World, namespace: &str) {
    let object =
        json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceNamespace", "metadata": {"name": namespace}});
    world.there.create(&service_namespaces(), Some("c-1"), &object).await.unwrap();
    let assigned = format!("c-1-{namespace}");
    until("it is assigned", async || world.there.get(&namespaces(), None, &assigned).await.unwrap().is_some()).await;
}

async fn there(world: &World, namespace: &str, name: &str) -> Option<Value> {
    world.there.get(&secrets(), Some(&format!("c-1-{namespace}")), name).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_of_the_consumer_never_travel_whatever_is_selected() {
    let mut world = world(&[everything()], Existing::Leave).await;
    let data = json!({"key": "c2VjcmV0"});
    let accounts = Resource::namespaced("", "v1", "ServiceAccount", "serviceaccounts");
    world.here.create(&accounts, Some("team"), &json!({"metadata": {"name": "admin"}})).await.unwrap();
    let mut token = secret("token", &data, &json!({"app": "shop"}));
    token["type"] = json!("kubernetes.io/service-account-token");
    token["metadata"]["annotations"] = json!({"kubernetes.io/service-account.name": "admin"});
    create(&world, "team", &token).await;
    create(&world, "team", &secret("kubeconfig", &data, &json!({"kube-bind.io/provider-kubeconfig": "true"}))).await;
    create(&world, "kube-system", &secret("system", &data, &json!({}))).await;
    create(&world, "kube-bind", &secret("own", &data, &json!({}))).await;
    for namespace in ["team", "kube-system", "kube-bind"] {
        assign(&world, namespace).await;
    }
    start(&mut world).await;
    // What may travel comes last, so that the others had their chance.
    create(&world, "team", &secret("plain", &data, &json!({}))).await;
    until("what may travel does", async || there(&world, "team", "plain").await.is_some()).await;
    world.calm().await;
    for (namespace, name) in
        [("team", "token"), ("team", "kubeconfig"), ("kube-system", "system"), ("kube-bind", "own")]
    {
        assert_eq!(there(&world, namespace, name).await, None, "{namespace}/{name} has left the cluster");
        let here = world.here.get(&secrets(), Some(namespace), name).await.unwrap().unwrap();
        assert_eq!(here["metadata"]["labels"]["kube-bind.io/owner"], Value::Null, "{namespace}/{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_credentials_that_was_made_before_is_taken_back() {
    let mut world = world(&[everything()], Existing::Leave).await;
    let labels = json!({"kube-bind.io/owner": "consumer", "kube-bind.io/provider-kubeconfig": "true"});
    let mut token = secret("token", &json!({"key": "c2VjcmV0"}), &labels);
    create(&world, "team", &token).await;
    assign(&world, "team").await;
    let uid = world.secret_here("token").await.unwrap()["metadata"]["uid"].clone();
    token["metadata"]["annotations"] = json!({"kube-bind.io/cluster-namespace": "c-1", "kube-bind.io/consumer-namespace": "team", "kube-bind.io/consumer-uid": uid});
    world.there.create(&secrets(), Some("c-1-team"), &token).await.unwrap();
    start(&mut world).await;
    until("the copy is gone", async || world.secret_there("token").await.is_none()).await;
    assert!(world.secret_here("token").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_writes_only_where_the_consumer_uses_its_api_or_says_so() {
    let mut world = world(&[by_label()], Existing::Leave).await;
    for namespace in ["argocd", "shared"] {
        world.here.create(&namespaces(), None, &json!({"metadata": {"name": namespace}})).await.unwrap();
    }
    start(&mut world).await;
    for namespace in ["argocd", "shared", "team"] {
        assign(&world, namespace).await;
        let planted = secret("planted", &json!({"key": "YmFpdA=="}), &json!({"app": "shop"}));
        world.there.create(&secrets(), Some(&format!("c-1-{namespace}")), &planted).await.unwrap();
    }
    world.until_told("all three are refused", |told| told.conflicts.len() == 3).await;
    let told = world.told().unwrap().conflicts.join("\n");
    assert!(told.contains("kubectl label namespace argocd kube-bind.io/provider-writes=c-1"), "{told}");
    let here = async |namespace: &str| world.here.get(&secrets(), Some(namespace), "planted").await.unwrap();
    // One is used, one is labelled.
    world.order("db", &json!({})).await;
    until("it comes where the API is used", async || here("team").await.is_some()).await;
    let labels = json!({"metadata": {"labels": {"kube-bind.io/provider-writes": "c-1"}}});
    world.here.merge_patch(&namespaces(), None, "shared", &labels).await.unwrap();
    until("it comes where it is allowed", async || here("shared").await.is_some()).await;
    world.calm().await;
    assert_eq!(here("argocd").await, None);
    assert_eq!(world.told().unwrap().conflicts.len(), 1);
    // What has come stays in line with its source.
    world.cancel("db").await;
    world.until_gone("db").await;
    let change = json!({"data": {"key": "bmV3"}});
    world.there.merge_patch(&secrets(), Some("c-1-team"), "planted", &change).await.unwrap();
    until("it follows", async || here("team").await.is_some_and(|it| it["data"] == json!({"key": "bmV3"}))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_provider_has_made_itself_selects_nothing_and_uses_no_namespace() {
    for existing in [Existing::Show, Existing::Adopt] {
        let mut world = world(&[by_reference(), by_label()], existing).await;
        assign(&world, "team").await;
        create(&world, "team", &secret("admin", &json!({"key": "c2VjcmV0"}), &json!({}))).await;
        let bait = json!({"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": "bait"},
            "spec": {"secrets": [{"name": "admin"}]}});
        world.there.create(&world.widgets()[1], Some("c-1-team"), &bait).await.unwrap();
        let planted = secret("planted", &json!({"key": "YmFpdA=="}), &json!({"app": "shop"}));
        world.there.create(&secrets(), Some("c-1-team"), &planted).await.unwrap();
        start(&mut world).await;
        until("the bait is here", async || world.source("bait").await.is_some()).await;
        world.until_told("the plant is refused", |told| told.conflicts.len() == 1).await;
        world.calm().await;
        assert_eq!(world.secret_there("admin").await, None, "{existing}");
        assert_eq!(world.secret_here("planted").await, None, "{existing}");
        // The consumer's own object selects.
        world.order("db", &json!({"secrets": [{"name": "admin"}]})).await;
        until("it is copied", async || world.secret_there("admin").await.is_some()).await;
        until("it comes", async || world.secret_here("planted").await.is_some()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_another_konnector_has_left_is_not_copied_back() {
    let mut world = world(&[by_label()], Existing::Leave).await;
    world.order("db", &json!({})).await;
    assign(&world, "team").await;
    // As kube-bind's konnector leaves it, which does not name the contract.
    let mut left = secret("left", &json!({"key": "b2xk"}), &json!({"app": "shop", "kube-bind.io/owner": "consumer"}));
    left["metadata"]["annotations"] =
        json!({"kube-bind.io/consumer-namespace": "team", "kube-bind.io/consumer-uid": "gone"});
    world.there.create(&secrets(), Some("c-1-team"), &left).await.unwrap();
    start(&mut world).await;
    let own = secret("own", &json!({"key": "bmV3"}), &json!({"app": "shop"}));
    world.there.create(&secrets(), Some("c-1-team"), &own).await.unwrap();
    until("the provider's own one comes", async || world.secret_here("own").await.is_some()).await;
    world.calm().await;
    assert_eq!(world.secret_here("left").await, None, "a Secret that was deleted here has come back");
}
