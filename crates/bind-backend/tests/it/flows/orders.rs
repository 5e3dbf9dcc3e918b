//! What may be left out of an order.

use carrick_bind_api::kinds;
use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_bind_backend::provider::{BindOrder, Provider as _};
use serde_json::json;

use super::world::{Provider, as_consumer, namespaces, of};

const PRETTY_NAME: &str = "backend.kube-bind.io/cluster-pretty-name";

fn order(identity: &str, name: &str, pretty_name: &str) -> BindOrder {
    BindOrder {
        name: name.to_owned(),
        template: "sheriffs".to_owned(),
        identity: identity.to_owned(),
        pretty_name: pretty_name.to_owned(),
        author: "https://issuer/jane".to_owned(),
        subject: "jane".to_owned(),
        request_export: false,
    }
}

async fn provider() -> Provider {
    let provider = Provider::start(InformerScope::Namespaced, Isolation::Prefixed).await;
    provider.offer("sheriffs", "Sheriff", "Cluster").await;
    let template = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportTemplate", "metadata": {"name": "sheriffs"},
        "spec": {"scope": "Cluster", "resources": [{"group": "wild.io", "resource": "sheriffs", "versions": ["v1"]}]}});
    provider.cluster.apply(&of(kinds::API_SERVICE_EXPORT_TEMPLATE), &template).await;
    provider
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_without_a_name_is_carried_out_under_a_name_that_the_server_makes() {
    let provider = provider().await;
    let front = provider.front();
    let bound = front.bind("", &order("one", "", "")).await.unwrap();
    let asked = &bound.requests[0];
    assert_eq!(asked["metadata"], json!({"generateName": "export-"}), "command lines create it themselves");
    let client = as_consumer(std::str::from_utf8(&bound.kubeconfig).unwrap());
    let requests = of(kinds::API_SERVICE_EXPORT_REQUEST);
    let made = client.create(&requests, Some(&bound.namespace), asked).await.unwrap();
    let name = made["metadata"]["name"].as_str().unwrap();
    let succeeded = |request: &serde_json::Value| request["status"]["phase"] == "Succeeded";
    provider.cluster.until(&requests, Some(&bound.namespace), name, succeeded).await;
    let by_page = BindOrder { request_export: true, ..order("two", "", "") };
    let bound = front.bind("", &by_page).await.unwrap();
    let name = bound.binding_name.unwrap();
    assert!(name.starts_with("export-"), "{name}");
    let exports = of(kinds::API_SERVICE_EXPORT);
    let client = as_consumer(std::str::from_utf8(&bound.kubeconfig).unwrap());
    assert!(client.get(&exports, Some(&bound.namespace), "sheriffs.wild.io").await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_called_like_the_first_order_unless_its_owner_says_a_name() {
    let provider = provider().await;
    let front = provider.front();
    let mut seen = Vec::new();
    for (identity, name, pretty_name) in [("one", "mine", "My laptop"), ("two", "mine", ""), ("three", "", "")] {
        let bound = front.bind("", &order(identity, name, pretty_name)).await.unwrap();
        let read = provider.cluster.get(&namespaces(), None, &bound.namespace).await.unwrap();
        seen.push(read["metadata"]["annotations"][PRETTY_NAME].as_str().map(str::to_owned));
        let again = front.bind("", &order(identity, "other", "Another name")).await.unwrap();
        let after = provider.cluster.get(&namespaces(), None, &again.namespace).await.unwrap();
        let names = [&read, &after].map(|namespace| namespace["metadata"]["annotations"][PRETTY_NAME].clone());
        assert_eq!(names[0], names[1], "later orders do not rename it");
    }
    let expected = [Some("My laptop"), Some("mine"), None].map(|name| name.map(str::to_owned));
    assert_eq!(seen, expected);
}
