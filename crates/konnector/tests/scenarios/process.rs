//! The process: its Lease, its probes, the program itself.

use std::time::Duration;

use carrick_client::Resource;
use carrick_konnector::agent::{self, KonnectorError, LeaseConfig};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::clusters::Provider;
use crate::world::World;

fn leases() -> Resource {
    Resource::namespaced("coordination.k8s.io", "v1", "Lease", "leases")
}

fn lease(identity: &str) -> LeaseConfig {
    let text = str::to_owned;
    let (name, namespace, identity) = (text("kube-bind"), text("kube-bind"), Some(text(identity)));
    LeaseConfig { name, namespace, identity, duration: Some(Duration::from_secs(3)) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_konnector_that_loses_its_lease_ends_and_another_one_takes_over() {
    let (mut world, provider) = (World::start().await, Provider::start("c-1").await);
    world.stop_konnector().await;
    provider.export("sheriffs").await;
    let (mut first, mut second) = (world.config(), world.config());
    (first.lease, second.lease) = (Some(lease("first")), Some(lease("second")));
    let first = tokio::spawn(agent::run(first, CancellationToken::new()));
    let held = |by: &'static str| move |lease: &serde_json::Value| lease["spec"]["holderIdentity"] == by;
    world.consumer.until(&leases(), Some("kube-bind"), "kube-bind", held("first")).await;
    // Somebody takes it away.
    let patch = json!({"spec": {"holderIdentity": "thief"}});
    world.consumer.client.merge_patch(&leases(), Some("kube-bind"), "kube-bind", &patch).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(20), first).await.unwrap().unwrap();
    assert!(matches!(ended, Err(KonnectorError::Lease(_))), "{ended:?}");
    // The thief never renews it.
    let stop = CancellationToken::new();
    let second = tokio::spawn(agent::run(second, stop.clone()));
    world.store("provider", &provider).await;
    world.bind("sheriffs", "provider").await;
    world.ready("sheriffs").await;
    stop.cancel();
    second.await.unwrap().unwrap();
    world.consumer.until(&leases(), Some("kube-bind"), "kube-bind", held("")).await;
}
