//! Something undoes what the konnector writes, again and again, or changes it without end: it is written ever more rarely, or so often, and the binding
//! says so. What takes long to be written keeps nothing else waiting.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{DeleteOptions, ListOptions, Resource};
use carrick_konnector::agent::Budget;
use carrick_plane::faults::{Effect, Match, Rule};
use futures::StreamExt;
use serde_json::{Value, json};

use super::world::{TEAM, WIDGETS, World, cluster_bindings, crd, has, is_established, message, widgets};
use crate::clusters::{BINDER, crd_kind};

/// How often one object may be written in a minute, and what somebody who reads of it can set.
const MOST: usize = 20;
const FLAG: &str = "(--max-writes-per-minute)";

fn is_contested(binding: &Value) -> bool {
    has(binding, "Synced", "False", "Contested")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_something_deletes_at_once_is_made_ever_more_rarely_until_that_stops() {
    let world = World::bound().await;
    let client = world.provider.client.clone();
    let deleting = tokio::spawn(async move {
        let options = WatchOptions { namespace: Some(TEAM.to_owned()), ..WatchOptions::default() };
        let mut events = std::pin::pin!(watch(client.clone(), widgets(), options));
        while let Some(event) = events.next().await {
            if let Event::Listed(object) | Event::Applied(object) = event {
                let _ = client.delete(&widgets(), Some(TEAM), &object.name, &DeleteOptions::default()).await;
            }
        }
    });
    let sent = world.provider.plane().faults().record();
    let created =
        || sent.count(|it| it.ask.user == BINDER && it.ask.verb == "create" && it.ask.path.contains("/widgets"));
    world.order_here("a", 1).await;
    let binding = world.consumer.until(&cluster_bindings(), None, "west", is_contested).await;
    let words = message(&binding, "Synced");
    assert!(words.contains("team/a") && words.contains("find out who deletes it"), "{words}");
    assert!(has(&binding, "Ready", "True", "AsExpected"), "the others are synced");
    // For as long as the next pause is.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!((5..=8).contains(&created()), "{} creations", created());
    deleting.abort();
    let synced = |it: &Value| has(it, "Synced", "True", "AsExpected");
    world.consumer.until(&cluster_bindings(), None, "west", synced).await;
    world.copy_is("a", |it| it["spec"]["size"] == 1).await;
}

/// Changes an object until the binding says that this is too much; returns what was wanted last, and the binding.
async fn flood(world: &World, name: &str) -> (u64, Value) {
    let enough = AtomicBool::new(false);
    let changes = async {
        let mut size = 0;
        while !enough.load(Ordering::Relaxed) {
            size += 1;
            let patch = json!({"spec": {"size": size}});
            world.consumer.client.merge_patch(&widgets(), Some(TEAM), name, &patch).await.unwrap();
        }
        size
    };
    let said = async {
        let binding = world.consumer.until(&cluster_bindings(), None, "west", is_contested).await;
        enough.store(true, Ordering::Relaxed);
        binding
    };
    tokio::join!(changes, said)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_changes_without_end_is_written_so_often_and_that_is_said() {
    let mut world = World::bound_with(Budget { writes: MOST }).await;
    let (begun, sent) = (Instant::now(), world.provider.plane().faults().record());
    world.order("a", 0).await;
    let (last, binding) = flood(&world, "a").await;
    let words = message(&binding, "Synced");
    assert!(words.contains("team/a") && words.contains("20 times a minute") && words.contains(FLAG), "{words}");
    world.probe("other").await;
    let is_write =
        |verb: &str, path: &str| ["create", "patch", "update"].contains(&verb) && path.ends_with("/widgets/a");
    let written = sent.count(|it| it.ask.user == BINDER && is_write(&it.ask.verb, &it.ask.path));
    let minutes = usize::try_from(begun.elapsed().as_secs() / 60).unwrap() + 1;
    assert!(written <= MOST * minutes, "it was written {written} times");
    let kind = Resource::namespaced("", "v1", "Event", "events");
    let events: Vec<Value> = world.consumer.client.list(&kind, Some(TEAM), &ListOptions::default()).await.unwrap();
    let warns = |event: &Value| event["message"].as_str().is_some_and(|message| message.contains(FLAG));
    assert!(events.iter().any(warns), "{events:?}");

    // What is newest is not lost; the next konnector counts from the beginning.
    world.kill_konnector().await;
    world.start_konnector();
    world.copy_is("a", |copy| copy["spec"]["size"] == last).await;
    let synced = |it: &Value| has(it, "Synced", "True", "AsExpected");
    world.consumer.until(&cluster_bindings(), None, "west", synced).await;
    // Whoever changes an object too often can still delete it.
    flood(&world, "a").await;
    world.consumer.delete(&widgets(), Some(TEAM), "a").await;
    world.provider.until_gone(&widgets(), Some(TEAM), "a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_whose_copies_are_written_slowly_keeps_no_other_one_waiting() {
    const MANY: u32 = 80;
    let world = World::start().await;
    world.offer(&crd("gadgets", "Gadget", "example.io", "Namespaced")).await;
    world.store("west", BINDER).await;
    world.connect("west", json!({})).await;
    world.bind("west", "west", json!({"apis": [{"name": WIDGETS}, {"name": "gadgets.example.io"}]})).await;
    world.is_ready(&cluster_bindings(), "west").await;
    world.order("first", 1).await;
    let faults = world.provider.plane().faults().clone();
    // Longer than all the rest takes, also on a slow machine.
    let slow = Effect::delay(Duration::from_mins(5));
    let rule = faults.add(Rule::new(Match::writes().user(BINDER).resource("example.io", "widgets"), slow));
    for number in 0..MANY {
        world.order_here(&format!("slow-{number}"), 1).await;
    }
    world.consumer.until(&crd_kind(), None, "gadgets.example.io", is_established).await;
    let gadgets = Resource::namespaced("example.io", "v1", "Gadget", "gadgets");
    for name in ["one", "two", "three"] {
        let gadget = json!({"apiVersion": "example.io/v1", "kind": "Gadget", "metadata": {"name": name, "namespace": TEAM},
            "spec": {"size": 1}});
        world.consumer.apply(&gadgets, &gadget).await;
        world.provider.until(&gadgets, Some(TEAM), name, |_| true).await;
    }
    let under_way = faults.hits(rule);
    assert!((1..u64::from(MANY)).contains(&under_way), "{under_way} of them are being written");
}
