//! What a broker that works across workspaces demands of kcp: it holds workspaces by finalizers, goes by paths and by ids of clusters, relies on
//! slices being there, and is an administrator by a certificate of its own authority.

use carrick_plane::{Config, Mode};
use serde_json::{Value, json};

use super::client::{Answer, Client, MAPS, WIDGETS, World, widget, widget_crd};

const WORKSPACES: &str = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces";
const BINDINGS: &str = "/apis/apis.kcp.io/v1alpha2/apibindings";
const SLICES: &str = "/apis/apis.kcp.io/v1alpha1/apiexportendpointslices";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
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

/// The id of a new workspace's cluster.
async fn place(world: &World, name: &str) -> String {
    workspace(world, name, json!([])).await["spec"]["cluster"].as_str().unwrap().to_owned()
}

/// An export without resources.
async fn export(world: &World, provider: &str, claims: Value) {
    let export = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": "example.io"},
        "spec": {"permissionClaims": claims}});
    let path = format!("/clusters/root:{provider}/apis/apis.kcp.io/v1alpha2/apiexports");
    world.admin.post(&path, export).await.expect(201);
}

fn binding(provider: &str, claims: Value) -> Value {
    json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": "example.io"},
        "spec": {"reference": {"export": {"path": provider, "name": "example.io"}}, "permissionClaims": claims}})
}

/// Binds, and waits until it is done.
async fn bind(world: &World, consumer: &str, provider: &str, claims: Value) {
    let bindings = format!("/clusters/{consumer}{BINDINGS}");
    world.admin.post(&bindings, binding(provider, claims)).await.expect(201);
    world.admin.until(&format!("{bindings}/example.io"), |answer| answer.body["status"]["phase"] == "Bound").await;
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

    export(&world, "provider", json!([])).await;
    let consumer = place(&world, "consumer").await;
    bind(&world, &consumer, &provider, json!([])).await;
}

#[tokio::test]
async fn a_slice_that_is_deleted_is_made_again_with_its_url() {
    let world = World::kcp(&[]).await;
    let (provider, consumer) = (place(&world, "provider").await, place(&world, "consumer").await);
    export(&world, "provider", json!([])).await;
    let slice = format!("/clusters/{provider}{SLICES}/example.io");
    let first = world.admin.until(&slice, |answer| answer.code == 200).await.body;
    assert_eq!(first["status"].get("endpoints"), None, "there is no consumer yet: {first}");
    bind(&world, &consumer, &provider, json!([])).await;
    let url = world.admin.until(&slice, |answer| answer.body["status"]["endpoints"][0]["url"].is_string()).await.body;
    let url = &url["status"]["endpoints"];
    world.admin.delete(&slice).await;
    let is_another = |answer: &Answer| {
        let uid = &answer.body["metadata"]["uid"];
        answer.code == 200 && uid.is_string() && *uid != first["metadata"]["uid"]
    };
    let again =
        world.admin.until(&slice, |answer| is_another(answer) && answer.body["status"]["endpoints"] == *url).await;
    assert_eq!(again.body["spec"]["export"]["name"], "example.io");
}

#[tokio::test]
async fn a_slice_for_an_export_of_another_workspace_stays_deleted() {
    let world = World::kcp(&[]).await;
    let (provider, home) = (place(&world, "provider").await, place(&world, "home").await);
    export(&world, "provider", json!([])).await;
    bind(&world, &home, "root:provider", json!([])).await;
    let slices = format!("/clusters/{home}{SLICES}");
    let slice = json!({"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExportEndpointSlice", "metadata": {"name": "cross"},
        "spec": {"export": {"path": "root:provider", "name": "example.io"}}});
    world.admin.post(&slices, slice).await.expect(201);
    let cross = format!("{slices}/cross");
    let found = world.admin.until(&cross, |answer| answer.body["status"]["endpoints"][0]["url"].is_string()).await.body;
    let url = found["status"]["endpoints"][0]["url"].as_str().unwrap();
    assert!(url.ends_with(&format!("/services/apiexport/{provider}/example.io")), "{url}");
    world.admin.delete(&cross).await.expect(200);
    // Whatever was to be made because of the deletion is there once a later object of that kind has been taken care of.
    let own = format!("/clusters/{provider}{SLICES}/example.io");
    let before = world.admin.get(&own).await.expect(200);
    world.admin.delete(&own).await.expect(200);
    world
        .admin
        .until(&own, |answer| answer.code == 200 && answer.body["metadata"]["uid"] != before["metadata"]["uid"])
        .await;
    world.admin.get(&cross).await.expect(404);
}

#[tokio::test]
async fn references_that_come_later_hold_a_workspace_until_the_last_one_goes() {
    let world = World::kcp(&[]).await;
    place(&world, "shared").await;
    let path = format!("{WORKSPACES}/shared");
    let (one, two) = ("broker.example.com/one", "broker.example.com/two");
    // As a Go program does it: the whole object is read and put back.
    for reference in [one, two] {
        let mut now = world.admin.get(&path).await.expect(200);
        now["metadata"]["finalizers"].as_array_mut().unwrap().push(json!(reference));
        world.admin.put(&path, now).await.expect(200);
    }
    world.admin.delete(&path).await;
    let left = |wanted: Value| move |answer: &Answer| answer.body["metadata"]["finalizers"] == wanted;
    let mut held = world.admin.until(&path, left(json!([one, two]))).await.body;
    assert_eq!(held["status"]["phase"], "Deleting", "{held}");
    // Its name is taken as long as somebody holds it.
    let same = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "shared"}});
    assert_eq!(world.admin.post(WORKSPACES, same).await.expect(409)["reason"], "AlreadyExists");
    held["metadata"]["finalizers"] = json!([two]);
    world.admin.put(&path, held).await.expect(200);
    let mut held = world.admin.get(&path).await.expect(200);
    assert_eq!(held["metadata"]["finalizers"], json!([two]));
    held["metadata"]["finalizers"] = json!([]);
    world.admin.put(&path, held).await.expect(200);
    world.admin.until(&path, |answer| answer.code == 404).await;
}

#[tokio::test]
async fn a_provider_writes_claimed_objects_and_their_namespace_by_the_id_of_the_cluster() {
    let world = World::kcp(&[]).await;
    let (provider, consumer) = (place(&world, "provider").await, place(&world, "consumer").await);
    let claims: Vec<Value> =
        ["configmaps", "namespaces"].map(|resource| json!({"group": "", "resource": resource, "verbs": ["*"]})).into();
    export(&world, "provider", json!(claims)).await;
    let accepted: Vec<Value> = claims
        .into_iter()
        .map(|mut claim| {
            (claim["selector"], claim["state"]) = (json!({"matchAll": true}), json!("Accepted"));
            claim
        })
        .collect();
    bind(&world, &consumer, &provider, json!(accepted)).await;
    let slice = format!("/clusters/{provider}{SLICES}/example.io");
    let slice = world.admin.until(&slice, |answer| answer.body["status"]["endpoints"][0]["url"].is_string()).await.body;
    let url = slice["status"]["endpoints"][0]["url"].as_str().unwrap();
    let services = url.strip_prefix(world.plane.url()).unwrap();
    let (inside, everywhere) = (format!("{services}/clusters/{consumer}"), format!("{services}/clusters/*"));
    let all = format!("{everywhere}/api/v1/configmaps");
    let listed = world.admin.until(&all, |answer| answer.code == 200).await.body;
    let from = listed["metadata"]["resourceVersion"].as_str().unwrap();
    let watch = format!("{all}?watch=true&fieldSelector=metadata.name%3Dcredentials&resourceVersion={from}");
    let mut watch = world.admin.watch(&watch).await;
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "orders"}});
    world.admin.post(&format!("{inside}/api/v1/namespaces"), space.clone()).await.expect(201);
    // The broker tries this at every poll.
    assert_eq!(
        world.admin.post(&format!("{inside}/api/v1/namespaces"), space).await.expect(409)["reason"],
        "AlreadyExists"
    );
    let maps = format!("{inside}/api/v1/namespaces/orders/configmaps");
    for name in ["other", "credentials"] {
        world.admin.post(&maps, map(name)).await.expect(201);
    }
    let mut made = world.admin.get(&format!("{maps}/credentials")).await.expect(200);
    assert_eq!(made["metadata"]["annotations"]["kcp.io/cluster"], consumer.as_str());
    made["data"] = json!({"a": "b"});
    world.admin.put(&format!("{maps}/credentials"), made).await.expect(200);
    let own = format!("/clusters/{consumer}/api/v1/namespaces/orders/configmaps/credentials");
    assert_eq!(world.admin.get(&own).await.expect(200)["data"]["a"], "b");
    world.admin.delete(&format!("{maps}/credentials")).await.expect(200);
    for word in ["ADDED", "MODIFIED", "DELETED"] {
        assert_eq!(watch.event().await, (word.into(), "credentials".into()));
    }
    world.admin.get(&own).await.expect(404);
}

#[tokio::test]
async fn a_binding_to_an_export_that_is_not_there_is_refused_until_it_is() {
    let world = World::kcp(&[]).await;
    let (provider, consumer) = (place(&world, "provider").await, place(&world, "consumer").await);
    let bindings = format!("/clusters/{consumer}{BINDINGS}");
    let refused = world.admin.post(&bindings, binding(&provider, json!([]))).await.expect(403);
    let why = refused["message"].as_str().unwrap();
    assert!(why.contains(&format!("no permission to bind to export {provider}:example.io")), "{why}");
    export(&world, "provider", json!([])).await;
    bind(&world, &consumer, &provider, json!([])).await;
}

#[tokio::test]
async fn a_workspace_serves_a_kind_that_it_defines_itself() {
    let world = World::kcp(&[]).await;
    let cluster = place(&world, "coordination").await;
    let crds = format!("/clusters/root:coordination{CRDS}");
    world.admin.post(&crds, widget_crd()).await.expect(201);
    let is_established = |answer: &Answer| {
        let conditions = answer.body["status"]["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().any(|one| one["type"] == "Established" && one["status"] == "True")
    };
    world.admin.until(&format!("{crds}/widgets.example.io"), is_established).await;
    let widgets = format!("/clusters/{cluster}{WIDGETS}");
    world.admin.post(&widgets, widget("one", json!({"size": 1}))).await.expect(201);
    let status = json!({"status": {"phase": "Bound"}});
    world.admin.patch(&format!("{widgets}/one/status"), "merge", status).await.expect(200);
    // Another workspace knows nothing of it.
    world.admin.get(&format!("/clusters/root{WIDGETS}")).await.expect(404);
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
