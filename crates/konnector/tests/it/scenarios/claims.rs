//! Claims: who accepts them, and what they never reach.

use carrick_bind_api::claims::mark;
use carrick_bind_api::v1alpha2::PermissionClaim;
use carrick_client::Resource;
use carrick_plane::faults::RequestInfo;
use serde_json::{Value, json};

use super::world::{World, has, message, object};
use crate::clusters::{Provider, bindings, bundles, secrets, sheriff_crd};

fn service_namespaces() -> Resource {
    Resource::namespaced("kube-bind.io", "v1alpha2", "APIServiceNamespace", "apiservicenamespaces")
}

/// A claim on every Secret there is.
fn everything() -> Value {
    json!([{"group": "", "resource": "secrets", "selector": {"labelSelector": {}}}])
}

fn secret(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": {"key": "c2VjcmV0"}})
}

async fn world() -> (World, Provider) {
    let (world, provider) = (World::start().await, Provider::start("c-1").await);
    provider.export_claiming("sheriffs", &sheriff_crd(), &everything()).await;
    world.store("provider", &provider).await;
    world.consumer.apply(&secrets(), &secret("team", "mine")).await;
    (world, provider)
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_that_come_with_a_bundle_wait_until_somebody_accepts_them() {
    let (world, provider) = world().await;
    world.bundle("all", "provider").await;
    let binding = world.binding("sheriffs", "PermissionClaim", "False", "ClaimsNotAccepted").await;
    assert!(has(&binding, "Ready", "False", "ClaimsNotAccepted"), "{binding}");
    let words = message(&binding, "PermissionClaim");
    let paste = "kubectl annotate apiservicebinding sheriffs --overwrite kube-bind.io/accepted-claims=";
    let (before, digest) = words.split_once(paste).unwrap_or_else(|| panic!("{words}"));
    assert!(before.contains("secrets"), "{words}");
    let digest = digest.split_whitespace().next().unwrap();
    // Without its claims it works, and nothing of them is even read.
    world.binding("sheriffs", "Connected", "True", "").await;
    world.binding("sheriffs", "InformersSynced", "True", "").await;
    let read = |it: &RequestInfo| it.resource == "secrets" && it.path.starts_with("/api/v1/secrets");
    assert!(!world.consumer.plane().faults().open_watches().iter().any(read));
    assert_eq!(provider.cluster.get(&service_namespaces(), Some("c-1"), "team").await, None);

    let accepted = json!({"metadata": {"annotations": {"kube-bind.io/accepted-claims": digest}}});
    world.consumer.client.merge_patch(&bindings(), None, "sheriffs", &accepted).await.unwrap();
    provider.cluster.until(&service_namespaces(), Some("c-1"), "team", |_| true).await;
    let gone = |it: &Value| !has(it, "PermissionClaim", "False", "ClaimsNotAccepted");
    world.consumer.until(&bindings(), None, "sheriffs", gone).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_may_accept_kinds_for_all_its_exports_and_nothing_else() {
    let (world, provider) = world().await;
    world.bundle("all", "provider").await;
    world.binding("sheriffs", "PermissionClaim", "False", "ClaimsNotAccepted").await;
    let other = json!({"metadata": {"annotations": {"kube-bind.io/accepted-claims": "configmaps, nonsense"}}});
    world.consumer.client.merge_patch(&bundles(), None, "all", &other).await.unwrap();
    world.binding("sheriffs", "PermissionClaim", "False", "ClaimsNotAccepted").await;
    let accepted = json!({"metadata": {"annotations": {"kube-bind.io/accepted-claims": "configmaps, secrets"}}});
    world.consumer.client.merge_patch(&bundles(), None, "all", &accepted).await.unwrap();
    provider.cluster.until(&service_namespaces(), Some("c-1"), "team", |_| true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kubeconfigs_that_others_use_stay_here_wherever_they_are() {
    let (world, provider) = world().await;
    let other = Provider::start("c-2").await;
    other.export_crd("cowboys", &crate::clusters::crd("cowboys", "Cowboy")).await;
    let elsewhere = crate::clusters::secret("elsewhere", "other", &other.kubeconfig());
    world.consumer.apply(&secrets(), &elsewhere).await;
    let mut binding = super::world::object("APIServiceBinding", "cowboys", "other");
    binding["spec"]["kubeconfigSecretRef"]["namespace"] = json!("elsewhere");
    world.consumer.apply(&bindings(), &binding).await;
    world.binding("cowboys", "Connected", "True", "").await;
    world.bind("sheriffs", "provider").await;
    // A namespace is asked for as soon as something in it has to travel.
    provider.cluster.until(&service_namespaces(), Some("c-1"), "team", |_| true).await;
    world.consumer.apply(&secrets(), &secret("later", "mine")).await;
    provider.cluster.until(&service_namespaces(), Some("c-1"), "later", |_| true).await;
    assert_eq!(provider.cluster.get(&service_namespaces(), Some("c-1"), "elsewhere").await, None);
    world.consumer.apply(&secrets(), &secret("elsewhere", "mine")).await;
    provider.cluster.until(&service_namespaces(), Some("c-1"), "elsewhere", |_| true).await;
    let kubeconfig = world.consumer.get(&secrets(), Some("elsewhere"), "other").await.unwrap();
    assert_eq!(kubeconfig["metadata"]["labels"]["kube-bind.io/owner"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_accepted_as_gos_programs_write_it_and_as_the_server_stores_it() {
    let (world, provider) = world().await;
    // The answer of kube-bind's backend, which kubectl bind makes the annotation of, has no empty fields.
    let answered: PermissionClaim =
        serde_json::from_value(json!({"resource": "secrets", "selector": {"labelSelector": {}}})).unwrap();
    let mut binding = object("APIServiceBinding", "sheriffs", "provider");
    binding["metadata"]["annotations"] = json!({"kube-bind.io/accepted-claims": mark(&answered)});
    world.consumer.apply(&bindings(), &binding).await;
    provider.cluster.until(&service_namespaces(), Some("c-1"), "team", |_| true).await;
    let binding = world.ready("sheriffs").await;
    assert!(!has(&binding, "PermissionClaim", "False", "ClaimsNotAccepted"), "{binding}");
}
