use serde_json::{Value, json};

use super::client::World;

const PODS: &str = "/api/v1/namespaces/default/pods";

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

#[tokio::test]
async fn workloads_are_read_as_their_types_say() {
    let world = World::start().await;
    let made = world.admin.post(PODS, pod("a")).await.expect(201);
    assert_eq!(made["spec"]["containers"][0]["resources"], json!({}));
    assert_eq!(made["status"], json!({}));
    let mut odd = pod("b");
    odd["spec"]["odd"] = json!(1);
    world.admin.post(&format!("{PODS}?fieldValidation=Strict"), odd).await.expect(400);
    let mut empty = pod("c");
    empty["spec"]["containers"] = json!([]);
    world.admin.post(PODS, empty).await.refused(422, "Pod \"c\" is invalid: spec.containers: Required value");
}

#[tokio::test]
async fn pods_are_bound_to_a_node_once_and_can_be_evicted() {
    let world = World::start().await;
    world.admin.post(PODS, pod("a")).await.expect(201);
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"name": "n1"}});
    world.admin.post(&format!("{PODS}/a/binding"), binding.clone()).await.expect(201);
    let bound = world.admin.get(&format!("{PODS}/a")).await.expect(200);
    assert_eq!(bound["spec"]["nodeName"], "n1");
    assert_eq!(bound["status"]["conditions"][0]["type"], "PodScheduled");
    world
        .admin
        .post(&format!("{PODS}/a/binding"), binding)
        .await
        .refused(409, "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to node \"n1\"");
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}});
    world.admin.post(&format!("{PODS}/a/eviction"), eviction).await.expect(201);
    world.admin.get(&format!("{PODS}/a")).await.expect(404);
}

#[tokio::test]
async fn the_status_of_old_kinds_takes_metadata_too() {
    let world = World::start().await;
    let patch = json!({"metadata": {"annotations": {"a": "b"}, "labels": {"c": "d"}}});
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
        "spec": {"selector": {"matchLabels": {"x": "y"}}, "template": {"metadata": {"labels": {"x": "y"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    world.admin.post(path, deployment).await.expect(201);
    let patched = world.admin.patch(&format!("{path}/a/status"), "merge", patch).await.expect(200);
    assert_eq!(patched["metadata"]["annotations"]["a"], "b");
    assert_eq!(patched["metadata"].get("labels"), None);
}
