//! A provider without labelled CRDs: what its discovery shows is the offer.

use std::time::Duration;

use carrick_plane::faults::{Effect, Match, Recording, Rule};
use serde_json::{Value, json};

use super::world::{
    TEAM, WIDGETS, World, cluster_bindings, connections, crd, has, is_established, widget_crd, widgets,
};
use crate::clusters::{BINDER, KONNECTOR, crd_kind};

fn unlabelled(mut crd: Value) -> Value {
    crd["metadata"]["labels"] = json!({});
    crd
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery_and_openapi_documents_are_an_offer_of_which_only_what_is_bound_is_installed() {
    let mut world = World::without_konnector().await;
    world.install().await;
    for offered in [
        widget_crd(),
        crd("gadgets", "Gadget", "example.io", "Cluster"),
        crd("things", "Thing", "apis.kcp.io", "Cluster"),
    ] {
        world.offer(&unlabelled(offered)).await;
    }
    world.start_konnector();
    world.store("west", BINDER).await;
    // Nothing has the label, so Auto finds OpenAPI.
    world.connect("west", json!({"schema": {"source": "Auto"}})).await;
    world.bind("west", "west", json!({})).await;
    let connection = world.is_ready(&connections(), "west").await;
    assert_eq!(connection["status"]["activeSchemaSource"], "OpenAPI");
    let names: Vec<&str> =
        connection["status"]["exportedAPIs"].as_array().unwrap().iter().filter_map(|it| it["name"].as_str()).collect();
    assert!(names.contains(&WIDGETS) && names.contains(&"gadgets.example.io"), "{names:?}");
    assert!(!names.iter().any(|name| name.contains(".k8s.io") || *name == "deployments.apps"), "{names:?}");
    world.is_ready(&cluster_bindings(), "west").await;
    let pulled = world.consumer.get(&crd_kind(), None, WIDGETS).await.unwrap();
    assert_eq!(pulled["metadata"]["labels"]["core.kbind.io/managed"], "true");
    world.order("a", 3).await;
    let phase = json!({"status": {"phase": "Up"}});
    world.provider.client.merge_patch_status(&widgets(), Some(TEAM), "a", &phase).await.unwrap();
    world.source_is("a", |it| it["status"]["phase"] == "Up").await;
    assert!(world.consumer.get(&crd_kind(), None, "gadgets.example.io").await.is_none(), "nobody has bound it");
    // A label later does not turn the offer round.
    world.offer(&crd("gadgets", "Gadget", "example.io", "Cluster")).await;
    world.probe("b").await;
    let connection = world.consumer.get(&connections(), None, "west").await.unwrap();
    assert_eq!(connection["status"]["activeSchemaSource"], "OpenAPI");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_of_what_documents_show_is_installed_if_the_connection_says_so_but_nothing_of_kcp() {
    let mut world = World::without_konnector().await;
    world.install().await;
    for offered in [crd("things", "Thing", "apis.kcp.io", "Cluster"), widget_crd()] {
        world.offer(&unlabelled(offered)).await;
    }
    world.start_konnector();
    world.store("west", BINDER).await;
    world.connect("west", json!({"schema": {"source": "OpenAPI", "pullPolicy": "All"}})).await;
    let installed = world.consumer.until(&crd_kind(), None, WIDGETS, is_established).await;
    assert_eq!(installed["metadata"]["annotations"]["core.kbind.io/connection"], "west");
    let connection = world.is_ready(&connections(), "west").await;
    assert!(connection["status"]["exportedAPIs"].to_string().contains("things.apis.kcp.io"), "{connection}");
    // CRDs are written in the order of their names.
    assert!(world.consumer.get(&crd_kind(), None, "things.apis.kcp.io").await.is_none());
    // Whoever asks for it by name gets it.
    world.bind("things", "west", json!({"apis": [{"name": "things.apis.kcp.io"}]})).await;
    world.is_ready(&cluster_bindings(), "things").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_does_not_answer_takes_nothing_along() {
    let mut world = World::without_konnector().await;
    world.install().await;
    world.offer(&unlabelled(widget_crd())).await;
    world.offer(&unlabelled(crd("planets", "Planet", "space.io", "Cluster"))).await;
    world.start_konnector();
    world.store("west", BINDER).await;
    world.connect("west", json!({"autoBind": true, "schema": {"source": "OpenAPI"}})).await;
    let binding = world.is_ready(&cluster_bindings(), "west").await;
    assert_eq!(binding["spec"]["apis"], json!([{"name": "planets.space.io"}, {"name": WIDGETS}]));
    world.probe("a").await;
    // A new session reads everything again, and one group fails.
    let faults = world.provider.plane().faults();
    faults.add(Rule::new(Match::any().user(BINDER).path("/apis/space.io"), Effect::refuse(503)));
    world.stop_konnector().await;
    world.start_konnector();
    world.probe("b").await;
    let connection = world.is_ready(&connections(), "west").await;
    assert_eq!(connection["status"]["exportedAPIs"].as_array().unwrap().len(), 2, "{connection}");
    let binding = world.consumer.get(&cluster_bindings(), None, "west").await.unwrap();
    assert_eq!(binding["spec"]["apis"].as_array().unwrap().len(), 2);
    assert!(binding["metadata"]["annotations"].get("core.kbind.io/gone-since").is_none(), "{binding}");
    assert!(world.consumer.get(&crd_kind(), None, "planets.space.io").await.is_some());
    assert!(has(&connection, "Ready", "True", "AsExpected"));
}

/// What the konnector has asked the provider, other than watches and the Lease.
fn asked(recordings: &[Recording; 2]) -> Vec<String> {
    let all = recordings.iter().flat_map(Recording::records);
    let ours = all.filter(|it| [KONNECTOR, BINDER].contains(&it.ask.user.as_str()));
    let other = ours.filter(|it| it.ask.verb != "watch" && !it.ask.path.contains("/leases"));
    other.map(|it| format!("{} {}", it.ask.verb, it.ask.path)).collect()
}

/// Waits until nothing was asked for this long, which is longer than what follows one change.
async fn until_quiet(world: &World, calm: Duration) {
    let mut last = Vec::new();
    for _ in 0..5 {
        let recordings = world.record();
        tokio::time::sleep(calm).await;
        last = asked(&recordings);
        if last.is_empty() {
            return;
        }
    }
    panic!("it does not come to rest: {last:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn at_rest_nothing_is_asked_and_an_api_that_comes_or_goes_is_reported_by_a_watch() {
    let mut world = World::without_konnector().await;
    world.install().await;
    world.offer(&unlabelled(widget_crd())).await;
    world.start_konnector();
    world.store("west", BINDER).await;
    world.connect("west", json!({"schema": {"source": "OpenAPI"}})).await;
    world.bind("west", "west", json!({})).await;
    world.is_ready(&cluster_bindings(), "west").await;
    world.order("a", 3).await;
    world.source_is("a", |it| it["metadata"]["finalizers"].is_array()).await;
    let exports = |it: &Value, api: &str| it["status"]["exportedAPIs"].to_string().contains(api);
    until_quiet(&world, Duration::from_secs(4)).await;
    world.offer(&unlabelled(crd("gadgets", "Gadget", "example.io", "Cluster"))).await;
    let begin = tokio::time::Instant::now();
    world.consumer.until(&connections(), None, "west", |it| exports(it, "gadgets.example.io")).await;
    world.provider.delete(&crd_kind(), None, "gadgets.example.io").await;
    world.consumer.until(&connections(), None, "west", |it| !exports(it, "gadgets.example.io")).await;
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn where_crds_cannot_be_watched_the_offer_is_read_all_the_same_and_the_refused_watch_is_not_repeated() {
    let mut world = World::without_konnector().await;
    world.install().await;
    world.offer(&unlabelled(widget_crd())).await;
    let refuse = Match::any().user(BINDER).path("/customresourcedefinitions");
    let (faults, recordings) = (world.provider.plane().faults().clone(), world.record());
    faults.add(Rule::new(refuse, Effect::refuse(403)));
    world.start_konnector();
    world.store("west", BINDER).await;
    world.connect("west", json!({"schema": {"source": "OpenAPI"}})).await;
    world.bind("west", "west", json!({})).await;
    world.is_ready(&cluster_bindings(), "west").await;
    world.order("a", 3).await;
    until_quiet(&world, Duration::from_secs(4)).await;
    let records = recordings[1].records();
    let refused = records.iter().filter(|it| it.code == 403).count();
    assert!((1..=2).contains(&refused), "{refused} requests were refused");
}
