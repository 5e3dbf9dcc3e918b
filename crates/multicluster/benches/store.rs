//! The store alone: `cargo bench -p carrick-multicluster --bench store`.
//!
//! The same number of objects in one cluster and in a thousand: an object must cost the same.

#![allow(clippy::unwrap_used)] // a measurement that fails may panic

use std::hint::black_box;

use carrick_client::Object;
use carrick_client::watch::Event;
use carrick_multicluster::{ClusterKey, EndpointId, FleetStore};
use divan::Bencher;
use divan::counter::ItemsCount;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

const OBJECTS: usize = 10_000;
const CLUSTERS: [usize; 3] = [1, 100, 1000];

fn main() {
    divan::main();
}

fn objects(clusters: usize, version: &str) -> Vec<Object> {
    let object = |number: usize| {
        let annotations = json!({"kcp.io/cluster": format!("cluster{}", number % clusters)});
        let metadata = json!({
            "name": format!("object-{number}"), "namespace": "default", "uid": format!("uid-{number}"),
            "resourceVersion": version, "annotations": annotations, "labels": {"app": "bench"},
        });
        let value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": "value"}});
        Object::from_value(&value).unwrap()
    };
    (0..OBJECTS).map(object).collect()
}

fn endpoint() -> EndpointId {
    "shard".into()
}

fn list<K: 'static>(store: &FleetStore<K>, objects: &[Object]) {
    let endpoint = endpoint();
    store.apply(&endpoint, &ClusterKey::KCP, Event::Begin);
    for object in objects {
        black_box(store.apply(&endpoint, &ClusterKey::KCP, Event::Listed(object.clone())));
    }
    store.apply(&endpoint, &ClusterKey::KCP, Event::Synced);
}

/// A first list into an empty store.
#[divan::bench(args = CLUSTERS)]
fn list_compact(bencher: Bencher, clusters: usize) {
    let objects = objects(clusters, "1");
    bencher.counter(ItemsCount::new(OBJECTS)).with_inputs(FleetStore::compact).bench_local_values(|store| {
        list(&store, &objects);
        store
    });
}

/// The same, decoded into typed objects.
#[divan::bench(args = CLUSTERS)]
fn list_typed(bencher: Bencher, clusters: usize) {
    let objects = objects(clusters, "1");
    bencher.counter(ItemsCount::new(OBJECTS)).with_inputs(FleetStore::<ConfigMap>::typed).bench_local_values(|store| {
        list(&store, &objects);
        store
    });
}

/// A list after a lost watch that brings nothing new.
#[divan::bench(args = CLUSTERS)]
fn list_again(bencher: Bencher, clusters: usize) {
    let objects = objects(clusters, "1");
    let store = FleetStore::compact();
    list(&store, &objects);
    bencher.counter(ItemsCount::new(OBJECTS)).bench_local(|| list(&store, &objects));
}

/// Every object changes.
#[divan::bench(args = CLUSTERS)]
fn change(bencher: Bencher, clusters: usize) {
    let versions = [objects(clusters, "2"), objects(clusters, "3")];
    let (store, endpoint) = (FleetStore::compact(), endpoint());
    list(&store, &versions[1]);
    let mut turn = 0;
    bencher.counter(ItemsCount::new(OBJECTS)).bench_local(|| {
        for object in &versions[turn % 2] {
            black_box(store.apply(&endpoint, &ClusterKey::KCP, Event::Applied(object.clone())));
        }
        turn += 1;
    });
}

/// Every object is looked up by name.
#[divan::bench(args = CLUSTERS)]
fn get(bencher: Bencher, clusters: usize) {
    let store = FleetStore::compact();
    list(&store, &objects(clusters, "1"));
    let places: Vec<_> =
        (0..OBJECTS).map(|number| (format!("cluster{}", number % clusters), format!("object-{number}"))).collect();
    bencher.counter(ItemsCount::new(OBJECTS)).bench_local(|| {
        for (cluster, name) in &places {
            assert!(black_box(store.get(cluster, "default", name)).is_some());
        }
    });
}
