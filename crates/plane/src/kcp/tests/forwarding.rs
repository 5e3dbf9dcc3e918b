use super::world::{BINDINGS, WIDGETS, World, schema};
use serde_json::{Value, json};

use crate::api::WriteOptions;

const CONFIGMAPS: &str = "v1/configmaps";

fn claim(selector: Option<Value>) -> Value {
    let mut claim = json!({"group": "", "resource": "configmaps", "identityHash": "", "verbs": ["*"]});
    if let Some(selector) = selector {
        claim["selector"] = selector;
        claim["state"] = json!("Accepted");
    }
    claim
}

fn configmap(name: &str, labels: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default", "labels": labels}})
}

/// A provider whose claim on ConfigMaps is accepted for those with a label; the consumer's cluster and the endpoint.
async fn claimed(world: &World) -> (String, String) {
    world.workspace("root", "prov").await;
    let consumer = world.workspace("root", "cons").await;
    world.export("root:prov", json!([claim(None)])).await;
    let selector = json!({"matchLabels": {"tier": "a"}});
    world.bind("root:cons", "root:prov", json!([claim(Some(selector))])).await;
    (consumer, world.endpoint("root:prov").await)
}

#[tokio::test]
async fn a_provider_cannot_delete_what_the_selector_does_not_select() {
    let world = World::start().await;
    let (cluster, endpoint) = claimed(&world).await;
    let consumer = world.at("root:cons");
    consumer.create(configmap("other", json!({"tier": "b"}))).unwrap();
    consumer.create(configmap("own", json!({"tier": "a"}))).unwrap();
    let inside = world.through(&endpoint, &cluster);
    let refused = inside.delete(CONFIGMAPS, "default", "other").unwrap_err();
    assert_eq!(refused.code, 403);
    assert!(refused.message.ends_with("object does not match required labels"), "{}", refused.message);
    assert_eq!(inside.get_in(CONFIGMAPS, "default", "other").unwrap_err().code, 404);
    inside.delete(CONFIGMAPS, "default", "own").unwrap();
    assert_eq!(inside.delete(CONFIGMAPS, "default", "absent").unwrap_err().code, 404);
}

#[tokio::test]
async fn a_new_binding_becomes_visible_to_its_provider_a_moment_later() {
    let world = World::start().await;
    world.workspace("root", "prov").await;
    world.workspace("root", "cons").await;
    world.export("root:prov", json!([])).await;
    let consumer = world.at("root:cons");
    let label = |binding: &Value| {
        let labels = binding["metadata"]["labels"].as_object().cloned().unwrap_or_default();
        labels.keys().any(|key| key.starts_with("claimed.internal.apis.kcp.io/"))
    };
    let created = consumer
        .create(json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": "example"},
            "spec": {"reference": {"export": {"path": "root:prov", "name": "example.io"}}, "permissionClaims": []}}))
        .unwrap();
    assert!(!label(&created));
    assert_eq!(created["spec"].get("permissionClaims"), None, "kcp drops empty lists");
    let found = || consumer.get(BINDINGS, "example").ok();
    world.until("it has the label", || found().filter(|binding| label(binding))).await;
    world.at("root:prov").delete("apis.kcp.io/v1alpha2/apiexports", "", "example.io").unwrap();
    world.until("it has lost the label", || found().filter(|binding| !label(binding))).await;
}

#[tokio::test]
async fn what_is_bound_but_no_longer_offered_is_not_found() {
    let world = World::start().await;
    let (cluster, endpoint) = claimed(&world).await;
    let export = json!({"spec": {"resources": null}});
    world.at("root:prov").merge("apis.kcp.io/v1alpha2/apiexports", "", "example.io", export).unwrap();
    let inside = world.through(&endpoint, &cluster);
    assert_eq!(inside.list(WIDGETS).unwrap_err().code, 404);
    assert_eq!(inside.list("example.io/v1/nothings").unwrap_err().code, 403);
}

#[tokio::test]
async fn the_status_of_bindings_is_out_of_reach() {
    let world = World::start().await;
    let (cluster, endpoint) = claimed(&world).await;
    let inside = world.through(&endpoint, &cluster);
    assert!(inside.get(BINDINGS, "example").is_ok());
    assert_eq!(inside.get(&format!("{BINDINGS}:status"), "example").unwrap_err().code, 405);
}

#[tokio::test]
async fn an_empty_map_that_is_not_stored_belongs_to_whoever_sent_it() {
    let world = World::start().await;
    let (cluster, endpoint) = claimed(&world).await;
    let inside = world.through(&endpoint, &cluster);
    let options = WriteOptions { manager: "kcp".into(), forwarded: Some("agent".into()), ..WriteOptions::default() };
    for (name, labels) in [("with-labels", json!({"tier": "a"})), ("without", json!({}))] {
        let mut object = configmap(name, labels);
        object["data"] = json!({});
        let created = inside.create_with(object, &options).unwrap();
        assert_eq!(created.get("data"), None);
        let entries = created["metadata"]["managedFields"].as_array().unwrap();
        let own: Vec<&Value> = entries.iter().filter(|entry| entry["manager"] == "agent").collect();
        assert_eq!(own.len(), 1, "{entries:?}");
        assert_eq!(own[0]["fieldsV1"], json!({"f:data": {}}));
    }
}

#[tokio::test]
async fn over_all_workspaces_a_namespace_is_taken_for_a_workspace() {
    let world = World::start().await;
    let (cluster, endpoint) = claimed(&world).await;
    world.at("root:cons").create(configmap("own", json!({"tier": "a"}))).unwrap();
    let all = world.through(&endpoint, "*");
    let count = |fields: &str| all.selected(CONFIGMAPS, fields).unwrap().len();
    assert_eq!(count(""), 1);
    assert_eq!(count("metadata.name=own"), 1);
    assert_eq!(count("metadata.namespace!=other"), 1);
    // kcp reads below the key of a workspace of that name, and there is none.
    assert_eq!(count("metadata.namespace=default"), 0);
    assert_eq!(count("metadata.name=own,metadata.namespace=default"), 0);
    let one = world.through(&endpoint, &cluster);
    assert_eq!(one.selected(CONFIGMAPS, "metadata.namespace=default").unwrap().len(), 1);
}

#[tokio::test]
async fn of_several_schemas_of_a_kind_the_last_one_counts() {
    let world = World::start().await;
    world.workspace("root", "prov").await;
    let cluster = world.workspace("root", "cons").await;
    world.export("root:prov", json!([])).await;
    world.bind("root:cons", "root:prov", json!([])).await;
    let endpoint = world.endpoint("root:prov").await;
    let provider = world.at("root:prov");
    let mut second = schema("v2", "size");
    second["spec"]["versions"][0]["schema"]["properties"]["spec"]["properties"]["note"] =
        json!({"type": "string", "default": "new"});
    provider.create(second).unwrap();
    let both = json!({"spec": {"latestResourceSchemas": ["v1.widgets.example.io", "v2.widgets.example.io"]}});
    provider.merge("apis.kcp.io/v1alpha1/apiexports", "", "example.io", both).unwrap();
    world
        .until("the binding follows", || {
            let binding = world.at("root:cons").get(BINDINGS, "example").ok()?;
            (binding["status"]["boundResources"][0]["schema"]["name"] == "v2.widgets.example.io").then_some(())
        })
        .await;
    let widget = json!({"apiVersion": "example.io/v1", "kind": "Widget",
        "metadata": {"name": "a", "namespace": "default"}, "spec": {}});
    let created = world.through(&endpoint, &cluster).create(widget).unwrap();
    assert_eq!(created["spec"]["note"], "new");
}
