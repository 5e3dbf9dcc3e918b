//! Objects that the provider had before: shown, adopted, or left alone, in every mapping.

use carrick_bind_api::existing::Existing;
use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_client::DeleteOptions;
use carrick_konnector::agent::objects::SyncMode;
use carrick_plane::faults::{Effect, Rule, Turn};
use serde_json::{Value, json};

use super::world::{CONTRACT, Shape, World, konnectors_writes, namespaces, service_namespaces, until, writes};

fn shapes() -> Vec<Shape> {
    let mut shapes: Vec<Shape> =
        [Isolation::Prefixed, Isolation::Namespaced, Isolation::None].into_iter().map(Shape::cluster).collect();
    shapes.extend([InformerScope::Cluster, InformerScope::Namespaced].map(Shape::namespaced));
    shapes
}

/// A world whose provider has handed over namespace `team`.
async fn world(shape: Shape, existing: Existing) -> World {
    let mut world = World::at_rest(shape).await;
    let handed = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceNamespace",
        "metadata": {"name": "team", "labels": {"kube-bind.io/owner": "provider"}}});
    world.there.create(&service_namespaces(), Some(CONTRACT), &handed).await.unwrap();
    until("the namespace is there", async || world.there.get(&namespaces(), None, "c-1-team").await.unwrap().is_some())
        .await;
    world.existing = existing;
    world.want(SyncMode::Keep, &[]);
    world
}

/// The provider makes a widget of its own.
async fn made(world: &World, name: &str, spec: &Value) -> Value {
    let (_, namespace, name) = world.places(name);
    let widget = json!({"apiVersion": "example.io/v1", "kind": "Widget", "spec": spec,
        "metadata": {"name": name, "labels": {"theirs": "1"}}});
    world.there.create(&world.widgets()[1], namespace, &widget).await.unwrap()
}

async fn change_there(world: &World, name: &str, patch: &Value) {
    let (_, namespace, name) = world.places(name);
    world.there.merge_patch(&world.widgets()[1], namespace, &name, patch).await.unwrap();
}

async fn tell_there(world: &World, name: &str, phase: &str) {
    let (_, namespace, name) = world.places(name);
    let status = json!({"status": {"phase": phase}});
    world.there.merge_patch_status(&world.widgets()[1], namespace, &name, &status).await.unwrap();
}

async fn delete_there(world: &World, name: &str) {
    let (_, namespace, name) = world.places(name);
    world.there.delete(&world.widgets()[1], namespace, &name, &DeleteOptions::default()).await.unwrap();
}

async fn until_shown(world: &World, name: &str, spec: &Value) {
    until(&format!("{name} is shown"), async || world.source(name).await.is_some_and(|it| it["spec"] == *spec)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_annotation_nothing_of_the_account_is_touched_or_shown() {
    for shape in shapes() {
        let mut world = world(shape, Existing::Leave).await;
        let before = made(&world, "db", &json!({"size": 1})).await;
        world.start();
        world.until_told("all is known", |told| told.informers_synced.is_ok()).await;
        world.order("mine", &json!({})).await;
        world.until_copied("mine", &json!({})).await;
        world.calm().await;
        assert_eq!(world.source("db").await, None);
        assert_eq!(world.copy("db").await.unwrap()["metadata"], before["metadata"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_shown_follows_the_account_in_every_mapping_and_nothing_goes_back() {
    for shape in shapes() {
        let mut world = world(shape.clone(), Existing::Show).await;
        let original = made(&world, "db", &json!({"size": 1})).await;
        tell_there(&world, "db", "Up").await;
        world.start();
        until_shown(&world, "db", &json!({"size": 1})).await;
        until("its status is shown", async || world.source("db").await.unwrap()["status"]["phase"] == "Up").await;
        let mirror = world.source("db").await.unwrap();
        assert_eq!(mirror["metadata"]["labels"], json!({"theirs": "1", "kube-bind.io/owner": "provider"}), "{shape:?}");
        assert_eq!(mirror["metadata"]["annotations"]["kube-bind.io/provider-uid"], original["metadata"]["uid"]);
        assert_eq!(mirror["metadata"].get("finalizers"), None);
        // The account changes it.
        change_there(&world, "db", &json!({"spec": {"size": 2, "more": 1}})).await;
        until_shown(&world, "db", &json!({"size": 2, "more": 1})).await;
        change_there(&world, "db", &json!({"spec": {"more": null}})).await;
        tell_there(&world, "db", "Down").await;
        until_shown(&world, "db", &json!({"size": 2})).await;
        until("its status follows", async || world.source("db").await.unwrap()["status"]["phase"] == "Down").await;
        // Somebody here does.
        world.change("db", &json!({"spec": {"size": 7}})).await;
        until_shown(&world, "db", &json!({"size": 2})).await;
        world.cancel("db").await;
        until("it has come back", async || {
            world.source("db").await.is_some_and(|it| it["metadata"]["uid"] != mirror["metadata"]["uid"])
        })
        .await;
        until("its status is shown", async || world.source("db").await.unwrap()["status"]["phase"] == "Down").await;
        world.calm().await;
        let there = world.copy("db").await.unwrap();
        assert_eq!((&there["spec"], &there["metadata"]["uid"]), (&json!({"size": 2}), &original["metadata"]["uid"]));
        assert_eq!(there["metadata"].get("annotations"), None, "nothing is written to the account");
        // Whatever is made here travels as always, and quiet is quiet.
        world.order("mine", &json!({})).await;
        world.until_copied("mine", &json!({})).await;
        world.calm().await;
        let recordings = world.record();
        world.kill();
        world.start();
        world.until_told("all is known", |told| told.informers_synced.is_ok()).await;
        world.calm().await;
        assert_eq!(writes(&recordings), Vec::<String>::new(), "{shape:?}");
        delete_there(&world, "db").await;
        world.until_gone("db").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_adopted_belongs_to_the_consumer_from_then_on_in_every_mapping() {
    for shape in shapes() {
        let mut world = world(shape.clone(), Existing::Adopt).await;
        let original = made(&world, "db", &json!({"size": 1, "old": true})).await;
        tell_there(&world, "db", "Up").await;
        world.start();
        until("it is adopted", async || {
            let there = world.copy("db").await.unwrap();
            there["metadata"]["annotations"]["kube-bind.io/cluster-namespace"] == CONTRACT
        })
        .await;
        until("its status is here", async || world.source("db").await.is_some_and(|it| it["status"]["phase"] == "Up"))
            .await;
        world.calm().await;
        let (here, there) = (world.source("db").await.unwrap(), world.copy("db").await.unwrap());
        assert_eq!(there["metadata"]["uid"], original["metadata"]["uid"], "{shape:?}");
        assert_eq!(there["metadata"]["annotations"]["kube-bind.io/consumer-uid"], here["metadata"]["uid"]);
        assert_eq!(here["metadata"]["annotations"]["kube-bind.io/adopted-from"], original["metadata"]["uid"]);
        assert_eq!(here["metadata"]["finalizers"], json!(["kubebind.io/syncer"]));
        assert_eq!(here["metadata"]["labels"], json!({"theirs": "1"}));
        // Changes go from here to there: also of fields that somebody there has written first.
        world.change("db", &json!({"spec": {"size": 2, "old": null}})).await;
        world.until_copied("db", &json!({"size": 2})).await;
        change_there(&world, "db", &json!({"spec": {"size": 9}})).await;
        world.until_copied("db", &json!({"size": 2})).await;
        world.calm().await;
        let recordings = world.record();
        world.kill();
        world.start();
        world.until_told("all is known", |told| told.informers_synced.is_ok()).await;
        world.calm().await;
        assert_eq!(writes(&recordings), Vec::<String>::new(), "{shape:?}");
        world.cancel("db").await;
        world.until_gone("db").await;
        assert_eq!(world.copy("db").await, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_both_sides_have_is_a_conflict_and_stays_as_it_is() {
    for existing in [Existing::Show, Existing::Adopt] {
        let mut world = world(Shape::cluster(Isolation::Prefixed), existing).await;
        made(&world, "db", &json!({"of": "account"})).await;
        world.order("db", &json!({"of": "us"})).await;
        world.start();
        world.until_told("both have it", |told| told.conflicts.iter().any(|it| it.contains("was there before"))).await;
        world.calm().await;
        assert_eq!(world.source("db").await.unwrap()["spec"], json!({"of": "us"}));
        assert_eq!(world.copy("db").await.unwrap()["spec"], json!({"of": "account"}));
        // Whoever deletes one of them gets the other.
        world.cancel("db").await;
        until_shown(&world, "db", &json!({"of": "account"})).await;
        world.until_told("nothing is in the way", |told| told.conflicts.is_empty()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_changes_the_annotation_gets_what_it_says_now() {
    let mut world = world(Shape::namespaced(InformerScope::Namespaced), Existing::Show).await;
    let original = made(&world, "db", &json!({"size": 1})).await;
    world.start();
    until_shown(&world, "db", &json!({"size": 1})).await;
    world.existing = Existing::Leave;
    world.want(SyncMode::Keep, &[]);
    world.until_gone("db").await;
    world.existing = Existing::Show;
    world.want(SyncMode::Keep, &[]);
    until_shown(&world, "db", &json!({"size": 1})).await;
    world.existing = Existing::Adopt;
    world.want(SyncMode::Keep, &[]);
    world.change("db", &json!({"metadata": {"annotations": {"note": "x"}}})).await;
    until("it is adopted", async || {
        let there = world.copy("db").await.unwrap();
        there["metadata"]["annotations"]["kube-bind.io/cluster-namespace"] == CONTRACT
    })
    .await;
    world.calm().await;
    let here = world.source("db").await.unwrap();
    assert_eq!(here["metadata"]["labels"], json!({"theirs": "1"}));
    assert_eq!(world.copy("db").await.unwrap()["metadata"]["uid"], original["metadata"]["uid"]);
    // Without the annotation, what was adopted stays the consumer's.
    world.existing = Existing::Leave;
    world.want(SyncMode::Keep, &[]);
    world.change("db", &json!({"spec": {"size": 5}})).await;
    world.until_copied("db", &json!({"size": 5})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binding_that_ends_takes_mirrors_along_and_leaves_the_account_alone() {
    let mut world = world(Shape::cluster(Isolation::None), Existing::Show).await;
    let original = made(&world, "db", &json!({"size": 1})).await;
    world.start();
    until_shown(&world, "db", &json!({"size": 1})).await;
    world.calm().await;
    world.want(SyncMode::Drain, &[]);
    world.until_gone("db").await;
    world.until_told("all is drained", |told| told.drained).await;
    assert_eq!(world.copy("db").await.unwrap()["metadata"]["resourceVersion"], original["metadata"]["resourceVersion"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_konnector_that_is_killed_at_any_write_shows_and_adopts_all_the_same() {
    for existing in [Existing::Show, Existing::Adopt] {
        // More than there are, so that the last ones do no harm.
        for write in 1..=4 {
            for effect in [Effect::Cut, Effect::ApplyThenCut] {
                for side in 0..2 {
                    let mut world = world(Shape::cluster(Isolation::Prefixed), existing).await;
                    let original = made(&world, "db", &json!({"size": 1})).await;
                    tell_there(&world, "db", "Up").await;
                    let faults = [world.consumer.faults(), world.provider.faults()][side].clone();
                    faults.add(Rule::new(konnectors_writes(), effect).on(Turn::Nth(write)));
                    world.start();
                    let done = async |world: &World| {
                        let Some(here) = world.source("db").await else { return false };
                        let there = world.copy("db").await.unwrap();
                        let ours = there["metadata"]["annotations"]["kube-bind.io/applied-state"].is_string();
                        here["status"]["phase"] == "Up" && (existing == Existing::Show || ours)
                    };
                    until("it is here, or the konnector dies", async || {
                        let counts = faults.counts();
                        done(&world).await || counts.cut + counts.applied_then_cut > 0
                    })
                    .await;
                    world.kill();
                    faults.clear();
                    world.start();
                    until(&format!("it is here ({existing}, {side}, {write})"), async || done(&world).await).await;
                    world.calm().await;
                    assert_eq!(world.copy("db").await.unwrap()["metadata"]["uid"], original["metadata"]["uid"]);
                    assert_eq!(world.copy("db").await.unwrap()["spec"], json!({"size": 1}));
                }
            }
        }
    }
}
