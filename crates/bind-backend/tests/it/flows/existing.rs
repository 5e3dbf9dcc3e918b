//! Objects that the provider had before, and two consumers that would like to have them.

use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_bind_api::{existing, kinds};
use carrick_client::{Client, Error, Resource};
use serde_json::{Value, json};

use super::world::{Consumer, Provider, as_consumer, has, of, thing, things};

const MARK: &str = "kube-bind.io/cluster-namespace";

fn sheriffs() -> Resource {
    things("sheriffs", "Sheriff", false)
}

fn adopts() -> Value {
    json!({existing::EXISTING_OBJECTS_ANNOTATION: "Adopt"})
}

/// A contract with a consumer that adopts what is there.
async fn adopter(provider: &Provider, identity: &str) -> (String, Consumer, Client) {
    let (contract, kubeconfig) = provider.contract(identity).await;
    let consumer = Consumer::with(&kubeconfig, adopts()).await;
    provider.export(&contract, "sheriffs", json!([])).await;
    consumer.until_bound("sheriffs").await;
    (contract, consumer, as_consumer(&kubeconfig))
}

/// Somebody tries to mark an object as its own.
async fn steal(client: &Client, name: &str, contract: &str) -> Result<Value, Error> {
    client.merge_patch(&sheriffs(), None, name, &json!({"metadata": {"annotations": {MARK: contract}}})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_prefixes_a_provider_says_who_may_adopt_an_object_and_nobody_else_can() {
    let provider = Provider::start(InformerScope::Cluster, Isolation::None).await;
    provider.offer("sheriffs", "Sheriff", "Cluster").await;
    provider.cluster.apply(&sheriffs(), &thing("Sheriff", None, "wyatt")).await;
    let (contract, consumer, client) = adopter(&provider, "one").await;
    let (other, _second, stranger) = adopter(&provider, "two").await;
    // Nobody has been allowed to: the consumer is told what has to be done.
    let told = |it: &Value| {
        has(it, "ObjectsSynced", "False", "ObjectsFailing") && it.to_string().contains("kube-bind.io/adoptable=")
    };
    consumer.cluster.until(&of(kinds::API_SERVICE_BINDING), None, "sheriffs", told).await;
    assert!(steal(&client, "wyatt", &contract).await.is_err_and(|error| error.is_forbidden()));
    let consent = json!({"metadata": {"annotations": {existing::ADOPTABLE_ANNOTATION: contract}}});
    provider.cluster.client.merge_patch(&sheriffs(), None, "wyatt", &consent).await.unwrap();
    assert!(steal(&stranger, "wyatt", &other).await.is_err_and(|error| error.is_forbidden()), "it is for another one");
    let mine = |it: &Value| it["metadata"]["annotations"][MARK] == contract.as_str();
    provider.cluster.until(&sheriffs(), None, "wyatt", mine).await;
    assert!(steal(&stranger, "wyatt", &other).await.is_err_and(|error| error.is_forbidden()), "it is taken");
    let patch = json!({"spec": {"intent": "mine"}});
    consumer.cluster.client.merge_patch(&sheriffs(), None, "wyatt", &patch).await.unwrap();
    provider.cluster.until(&sheriffs(), None, "wyatt", |it| it["spec"]["intent"] == "mine").await;
    consumer.cluster.until(&of(kinds::API_SERVICE_BINDING), None, "sheriffs", |it| !told(it)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_prefixes_a_name_says_who_may_adopt_an_object() {
    let provider = Provider::start(InformerScope::Namespaced, Isolation::Prefixed).await;
    provider.offer("sheriffs", "Sheriff", "Cluster").await;
    let (contract, consumer, _) = adopter(&provider, "one").await;
    let (other, _second, stranger) = adopter(&provider, "two").await;
    let name = format!("{contract}-wyatt");
    provider.cluster.apply(&sheriffs(), &thing("Sheriff", None, &name)).await;
    assert!(steal(&stranger, &name, &other).await.is_err_and(|error| error.is_forbidden()));
    consumer.cluster.until(&sheriffs(), None, "wyatt", |it| it["spec"]["intent"] == "x").await;
    provider
        .cluster
        .until(&sheriffs(), None, &name, |it| it["metadata"]["annotations"][MARK] == contract.as_str())
        .await;
    consumer.cluster.delete(&sheriffs(), None, "wyatt").await;
    provider.cluster.until_gone(&sheriffs(), None, &name).await;
    // What has no prefix is nobody's.
    provider.cluster.apply(&sheriffs(), &thing("Sheriff", None, "doc")).await;
    for (client, contract) in [(&stranger, &other)] {
        assert!(steal(client, "doc", contract).await.is_err_and(|error| error.is_forbidden()));
    }
}
