//! Bindings: an export becomes an API here, and both sides are told.

use serde_json::{Value, json};

use super::world::{World, has, message};
use crate::clusters::{
    BINDER, Provider, bindings, bundles, cluster_bindings, crd_kind, exports, schemas, sheriff_crd, sheriffs,
};

#[tokio::test(flavor = "multi_thread")]
async fn an_export_becomes_an_api_here_and_both_sides_are_told() {
    let (world, provider) = (World::start().await, Provider::start("c-1").await);
    provider.export("sheriffs").await;
    world.store("provider", &provider).await;
    world.bind("sheriffs", "provider").await;
    let binding = world.ready("sheriffs").await;
    assert_eq!(binding["status"]["providerPrettyName"], "Wild West Inc.");
    assert_eq!(binding["status"]["boundSchemas"], json!([{"group": "wild.io", "resource": "sheriffs"}]));
    assert!(binding["metadata"]["annotations"]["kube-bind.io/contract"].as_str().unwrap().starts_with("c-1/"));
    let crd = world.consumer.get(&crd_kind(), None, "sheriffs.wild.io").await.unwrap();
    assert_eq!(crd["metadata"]["ownerReferences"][0]["uid"], binding["metadata"]["uid"]);
    let sheriff =
        json!({"apiVersion": "wild.io/v1", "kind": "Sheriff", "metadata": {"name": "wyatt"}, "spec": {"intent": "x"}});
    world.consumer.apply(&sheriffs(), &sheriff).await;
    provider.cluster.until(&sheriffs(), None, "c-1-wyatt", |copy| copy["spec"]["intent"] == "x").await;
    let result = json!({"status": {"result": "done"}});
    provider.cluster.client.merge_patch_status(&sheriffs(), None, "c-1-wyatt", &result).await.unwrap();
    world.consumer.until(&sheriffs(), None, "wyatt", |it| it["status"]["result"] == "done").await;

    let at = Some("c-1");
    let told = |export: &Value| has(export, "Connected", "True", "") && has(export, "ConsumerInSync", "True", "");
    provider.cluster.until(&exports(), at, "sheriffs", told).await;
    let established = |schema: &Value| has(schema, "Established", "True", "InitialNamesAccepted");
    provider.cluster.until(&schemas(), at, "sheriffs.wild.io", established).await;
    let beats = |it: &Value| it["status"]["heartbeatInterval"] == "5m0s" && has(it, "SecretValid", "True", "");
    let cluster = provider.cluster.until(&cluster_bindings(), at, "cluster", beats).await;
    assert!(
        cluster["status"]["lastHeartbeatTime"].is_string() && has(&cluster, "ValidVersion", "True", ""),
        "{cluster}"
    );
    assert_eq!(cluster["status"]["consumerSecretRef"], json!({"namespace": "kube-bind", "name": "provider"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_sends_nothing() {
    let (mut world, provider) = (World::start().await, Provider::start("c-1").await);
    provider.export("sheriffs").await;
    world.store("provider", &provider).await;
    world.bind("sheriffs", "provider").await;
    world.ready("sheriffs").await;
    provider
        .cluster
        .until(&schemas(), Some("c-1"), "sheriffs.wild.io", |it| has(it, "Established", "True", "InitialNamesAccepted"))
        .await;
    assert_eq!(world.record(&provider).silence().await, Vec::<String>::new(), "at rest");
    world.stop_konnector().await;
    let recordings = world.record(&provider);
    world.start_konnector().await;
    provider.cluster.until_watched(BINDER, "boundschemas").await;
    assert_eq!(recordings.silence().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_schema_is_followed() {
    let (world, provider) = (World::start().await, Provider::start("c-1").await);
    provider.export("sheriffs").await;
    world.store("provider", &provider).await;
    world.bind("sheriffs", "provider").await;
    world.ready("sheriffs").await;
    let mut changed = sheriff_crd();
    let field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/badge";
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["badge"] =
        json!({"type": "string"});
    provider.write_schema(&changed).await;
    world.consumer.until(&crd_kind(), None, "sheriffs.wild.io", |crd| crd.pointer(field).is_some()).await;
    world.ready("sheriffs").await;
    // What cannot be followed is told, and the API stays.
    changed["spec"]["scope"] = json!("Namespaced");
    provider.write_schema(&changed).await;
    let binding = world.binding("sheriffs", "SchemaInSync", "False", "CustomResourceDefinitionUpdateFailed").await;
    assert!(message(&binding, "SchemaInSync").ends_with("unbind and bind again"), "{binding}");
    let crd = world.consumer.get(&crd_kind(), None, "sheriffs.wild.io").await.unwrap();
    assert_eq!(crd["spec"]["scope"], "Cluster");
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_names_at_two_providers_are_told_apart_by_their_secrets() {
    let world = World::start().await;
    let (first, second) = (Provider::start("c-1").await, Provider::start("c-2").await);
    first.export("sheriffs").await;
    world.store("first", &first).await;
    world.bind("sheriffs", "first").await;
    world.ready("sheriffs").await;
    second.export("sheriffs").await;
    world.store("second", &second).await;
    world.bundle("second", "second").await;
    let unbound = |export: &Value| {
        has(export, "Connected", "False", "APIServiceBindingNotFound") && has(export, "ConsumerInSync", "False", "NA")
    };
    second.cluster.until(&exports(), Some("c-2"), "sheriffs", unbound).await;
    let clashes = |it: &Value| has(it, "Synced", "False", "SyncErrors");
    let bundle = world.consumer.until(&bundles(), None, "second", clashes).await;
    assert!(message(&bundle, "Synced").contains("leads to another provider"), "{bundle}");
    let binding = world.ready("sheriffs").await;
    assert_eq!(binding["spec"]["kubeconfigSecretRef"]["name"], "first");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_providers_of_the_same_crd_the_first_one_has_it() {
    let world = World::start().await;
    let (first, second) = (Provider::start("c-1").await, Provider::start("c-1").await);
    first.export("one").await;
    second.export("two").await;
    world.store("first", &first).await;
    world.store("second", &second).await;
    world.bind("one", "first").await;
    world.ready("one").await;
    world.bind("two", "second").await;
    let binding = world.binding("two", "Connected", "False", "ForeignCustomResourceDefinition").await;
    assert!(message(&binding, "Connected").contains("belongs to APIServiceBinding one"), "{binding}");
    world.ready("one").await;
    // When the first one goes, the second one gets it.
    world.consumer.delete(&bindings(), None, "one").await;
    world.ready("two").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_gone_is_told_and_comes_back() {
    let (world, provider) = (World::start().await, Provider::start("c-1").await);
    provider.export("sheriffs").await;
    world.store("provider", &provider).await;
    world.bind("sheriffs", "provider").await;
    world.ready("sheriffs").await;
    provider.cluster.plane().endpoints()[0].stop().await;
    let binding = world.binding("sheriffs", "Heartbeating", "False", "ClusterBindingUpdateFailed").await;
    assert!(has(&binding, "Connected", "True", ""), "what was true stays so: {binding}");
    assert!(world.consumer.get(&crd_kind(), None, "sheriffs.wild.io").await.is_some());
    provider.cluster.plane().endpoints()[0].start().await.unwrap();
    world.ready("sheriffs").await;
}
