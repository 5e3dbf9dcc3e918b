use super::world::{BINDINGS, WIDGETS, World, condition, schema, widget};
use crate::store::Kind;
use serde_json::{Value, json};

#[tokio::test]
async fn an_export_gets_an_identity_and_a_slice_whose_url_appears_with_the_first_binding() {
    let world = World::start().await;
    let cluster = world.workspace("root", "prov").await;
    world.workspace("root", "cons").await;
    let export = world.export("root:prov", json!([])).await;
    let place = world.at("root:prov");
    assert_eq!(export["metadata"]["annotations"]["kcp.io/path"], "root:prov");
    assert_eq!(export["spec"]["identity"]["secretRef"], json!({"namespace": "kcp-system", "name": "example.io"}));
    assert_eq!(condition(&export, "IdentityValid")["status"], "True");
    let secret = place.get_in("v1/secrets", "kcp-system", "example.io").unwrap();
    let key = data_encoding::BASE64.decode(secret["data"]["key"].as_str().unwrap().as_bytes()).unwrap();
    assert_eq!(key.len(), 43);
    assert_eq!(export["status"]["identityHash"], carrick_kcp::hash::identity_hash(&key));

    let slice = "apis.kcp.io/v1alpha1/apiexportendpointslices";
    world.quiet().await;
    let before = place.get(slice, "example.io").unwrap();
    assert_eq!(before["spec"]["export"], json!({"name": "example.io", "path": "root:prov"}));
    assert_eq!(before["status"].get("endpoints"), None);
    world.bind("root:cons", "root:prov", json!([])).await;
    let url = format!("{}/services/apiexport/{cluster}/example.io", world.plane.url());
    assert_eq!(world.endpoint("root:prov").await, url);
    world.at("root:cons").delete(BINDINGS, "", "example").unwrap();
    world
        .until("the URL is gone", || {
            place.get(slice, "example.io").unwrap()["status"].get("endpoints").is_none().then_some(())
        })
        .await;
}

#[tokio::test]
async fn a_recreated_export_keeps_its_identity() {
    let world = World::start().await;
    world.workspace("root", "prov").await;
    let first = world.export("root:prov", json!([])).await;
    let place = world.at("root:prov");
    place.delete("apis.kcp.io/v1alpha2/apiexports", "", "example.io").unwrap();
    place.delete("apis.kcp.io/v1alpha1/apiresourceschemas", "", "v1.widgets.example.io").unwrap();
    let second = world.export("root:prov", json!([])).await;
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
    assert_eq!(first["status"]["identityHash"], second["status"]["identityHash"]);
}

#[tokio::test]
async fn a_binding_serves_the_exported_api_and_follows_new_schemas() {
    let world = World::start().await;
    let provider = world.workspace("root", "prov").await;
    world.workspace("root", "cons").await;
    world.export("root:prov", json!([])).await;
    let consumer = world.at("root:cons");
    assert_eq!(consumer.list(WIDGETS).unwrap_err().code, 404);
    let binding = world.bind("root:cons", &provider, json!([])).await;
    assert_eq!(binding["status"]["phase"], "Bound");
    assert_eq!(binding["status"]["apiExportClusterName"], provider);
    assert_eq!(binding["metadata"]["finalizers"], json!(["apis.kcp.io/apibinding-finalizer"]));
    assert_eq!(
        binding["metadata"]["labels"]["internal.apis.kcp.io/export"],
        carrick_kcp::hash::export_hash(&provider, "example.io")
    );
    assert_eq!(consumer.create(widget("w1", json!({}))).unwrap()["spec"], json!({"size": 1}));

    world.at("root:prov").create(schema("v2", "weight")).unwrap();
    let resources =
        json!([{"name": "widgets", "group": "example.io", "schema": "v2.widgets.example.io", "storage": {"crd": {}}}]);
    world
        .at("root:prov")
        .merge("apis.kcp.io/v1alpha2/apiexports", "", "example.io", json!({"spec": {"resources": resources}}))
        .unwrap();
    world
        .until("the binding follows", || {
            let found = consumer.get(BINDINGS, "example").unwrap();
            (found["status"]["boundResources"][0]["schema"]["name"] == "v2.widgets.example.io").then_some(())
        })
        .await;
    assert_eq!(consumer.create(widget("w2", json!({}))).unwrap()["spec"], json!({"weight": 1}));
    assert_eq!(consumer.names(WIDGETS).len(), 2);
}

#[tokio::test]
async fn deleting_schema_and_export_leaves_bindings_serving() {
    let world = World::start().await;
    world.workspace("root", "prov").await;
    world.workspace("root", "cons").await;
    world.export("root:prov", json!([])).await;
    world.bind("root:cons", "root:prov", json!([])).await;
    let provider = world.at("root:prov");
    provider.delete("apis.kcp.io/v1alpha1/apiresourceschemas", "", "v1.widgets.example.io").unwrap();
    let binding = world.condition("root:cons", "example", "APIExportValid", "False").await;
    assert_eq!(condition(&binding, "APIExportValid")["reason"], "InternalError");
    provider.delete("apis.kcp.io/v1alpha2/apiexports", "", "example.io").unwrap();
    world
        .until("the export is missed", || {
            let found = world.at("root:cons").get(BINDINGS, "example").unwrap();
            (condition(&found, "APIExportValid")["message"] == "APIExport root:prov|example.io not found").then_some(())
        })
        .await;
    world.at("root:cons").create(widget("still", json!({}))).unwrap();
}

#[tokio::test]
async fn unbinding_deletes_the_instances_and_waits_for_their_finalizers() {
    let world = World::start().await;
    world.workspace("root", "prov").await;
    let consumer_cluster = world.workspace("root", "cons").await;
    world.export("root:prov", json!([])).await;
    world.bind("root:cons", "root:prov", json!([])).await;
    let consumer = world.at("root:cons");
    consumer.create(widget("free", json!({}))).unwrap();
    let mut held = widget("held", json!({}));
    held["metadata"]["finalizers"] = json!(["example.io/agent"]);
    consumer.create(held).unwrap();
    consumer.delete(BINDINGS, "", "example").unwrap();
    let binding = world.condition("root:cons", "example", "BindingResourceDeleteSuccess", "False").await;
    assert_eq!(
        condition(&binding, "BindingResourceDeleteSuccess")["message"],
        "Some content in the workspace has finalizers remaining: example.io/agent in 1 resource instances"
    );
    assert_eq!(consumer.names(WIDGETS), [format!("{consumer_cluster}/default/held")]);
    assert!(consumer.create(widget("late", json!({}))).is_err());
    consumer.merge(WIDGETS, "default", "held", json!({"metadata": {"finalizers": null}})).unwrap();
    world.until("the binding is gone", || consumer.get(BINDINGS, "example").is_err().then_some(())).await;
    assert_eq!(consumer.list(WIDGETS).unwrap_err().code, 404);

    world.bind("root:cons", "root:prov", json!([])).await;
    assert_eq!(consumer.names(WIDGETS).len(), 0);

    consumer.delete(BINDINGS, "", "example").unwrap();
    world.quiet().await;
    let copies = Kind::new("apis.kcp.io", "apiresourceschemas");
    let copies = world.api().store.list(&copies, Some("system:bound-crds"), None).1;
    assert!(
        copies.iter().all(|(_, copy)| copy.value()["spec"]["group"].as_str().unwrap().ends_with(".kcp.io")),
        "no copy of widgets is kept"
    );
}

#[tokio::test]
async fn two_bindings_cannot_serve_the_same_resource() {
    let world = World::start().await;
    for name in ["prov", "rival", "cons"] {
        world.workspace("root", name).await;
    }
    world.export("root:prov", json!([])).await;
    world.export("root:rival", json!([])).await;
    world.bind("root:cons", "root:prov", json!([])).await;
    let consumer = world.at("root:cons");
    let binding = |name: &str, path: &str| {
        json!({"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIBinding", "metadata": {"name": name},
            "spec": {"reference": {"export": {"path": path, "name": "example.io"}}}})
    };
    consumer.create(binding("second", "root:rival")).unwrap();
    let second = world.condition("root:cons", "second", "BindingUpToDate", "False").await;
    let ready = condition(&second, "Ready");
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("False"), &json!("NamingConflicts")));
    assert!(ready["message"].as_str().unwrap().ends_with("map[widgets.example.io:{example false}]"));
    consumer.delete(BINDINGS, "", "example").unwrap();
    world.condition("root:cons", "second", "Ready", "True").await;
    let locks = consumer.get("core.kcp.io/v1alpha1/logicalclusters", "cluster").unwrap();
    let locks: Value = serde_json::from_str(
        locks["metadata"]["annotations"]["internal.apis.kcp.io/resource-bindings"].as_str().unwrap(),
    )
    .unwrap();
    assert_eq!(locks["widgets.example.io"], json!({"n": "second"}));
}

#[tokio::test]
async fn both_versions_of_exports_can_be_read_and_written() {
    let world = World::start().await;
    world.workspace("root", "prov").await;
    let place = world.at("root:prov");
    place.create(schema("v1", "size")).unwrap();
    let v1 = json!({"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExport", "metadata": {"name": "example.io"}, "spec": {
        "latestResourceSchemas": ["v1.widgets.example.io"], "permissionClaims": [{"resource": "secrets", "all": true}]}});
    place.create(v1).unwrap();
    let v2 = place.get("apis.kcp.io/v1alpha2/apiexports", "example.io").unwrap();
    assert_eq!(v2["spec"]["resources"][0]["schema"], "v1.widgets.example.io");
    assert_eq!(
        v2["spec"]["permissionClaims"],
        json!([{"group": "", "resource": "secrets", "identityHash": "", "verbs": ["*"]}])
    );
    place
        .merge("apis.kcp.io/v1alpha1/apiexports", "", "example.io", json!({"spec": {"latestResourceSchemas": []}}))
        .unwrap();
    let v1 = place.get("apis.kcp.io/v1alpha1/apiexports", "example.io").unwrap();
    assert_eq!(v1["spec"].get("latestResourceSchemas"), None);
    assert_eq!(v1["spec"]["permissionClaims"], json!([{"resource": "secrets", "all": true}]));
    let kept = &v2["metadata"]["annotations"]["apis.v1alpha2.kcp.io/v1alpha1-permission-claims"];
    assert_eq!(*kept, "[{\"resource\":\"secrets\",\"all\":true}]");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let world = World::start().await;
    world.workspace("root", "prov").await;
    world.workspace("root", "cons").await;
    world.export("root:prov", json!([])).await;
    let provider = world.at("root:prov");
    let mut wrong = schema("v3", "x");
    wrong["metadata"]["name"] = json!("widgets");
    let refused = provider.create(wrong).unwrap_err();
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (
            403,
            "apiresourceschemas.apis.kcp.io \"widgets\" is forbidden: [metadata.name: Invalid value: \"widgets\": must end in .widgets.example.io]"
        )
    );
    let changed = provider.merge(
        "apis.kcp.io/v1alpha1/apiresourceschemas",
        "",
        "v1.widgets.example.io",
        json!({"spec": {"scope": "Cluster"}}),
    );
    assert_eq!(changed.unwrap_err().code, 403);
    let claim = json!({"spec": {"permissionClaims": [{"group": "foo.io", "resource": "bars", "verbs": ["*"]}]}});
    assert_eq!(provider.merge("apis.kcp.io/v1alpha2/apiexports", "", "example.io", claim).unwrap_err().code, 403);
    let status = provider.merge(
        "apis.kcp.io/v1alpha2/apiexports:status",
        "",
        "example.io",
        json!({"status": {"identityHash": "x"}}),
    );
    assert_eq!(status.unwrap_err().code, 403);
    let missing = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": "b"},
        "spec": {"reference": {"export": {"path": "root:prov", "name": "nope"}}}});
    let refused = world.at("root:cons").create(missing).unwrap_err();
    assert!(
        refused.message.ends_with("unable to create APIBinding: no permission to bind to export root:prov:nope"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_slice_may_live_in_another_workspace_than_its_export() {
    let world = World::start().await;
    let provider = world.workspace("root", "prov").await;
    world.workspace("root", "elsewhere").await;
    world.export("root:prov", json!([])).await;
    world.bind("root:elsewhere", "root:prov", json!([])).await;
    let place = world.at("root:elsewhere");
    let kind = "apis.kcp.io/v1alpha1/apiexportendpointslices";
    let slice = |name: &str, path: &str| {
        json!({"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExportEndpointSlice", "metadata": {"name": name},
            "spec": {"export": {"name": "example.io", "path": path}}})
    };
    place.create(slice("by-path", "root:prov")).unwrap();
    place.create(slice("by-name", &provider)).unwrap();
    assert_eq!(place.create(slice("nope", "root:nope")).unwrap_err().code, 403);
    let url = format!("{}/services/apiexport/{provider}/example.io", world.plane.url());
    for name in ["by-path", "by-name"] {
        let found = || place.get(kind, name).unwrap();
        world
            .until("the slice has the URL", || (found()["status"]["endpoints"] == json!([{"url": url}])).then_some(()))
            .await;
    }
    world.at("root:prov").delete("apis.kcp.io/v1alpha2/apiexports", "", "example.io").unwrap();
    let missing = |object: &Value| condition(object, "APIExportValid")["reason"] == "APIExportNotFound";
    world.until("the foreign slice misses its export", || place.get(kind, "by-path").ok().filter(missing)).await;
    let own = world.at("root:prov");
    world.until("the export's own slice is collected", || own.get(kind, "example.io").is_err().then_some(())).await;
}

#[tokio::test]
async fn an_export_without_its_secret_keeps_the_hash_and_says_so() {
    let world = World::start().await;
    world.workspace("root", "prov").await;
    let export = world.export("root:prov", json!([])).await;
    let place = world.at("root:prov");
    place.delete("v1/secrets", "kcp-system", "example.io").unwrap();
    let found = world
        .until("the identity is invalid", || {
            let found = place.get("apis.kcp.io/v1alpha2/apiexports", "example.io").unwrap();
            (condition(&found, "IdentityValid")["status"] == "False").then_some(found)
        })
        .await;
    assert_eq!(condition(&found, "IdentityValid")["reason"], "IdentityVerificationFailed");
    assert_eq!(found["status"]["identityHash"], export["status"]["identityHash"]);
}
