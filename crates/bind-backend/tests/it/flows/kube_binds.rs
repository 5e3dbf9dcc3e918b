//! What kube-bind's own backend and CRDs leave behind, and what ours does with it.

use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_bind_backend::provider::{Person, Provider as _};
use carrick_client::{Client, Resource};
use data_encoding::BASE64;
use serde_json::{Value, json};

use super::world::{Provider, crd_kind, established, secrets};

fn clusters() -> Resource {
    Resource::cluster_wide("kube-bind.io", "v1alpha2", "Cluster", "clusters")
}

fn role_bindings() -> Resource {
    Resource::namespaced("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")
}

async fn authority(client: &Client, contract: &str) -> Option<String> {
    let secret = client.get(&secrets(), Some(contract), "kubeconfig").await.unwrap()?;
    let text = BASE64.decode(secret["data"]["kubeconfig"].as_str()?.as_bytes()).unwrap();
    let config = carrick_json::yaml::value(std::str::from_utf8(&text).unwrap()).unwrap();
    let encoded = config["clusters"][0]["cluster"]["certificate-authority-data"].as_str()?.to_owned();
    Some(String::from_utf8(BASE64.decode(encoded.as_bytes()).unwrap()).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_with_kube_binds_crds_is_served_although_one_is_missing_and_one_wants_a_spec() {
    let mut provider = Provider::without_backend(InformerScope::Namespaced, Isolation::Prefixed).await;
    // kube-bind's own suite installs no CRD of requests.
    let requests = "bindableresourcesrequests.kube-bind.io";
    provider.cluster.delete(&crd_kind(), None, requests).await;
    provider.cluster.until_gone(&crd_kind(), None, requests).await;
    // Its CRD of clusters requires a spec.
    let mut crd = provider.cluster.get(&crd_kind(), None, "clusters.kube-bind.io").await.unwrap();
    for version in crd["spec"]["versions"].as_array_mut().unwrap() {
        version["schema"]["openAPIV3Schema"]["required"] = json!(["spec"]);
    }
    provider.cluster.client.replace(&crd_kind(), None, &crd).await.unwrap();
    let refused = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "Cluster", "metadata": {"name": "other"}});
    provider.cluster.until(&crd_kind(), None, "clusters.kube-bind.io", established).await;
    let is_strict = async || provider.cluster.client.create_dry_run(&clusters(), None, &refused).await.is_err();
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
    while !is_strict().await {
        assert!(tokio::time::Instant::now() < deadline, "the schema does not change");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    provider.start_backend();
    provider.cluster.until(&clusters(), None, "default", |cluster| cluster["spec"].is_object()).await;
    let person = Person { subject: "jane".to_owned(), issuer: String::new(), groups: vec!["cowhands".to_owned()] };
    let front = provider.front();
    while !front.may_bind("", &person).await.is_ok_and(|may| may) {
        assert!(tokio::time::Instant::now() < deadline, "nobody may bind");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kubeconfigs_have_the_authority_that_the_backend_trusts_and_those_that_may_work_keep_theirs() {
    let mut provider = Provider::without_backend(InformerScope::Namespaced, Isolation::Prefixed).await;
    // The backend's own; the Secret of the token has another one, as in kcp.
    provider.trust("OWN", false);
    provider.start_backend();
    let (contract, _) = provider.contract("one").await;
    let token = provider.cluster.get(&secrets(), Some(&contract), "kube-binder").await.unwrap();
    let of_token = BASE64.decode(token["data"]["ca.crt"].as_str().unwrap().as_bytes()).unwrap();
    assert_ne!(of_token, b"OWN");
    assert_eq!(authority(&provider.cluster.client, &contract).await.as_deref(), Some("OWN"));
    // A contract that kube-bind's backend has made: its consumer gets there by another authority.
    provider.kill_backend().await;
    let mut secret = provider.cluster.get(&secrets(), Some(&contract), "kubeconfig").await.unwrap();
    let text = BASE64.decode(secret["data"]["kubeconfig"].as_str().unwrap().as_bytes()).unwrap();
    let (ours, theirs) = (BASE64.encode(b"OWN"), BASE64.encode(b"THEIRS"));
    let text = String::from_utf8(text).unwrap().replace(&ours, &theirs);
    secret["data"]["kubeconfig"] = json!(BASE64.encode(text.as_bytes()));
    provider.cluster.client.replace(&secrets(), Some(&contract), &secret).await.unwrap();
    provider.start_backend();
    // When the next contract stands, everything before it was reconciled.
    let (second, _) = provider.contract("two").await;
    assert_eq!(authority(&provider.cluster.client, &second).await.as_deref(), Some("OWN"));
    assert_eq!(authority(&provider.cluster.client, &contract).await.as_deref(), Some("THEIRS"), "nobody is cut off");
    // Whoever gives one by flag means it.
    provider.kill_backend().await;
    provider.trust("GIVEN", true);
    provider.start_backend();
    let client = provider.cluster.client.clone();
    let is_given = async || authority(&client, &contract).await.as_deref() == Some("GIVEN");
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
    while !is_given().await {
        assert!(tokio::time::Instant::now() < deadline, "the flag has no effect");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binding_to_another_role_is_made_anew_because_it_cannot_be_changed() {
    let provider = Provider::start(InformerScope::Namespaced, Isolation::Prefixed).await;
    let (contract, _) = provider.contract("one").await;
    let at = Some(contract.as_str());
    let mut other = provider.cluster.get(&role_bindings(), at, "kube-binder").await.unwrap();
    provider.cluster.delete(&role_bindings(), at, "kube-binder").await;
    other["metadata"] = json!({"name": "kube-binder", "namespace": contract});
    other["roleRef"]["name"] = json!("view");
    // The backend may have been faster, and then the binding is there already.
    while provider.cluster.client.create(&role_bindings(), at, &other).await.is_err() {
        provider.cluster.delete(&role_bindings(), at, "kube-binder").await;
    }
    let is_ours = |binding: &Value| binding["roleRef"]["name"] == "kube-binder";
    provider.cluster.until(&role_bindings(), at, "kube-binder", is_ours).await;
}
