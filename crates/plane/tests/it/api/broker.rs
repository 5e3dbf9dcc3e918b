//! What a broker that works across workspaces demands of kcp: it holds workspaces by finalizers, goes by paths and by ids of clusters, relies on
//! slices being there, and is an administrator by a certificate of its own authority.

use carrick_plane::{Config, Mode};
use serde_json::{Value, json};

use super::client::{Client, MAPS, World};

const WORKSPACES: &str = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces";
const HELD: &str = "broker.example.com/held";

async fn workspace(world: &World, name: &str, finalizers: Value) -> Value {
    let object = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace",
        "metadata": {"name": name, "finalizers": finalizers}, "spec": {"type": {"name": "universal", "path": "root"}}});
    world.admin.post(WORKSPACES, object).await.expect(201);
    world.admin.until(&format!("{WORKSPACES}/{name}"), |answer| answer.body["status"]["phase"] == "Ready").await.body
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

/// An export without resources.
async fn export(world: &World, provider: &str) {
    let export = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": "example.io"}, "spec": {}});
    let path = format!("/clusters/root:{provider}/apis/apis.kcp.io/v1alpha2/apiexports");
    world.admin.post(&path, export).await.expect(201);
}

#[tokio::test]
async fn a_workspace_that_somebody_else_holds_goes_when_they_let_go() {
    let world = World::kcp(&[]).await;
    workspace(&world, "held", json!([HELD])).await;
    let (path, maps) = (format!("{WORKSPACES}/held"), format!("/clusters/root:held{MAPS}"));
    world.admin.post(&maps, map("inside")).await.expect(201);
    world.admin.delete(&path).await;
    // Its content goes; the object stays with the finalizer of whoever holds it, and of nobody else.
    let held = world.admin.until(&path, |answer| answer.body["metadata"]["finalizers"] == json!([HELD])).await.body;
    assert!(held["metadata"]["deletionTimestamp"].is_string(), "{held}");
    let patch = json!({"metadata": {"finalizers": null}});
    world.admin.patch(&path, "merge", patch).await.expect(200);
    world.admin.until(&path, |answer| answer.code == 404).await;
    // The name is free again, and nothing is left of what was there.
    workspace(&world, "held", json!([])).await;
    world.admin.get(&format!("{maps}/inside")).await.expect(404);
}

#[tokio::test]
async fn a_workspace_answers_under_its_path_and_under_the_id_of_its_cluster() {
    let world = World::kcp(&[]).await;
    let provider = workspace(&world, "provider", json!([])).await["spec"]["cluster"].as_str().unwrap().to_owned();
    world.admin.post(&format!("/clusters/root:provider{MAPS}"), map("one")).await.expect(201);
    let by_id = world.admin.get(&format!("/clusters/{provider}{MAPS}/one")).await.expect(200);
    assert_eq!(by_id["metadata"]["annotations"]["kcp.io/cluster"], provider.as_str());
    let logical = format!("/clusters/{provider}/apis/core.kcp.io/v1alpha1/logicalclusters/cluster");
    world.admin.get(&logical).await.expect(200);

    export(&world, "provider").await;
    workspace(&world, "consumer", json!([])).await;
    let binding = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": "example.io"},
        "spec": {"reference": {"export": {"path": provider, "name": "example.io"}}}});
    let bindings = "/clusters/root:consumer/apis/apis.kcp.io/v1alpha2/apibindings";
    world.admin.post(bindings, binding).await.expect(201);
    world.admin.until(&format!("{bindings}/example.io"), |answer| answer.body["status"]["phase"] == "Bound").await;
}

#[tokio::test]
async fn a_slice_that_is_deleted_is_made_again() {
    let world = World::kcp(&[]).await;
    workspace(&world, "provider", json!([])).await;
    export(&world, "provider").await;
    let slice = "/clusters/root:provider/apis/apis.kcp.io/v1alpha1/apiexportendpointslices/example.io";
    let first = world.admin.until(slice, |answer| answer.code == 200).await.body;
    world.admin.delete(slice).await;
    let again = world
        .admin
        .until(slice, |answer| answer.code == 200 && answer.body["metadata"]["uid"] != first["metadata"]["uid"])
        .await
        .body;
    assert_eq!(again["spec"]["export"]["name"], "example.io");
}

#[tokio::test]
async fn a_workspace_names_the_shard_that_it_is_on() {
    let world = World::kcp(&[]).await;
    let made = workspace(&world, "somewhere", json!([])).await;
    let hash = made["metadata"]["annotations"]["internal.tenancy.kcp.io/shard"].as_str().unwrap_or_default();
    assert!(hash.len() == 8 && hash.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()), "{made}");
    let shards = world.admin.get("/clusters/root/apis/core.kcp.io/v1alpha1/shards").await.expect(200);
    assert_eq!(shards["items"][0]["metadata"]["name"], "root", "{shards}");
}

#[tokio::test]
async fn an_administrator_may_have_a_certificate_of_another_authority() {
    // Another plane plays the authority.
    let other = World::kcp(&[]).await;
    let admin = other.plane.client_certificate("admin", &["system:kcp:admin"]).unwrap();
    let nobody = other.plane.client_certificate("nobody", &["others"]).unwrap();
    let file = std::env::temp_dir().join(format!("carrick-ca-{}", uuid::Uuid::new_v4()));
    std::fs::write(&file, other.plane.ca_pem()).unwrap();
    let mut config = Config::new(Mode::Kcp);
    config.client_ca = Some(file.clone());
    let world = World::with(config).await;
    std::fs::remove_file(file).unwrap();
    let secrets = "/clusters/root/api/v1/secrets";
    Client::with_certificate(&world.plane, &admin).get(secrets).await.expect(200);
    Client::with_certificate(&world.plane, &nobody).get(secrets).await.expect(403);
}
