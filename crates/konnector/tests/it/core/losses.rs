//! What is lost on the way, or out of sight, is not lost.

use carrick_plane::faults::{Effect, Match, Rule, Turn};
use serde_json::{Value, json};

use super::related::{config_maps, entry, is_copied, object, secret};
use super::world::{TEAM, WIDGETS, World, cluster_bindings, connections, widgets};
use crate::clusters::{BINDER, Cluster, KONNECTOR, crd_kind, secrets};

/// One write in four is refused, and of one in five the answer is lost.
fn disturb(cluster: &Cluster, user: &'static str, seed: u64) {
    let writes = || Match::writes().filter(move |ask| ask.user == user);
    let faults = cluster.plane().faults();
    faults.add(Rule::new(writes(), Effect::refuse(503)).on(Turn::Chance { seed, per_mille: 250 }));
    faults.add(Rule::new(writes(), Effect::ApplyThenCut).on(Turn::Chance { seed: seed + 1, per_mille: 200 }));
}

fn entries() -> Value {
    json!([entry("secrets", "FromProvider"), entry("configmaps", "FromConsumer")])
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_and_refusals_change_nothing_in_the_end() {
    let world = World::start().await;
    disturb(&world.consumer, KONNECTOR, 7);
    disturb(&world.provider, BINDER, 11);
    world.store("west", BINDER).await;
    world.connect("west", json!({})).await;
    world.bind("west", "west", json!({ "relatedResources": entries() })).await;
    world.is_ready(&cluster_bindings(), "west").await;
    for name in ["a", "b", "c"] {
        world.order(name, 1).await;
    }
    world.provider.apply(&secrets(), &secret("default", "creds", "MQ==")).await;
    world.consumer.apply(&config_maps(), &object("ConfigMap", "shop", "settings", "1", "widget")).await;
    is_copied(&world.consumer, &secrets(), ("default", "creds"), "MQ==").await;
    is_copied(&world.provider, &config_maps(), ("shop", "settings"), "1").await;
    let phase = json!({"status": {"phase": "Up"}});
    world.provider.client.merge_patch_status(&widgets(), Some(TEAM), "a", &phase).await.unwrap();
    world.source_is("a", |it| it["status"]["phase"] == "Up").await;
    world.consumer.delete(&cluster_bindings(), None, "west").await;
    world.consumer.delete(&connections(), None, "west").await;
    world.consumer.until_gone(&connections(), None, "west").await;
    assert!(world.consumer.get(&crd_kind(), None, WIDGETS).await.is_none());
    for name in ["a", "b", "c"] {
        assert!(world.provider.get(&widgets(), Some(TEAM), name).await.is_none(), "{name}");
    }
    assert!(world.consumer.get(&secrets(), Some("default"), "creds").await.is_none());
    assert!(world.provider.get(&config_maps(), Some("shop"), "settings").await.is_none());
}

/// A binding with an object and a related one in either direction, which were copied.
async fn placed() -> World {
    let world = World::bound().await;
    world.bind("west", "west", json!({ "relatedResources": entries() })).await;
    world.order("a", 1).await;
    world.provider.apply(&secrets(), &secret("default", "creds", "MQ==")).await;
    world.consumer.apply(&config_maps(), &object("ConfigMap", "shop", "settings", "1", "widget")).await;
    is_copied(&world.consumer, &secrets(), ("default", "creds"), "MQ==").await;
    is_copied(&world.provider, &config_maps(), ("shop", "settings"), "1").await;
    world
}

async fn uids(world: &World) -> Vec<Value> {
    let mut uids = Vec::new();
    for (cluster, kind, at) in [
        (&world.provider, widgets(), (TEAM, "a")),
        (&world.consumer, widgets(), (TEAM, "a")),
        (&world.consumer, secrets(), ("default", "creds")),
        (&world.provider, config_maps(), ("shop", "settings")),
    ] {
        uids.push(cluster.get(&kind, Some(at.0), at.1).await.map_or(Value::Null, |it| it["metadata"]["uid"].clone()));
    }
    uids.push(
        world.consumer.get(&crd_kind(), None, WIDGETS).await.map_or(Value::Null, |it| it["metadata"]["uid"].clone()),
    );
    uids
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_away_or_says_no_or_not_found_deletes_nothing() {
    let mut world = placed().await;
    let before = uids(&world).await;
    for code in [403, 404, 500, 503] {
        world.kill_konnector().await;
        let faults = world.provider.plane().faults().clone();
        let rule =
            faults.add(Rule::new(Match::any().user(BINDER).verbs(&["list", "watch", "get"]), Effect::refuse(code)));
        let recordings = world.record();
        world.start_konnector();
        let unready = |it: &Value| {
            let mut all = it["status"]["conditions"].as_array().into_iter().flatten();
            all.any(|it| it["type"] == "Ready" && it["status"] == "False")
        };
        world.consumer.until(&connections(), None, "west", unready).await;
        world.consumer.until(&cluster_bindings(), None, "west", unready).await;
        let deletes: Vec<String> = recordings
            .iter()
            .flat_map(carrick_plane::faults::Recording::writes)
            .filter(|it| it.ask.verb.starts_with("delete"))
            .map(|it| it.ask.path)
            .collect();
        assert_eq!((uids(&world).await, deletes), (before.clone(), Vec::new()), "{code}");
        faults.remove(rule);
        world.is_ready(&cluster_bindings(), "west").await;
        world.probe(&format!("after-{code}")).await;
        assert_eq!(uids(&world).await, before, "{code}, afterwards");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_list_that_lacks_objects_deletes_nothing() {
    let mut world = placed().await;
    let before = uids(&world).await;
    world.kill_konnector().await;
    // Both servers show a state from before there were any objects, and then nothing new.
    let recordings = world.record();
    for (cluster, user) in [(&world.provider, BINDER), (&world.consumer, KONNECTOR)] {
        let old = || {
            let kinds = ["widgets", "secrets", "configmaps"];
            // The kubeconfig's own watch is by its name.
            Match::any()
                .user(user)
                .filter(move |ask| kinds.contains(&ask.resource.as_str()) && !ask.query.contains("fieldSelector"))
        };
        let streams = old().verbs(&["watch"]);
        let faults = cluster.plane().faults();
        faults.add(Rule::new(old().verbs(&["list"]), Effect::Stale(1000)));
        faults.add(Rule::new(streams, Effect::StallWatch(0)));
    }
    world.start_konnector();
    world.is_ready(&cluster_bindings(), "west").await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(uids(&world).await, before);
    let deletes =
        recordings.iter().flat_map(carrick_plane::faults::Recording::writes).filter(|it| it.ask.verb == "delete");
    assert_eq!(deletes.map(|it| it.ask.path).collect::<Vec<_>>(), Vec::<String>::new());
}
