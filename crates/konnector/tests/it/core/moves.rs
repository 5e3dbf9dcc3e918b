//! A binding that names another Connection: it stays where its copies are, until it says what becomes of them.

use std::sync::Arc;

use carrick_client::ListOptions;
use carrick_plane::faults::{Effect, Match, Rule};
use serde_json::{Value, json};

use super::kills::killed;
use super::neighbours::{bound_with_a_crd_of_somebody_else, is_held, kept, managed, second_provider};
use super::related::{config_maps, entry, is_copied, object};
use super::world::{TEAM, WIDGETS, World, cluster_bindings, connections, crd, has, is_established, message, widgets};
use crate::clusters::{BINDER, Cluster, crd_kind};

/// The binding names another Connection from now on, and says what becomes of its copies.
async fn names(world: &World, connection: &str, policy: Option<&str>) {
    let patch = json!({"metadata": {"annotations": {"core.kbind.io/deletion-policy": policy}},
        "spec": {"connectionRef": {"name": connection}}});
    world.consumer.client.merge_patch(&cluster_bindings(), None, "west", &patch).await.unwrap();
}

async fn at(cluster: &Cluster, name: &str) -> Option<Value> {
    cluster.get(&widgets(), Some(TEAM), name).await
}

async fn all_of(cluster: &Cluster) -> Vec<Value> {
    cluster.client.list(&widgets(), None, &ListOptions::default()).await.unwrap()
}

fn uid(object: &Value) -> &Value {
    &object["metadata"]["uid"]
}

async fn uid_of_crd(world: &World) -> Value {
    uid(&world.consumer.get(&crd_kind(), None, WIDGETS).await.expect("the CRD")).clone()
}

/// The binding works with Connection `east`, and so does its CRD.
async fn works_with_east(world: &World, other: &Cluster) {
    world.is_ready(&cluster_bindings(), "west").await;
    let is_easts = |it: &Value| it["metadata"]["annotations"]["core.kbind.io/connection"] == "east";
    world.consumer.until(&crd_kind(), None, WIDGETS, is_easts).await;
    world.order_here("after", 1).await;
    other.until(&widgets(), Some(TEAM), "after", |it| it["spec"]["size"] == 1).await;
    let phase = json!({"status": {"phase": "Up"}});
    other.client.merge_patch_status(&widgets(), Some(TEAM), "after", &phase).await.unwrap();
    world.source_is("after", |it| it["status"]["phase"] == "Up").await;
    assert_eq!(at(&world.provider, "after").await, None, "the first one gets nothing more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binding_that_names_another_connection_goes_on_with_the_first_and_says_what_to_do() {
    let world = World::bound().await;
    let other = second_provider(&world).await;
    let copy = kept(&world).await;
    world.order("going", 1).await;
    world.source_is("going", is_held).await;
    names(&world, "east", None).await;
    let binding = world.consumer.until(&cluster_bindings(), None, "west", managed).await;
    assert!(message(&binding, "Ready").contains("still bound by Connection west"), "{binding}");
    // Nothing comes to the other one, and everything goes on where the copies are.
    world.consumer.delete(&widgets(), Some(TEAM), "going").await;
    world.consumer.until_gone(&widgets(), Some(TEAM), "going").await;
    assert_eq!(at(&world.provider, "going").await, None);
    world.consumer.client.merge_patch(&widgets(), Some(TEAM), "kept", &json!({"spec": {"size": 2}})).await.unwrap();
    let after = world.copy_is("kept", |it| it["spec"]["size"] == 2).await;
    assert_eq!(uid(&after), uid(&copy));
    world.probe("more").await;
    assert_eq!(all_of(&other).await, Vec::<Value>::new());
    // Naming the first one again is all that is needed.
    names(&world, "west", None).await;
    world.is_ready(&cluster_bindings(), "west").await;
    // The first Connection does not go before the copies have gone.
    names(&world, "east", None).await;
    world.consumer.delete(&connections(), None, "west").await;
    let drains = |it: &Value| has(it, "Ready", "False", "DrainingBindings");
    let connection = world.consumer.until(&connections(), None, "west", drains).await;
    assert_eq!(message(&connection, "Ready"), "waiting for 1 binding(s) to finish unbinding");
    world.consumer.delete(&cluster_bindings(), None, "west").await;
    world.consumer.until_gone(&cluster_bindings(), None, "west").await;
    world.consumer.until_gone(&connections(), None, "west").await;
    assert_eq!(at(&world.provider, "kept").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_crd_of_somebody_else_copies_are_not_left_behind_either() {
    let world = bound_with_a_crd_of_somebody_else().await;
    let other = second_provider(&world).await;
    kept(&world).await;
    names(&world, "east", None).await;
    world.consumer.until(&cluster_bindings(), None, "west", managed).await;
    world.probe("more").await;
    assert_eq!(at(&other, "kept").await, None);
    world.consumer.delete(&widgets(), Some(TEAM), "kept").await;
    world.consumer.until_gone(&widgets(), Some(TEAM), "kept").await;
    assert_eq!(at(&world.provider, "kept").await, None);
    // It changes hands all the same, and nobody marks the CRD.
    names(&world, "east", Some("Delete")).await;
    other.until(&widgets(), Some(TEAM), "more", |_| true).await;
    assert_eq!(at(&world.provider, "more").await, None);
    let crd = world.consumer.get(&crd_kind(), None, WIDGETS).await.unwrap();
    assert_eq!(crd["metadata"]["labels"], json!({"made-by": "another-operator"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn with_orphan_the_copies_stay_and_the_objects_get_new_ones_from_the_other_connection() {
    let world = World::bound().await;
    let other = second_provider(&world).await;
    let (copy, crd) = (kept(&world).await, uid_of_crd(&world).await);
    let source = at(&world.consumer, "kept").await.unwrap();
    names(&world, "east", Some("Orphan")).await;
    other.until(&widgets(), Some(TEAM), "kept", |it| it["spec"]["size"] == 1).await;
    works_with_east(&world, &other).await;
    assert_eq!(at(&world.provider, "kept").await, Some(copy.clone()), "as it was");
    assert_eq!(uid(&at(&world.consumer, "kept").await.unwrap()), uid(&source));
    assert_eq!(uid_of_crd(&world).await, crd);
    // And back: the first copy is taken up again, and the first Connection may go when nothing is its any more.
    names(&world, "west", Some("Orphan")).await;
    world.consumer.client.merge_patch(&widgets(), Some(TEAM), "kept", &json!({"spec": {"size": 3}})).await.unwrap();
    let after = world.copy_is("kept", |it| it["spec"]["size"] == 3).await;
    assert_eq!(uid(&after), uid(&copy));
    world.consumer.delete(&connections(), None, "east").await;
    world.consumer.until_gone(&connections(), None, "east").await;
    world.probe("more").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_delete_the_copies_go_first_and_nothing_comes_to_the_other_connection_before() {
    let world = World::bound().await;
    let other = second_provider(&world).await;
    world.bind("west", "west", json!({"relatedResources": [entry("configmaps", "FromConsumer")]})).await;
    world.consumer.apply(&config_maps(), &object("ConfigMap", "shop", "settings", "1", "widget")).await;
    is_copied(&world.provider, &config_maps(), ("shop", "settings"), "1").await;
    let (_, crd) = (kept(&world).await, uid_of_crd(&world).await);
    world.order("free", 1).await;
    let source = at(&world.consumer, "kept").await.unwrap();
    let hold = json!({"metadata": {"finalizers": ["example.io/operator"]}});
    world.provider.client.merge_patch(&widgets(), Some(TEAM), "kept", &hold).await.unwrap();
    names(&world, "east", Some("Delete")).await;
    let waits = |it: &Value| {
        has(it, "Ready", "False", "Draining")
            && message(it, "Ready") == format!("waiting: 1 object(s) of {WIDGETS} wait for their copies to be deleted")
    };
    world.consumer.until(&cluster_bindings(), None, "west", waits).await;
    assert_eq!(at(&world.provider, "free").await, None);
    assert_eq!(all_of(&other).await, Vec::<Value>::new());
    let release = json!({"metadata": {"finalizers": null}});
    world.provider.client.merge_patch(&widgets(), Some(TEAM), "kept", &release).await.unwrap();
    for name in ["kept", "free"] {
        other.until(&widgets(), Some(TEAM), name, |it| it["spec"]["size"] == 1).await;
    }
    is_copied(&other, &config_maps(), ("shop", "settings"), "1").await;
    works_with_east(&world, &other).await;
    assert_eq!(at(&world.provider, "kept").await, None);
    assert_eq!(world.provider.get(&config_maps(), Some("shop"), "settings").await, None);
    assert_eq!(uid(&at(&world.consumer, "kept").await.unwrap()), uid(&source));
    assert_eq!(uid_of_crd(&world).await, crd);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_first_provider_only_orphan_leads_on() {
    let world = World::bound().await;
    let other = second_provider(&world).await;
    let copy = kept(&world).await;
    // Somebody waits for the API already.
    world.bind("east", "east", json!({})).await;
    world.consumer.until(&cluster_bindings(), None, "east", managed).await;
    world.store_text("west", "apiVersion: v1").await;
    world.consumer.until(&connections(), None, "west", |it| has(it, "Ready", "False", "SecretNotFound")).await;
    names(&world, "east", None).await;
    world.consumer.until(&cluster_bindings(), None, "west", managed).await;
    names(&world, "east", Some("Delete")).await;
    let waits = |it: &Value| message(it, "Ready").contains("the copies on the provider cannot be deleted");
    world.consumer.until(&cluster_bindings(), None, "west", waits).await;
    names(&world, "east", Some("Orphan")).await;
    other.until(&widgets(), Some(TEAM), "kept", |it| it["spec"]["size"] == 1).await;
    works_with_east(&world, &other).await;
    assert_eq!(at(&world.provider, "kept").await, Some(copy));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_leads_nowhere_moves_nothing_and_one_that_was_never_bound_is_corrected_freely() {
    let world = World::bound().await;
    kept(&world).await;
    // No such Connection, and one that offers something else.
    let other = super::world::cluster(&[BINDER]).await;
    other.apply(&crd_kind(), &crd("gadgets", "Gadget", "example.io", "Namespaced")).await;
    other.until(&crd_kind(), None, "gadgets.example.io", is_established).await;
    world.store_text("east", &other.kubeconfig(BINDER)).await;
    world.connect("east", json!({})).await;
    world.is_ready(&connections(), "east").await;
    for wrong in ["esat", "east"] {
        names(&world, wrong, Some("Delete")).await;
        let says = |it: &Value| managed(it) && message(it, "Ready").contains(&format!("names Connection {wrong} "));
        world.consumer.until(&cluster_bindings(), None, "west", says).await;
        world.probe(&format!("{wrong}-1")).await;
        assert!(at(&world.provider, "kept").await.is_some_and(|it| it["metadata"]["deletionTimestamp"].is_null()));
    }
    // What was never bound has nothing to leave behind.
    world.bind("second", "east", json!({"apis": [{"name": "things.example.io"}]})).await;
    let missing = |it: &Value| has(it, "Ready", "False", "APINotExported");
    world.consumer.until(&cluster_bindings(), None, "second", missing).await;
    world.offer(&crd("things", "Thing", "example.io", "Cluster")).await;
    world.bind("second", "west", json!({"apis": [{"name": "things.example.io"}]})).await;
    world.is_ready(&cluster_bindings(), "second").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_refused_while_copies_are_deleted_leaves_none_behind() {
    let world = World::bound().await;
    let other = second_provider(&world).await;
    for name in ["kept", "more"] {
        world.order(name, 1).await;
        world.source_is(name, is_held).await;
    }
    let faults = world.provider.plane().faults();
    let rule = faults.add(Rule::new(Match::any().user(BINDER).verbs(&["delete"]), Effect::refuse(503)));
    names(&world, "east", Some("Delete")).await;
    world.consumer.until(&cluster_bindings(), None, "west", |it| has(it, "Ready", "False", "Draining")).await;
    // In the middle of it, back: nothing has happened.
    names(&world, "west", None).await;
    world.is_ready(&cluster_bindings(), "west").await;
    names(&world, "east", Some("Delete")).await;
    world.consumer.until(&cluster_bindings(), None, "west", |it| has(it, "Ready", "False", "Draining")).await;
    assert_eq!(all_of(&other).await, Vec::<Value>::new());
    faults.remove(rule);
    works_with_east(&world, &other).await;
    for name in ["kept", "more"] {
        other.until(&widgets(), Some(TEAM), name, |it| it["spec"]["size"] == 1).await;
        assert_eq!(at(&world.provider, name).await, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_is_killed_after_any_write_is_whole_in_the_end() {
    for policy in ["Delete", "Orphan"] {
        let (mut world, namespaces) = (World::bound().await, Arc::default());
        let other = second_provider(&world).await;
        let copy = kept(&world).await;
        let source = at(&world.consumer, "kept").await.unwrap();
        world.is_ready(&connections(), "east").await;
        world.kill_konnector().await;
        names(&world, "east", Some(policy)).await;
        let writes = killed(&mut world, &namespaces, Some(&other)).await;
        assert!(writes.len() >= 4, "{writes:#?}");
        world.start_konnector();
        works_with_east(&world, &other).await;
        other.until(&widgets(), Some(TEAM), "kept", |it| it["spec"]["size"] == 1).await;
        assert_eq!(uid(&at(&world.consumer, "kept").await.unwrap()), uid(&source));
        let left = at(&world.provider, "kept").await;
        assert_eq!(left, (policy == "Orphan").then_some(copy), "{policy}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_goes_to_the_next_connection_that_wants_it_when_the_first_has_let_go() {
    for orphans in [false, true] {
        let world = World::bound().await;
        let other = second_provider(&world).await;
        world.bind("east", "east", json!({})).await;
        let refused = world.consumer.until(&cluster_bindings(), None, "east", managed).await;
        assert!(message(&refused, "Ready").contains("unbind it there first"), "{refused}");
        let (copy, crd) = (kept(&world).await, uid_of_crd(&world).await);
        let hold = json!({"metadata": {"finalizers": ["example.io/operator"]}});
        world.provider.client.merge_patch(&widgets(), Some(TEAM), "kept", &hold).await.unwrap();
        if orphans {
            let orphan = json!({"metadata": {"annotations": {"core.kbind.io/deletion-policy": "Orphan"}}});
            world.consumer.client.merge_patch(&cluster_bindings(), None, "west", &orphan).await.unwrap();
        }
        world.consumer.delete(&cluster_bindings(), None, "west").await;
        if !orphans {
            let waits = |it: &Value| message(it, "Ready").contains("wait for their copies to be deleted");
            world.consumer.until(&cluster_bindings(), None, "west", waits).await;
            assert_eq!(all_of(&other).await, Vec::<Value>::new(), "not before that is over");
            let release = json!({"metadata": {"finalizers": null}});
            world.provider.client.merge_patch(&widgets(), Some(TEAM), "kept", &release).await.unwrap();
        }
        world.consumer.until_gone(&cluster_bindings(), None, "west").await;
        world.is_ready(&cluster_bindings(), "east").await;
        other.until(&widgets(), Some(TEAM), "kept", |it| it["spec"]["size"] == 1).await;
        assert_eq!(uid_of_crd(&world).await, crd, "the objects are what they were");
        let left = at(&world.provider, "kept").await.map(|it| uid(&it).clone());
        assert_eq!(left, orphans.then(|| uid(&copy).clone()));
    }
}
