//! Pull and update policies.

use serde_json::{Value, json};

use super::world::{WIDGETS, World, cluster_bindings, connections, crd, has, widget_crd};
use crate::clusters::{BINDER, crd_kind};

fn changed() -> Value {
    let mut crd = widget_crd();
    crd["spec"]["names"]["shortNames"] = json!(["wd"]);
    crd
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_crd_is_followed_unless_the_connection_says_once() {
    let world = World::bound().await;
    world.offer(&changed()).await;
    let follows = |it: &Value| it["spec"]["names"]["shortNames"] == json!(["wd"]);
    let crd = world.consumer.until(&crd_kind(), None, WIDGETS, follows).await;
    let hash = crd["metadata"]["annotations"]["core.kbind.io/schema-hash"].clone();
    let told =
        |it: &Value| it["status"]["boundAPIs"][0]["crdHash"] == hash && has(it, "SchemaInSync", "True", "AsExpected");
    world.consumer.until(&cluster_bindings(), None, "west", told).await;
    world.connect("west", json!({"schema": {"updatePolicy": "Once"}})).await;
    // The konnector has read that before the provider changes its CRD once more.
    let is_read = |it: &Value| {
        let mut conditions = it["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|ready| ready["type"] == "Ready" && ready["observedGeneration"] == it["metadata"]["generation"])
    };
    world.consumer.until(&connections(), None, "west", is_read).await;
    world.offer(&widget_crd()).await;
    let behind = |it: &Value| has(it, "SchemaInSync", "False", "Pending");
    let binding = world.consumer.until(&cluster_bindings(), None, "west", behind).await;
    assert!(has(&binding, "Ready", "True", "AsExpected"));
    assert!(follows(&world.consumer.get(&crd_kind(), None, WIDGETS).await.unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_the_provider_serves_as_well_is_listed() {
    let world = World::bound().await;
    let mut more = widget_crd();
    let mut version = more["spec"]["versions"][0].clone();
    (version["name"], version["storage"]) = (json!("v2"), json!(false));
    more["spec"]["versions"].as_array_mut().unwrap().push(version);
    world.offer(&more).await;
    let lists = |it: &Value| it["status"]["exportedAPIs"][0]["versions"] == json!(["v1", "v2"]);
    world.consumer.until(&connections(), None, "west", lists).await;
    let installed = world.consumer.get(&crd_kind(), None, WIDGETS).await.unwrap();
    assert_eq!(installed["spec"]["versions"].as_array().unwrap().len(), 1, "the one that is synced");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_exports_are_installed_without_a_binding_and_none_of_them_if_the_connection_says_so() {
    let world = World::start().await;
    world.store("west", BINDER).await;
    world.connect("west", json!({"schema": {"pullPolicy": "None"}})).await;
    world.bind("west", "west", json!({})).await;
    world.consumer.until(&cluster_bindings(), None, "west", |it| has(it, "Ready", "False", "Pending")).await;
    world.is_ready(&connections(), "west").await;
    assert!(world.consumer.get(&crd_kind(), None, WIDGETS).await.is_none());
    // Somebody installs it.
    let mut own = widget_crd();
    own["metadata"] = json!({"name": WIDGETS});
    world.consumer.apply(&crd_kind(), &own).await;
    world.is_ready(&cluster_bindings(), "west").await;
    world.probe("a").await;

    world.store("east", BINDER).await;
    world.connect("east", json!({"schema": {"pullPolicy": "All"}})).await;
    world.offer(&crd("gadgets", "Gadget", "example.io", "Namespaced")).await;
    let ours = |it: &Value| it["metadata"]["annotations"]["core.kbind.io/connection"] == "east";
    world.consumer.until(&crd_kind(), None, "gadgets.example.io", ours).await;
    let widgets = world.consumer.get(&crd_kind(), None, WIDGETS).await.unwrap();
    assert!(widgets["metadata"].get("annotations").is_none_or(|it| it.get("core.kbind.io/connection").is_none()));
}
