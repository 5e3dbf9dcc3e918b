//! From one apply to objects that travel both ways.

use std::time::Duration;

use carrick_client::DeleteOptions;
use serde_json::{Value, json};

use super::world::{
    TEAM, WIDGETS, World, bindings, cluster_bindings, connections, crd, has, leases, message, widget_crd, widgets,
};
use crate::clusters::{BINDER, KONNECTOR, ROTATED, crd_kind, namespaces};

#[tokio::test(flavor = "multi_thread")]
async fn one_apply_in_any_order_brings_an_api_whose_objects_travel_both_ways() {
    let mut world = World::without_konnector().await;
    world.start_konnector();
    // The CRDs of 0.8 are here before those of v2: installing the latter is enough.
    world.consumer.until(&crd_kind(), None, "apiservicebindings.kube-bind.io", |_| true).await;
    world.install().await;
    world.bind("west", "west", json!({})).await;
    let waits = |it: &Value| has(it, "Ready", "False", "Pending");
    let binding = world.consumer.until(&cluster_bindings(), None, "west", waits).await;
    assert_eq!(message(&binding, "Ready"), "Connection \"west\" not found yet");
    world.connect("west", json!({})).await;
    let no_secret = |it: &Value| has(it, "SecretValid", "False", "SecretNotFound");
    world.consumer.until(&connections(), None, "west", no_secret).await;
    world.store("west", BINDER).await;
    let not_offered = |it: &Value| has(it, "Ready", "False", "APINotExported");
    let binding = world.consumer.until(&cluster_bindings(), None, "west", not_offered).await;
    assert_eq!(message(&binding, "Ready"), format!("APIs not exported by the provider yet: {WIDGETS}"));
    // It is offered last of all, and no timer is waited for.
    world.offer(&widget_crd()).await;
    let binding = world.is_ready(&cluster_bindings(), "west").await;
    assert!(has(&binding, "Synced", "True", "AsExpected") && has(&binding, "Conflicts", "False", "AsExpected"));
    assert_eq!(binding["status"]["boundAPIs"][0]["name"], WIDGETS);

    let connection = world.is_ready(&connections(), "west").await;
    let uid = async |cluster: &crate::clusters::Cluster| {
        cluster.get(&namespaces(), None, "kube-system").await.unwrap()["metadata"]["uid"].clone()
    };
    let (local, remote) = (uid(&world.consumer).await, uid(&world.provider).await);
    let status = &connection["status"];
    assert_eq!((&status["localClusterUID"], &status["remoteClusterUID"]), (&local, &remote));
    let api = json!([{"name": WIDGETS, "group": "example.io", "resource": "widgets", "scope": "Namespaced", "versions": ["v1"]}]);
    assert_eq!((&status["exportedAPIs"], &status["activeSchemaSource"]), (&api, &json!("CRD")));
    assert_eq!(connection["metadata"]["finalizers"], json!(["core.kbind.io/cleanup"]));
    let name = format!("consumer-{}", local.as_str().unwrap());
    let lease = world.provider.until(&leases(), Some("kbind"), &name, |_| true).await;
    assert_eq!((&lease["spec"]["holderIdentity"], &lease["spec"]["leaseDurationSeconds"]), (&local, &json!(60)));
    assert_eq!(lease["metadata"]["annotations"]["core.kbind.io/connection"], "west");

    let pulled = world.consumer.get(&crd_kind(), None, WIDGETS).await.unwrap();
    assert_eq!(pulled["metadata"]["labels"]["core.kbind.io/managed"], "true");
    assert_eq!(pulled["metadata"]["annotations"]["core.kbind.io/connection"], "west");
    let copy = world.order("a", 1).await;
    let source = world.source_is("a", |it| it["metadata"]["finalizers"] == json!(["core.kbind.io/syncer"])).await;
    let marks = &copy["metadata"]["annotations"];
    assert_eq!(marks["core.kbind.io/consumer-cluster-uid"], local);
    assert_eq!(marks["core.kbind.io/consumer-object-uid"], source["metadata"]["uid"]);
    let namespace = world.provider.get(&namespaces(), None, TEAM).await.unwrap();
    assert_eq!(namespace["metadata"]["labels"]["core.kbind.io/consumer-cluster-uid"], local);
    let managers: Vec<&str> = copy["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|it| it["manager"].as_str())
        .collect();
    assert!(managers.iter().all(|manager| *manager == "kbind-konnector"), "{managers:?}");

    let phase = json!({"status": {"phase": "Up"}});
    world.provider.client.merge_patch_status(&widgets(), Some(TEAM), "a", &phase).await.unwrap();
    world.source_is("a", |it| it["status"]["phase"] == "Up").await;
    world.consumer.client.merge_patch(&widgets(), Some(TEAM), "a", &json!({"spec": {"size": 2}})).await.unwrap();
    world.copy_is("a", |it| it["spec"]["size"] == 2).await;
    world.consumer.client.merge_patch(&widgets(), Some(TEAM), "a", &json!({"spec": {"size": null}})).await.unwrap();
    world.copy_is("a", |it| it["spec"].get("size").is_none()).await;
    // A copy that the provider deletes comes back.
    world.provider.delete(&widgets(), Some(TEAM), "a").await;
    world.copy_is("a", |it| it["metadata"]["uid"] != copy["metadata"]["uid"]).await;
    world.consumer.delete(&widgets(), Some(TEAM), "a").await;
    world.consumer.until_gone(&widgets(), Some(TEAM), "a").await;
    assert!(world.provider.get(&widgets(), Some(TEAM), "a").await.is_none(), "the copy goes first");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binding_serves_its_namespace_and_no_other_and_says_that_it_cannot_serve_a_cluster_scoped_api() {
    let world = World::start().await;
    world.offer(&crd("planets", "Planet", "example.io", "Cluster")).await;
    world.store("west", BINDER).await;
    world.connect("west", json!({})).await;
    let binding = |name: &str, api: &str| {
        json!({"apiVersion": "core.kbind.io/v1alpha1", "kind": "Binding", "metadata": {"name": name, "namespace": TEAM},
            "spec": {"connectionRef": {"name": "west"}, "apis": [{"name": api}]}})
    };
    world.consumer.apply(&bindings(), &binding("planets", "planets.example.io")).await;
    let refused = |it: &Value| has(it, "Ready", "False", "ClusterScopedAPI");
    let found = world.consumer.until(&bindings(), Some(TEAM), "planets", refused).await;
    assert!(message(&found, "Ready").contains("use a ClusterBinding: planets.example.io"), "{found}");
    assert!(world.consumer.get(&crd_kind(), None, "planets.example.io").await.is_none());
    world.consumer.apply(&bindings(), &binding("widgets", WIDGETS)).await;
    let ready = |it: &Value| has(it, "Ready", "True", "AsExpected");
    world.consumer.until(&bindings(), Some(TEAM), "widgets", ready).await;
    let mut elsewhere = super::world::widget("a", 1);
    elsewhere["metadata"]["namespace"] = json!("elsewhere");
    world.consumer.until(&crd_kind(), None, WIDGETS, super::world::is_established).await;
    world.consumer.apply(&widgets(), &elsewhere).await;
    world.probe("b").await;
    assert!(world.provider.get(&widgets(), Some("elsewhere"), "a").await.is_none());
    let left = world.consumer.get(&widgets(), Some("elsewhere"), "a").await.unwrap();
    assert!(left["metadata"].get("finalizers").is_none(), "{left}");
    // Deleting the binding lets the objects go and leaves the API.
    world.consumer.delete(&bindings(), Some(TEAM), "widgets").await;
    world.consumer.until_gone(&bindings(), Some(TEAM), "widgets").await;
    assert!(world.provider.get(&widgets(), Some(TEAM), "b").await.is_none());
    let left = world.consumer.get(&widgets(), Some(TEAM), "b").await.unwrap();
    assert!(left["metadata"].get("finalizers").is_none(), "{left}");
    assert!(world.consumer.get(&crd_kind(), None, WIDGETS).await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn renewed_credentials_are_used_without_a_restart_and_broken_ones_are_told() {
    let world = World::bound().await;
    world.probe("a").await;
    world.store_text("west", "apiVersion: v1").await;
    let refused = |it: &Value| has(it, "SecretValid", "False", "SecretNotFound");
    let connection = world.consumer.until(&connections(), None, "west", refused).await;
    assert!(message(&connection, "SecretValid").starts_with("parsing kubeconfig: "), "{connection}");
    world.consumer.until(&cluster_bindings(), None, "west", |it| has(it, "Ready", "False", "Pending")).await;
    world.store("west", ROTATED).await;
    world.is_ready(&cluster_bindings(), "west").await;
    let recorded = world.provider.plane().faults().record();
    world.probe("b").await;
    let users: Vec<String> =
        recorded.writes().into_iter().map(|it| it.ask.user).filter(|user| user != "admin").collect();
    assert!(!users.is_empty() && users.iter().all(|user| user == ROTATED), "{users:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lease_is_in_the_namespace_that_the_kubeconfig_names_and_bears_the_name_of_the_connection() {
    let world = World::start().await;
    let user = format!("    user: {BINDER:?}\n");
    let named = world.provider.kubeconfig(BINDER).replace(&user, &format!("{user}    namespace: boundary\n"));
    assert!(named.contains("boundary"), "{named}");
    world.store_text("west", &named).await;
    world.connect("west", json!({})).await;
    let connection = world.is_ready(&connections(), "west").await;
    let uid = connection["status"]["localClusterUID"].as_str().unwrap();
    let lease = world.provider.until(&leases(), Some("boundary"), &format!("west-{}", &uid[..10]), |_| true).await;
    let marks = json!({"core.kbind.io/consumer-cluster-uid": uid, "core.kbind.io/connection": "west"});
    assert_eq!((&lease["metadata"]["annotations"], &lease["spec"]["holderIdentity"]), (&marks, &json!(uid)));
    assert!(world.provider.get(&leases(), Some("kbind"), &format!("consumer-{uid}")).await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn at_rest_there_are_watches_and_the_lease_and_a_restart_writes_nothing_else() {
    let mut world = World::bound().await;
    for name in ["a", "b", "c"] {
        world.order(name, 1).await;
        world.source_is(name, |it| it["metadata"]["finalizers"].is_array()).await;
    }
    let phase = json!({"status": {"phase": "Up"}});
    world.provider.client.merge_patch_status(&widgets(), Some(TEAM), "c", &phase).await.unwrap();
    world.source_is("c", |it| it["status"]["phase"] == "Up").await;
    let sent = |recordings: &[carrick_plane::faults::Recording; 2], only_writes: bool| -> Vec<String> {
        let all = recordings.iter().flat_map(|it| if only_writes { it.writes() } else { it.records() });
        let ours = all.filter(|it| [KONNECTOR, BINDER].contains(&it.ask.user.as_str()));
        let other = ours.filter(|it| it.ask.verb != "watch" && !it.ask.path.contains("/leases"));
        other.map(|it| format!("{} {}", it.ask.verb, it.ask.path)).collect()
    };
    let quiet = world.record();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(sent(&quiet, false), Vec::<String>::new(), "at rest");
    world.stop_konnector().await;
    let restart = world.record();
    world.start_konnector();
    // What was there before is reconciled before whatever comes later.
    world.order("d", 1).await;
    world.source_is("d", |it| it["metadata"]["finalizers"].is_array()).await;
    let is_old = |it: &String| ["a", "b", "c"].iter().any(|name| it.contains(&format!("/widgets/{name}")));
    let old: Vec<String> = sent(&restart, true).into_iter().filter(is_old).collect();
    assert_eq!(old, Vec::<String>::new(), "after a restart");
    world.consumer.client.delete(&widgets(), Some(TEAM), "a", &DeleteOptions::default()).await.unwrap();
    world.provider.until_gone(&widgets(), Some(TEAM), "a").await;
}
