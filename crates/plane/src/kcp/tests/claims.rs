use super::world::{BINDINGS, World, condition};
use serde_json::{Value, json};

const CONFIGMAPS: &str = "v1/configmaps";

fn claim(resource: &str, verbs: Value) -> Value {
    json!({"group": "", "resource": resource, "identityHash": "", "verbs": verbs})
}

fn accept(resource: &str, verbs: Value, selector: Value) -> Value {
    let mut accepted = claim(resource, verbs);
    accepted["selector"] = selector;
    accepted["state"] = json!("Accepted");
    accepted
}

fn configmap(name: &str, labels: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default", "labels": labels}})
}

async fn provider_and_consumer(world: &World, claims: Value) -> (String, String) {
    let provider = world.workspace("root", "prov").await;
    let consumer = world.workspace("root", "cons").await;
    world.export("root:prov", claims).await;
    (provider, consumer)
}

#[tokio::test]
async fn accepted_claims_show_existing_and_new_objects_and_rejecting_hides_them() {
    let world = World::start().await;
    let (provider, cluster) = provider_and_consumer(&world, json!([claim("configmaps", json!(["*"]))])).await;
    let consumer = world.at("root:cons");
    consumer.create(configmap("old", json!({}))).unwrap();
    world.bind("root:cons", "root:prov", json!([])).await;
    let endpoint = world.endpoint("root:prov").await;
    let all = world.through(&endpoint, "*");
    assert_eq!(all.names(CONFIGMAPS).len(), 0);
    let mut events = all.watch(CONFIGMAPS);
    let accepted =
        json!({"spec": {"permissionClaims": [accept("configmaps", json!(["*"]), json!({"matchAll": true}))]}});
    consumer.merge(BINDINGS, "", "example", accepted).unwrap();
    let seen = events.expect("ADDED", &cluster, "old").await;
    let label = format!("claimed.internal.apis.kcp.io/{}", carrick_kcp::hash::export_hash(&provider, "example.io"));
    assert_eq!(seen["metadata"]["labels"][&label], "3QVjs6pfBjMpLEVYYhysJnroYGsQGlWm05E4qe");
    events.expect("ADDED", &cluster, "kube-root-ca.crt").await;
    let created = consumer.create(configmap("new", json!({"claimed.internal.apis.kcp.io/forged": "x"}))).unwrap();
    assert_eq!(created["metadata"]["labels"], json!({label: "3QVjs6pfBjMpLEVYYhysJnroYGsQGlWm05E4qe"}));
    events.expect("ADDED", &cluster, "new").await;

    let inside = world.through(&endpoint, &cluster);
    inside.create(configmap("by-provider", json!({}))).unwrap();
    assert!(consumer.get_in(CONFIGMAPS, "default", "by-provider").is_ok());

    let mut rejected = accept("configmaps", json!(["*"]), json!({"matchAll": true}));
    rejected["state"] = json!("Rejected");
    consumer.merge(BINDINGS, "", "example", json!({"spec": {"permissionClaims": [rejected]}})).unwrap();
    events.expect("DELETED", &cluster, "old").await;
    world.until("nothing is visible", || all.names(CONFIGMAPS).is_empty().then_some(())).await;
    assert_eq!(inside.list(CONFIGMAPS).unwrap_err().code, 403);
    assert_eq!(consumer.get_in(CONFIGMAPS, "default", "old").unwrap()["metadata"].get("labels"), None);
}

#[tokio::test]
async fn a_selector_limits_what_the_provider_sees_and_writes() {
    let world = World::start().await;
    let (_, cluster) = provider_and_consumer(&world, json!([claim("configmaps", json!(["*"]))])).await;
    let consumer = world.at("root:cons");
    consumer.create(configmap("mine", json!({"for": "provider"}))).unwrap();
    consumer.create(configmap("private", json!({}))).unwrap();
    let selector = json!({"matchLabels": {"for": "provider"}});
    world.bind("root:cons", "root:prov", json!([accept("configmaps", json!(["*"]), selector)])).await;
    let endpoint = world.endpoint("root:prov").await;
    let inside = world.through(&endpoint, &cluster);
    world
        .until("the object is visible", || {
            (inside.names(CONFIGMAPS) == [format!("{cluster}/default/mine")]).then_some(())
        })
        .await;
    assert_eq!(inside.get_in(CONFIGMAPS, "default", "private").unwrap_err().code, 404);
    let created = inside.create(configmap("added", json!({}))).unwrap();
    assert_eq!(created["metadata"]["labels"]["for"], "provider");
    let refused = inside.create(configmap("bad", json!({"for": "else"}))).unwrap_err();
    assert!(refused.message.contains("protected label for must have value provider"), "{refused}");
    consumer.merge(CONFIGMAPS, "default", "mine", json!({"metadata": {"labels": {"for": null}}})).unwrap();
    assert_eq!(inside.get_in(CONFIGMAPS, "default", "mine").unwrap_err().code, 404);
}

#[tokio::test]
async fn only_verbs_that_both_sides_agreed_on_are_allowed() {
    let world = World::start().await;
    let (_, cluster) =
        provider_and_consumer(&world, json!([claim("configmaps", json!(["get", "list", "create"]))])).await;
    let accepted = accept("configmaps", json!(["get", "list"]), json!({"matchAll": true}));
    world.bind("root:cons", "root:prov", json!([accepted])).await;
    let endpoint = world.endpoint("root:prov").await;
    let inside = world.through(&endpoint, &cluster);
    assert!(inside.list(CONFIGMAPS).is_ok());
    assert_eq!(inside.create(configmap("x", json!({}))).unwrap_err().code, 403);
    assert_eq!(inside.delete(CONFIGMAPS, "default", "kube-root-ca.crt").unwrap_err().code, 403);
    let binding = world.condition("root:cons", "example", "PermissionClaimsValid", "False").await;
    assert_eq!(condition(&binding, "PermissionClaimsValid")["reason"], "PermissionClaimsMismatch");
    assert_eq!(condition(&binding, "Ready")["status"], "True");
}

#[tokio::test]
async fn claims_may_be_accepted_before_the_export_asks_for_them() {
    let world = World::start().await;
    let (_, cluster) = provider_and_consumer(&world, json!([])).await;
    let accepted = json!([accept("secrets", json!(["*"]), json!({"matchAll": true}))]);
    let binding = world.bind("root:cons", "root:prov", accepted).await;
    assert_eq!(condition(&binding, "PermissionClaimsValid")["reason"], "InvalidPermissionClaims");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}});
    world.at("root:cons").create(secret).unwrap();
    let asks = json!({"spec": {"permissionClaims": [claim("secrets", json!(["*"]))]}});
    world.at("root:prov").merge("apis.kcp.io/v1alpha2/apiexports", "", "example.io", asks).unwrap();
    world.condition("root:cons", "example", "PermissionClaimsValid", "True").await;
    let endpoint = world.endpoint("root:prov").await;
    let all = world.through(&endpoint, "*");
    world
        .until("the secret is visible", || (all.names("v1/secrets") == [format!("{cluster}/default/s")]).then_some(()))
        .await;
}

#[tokio::test]
async fn resources_of_another_export_are_claimed_by_identity() {
    let world = World::start().await;
    let (_, cluster) = provider_and_consumer(&world, json!([])).await;
    let identity =
        world.at("root:prov").get("apis.kcp.io/v1alpha2/apiexports", "example.io").unwrap()["status"]["identityHash"]
            .clone();
    world.bind("root:cons", "root:prov", json!([])).await;
    world.workspace("root", "other").await;
    let wanted = json!({"group": "example.io", "resource": "widgets", "identityHash": identity, "verbs": ["*"]});
    let export = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": "other"},
        "spec": {"permissionClaims": [wanted.clone()]}});
    let other = world.at("root:other");
    other.create(export).unwrap();
    world.at("root:cons").create(super::world::widget("w", json!({}))).unwrap();
    let mut accepted = wanted;
    accepted["selector"] = json!({"matchAll": true});
    accepted["state"] = json!("Accepted");
    let binding = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": "other"},
        "spec": {"reference": {"export": {"path": "root:other", "name": "other"}}, "permissionClaims": [accepted]}});
    world.at("root:cons").create(binding).unwrap();
    world.condition("root:cons", "other", "Ready", "True").await;
    let home = other.get("core.kcp.io/v1alpha1/logicalclusters", "cluster").unwrap()["metadata"]["annotations"]["kcp.io/cluster"].clone();
    let endpoint = format!("/services/apiexport/{}/other", home.as_str().unwrap());
    let place = world.through(&endpoint, "*");
    world
        .until("the widget is visible", || {
            (place.names(super::world::WIDGETS) == [format!("{cluster}/default/w")]).then_some(())
        })
        .await;
}
