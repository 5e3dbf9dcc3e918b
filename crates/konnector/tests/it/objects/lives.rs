//! The life of objects, in all four mappings.

use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use serde_json::{Value, json};

use super::world::{CONTRACT, Shape, World, namespaces, requests, service_namespaces, until, writes};

fn shapes() -> Vec<Shape> {
    let mut shapes: Vec<Shape> =
        [Isolation::Prefixed, Isolation::Namespaced, Isolation::None].into_iter().map(Shape::cluster).collect();
    shapes.extend([InformerScope::Cluster, InformerScope::Namespaced].map(Shape::namespaced));
    shapes
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_lives_and_ends_on_both_sides_in_every_mapping() {
    for shape in shapes() {
        let world = World::new(shape.clone()).await;
        world.order("db", &json!({"size": 1, "old": true})).await;
        world.until_copied("db", &json!({"size": 1, "old": true})).await;
        let copy = world.copy("db").await.unwrap();
        let (_, namespace, name) = world.places("db");
        let there = world.widgets()[1].clone();
        until("traces are on the source", async || {
            let source = world.source("db").await.unwrap();
            source["metadata"]["annotations"]["kube-bind.io/provider-uid"] == copy["metadata"]["uid"]
                && source["metadata"]["annotations"]["kube-bind.io/provider-namespace"] == namespace.unwrap_or_default()
                && source["metadata"]["finalizers"] == json!(["kubebind.io/syncer"])
        })
        .await;
        let source = world.source("db").await.unwrap();
        let annotations = &copy["metadata"]["annotations"];
        assert_eq!(annotations["kube-bind.io/cluster-namespace"], CONTRACT, "{shape:?}");
        assert_eq!(annotations["kube-bind.io/consumer-uid"], source["metadata"]["uid"]);
        assert_eq!(annotations["kube-bind.io/consumer-namespace"], world.places("db").0.unwrap_or_default());
        // Cluster-scoped copies go with their contract.
        let contract = world.there.get(&namespaces(), None, CONTRACT).await.unwrap().unwrap();
        let owners = copy["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        assert_eq!(owners.first().map(|it| &it["uid"]), namespace.is_none().then_some(&contract["metadata"]["uid"]));

        let status = json!({"status": {"phase": "Up"}});
        world.there.merge_patch_status(&there, namespace, &name, &status).await.unwrap();
        until("the status has come back", async || world.source("db").await.unwrap()["status"]["phase"] == "Up").await;
        // Fields that go here go there as well, and what only the provider has stays.
        let patch = json!({"metadata": {"labels": {"theirs": "1"}}});
        world.there.merge_patch(&there, namespace, &name, &patch).await.unwrap();
        world.change("db", &json!({"spec": {"size": 2, "old": null}})).await;
        world.until_copied("db", &json!({"size": 2})).await;
        assert_eq!(world.copy("db").await.unwrap()["metadata"]["labels"]["theirs"], "1");
        // What somebody changes of ours there is brought back.
        world.there.merge_patch(&there, namespace, &name, &json!({"spec": {"size": 9}})).await.unwrap();
        world.until_copied("db", &json!({"size": 2})).await;

        // The finalizer stays until the copy is really gone.
        let slow = json!({"metadata": {"finalizers": ["provider.io/slow"]}});
        world.there.merge_patch(&there, namespace, &name, &slow).await.unwrap();
        world.cancel("db").await;
        until("the copy is being deleted", async || {
            world.copy("db").await.unwrap()["metadata"]["deletionTimestamp"].is_string()
        })
        .await;
        world.calm().await;
        assert_eq!(world.source("db").await.unwrap()["metadata"]["finalizers"], json!(["kubebind.io/syncer"]));
        let done = json!({"metadata": {"finalizers": null}});
        world.there.merge_patch(&there, namespace, &name, &done).await.unwrap();
        world.until_gone("db").await;
        assert_eq!(world.copy("db").await, None, "{shape:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_konnector_at_rest_sends_nothing_and_neither_does_a_new_one() {
    let mut world = World::new(Shape::namespaced(InformerScope::Cluster)).await;
    for number in 0..20 {
        world.order(&format!("db-{number}"), &json!({"size": number})).await;
    }
    let there = world.widgets()[1].clone();
    for number in 0..20 {
        let name = format!("db-{number}");
        world.until_copied(&name, &json!({"size": number})).await;
        let status = json!({"status": {"size": number}});
        world.there.merge_patch_status(&there, Some("c-1-team"), &name, &status).await.unwrap();
    }
    for number in 0..20 {
        let name = format!("db-{number}");
        until("the status has come back", async || world.source(&name).await.unwrap()["status"]["size"] == number)
            .await;
    }
    world.calm().await;
    let recordings = world.record();
    world.kill();
    world.start();
    world.until_told("all is known", |told| told.informers_synced.is_ok()).await;
    world.calm().await;
    assert_eq!(writes(&recordings), Vec::<String>::new());
    // Nothing is read for an object either.
    let reads: Vec<String> = requests(&recordings).into_iter().filter(|it| it.starts_with("get")).collect();
    assert_eq!(reads, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_object_costs_three_writes_and_no_read() {
    let world = World::new(Shape::namespaced(InformerScope::Cluster)).await;
    world.order("first", &json!({})).await;
    world.until_copied("first", &json!({})).await;
    world.calm().await;
    let recordings = world.record();
    world.order("db", &json!({"size": 1})).await;
    world.until_copied("db", &json!({"size": 1})).await;
    world.calm().await;
    let (here, there) =
        ("/apis/example.io/v1/namespaces/team/widgets", "/apis/example.io/v1/namespaces/c-1-team/widgets");
    let mut sent = requests(&recordings);
    sent.sort();
    assert_eq!(sent, [format!("create {there}"), format!("patch {here}/db"), format!("patch {here}/db")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_does_not_store_as_it_was_sent_is_not_sent_again_and_again() {
    let world = World::new(Shape::namespaced(InformerScope::Cluster)).await;
    world.narrow().await;
    world.order("db", &json!({"size": 1, "unknown": true})).await;
    world.until_copied("db", &json!({"size": 1})).await;
    world.calm().await;
    world.change("db", &json!({"spec": {"size": 2}})).await;
    world.until_copied("db", &json!({"size": 2})).await;
    world.calm().await;
    // What somebody changes of what it does store is still brought back.
    let there = world.widgets()[1].clone();
    world.there.merge_patch(&there, Some("c-1-team"), "db", &json!({"spec": {"size": 9}})).await.unwrap();
    world.until_copied("db", &json!({"size": 2})).await;
    world.calm().await;
    assert_eq!(world.told().unwrap().failing, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_objects_are_told_about_and_never_touched() {
    let world = World::new(Shape::cluster(Isolation::None)).await;
    let there = world.widgets()[1].clone();
    for (name, annotations) in [("own", json!({})), ("theirs", json!({"kube-bind.io/cluster-namespace": "c-10"}))] {
        let object = json!({"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": name, "annotations": annotations}, "spec": {"size": 7}});
        world.there.create(&there, None, &object).await.unwrap();
    }
    // Without a twin on the consumer they are nobody's business; with one there is a conflict.
    world.order("mine", &json!({})).await;
    world.until_copied("mine", &json!({})).await;
    let before = [world.copy("own").await, world.copy("theirs").await];
    for name in ["own", "theirs"] {
        world.order(name, &json!({"size": 1})).await;
    }
    world
        .until_told("there are two conflicts", |told| {
            let has = |words: &str| told.conflicts.iter().any(|conflict| conflict.contains(words));
            has("own") && has("was there before") && has("belongs to contract c-10")
        })
        .await;
    for name in ["own", "theirs"] {
        world.cancel(name).await;
        world.until_gone(name).await;
    }
    world.until_told("there is no conflict any more", |told| told.conflicts.is_empty()).await;
    world.calm().await;
    assert_eq!([world.copy("own").await, world.copy("theirs").await], before);
    // A conflict ends when the provider gives way.
    world.order("own", &json!({"size": 1})).await;
    world.until_told("there is a conflict", |told| told.conflicts.len() == 1).await;
    world.there.delete(&there, None, "own", &carrick_client::DeleteOptions::default()).await.unwrap();
    world.until_copied("own", &json!({"size": 1})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_whose_source_is_gone_goes_too_and_one_that_is_forged_gets_our_content() {
    let mut world = World::new(Shape::namespaced(InformerScope::Namespaced)).await;
    world.order("db", &json!({"size": 1})).await;
    world.until_copied("db", &json!({"size": 1})).await;
    world.calm().await;
    world.kill();
    // Somebody takes off the finalizer while nobody looks.
    world.change("db", &json!({"metadata": {"finalizers": null}})).await;
    world.cancel("db").await;
    world.until_gone("db").await;
    let forged = json!({"apiVersion": "example.io/v1", "kind": "Widget", "spec": {"size": 9},
        "metadata": {"name": "forged", "annotations": {"kube-bind.io/cluster-namespace": CONTRACT}}});
    world.there.create(&world.widgets()[1], Some("c-1-team"), &forged).await.unwrap();
    world.order("forged", &json!({"size": 1})).await;
    world.start();
    until("the copy is gone", async || world.copy("db").await.is_none()).await;
    world.until_copied("forged", &json!({"size": 1})).await;
    let (source, copy) = (world.source("forged").await.unwrap(), world.copy("forged").await.unwrap());
    assert_eq!(copy["metadata"]["annotations"]["kube-bind.io/consumer-uid"], source["metadata"]["uid"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_operator_derives_from_a_copy_with_all_its_annotations_stays() {
    let mut world = World::new(Shape::namespaced(InformerScope::Cluster)).await;
    world.order("db", &json!({"size": 1})).await;
    world.until_copied("db", &json!({"size": 1})).await;
    let annotations = world.copy("db").await.unwrap()["metadata"]["annotations"].clone();
    let child = json!({"apiVersion": "example.io/v1", "kind": "Widget", "spec": {"size": 9},
        "metadata": {"name": "db-child", "annotations": annotations}});
    world.there.create(&world.widgets()[1], Some("c-1-team"), &child).await.unwrap();
    world.calm().await;
    world.kill();
    world.start();
    world.until_told("all is known", |told| told.informers_synced.is_ok()).await;
    world.calm().await;
    assert!(world.copy("db-child").await.is_some());
    // Whoever orders one of that name here has a conflict, and gets rid of it again.
    world.order("db-child", &json!({})).await;
    world.until_told("there is a conflict", |told| told.conflicts.len() == 1).await;
    world.change("db-child", &json!({"metadata": {"finalizers": ["kubebind.io/syncer"]}})).await;
    world.cancel("db-child").await;
    world.until_gone("db-child").await;
    assert!(world.copy("db-child").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_wait_for_their_namespace_and_namespaces_end_with_the_consumers() {
    let mut world = World::new(Shape::namespaced(InformerScope::Namespaced)).await.without_backend();
    world.order("db", &json!({"size": 1})).await;
    let asked = async |world: &World| world.there.get(&service_namespaces(), Some(CONTRACT), "team").await.unwrap();
    until("a namespace is asked for", async || asked(&world).await.is_some()).await;
    let owner = asked(&world).await.unwrap()["metadata"]["ownerReferences"][0].clone();
    assert_eq!((&owner["kind"], &owner["uid"]), (&json!("APIServiceExport"), &json!("export-uid")));
    world
        .until_told("it waits", |told| told.failing.iter().any(|it| it.contains("has not assigned a namespace")))
        .await;
    assert_eq!(world.source("db").await.unwrap()["metadata"].get("finalizers"), None);
    world.with_backend();
    world.until_copied("db", &json!({"size": 1})).await;
    world.until_told("nothing is wrong", |told| told.failing.is_empty()).await;
    // The consumer's namespace goes, and with it the one of the provider.
    world.here.delete(&namespaces(), None, "team", &carrick_client::DeleteOptions::default()).await.unwrap();
    until("nothing is asked for any more", async || asked(&world).await.is_none()).await;
    let gone = |object: Option<Value>| object.is_none_or(|it| it["metadata"]["deletionTimestamp"].is_string());
    until("the namespace goes", async || gone(world.there.get(&namespaces(), None, "c-1-team").await.unwrap())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_gets_the_namespaces_that_it_wants_but_none_of_the_system() {
    let world = World::new(Shape::namespaced(InformerScope::Cluster)).await;
    for name in ["shop", "kube-evil"] {
        let object = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceNamespace",
            "metadata": {"name": name, "labels": {"kube-bind.io/owner": "provider"}}});
        world.there.create(&service_namespaces(), Some(CONTRACT), &object).await.unwrap();
    }
    until("the namespace is there", async || world.here.get(&namespaces(), None, "shop").await.unwrap().is_some())
        .await;
    world.until_told("one is refused", |told| told.conflicts.iter().any(|it| it.contains("kube-evil"))).await;
    assert_eq!(world.here.get(&namespaces(), None, "kube-evil").await.unwrap(), None);
}
