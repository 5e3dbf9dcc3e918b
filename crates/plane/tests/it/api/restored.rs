//! A server that goes back in time, as after a restore of its etcd.

use carrick_plane::{Config, Mode};
use serde_json::{Value, json};

use super::client::{MAPS, World, map};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

/// A CRD of the group with this plural.
fn crd(plural: &str) -> Value {
    let kind = format!("K{plural}");
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.io")},
        "spec": {"group": "example.io", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

#[tokio::test]
async fn objects_and_versions_go_back_and_watches_of_the_future_are_silent() {
    let world = World::start().await;
    let client = &world.admin;
    client.post(MAPS, map("kept", json!({"v": "old"}))).await.expect(201);
    client.post(MAPS, map("lost", json!({}))).await.expect(201);
    let snapshot = world.plane.snapshot();
    client.patch(&format!("{MAPS}/kept"), "merge", json!({"data": {"v": "new"}})).await.expect(200);
    client.delete(&format!("{MAPS}/lost")).await.expect(200);
    let later = client.post(MAPS, map("later", json!({}))).await.expect(201);
    let mut open = client.watch(&format!("{MAPS}?watch=1&resourceVersion={}", version(&later))).await;
    world.plane.restore(&snapshot).await.unwrap();
    assert!(open.next().await.is_none(), "an open watch ends without an event");

    let client = world.user("admin");
    let list = client.get(&format!("{MAPS}?fieldSelector=metadata.name!%3Dkube-root-ca.crt")).await.expect(200);
    let names: Vec<_> = list["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]).collect();
    assert_eq!(names, ["kept", "lost"]);
    assert_eq!(list["items"][0]["data"]["v"], "old");
    assert!(version(&list) < version(&later), "the list's version went back too");

    let future = version(&later);
    let mut silent = client
        .watch(&format!("{MAPS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion={}", future + 50))
        .await;
    assert!(silent.next().await.is_none(), "not even a bookmark");
    let mut waiting = client.watch(&format!("{MAPS}?watch=1&resourceVersion={future}")).await;
    let mut passed = Vec::new();
    while passed.last().is_none_or(|last| *last <= future) {
        let number = passed.len();
        passed.push(version(&client.post(MAPS, map(&format!("again-{number}"), json!({}))).await.expect(201)));
    }
    let first = waiting.next().await.unwrap();
    assert_eq!(version(&first["object"]), *passed.last().unwrap(), "only what is after the version asked for");
}

#[tokio::test]
async fn what_is_served_follows_the_contents_although_versions_come_back() {
    let world = World::start().await;
    let snapshot = world.plane.snapshot();
    world.admin.post(CRDS, crd("lamps")).await.expect(201);
    world.admin.get("/apis/example.io/v1/lamps").await.expect(200);
    world.plane.restore(&snapshot).await.unwrap();
    let client = world.user("admin");
    client.get("/apis/example.io/v1/lamps").await.expect(404);
    // This one takes the version that the other had.
    client.post(CRDS, crd("pumps")).await.expect(201);
    client.get("/apis/example.io/v1/pumps").await.expect(200);
    client.get("/apis/example.io/v1/lamps").await.expect(404);
}

#[tokio::test]
async fn controllers_work_on_after_a_restore() {
    let world = World::kcp(&[]).await;
    let workspaces = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces";
    let workspace = |name: &str| {
        json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name},
            "spec": {"type": {"name": "universal", "path": "root"}}})
    };
    let ready = |answer: &super::client::Answer| answer.body["status"]["phase"] == "Ready";
    world.admin.post(workspaces, workspace("early")).await.expect(201);
    world.admin.until(&format!("{workspaces}/early"), ready).await;
    let snapshot = world.plane.snapshot();
    for name in ["a", "b"] {
        world.admin.post(workspaces, workspace(name)).await.expect(201);
        world.admin.until(&format!("{workspaces}/{name}"), ready).await;
    }
    world.plane.restore(&snapshot).await.unwrap();
    let client = world.user("kcp-admin");
    client.get(&format!("{workspaces}/a")).await.expect(404);
    client.post(workspaces, workspace("c")).await.expect(201);
    client.until(&format!("{workspaces}/c"), ready).await;
    client.until("/clusters/root:c/api/v1/namespaces/default", |answer| answer.code == 200).await;
    client.get("/clusters/root:early/api/v1/namespaces/default").await.expect(200);
}

#[tokio::test]
async fn a_restored_plane_that_is_restarted_has_not_gone_forward_again() {
    let folder = std::env::temp_dir().join(format!("carrick-plane-{}", uuid::Uuid::new_v4()));
    let mut config = Config::new(Mode::Kube);
    config.data_dir = Some(folder.clone());
    let world = World::with(config.clone()).await;
    let snapshot = world.plane.snapshot();
    world.admin.post(MAPS, map("undone", json!({}))).await.expect(201);
    world.plane.restore(&snapshot).await.unwrap();
    let made = world.user("admin").post(MAPS, map("after", json!({}))).await.expect(201);
    world.plane.stop().await;
    let again = World::with(config).await;
    again.admin.get(&format!("{MAPS}/undone")).await.expect(404);
    assert_eq!(again.admin.get(&format!("{MAPS}/after")).await.expect(200), made);
    again.plane.stop().await;
    std::fs::remove_dir_all(folder).unwrap();
}
