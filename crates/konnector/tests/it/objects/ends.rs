//! How bindings end.

use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_konnector::agent::objects::SyncMode;
use serde_json::json;

use super::world::{CONTRACT, Shape, World, until};

#[tokio::test(flavor = "multi_thread")]
async fn draining_deletes_copies_then_takes_finalizers_off_and_leaves_objects() {
    for shape in [Shape::cluster(Isolation::None), Shape::namespaced(InformerScope::Namespaced)] {
        let mut world = World::new(shape).await;
        for name in ["a", "b"] {
            world.order(name, &json!({"size": 1})).await;
            world.until_copied(name, &json!({"size": 1})).await;
        }
        // A foreign object, and a copy whose source is gone.
        let (_, namespace, _) = world.places("x");
        let there = world.widgets()[1].clone();
        for (name, contract) in [("foreign", "c-2"), ("orphan", CONTRACT)] {
            let annotations = json!({"kube-bind.io/cluster-namespace": contract});
            let object = json!({"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": name, "annotations": annotations}});
            world.there.create(&there, namespace, &object).await.unwrap();
        }
        world.want(SyncMode::Drain, &[]);
        // The watch may deliver the orphan after all else is gone.
        until("the orphan is gone", async || world.copy("orphan").await.is_none()).await;
        world.until_told("nothing is left", |told| told.drained).await;
        for name in ["a", "b"] {
            assert_eq!(world.copy(name).await, None);
            assert_eq!(world.source(name).await.unwrap()["metadata"].get("finalizers"), None);
        }
        assert!(world.copy("foreign").await.is_some());
        // Objects that are made meanwhile get no copy.
        world.order("late", &json!({})).await;
        world.calm().await;
        assert_eq!(world.copy("late").await, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn releasing_keeps_copies_even_of_a_provider_that_is_away() {
    let mut world = World::new(Shape::namespaced(InformerScope::Cluster)).await;
    world.order("db", &json!({"size": 1})).await;
    world.until_copied("db", &json!({"size": 1})).await;
    world.calm().await;
    world.kill();
    let refuse = carrick_plane::faults::Effect::refuse(403);
    let konnector = carrick_plane::faults::Match::any().user(super::world::KONNECTOR);
    world.provider.faults().add(carrick_plane::faults::Rule::new(konnector, refuse));
    world.want(SyncMode::Drain, &[]);
    world.start();
    world.until_told("the provider refuses", |told| told.informers_synced.is_err() && !told.drained).await;
    world.calm_writes().await;
    assert!(world.source("db").await.unwrap()["metadata"]["finalizers"].is_array(), "nothing is known");
    world.want(SyncMode::Release, &[]);
    world.until_told("all is released", |told| told.drained).await;
    assert_eq!(world.source("db").await.unwrap()["metadata"].get("finalizers"), None);
    world.provider.faults().clear();
    assert!(world.copy("db").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_is_gone_here_does_not_stop_a_binding_from_ending() {
    let mut world = World::new(Shape::cluster(Isolation::Prefixed)).await;
    world.order("db", &json!({"size": 1})).await;
    world.until_copied("db", &json!({"size": 1})).await;
    world.calm().await;
    world.kill();
    world.change("db", &json!({"metadata": {"finalizers": null}})).await;
    let crds = carrick_client::Resource::cluster_wide(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    );
    let options = carrick_client::DeleteOptions::default();
    world.here.delete(&crds, None, "widgets.example.io", &options).await.unwrap();
    until("the kind is gone", async || world.here.get(&crds, None, "widgets.example.io").await.unwrap().is_none())
        .await;
    world.start();
    world.until_told("it cannot be watched", |told| told.informers_synced.is_err()).await;
    world.calm_writes().await;
    assert!(world.copy("db").await.is_some(), "as long as the binding stays, so does the copy");
    world.want(SyncMode::Drain, &[]);
    world.until_told("nothing is left", |told| told.drained).await;
    assert_eq!(world.copy("db").await, None);
}
