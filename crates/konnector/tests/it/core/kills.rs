//! A konnector that is killed after each of its writes, and another one that goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use carrick_plane::faults::{Effect, Match, Rule, Turn};
use serde_json::json;

use super::related::{config_maps, entry, is_copied, object, secret};
use super::world::{TEAM, World, cluster_bindings, connections, has, widgets};
use crate::clusters::{BINDER, Cluster, KONNECTOR, crd_kind, secrets};

/// How long no write means that there is none to come.
const CALM: Duration = Duration::from_secs(2);

/// How often making a namespace counts: whoever cannot know that it is there tries to, as its first write.
const NAMESPACES: usize = 3;

/// Lets one konnector after the other make one write, whose answer it does not get, until one has nothing to write. Returns what was written.
pub async fn killed(world: &mut World, namespaces: &Arc<AtomicUsize>, other: Option<&Cluster>) -> Vec<String> {
    let mut writes = Vec::new();
    loop {
        let recordings = world.record();
        let sides = [(&world.consumer, KONNECTOR), (&world.provider, BINDER)];
        let sides = sides.into_iter().chain(other.map(|other| (other, BINDER)));
        let rules = sides.map(|(cluster, user)| {
            let namespaces = Arc::clone(namespaces);
            let asked = Match::writes().filter(move |ask| {
                let counts = match ask.resource.as_str() {
                    // Each of them renews the Lease.
                    "leases" => false,
                    "namespaces" => namespaces.fetch_add(1, Ordering::SeqCst) < NAMESPACES,
                    _ => true,
                };
                ask.user == user && counts
            });
            let faults = cluster.plane().faults().clone();
            let rule = faults.add(Rule::new(asked, Effect::ApplyThenCut).on(Turn::Nth(1)));
            (faults, rule)
        });
        let rules: Vec<_> = rules.collect();
        world.start_konnector();
        let hit = async {
            while rules.iter().all(|(faults, rule)| faults.hits(*rule) == 0) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let came = tokio::time::timeout(CALM, hit).await.is_ok();
        world.kill_konnector().await;
        for (faults, rule) in &rules {
            faults.remove(*rule);
        }
        let all = recordings.iter().flat_map(carrick_plane::faults::Recording::writes);
        let ours = all.filter(|it| [KONNECTOR, BINDER].contains(&it.ask.user.as_str()));
        let ours = ours.filter(|it| !["leases", "namespaces"].contains(&it.ask.resource.as_str()));
        writes.extend(ours.map(|it| format!("{} {}", it.ask.verb, it.ask.path)));
        if !came {
            return writes;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_konnector_that_is_killed_after_any_write_goes_on_where_it_was() {
    let (mut world, namespaces) = (World::start().await, Arc::default());
    world.consumer.until(&crd_kind(), None, "apiservicebindings.kube-bind.io", |_| true).await;
    world.kill_konnector().await;
    world.store("west", BINDER).await;
    world.connect("west", json!({"autoBind": true})).await;
    let bound = killed(&mut world, &namespaces, None).await;
    assert!(has(&world.is_ready(&cluster_bindings(), "west").await, "Synced", "True", "AsExpected"));
    let entries = json!([entry("secrets", "FromProvider"), entry("configmaps", "FromConsumer")]);
    world.bind("west", "west", json!({ "relatedResources": entries })).await;
    world.provider.apply(&secrets(), &secret("default", "creds", "MQ==")).await;
    world.consumer.apply(&config_maps(), &object("ConfigMap", "shop", "settings", "1", "widget")).await;
    world.order_here("db", 1).await;
    let placed = killed(&mut world, &namespaces, None).await;
    world.copy_is("db", |copy| copy["spec"]["size"] == 1).await;
    is_copied(&world.consumer, &secrets(), ("default", "creds"), "MQ==").await;
    is_copied(&world.provider, &config_maps(), ("shop", "settings"), "1").await;
    let phase = json!({"status": {"phase": "Up"}});
    world.provider.client.merge_patch_status(&widgets(), Some(TEAM), "db", &phase).await.unwrap();
    world.consumer.client.merge_patch(&widgets(), Some(TEAM), "db", &json!({"spec": {"size": 2}})).await.unwrap();
    world.provider.apply(&secrets(), &secret("default", "creds", "Mg==")).await;
    let followed = killed(&mut world, &namespaces, None).await;
    world.copy_is("db", |copy| copy["spec"]["size"] == 2).await;
    world.source_is("db", |it| it["status"]["phase"] == "Up").await;
    is_copied(&world.consumer, &secrets(), ("default", "creds"), "Mg==").await;
    world.consumer.delete(&secrets(), Some("kbind"), "west").await;
    world.consumer.delete(&connections(), None, "west").await;
    let ended = killed(&mut world, &namespaces, None).await;
    world.consumer.until_gone(&connections(), None, "west").await;
    world.consumer.until_gone(&secrets(), Some("kbind"), "west").await;
    assert!(world.consumer.get(&cluster_bindings(), None, "west").await.is_none());
    assert!(world.consumer.get(&crd_kind(), None, super::world::WIDGETS).await.is_none());
    assert!(world.provider.get(&widgets(), Some(TEAM), "db").await.is_none());
    assert!(world.consumer.get(&secrets(), Some("default"), "creds").await.is_none());
    assert!(world.provider.get(&config_maps(), Some("shop"), "settings").await.is_none());
    assert!(world.provider.get(&secrets(), Some("default"), "creds").await.is_some(), "a source");
    assert!(world.consumer.get(&config_maps(), Some("shop"), "settings").await.is_some(), "a source");
    let counts = [&bound, &placed, &followed, &ended].map(Vec::len);
    println!("killed after {counts:?} writes");
    assert!(
        bound.len() >= 6 && placed.len() >= 5 && followed.len() >= 3 && ended.len() >= 6,
        "{bound:#?} {placed:#?} {followed:#?} {ended:#?}"
    );
}
