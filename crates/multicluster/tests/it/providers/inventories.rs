//! Providers that find clusters in somebody else's inventory: Cluster API, the Cluster Inventory API, kind.

use std::path::PathBuf;
use std::time::Duration;

use carrick_client::{Client, DeleteOptions, Resource};
use carrick_multicluster::providers::{AccessConfig, ClusterApi, ClusterProfiles, Kind};
use carrick_plane::Plane;
use data_encoding::BASE64;
use kube::config::Kubeconfig;
use serde_json::{Value, json};

use super::world::{EventLog, create_namespace, has_namespace, plane, secrets};

/// Serves a kind whose objects may hold anything.
async fn serve(hub: &Client, resource: &Resource) {
    let Resource { group, version, kind, plural, .. } = resource;
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": &**version, "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let names = json!({"plural": &**plural, "singular": kind.to_lowercase(), "kind": &**kind, "listKind": format!("{kind}List")});
    let spec = json!({"group": &**group, "names": names, "scope": "Namespaced", "versions": [version]});
    let crds =
        Resource::cluster_wide("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions");
    hub.create(&crds, None, &json!({"metadata": {"name": format!("{plural}.{group}")}, "spec": spec})).await.unwrap();
    let served = async {
        while hub.list(resource, None, &carrick_client::ListOptions::default()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), served).await.expect("the kind is not served");
}

/// A hub that serves a kind, with namespace `fleet`; and a plane that is a cluster of it.
async fn hub(resource: &Resource) -> (Plane, Client, Plane) {
    let (plane_of_hub, hub) = plane().await;
    let (member, client) = plane().await;
    create_namespace(&client, "only-in-member").await;
    create_namespace(&hub, "fleet").await;
    serve(&hub, resource).await;
    (plane_of_hub, hub, member)
}

async fn create(hub: &Client, resource: &Resource, object: Value) {
    hub.create(resource, Some("fleet"), &object).await.unwrap();
}

fn secret(name: &str, labels: &Value, key: &str, kubeconfig: &str) -> Value {
    json!({"metadata": {"name": name, "labels": labels}, "data": {key: BASE64.encode(kubeconfig.as_bytes())}})
}

#[tokio::test]
async fn clusters_of_cluster_api_join_when_they_are_provisioned_and_have_a_kubeconfig() {
    let clusters = Resource::namespaced("cluster.x-k8s.io", "v1beta2", "Cluster", "clusters");
    let (_plane, hub, member) = hub(&clusters).await;
    let kubeconfig = member.kubeconfig("admin", None).unwrap();
    let ready = json!({"phase": "Provisioned", "initialization": {"controlPlaneInitialized": true}});
    let object = |name: &str, status: &Value| json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": name}, "status": status});
    create(&hub, &clusters, object("ready", &ready)).await;
    create(&hub, &secrets(), secret("ready-kubeconfig", &json!({}), "value", &kubeconfig)).await;
    create(&hub, &clusters, object("starting", &json!({"phase": "Provisioning"}))).await;
    create(&hub, &secrets(), secret("starting-kubeconfig", &json!({}), "value", &kubeconfig)).await;
    create(&hub, &clusters, object("without-secret", &ready)).await;

    let mut log = EventLog::of(&ClusterApi::new(hub.clone()).namespace("fleet"));
    let mut start = log.until("synced").await;
    start.sort();
    assert_eq!(start[0], "engage fleet/ready");
    let missing = "Secret fleet/without-secret-kubeconfig does not exist yet";
    assert!(start[1].starts_with("failing Cluster fleet/without-secret: ") && start[1].ends_with(missing), "{start:?}");
    assert_eq!(start[2..], ["synced", "up fleet/ready"]);
    assert!(has_namespace(&log.engaged[0], "only-in-member").await);

    hub.merge_patch(&clusters, Some("fleet"), "starting", &json!({"status": ready})).await.unwrap();
    assert_eq!(log.until("engage fleet/starting").await, ["up fleet/starting", "engage fleet/starting"]);
    // What was ready once stays, whatever becomes of its readiness.
    hub.merge_patch(&clusters, Some("fleet"), "starting", &json!({"status": {"phase": "Failed"}})).await.unwrap();
    hub.delete(&clusters, Some("fleet"), "ready", &DeleteOptions::default()).await.unwrap();
    assert_eq!(log.until("down fleet/ready").await, ["disengage fleet/ready", "down fleet/ready"]);
}

fn profiles() -> Resource {
    Resource::namespaced("multicluster.x-k8s.io", "v1alpha1", "ClusterProfile", "clusterprofiles")
}

fn profile(name: &str, healthy: &str, access_providers: &Value) -> Value {
    let conditions = json!([{"type": "ControlPlaneHealthy", "status": healthy}]);
    json!({
        "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile", "metadata": {"name": name},
        "status": {"conditions": conditions, "accessProviders": access_providers},
    })
}

#[tokio::test]
async fn clusters_of_profiles_are_reached_with_the_credentials_of_a_plugin() {
    let (_plane, hub, member) = hub(&profiles()).await;
    let kubeconfig = Kubeconfig::from_yaml(&member.kubeconfig("admin", None).unwrap()).unwrap();
    let cluster = serde_json::to_value(kubeconfig.clusters[0].cluster.as_ref().unwrap()).unwrap();
    let access = json!([{"name": "unknown", "cluster": {}}, {"name": "plugin", "cluster": cluster}]);
    create(&hub, &profiles(), profile("healthy", "True", &access)).await;
    create(&hub, &profiles(), profile("ill", "False", &access)).await;
    create(&hub, &profiles(), profile("foreign", "True", &json!([{"name": "unknown", "cluster": cluster}]))).await;

    let token = member.token("admin").unwrap();
    let version = "client.authentication.k8s.io/v1";
    let credential = json!({"apiVersion": version, "kind": "ExecCredential", "status": {"token": token}});
    let exec = json!({"apiVersion": version, "command": "echo", "args": [credential.to_string()]});
    let plugins = json!({"providers": [{"name": "plugin", "execConfig": exec}]}).to_string();
    let provider = ClusterProfiles::with_plugins(hub.clone(), AccessConfig::from_json(&plugins).unwrap());
    let mut log = EventLog::of(&provider);
    let mut start = log.until("synced").await;
    start.sort();
    assert_eq!(start[0], "engage fleet/healthy");
    assert!(start[1].starts_with("failing ClusterProfile fleet/foreign: "), "{start:?}");
    assert!(start[1].ends_with("none of the access providers that this program knows: plugin"), "{start:?}");
    assert_eq!(start[2..], ["synced", "up fleet/healthy"]);
    assert!(has_namespace(&log.engaged[0], "only-in-member").await);

    let patch = json!({"status": {"conditions": [{"type": "ControlPlaneHealthy", "status": "True"}]}});
    hub.merge_patch(&profiles(), Some("fleet"), "ill", &patch).await.unwrap();
    assert_eq!(log.until("engage fleet/ill").await, ["up fleet/ill", "engage fleet/ill"]);
}

#[tokio::test]
async fn clusters_of_profiles_are_reached_with_kubeconfigs_in_secrets_for_the_consumer() {
    let (_plane, hub, member) = hub(&profiles()).await;
    let kubeconfig = member.kubeconfig("admin", None).unwrap();
    let labels =
        |consumer: &str| json!({"x-k8s.io/cluster-inventory-consumer": consumer, "x-k8s.io/cluster-profile": "p"});
    create(&hub, &profiles(), profile("p", "True", &json!([]))).await;
    create(&hub, &secrets(), secret("others", &labels("others"), "Config", "not for us")).await;
    let mut log = EventLog::of(&ClusterProfiles::with_secrets(hub.clone(), "us"));
    let start = log.until("synced").await;
    assert!(start.len() == 2 && start[0].contains("no Secret in namespace fleet has the labels"), "{start:?}");
    create(&hub, &secrets(), secret("ours", &labels("us"), "Config", &kubeconfig)).await;
    let joined = ["recovered ClusterProfile fleet/p", "up fleet/p", "engage fleet/p"];
    assert_eq!(log.until("engage fleet/p").await, joined);
    assert!(has_namespace(&log.engaged[0], "only-in-member").await);
}

#[tokio::test]
async fn contexts_of_kind_are_clusters_by_their_own_names() {
    let (plane, _client) = plane().await;
    let folder: PathBuf = std::env::temp_dir().join(format!("carrick-kind-{}", uuid::Uuid::new_v4()));
    std::fs::create_dir_all(&folder).unwrap();
    let kubeconfig = folder.join("config");
    // As kind writes it: one context per cluster, beside those of others.
    let write = |contexts: &[&str]| {
        let mut config = Kubeconfig::from_yaml(&plane.kubeconfig("admin", None).unwrap()).unwrap();
        let template = config.contexts[0].clone();
        config.contexts = contexts
            .iter()
            .map(|name| {
                let mut context = template.clone();
                (*name).clone_into(&mut context.name);
                context
            })
            .collect();
        let new = folder.join("new");
        std::fs::write(&new, serde_json::to_string(&config).unwrap()).unwrap();
        std::fs::rename(new, &kubeconfig).unwrap();
    };
    write(&["kind-e2e-a", "kind-other", "production"]);
    let provider = Kind::kubeconfigs([kubeconfig.clone()]).name_prefix("e2e-").interval(Duration::from_millis(20));
    let mut log = EventLog::of(&provider);
    assert_eq!(log.until("synced").await, ["up e2e-a", "engage e2e-a", "synced"]);
    assert!(has_namespace(&log.engaged[0], "default").await);
    write(&["kind-e2e-b", "kind-other", "production"]);
    assert_eq!(log.until("engage e2e-b").await, ["disengage e2e-a", "down e2e-a", "up e2e-b", "engage e2e-b"]);
    std::fs::remove_dir_all(folder).unwrap();
}
