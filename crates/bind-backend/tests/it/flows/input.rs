//! Bad input, and much of it.

use carrick_bind_api::kinds;
use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_client::Resource;
use serde_json::{Value, json};

use super::world::{Provider, as_consumer, has, namespaces, of, request, secrets};

fn contracts(all: &[Value]) -> usize {
    all.iter().filter(|it| it["metadata"]["annotations"]["backend.kube-bind.io/identity"].is_string()).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_said_and_makes_nothing() {
    let provider = Provider::start(InformerScope::Namespaced, Isolation::Prefixed).await;
    let mut unknown = request("unknown", "one", "jane");
    unknown["spec"]["templateRef"] = json!({"name": "nothing"});
    provider.ask(&unknown).await;
    let failed = provider.until_request("unknown", "Failed").await;
    assert!(has(&failed, "Ready", "False", "TemplateNotFound"), "{failed}");
    let all = provider.cluster.client.list(&namespaces(), None, &carrick_client::ListOptions::default()).await.unwrap();
    assert_eq!(contracts(&all), 0);
    // Somebody else's identity.
    provider.contract("one").await;
    let elsewhere = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}});
    provider.cluster.apply(&namespaces(), &elsewhere).await;
    let mut stranger = request("stranger", "one", "jane");
    stranger["metadata"]["namespace"] = "elsewhere".into();
    provider.ask(&stranger).await;
    let requests = of(kinds::BINDABLE_RESOURCES_REQUEST);
    let refused = |it: &Value| has(it, "Ready", "False", "IdentityTaken") && it["status"]["phase"] == "Failed";
    provider.cluster.until(&requests, Some("elsewhere"), "stranger", refused).await;
    assert_eq!(provider.cluster.get(&secrets(), Some("elsewhere"), "stranger-binding-response").await, None);
    // Somebody else's Secret.
    let theirs = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "theirs", "namespace": "default"}, "data": {"a": "YQ=="}});
    provider.cluster.apply(&secrets(), &theirs).await;
    let mut greedy = request("greedy", "one", "jane");
    greedy["spec"]["kubeconfigSecretRef"] = json!({"name": "theirs", "key": "kubeconfig"});
    provider.ask(&greedy).await;
    let resource = of(kinds::BINDABLE_RESOURCES_REQUEST);
    let refused = |it: &Value| has(it, "Ready", "False", "SecretCreationFailed");
    provider.cluster.until(&resource, Some("default"), "greedy", refused).await;
    let secret = provider.cluster.get(&secrets(), Some("default"), "theirs").await.unwrap();
    assert_eq!((secret["data"].clone(), secret["metadata"].get("ownerReferences")), (json!({"a": "YQ=="}), None));
    // A namespace that is no contract.
    let taken = carrick_bind_api::identity::contract_namespace("cluster-", "two");
    provider
        .cluster
        .apply(&namespaces(), &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": taken}}))
        .await;
    provider.ask(&request("two", "two", "jane")).await;
    let refused = |it: &Value| has(it, "Ready", "False", "HandleResourcesFailed");
    provider.cluster.until(&resource, Some("default"), "two", refused).await;
    let namespace = provider.cluster.get(&namespaces(), None, &taken).await.unwrap();
    assert!(namespace["metadata"]["annotations"]["backend.kube-bind.io/identity"].is_null());
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_requests_at_once_are_twenty_contracts_or_one() {
    let provider = Provider::start(InformerScope::Namespaced, Isolation::Prefixed).await;
    let names: Vec<String> = (0..20).map(|at| format!("r{at}")).collect();
    futures::future::join_all(names.iter().enumerate().map(async |(at, name)| {
        let identity = if at % 2 == 0 { "shared".to_owned() } else { format!("own-{at}") };
        let mut request = request(name, &identity, "jane");
        request["spec"]["ttlAfterFinished"] = json!("1s");
        let resource = of(kinds::BINDABLE_RESOURCES_REQUEST);
        provider.cluster.client.create(&resource, Some("default"), &request).await.unwrap();
    }))
    .await;
    // They go by themselves, and their Secrets with them.
    for name in &names {
        provider.cluster.until_gone(&of(kinds::BINDABLE_RESOURCES_REQUEST), Some("default"), name).await;
        provider.cluster.until_gone(&secrets(), Some("default"), &format!("{name}-binding-response")).await;
    }
    let all = provider.cluster.client.list(&namespaces(), None, &carrick_client::ListOptions::default()).await.unwrap();
    assert_eq!(contracts(&all), 11);
    assert_eq!(provider.writes().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_of_the_provider_are_not_given_away() {
    let provider = Provider::start(InformerScope::Namespaced, Isolation::None).await;
    provider.offer("cowboys", "Cowboy", "Namespaced").await;
    let (contract, kubeconfig) = provider.contract("one").await;
    let consumer = as_consumer(&kubeconfig);
    let (resource, at) = (of(kinds::API_SERVICE_NAMESPACE), Some(contract.as_str()));
    for name in ["kube-system", "default"] {
        let object =
            json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceNamespace", "metadata": {"name": name}});
        consumer.create(&resource, at, &object).await.unwrap();
        let refused = |it: &Value| has(it, "Assigned", "False", "NamespaceRefused");
        let refused = provider.cluster.until(&resource, at, name, refused).await;
        assert!(refused["status"]["namespace"].is_null(), "{refused}");
        consumer.delete(&resource, at, name, &carrick_client::DeleteOptions::default()).await.unwrap();
        provider.cluster.until_gone(&resource, at, name).await;
        assert!(provider.cluster.get(&namespaces(), None, name).await.is_some());
    }
    // In a request as well.
    let request = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportRequest", "metadata": {"name": "r", "namespace": contract},
        "spec": {"resources": [{"group": "wild.io", "resource": "cowboys", "versions": ["v1"]}], "namespaces": [{"name": "kube-system"}]}});
    provider.cluster.apply(&of(kinds::API_SERVICE_EXPORT_REQUEST), &request).await;
    let failed = |it: &Value| it["status"]["phase"] == "Failed" && has(it, "Ready", "False", "InvalidNamespace");
    provider.cluster.until(&of(kinds::API_SERVICE_EXPORT_REQUEST), at, "r", failed).await;
    // One that is new is assigned, and goes with its object.
    let object =
        json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceNamespace", "metadata": {"name": "team"}});
    consumer.create(&resource, at, &object).await.unwrap();
    provider.cluster.until(&resource, at, "team", |it| it["status"]["namespace"] == "team").await;
    consumer.delete(&resource, at, "team", &carrick_client::DeleteOptions::default()).await.unwrap();
    provider.cluster.until_gone(&namespaces(), None, "team").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_too_long_are_said_and_hold_up_nobody_else() {
    let provider = Provider::start(InformerScope::Namespaced, Isolation::Prefixed).await;
    provider.offer("cowboys", "Cowboy", "Namespaced").await;
    let (contract, kubeconfig) = provider.contract("one").await;
    let (consumer, at) = (as_consumer(&kubeconfig), Some(contract.as_str()));
    // Its own name is fine, but no namespace of the provider could be called after it.
    let long = "x".repeat(63);
    let spaces = of(kinds::API_SERVICE_NAMESPACE);
    let space = |name: &str| json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceNamespace", "metadata": {"name": name}});
    consumer.create(&spaces, at, &space(&long)).await.unwrap();
    let refused = |it: &Value| has(it, "Assigned", "False", "NamespaceRefused");
    let refused = provider.cluster.until(&spaces, at, &long, refused).await;
    assert!(refused["status"]["namespace"].is_null() && refused.to_string().contains("63"), "{refused}");
    let request = |name: &str, namespace: &str| {
        json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportRequest", "metadata": {"name": name, "namespace": contract},
            "spec": {"resources": [{"group": "wild.io", "resource": "cowboys", "versions": ["v1"]}], "namespaces": [{"name": namespace}]}})
    };
    let requests = of(kinds::API_SERVICE_EXPORT_REQUEST);
    provider.cluster.apply(&requests, &request("long", &long)).await;
    let failed = |it: &Value| it["status"]["phase"] == "Failed" && has(it, "Ready", "False", "InvalidNamespace");
    provider.cluster.until(&requests, at, "long", failed).await;
    // Others get what they asked for, also under a name of a binding that fills a whole object's name.
    let name = "b".repeat(250);
    provider.cluster.apply(&requests, &request(&name, "team")).await;
    provider.cluster.until(&requests, at, &name, |it| it["status"]["phase"] == "Succeeded").await;
    provider.cluster.until(&spaces, at, "team", |it| it["status"]["namespace"] == format!("{contract}-team")).await;
    let role = Resource::namespaced("rbac.authorization.k8s.io", "v1", "Role", "roles");
    let name = format!("kube-binder-resources-{name}");
    provider.cluster.until(&role, Some(&format!("{contract}-team")), &name, |_| true).await;
}

/// Objects as kube-bind's typed clients in Go write them: fields that nobody has set are there, and empty.
const GO: &str = include_str!("../../golden/go-objects.json");

#[tokio::test(flavor = "multi_thread")]
async fn what_typed_clients_in_go_write_is_taken_as_kube_binds_own_crds_take_it() {
    let provider = Provider::start(InformerScope::Namespaced, Isolation::Prefixed).await;
    for crd in carrick_bind_api::crds::consumer() {
        provider.cluster.apply(&super::world::crd_kind(), &crd).await;
        let name = crd["metadata"]["name"].as_str().unwrap();
        provider.cluster.until(&super::world::crd_kind(), None, name, super::world::established).await;
    }
    let objects: Vec<Value> = serde_json::from_str(GO).unwrap();
    let mut refused = Vec::new();
    for object in &objects {
        let kind = kinds::ALL.iter().find(|kind| object["kind"] == kind.kind).unwrap();
        let namespace = object["metadata"]["namespace"].as_str();
        if let Err(error) = provider.cluster.client.create(&of(*kind), namespace, object).await {
            refused.push(error.to_string());
        }
    }
    assert_eq!(refused, Vec::<String>::new());
    // No template is no template, and a request has a status as soon as it is there.
    let failed = provider.until_request("no-template", "Failed").await;
    assert!(has(&failed, "Ready", "False", "InvalidRequest"), "{failed}");
    let mut plain = request("empty-template", "one", "jane");
    plain["spec"]["templateRef"] = json!({"name": ""});
    provider.ask(&plain).await;
    provider.until_request("empty-template", "Succeeded").await;
}
