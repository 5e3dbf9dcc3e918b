//! What is kept of exports and bindings between requests: it is shared, and it follows every change.

use std::sync::Arc;

use serde_json::{Value, json};

use super::world::{BINDINGS, WIDGETS, World, schema, widget};
use crate::resource::{Catalog, Resource};

const EXPORTS: &str = "apis.kcp.io/v1alpha2/apiexports";
const SCHEMAS: &str = "apis.kcp.io/v1alpha1/apiresourceschemas";

fn widgets(catalog: &Catalog) -> Arc<Resource> {
    catalog.find("example.io", "v1", "widgets").unwrap().clone()
}

/// The fields of the spec, as OpenAPI shows them.
fn fields(resource: &Resource) -> Vec<String> {
    let schema: Value = serde_json::from_str(resource.versions[0].openapi.get().unwrap()).unwrap();
    schema["properties"]["spec"]["properties"].as_object().unwrap().keys().cloned().collect()
}

#[tokio::test]
async fn everybody_who_serves_a_kind_shares_its_schema() {
    let world = World::start().await;
    world.workspace("root", "prov").await;
    for name in ["one", "two"] {
        world.workspace("root", name).await;
    }
    world.export("root:prov", json!([])).await;
    for name in ["root:one", "root:two"] {
        world.bind(name, "root:prov", json!([])).await;
    }
    let endpoint = world.endpoint("root:prov").await;
    world.quiet().await;
    let [one, two, view] =
        [world.at("root:one"), world.at("root:two"), world.through(&endpoint, "*")].map(|client| client.resources());
    for other in [&two, &view] {
        let (first, other) = (widgets(&one), widgets(other));
        let [first, other] = [&first, &other].map(|kind| kind.versions[0].schema.as_ref().unwrap());
        assert!(Arc::ptr_eq(first, other));
    }
    // Workspaces that bind the same have the very same kinds, and so has each of them at the next request.
    assert!(Arc::ptr_eq(&widgets(&one), &widgets(&two)));
    assert_eq!(one.as_ptr(), two.as_ptr());
    assert_eq!(one.as_ptr(), world.at("root:one").resources().as_ptr());
    assert_eq!(view.as_ptr(), world.through(&endpoint, "*").resources().as_ptr());
}

#[tokio::test]
async fn a_virtual_workspace_follows_its_export_and_the_schemas_of_it() {
    let world = World::start().await;
    world.workspace("root", "prov").await;
    world.workspace("root", "cons").await;
    world.export("root:prov", json!([])).await;
    world.bind("root:cons", "root:prov", json!([])).await;
    let endpoint = world.endpoint("root:prov").await;
    let served = || world.through(&endpoint, "*").resources();
    assert_eq!(fields(&widgets(&served())), ["size"]);

    let provider = world.at("root:prov");
    provider.create(schema("v2", "length")).unwrap();
    let resources = |schema: &str| json!({"spec": {"resources": [{"name": "widgets", "group": "example.io", "schema": schema, "storage": {"crd": {}}}]}});
    provider.merge(EXPORTS, "", "example.io", resources("v2.widgets.example.io")).unwrap();
    assert_eq!(fields(&widgets(&served())), ["length"]);
    world
        .until("the workspace serves the new schema", || {
            (fields(&widgets(&world.at("root:cons").resources())) == ["length"]).then_some(())
        })
        .await;

    let claims = json!({"spec": {"permissionClaims": [{"group": "", "resource": "secrets", "verbs": ["*"]}]}});
    provider.merge(EXPORTS, "", "example.io", claims).unwrap();
    assert!(served().find("", "v1", "secrets").is_some());
    provider.delete(SCHEMAS, "", "v2.widgets.example.io").unwrap();
    assert!(served().find("example.io", "v1", "widgets").is_none());
    provider.create(schema("v2", "width")).unwrap();
    assert_eq!(fields(&widgets(&served())), ["width"]);
}

#[tokio::test]
async fn a_virtual_workspace_follows_the_exports_whose_kinds_it_claims() {
    let world = World::start().await;
    world.workspace("root", "prov").await;
    let other = world.workspace("root", "other").await;
    let identity = world.export("root:prov", json!([])).await["status"]["identityHash"].as_str().unwrap().to_owned();
    let place = world.at("root:other");
    let claim = json!({"group": "example.io", "resource": "widgets", "identityHash": identity, "verbs": ["*"]});
    place
        .create(json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": "claims"},
            "spec": {"permissionClaims": [claim]}}))
        .unwrap();
    let endpoint = format!("/services/apiexport/{other}/claims");
    world
        .until("the export has an identity", || {
            let found = place.get(EXPORTS, "claims").ok()?;
            found["status"]["identityHash"].is_string().then_some(())
        })
        .await;
    let served = || world.through(&endpoint, "*").resources();
    assert_eq!(fields(&widgets(&served())), ["size"]);
    world.at("root:prov").delete(EXPORTS, "", "example.io").unwrap();
    assert!(served().find("example.io", "v1", "widgets").is_none());
}

#[tokio::test]
async fn a_provider_is_let_in_and_out_as_its_export_is_bound_and_unbound() {
    let world = World::start().await;
    world.workspace("root", "prov").await;
    let consumer = world.workspace("root", "cons").await;
    world.export("root:prov", json!([])).await;
    for round in 0..2 {
        world.bind("root:cons", "root:prov", json!([])).await;
        let endpoint = world.endpoint("root:prov").await;
        assert_eq!(world.through(&endpoint, &consumer).list(WIDGETS).unwrap().len(), 0);
        world.at("root:cons").create(widget("w", json!({"size": round}))).unwrap();
        assert_eq!(world.through(&endpoint, "*").list(WIDGETS).unwrap().len(), 1);
        world.at("root:cons").delete(BINDINGS, "", "example").unwrap();
        world.until("the binding is gone", || world.at("root:cons").get(BINDINGS, "example").err()).await;
        assert_eq!(world.through(&endpoint, &consumer).list(WIDGETS).unwrap_err().code, 403);
        assert_eq!(world.through(&endpoint, "*").list(WIDGETS).unwrap_err().code, 404);
        assert!(world.at("root:cons").resources().find("example.io", "v1", "widgets").is_none());
    }
}

/// What others have written in v1alpha2 keeps whoever writes v1alpha1 out, as in kcp 0.32.
#[tokio::test]
async fn what_the_older_version_cannot_express_refuses_its_writes() {
    const OLDER: &str = "apis.kcp.io/v1alpha1/apiexports";
    let world = World::start().await;
    world.workspace("root", "prov").await;
    let provider = world.at("root:prov");
    let export = |name: &str, spec: Value| json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": name}, "spec": spec});
    let touch = |name: &str, number: u32| {
        let patch = json!({"metadata": {"annotations": {"example.com/n": number.to_string()}}});
        provider.merge(OLDER, "", name, patch)
    };
    let claims = json!({"permissionClaims": [{"group": "", "resource": "secrets", "verbs": ["get"]}]});
    provider.create(export("claims", claims)).unwrap();
    let refused = touch("claims", 1).unwrap_err();
    assert_eq!(refused.code, 422, "{refused:?}");
    assert!(refused.message.contains(r#"either "all" or "resourceSelector" must be set"#), "{refused:?}");
    // With the note that whoever writes v1alpha1 leaves, the claim can be expressed there, and its verbs stay.
    let note = json!({"metadata": {"annotations": {
        "apis.v1alpha2.kcp.io/v1alpha1-permission-claims": r#"[{"resource":"secrets","all":true}]"#}}});
    provider.merge(EXPORTS, "", "claims", note).unwrap();
    touch("claims", 2).unwrap();
    let kept = provider.get(EXPORTS, "claims").unwrap();
    assert_eq!(kept["spec"]["permissionClaims"][0]["verbs"], json!(["get"]), "{kept}");

    let ordinary = |name: &str| json!({"name": name, "group": "x.io", "schema": format!("v1.{name}.x.io"), "storage": {"crd": {}}});
    let reference = json!({"apiGroup": "cache.kcp.io", "kind": "CachedResourceEndpointSlice", "name": "a"});
    let foreign = json!({"name": "cached", "group": "x.io", "schema": "v1.cached.x.io",
        "storage": {"virtual": {"reference": reference, "identityHash": "abc"}}});
    provider.create(export("virtual", json!({"resources": [foreign.clone(), ordinary("as")]}))).unwrap();
    touch("virtual", 1).unwrap();
    let both = json!({"spec": {"resources": [foreign.clone(), ordinary("as"), ordinary("bs")]}});
    provider.merge(EXPORTS, "", "virtual", both).unwrap();
    let refused = touch("virtual", 2).unwrap_err();
    assert_eq!(refused.code, 403, "{refused:?}");
    assert!(refused.message.ends_with("duplicate resource schema"), "{refused:?}");
    assert!(refused.message.contains("metadata.annotations[apis.v1alpha2.kcp.io/resource-schemas]"), "{refused:?}");
    let kept = provider.get(EXPORTS, "virtual").unwrap();
    assert_eq!(kept["spec"]["resources"][0], foreign);
}
