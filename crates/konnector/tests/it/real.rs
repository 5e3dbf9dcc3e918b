//! The konnector between two real API servers.
//!
//! `CARRICK_SERVERS` names a folder with the binaries of etcd and kube-apiserver, as `e2e/real` finds them; without it there is nothing to test.
//! No controllers run there: nothing is collected, but CRDs and their objects are deleted by the API server itself.

pub mod servers;
mod upstream;

use std::time::{Duration, Instant};

use crate::clusters::{
    BINDER, Cluster, KONNECTOR, Provider, ROTATED, bindings, bundles, cluster_bindings, crd, crd_kind, exports,
    sheriff_crd, sheriffs,
};
use crate::scenarios::world::{World, has};
use serde_json::{Value, json};
use servers::{ApiServer, Servers};

/// What starts API servers; nothing if nobody says where their binaries are.
pub fn servers() -> Option<Servers> {
    let servers = Servers::start();
    if servers.is_none() {
        eprintln!("skipped: set CARRICK_SERVERS to a folder with etcd and kube-apiserver, or run e2e/real");
    }
    servers
}

fn cluster(server: ApiServer) -> Cluster {
    Cluster::real(&server.url, &server.authority, server.tokens)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_life_between_real_servers() {
    let Some(servers) = servers() else { return };
    let provider = Provider::on(cluster(servers.cluster(0, &[BINDER, ROTATED]).await), "c-1").await;
    let mut world = World::on(cluster(servers.cluster(1, &[KONNECTOR]).await)).await;
    world.start_konnector().await;

    // Bind, and sync an object there and back.
    provider.export("sheriffs").await;
    world.store("provider", &provider).await;
    let began = Instant::now();
    world.bind("sheriffs", "provider").await;
    world.ready("sheriffs").await;
    eprintln!("bound after {:?}", began.elapsed());
    let sheriff = |intent: &str| json!({"apiVersion": "wild.io/v1", "kind": "Sheriff", "metadata": {"name": "wyatt"}, "spec": {"intent": intent}});
    let began = Instant::now();
    world.consumer.apply(&sheriffs(), &sheriff("peace")).await;
    provider.cluster.until(&sheriffs(), None, "c-1-wyatt", |copy| copy["spec"]["intent"] == "peace").await;
    eprintln!("copied after {:?}", began.elapsed());
    let result = json!({"status": {"result": "done"}});
    provider.cluster.client.merge_patch_status(&sheriffs(), None, "c-1-wyatt", &result).await.unwrap();
    world.consumer.until(&sheriffs(), None, "wyatt", |it| it["status"]["result"] == "done").await;
    let told = |export: &Value| has(export, "Connected", "True", "") && has(export, "ConsumerInSync", "True", "");
    provider.cluster.until(&exports(), Some("c-1"), "sheriffs", told).await;

    // The schema changes.
    let mut changed = sheriff_crd();
    let properties = &mut changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    properties["spec"]["properties"]["badge"] = json!({"type": "string", "default": "tin"});
    provider.cluster.apply(&crd_kind(), &changed).await;
    provider.write_schema(&changed).await;
    let field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/badge/default";
    world.consumer.until(&crd_kind(), None, "sheriffs.wild.io", |crd| crd.pointer(field).is_some()).await;

    // At rest nothing changes, and a restart writes nothing.
    world.ready("sheriffs").await;
    let versions = async || {
        let mut versions = Vec::new();
        let on_provider = &provider.cluster;
        for (cluster, resource, namespace, name) in [
            (&*world.consumer, bindings(), None, "sheriffs"),
            (&*world.consumer, crd_kind(), None, "sheriffs.wild.io"),
            (&*world.consumer, sheriffs(), None, "wyatt"),
            (on_provider, exports(), Some("c-1"), "sheriffs"),
            (on_provider, crate::clusters::schemas(), Some("c-1"), "sheriffs.wild.io"),
            (on_provider, cluster_bindings(), Some("c-1"), "cluster"),
            (on_provider, sheriffs(), None, "c-1-wyatt"),
        ] {
            let found = cluster.get(&resource, namespace, name).await.unwrap();
            versions.push(format!("{resource} {}", found["metadata"]["resourceVersion"]));
        }
        versions
    };
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = versions().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(versions().await, before, "at rest");
    world.stop_konnector().await;
    world.start_konnector().await;
    world.consumer.apply(&sheriffs(), &sheriff("order")).await;
    provider.cluster.until(&sheriffs(), None, "c-1-wyatt", |copy| copy["spec"]["intent"] == "order").await;

    // New credentials.
    let renewed = provider.kubeconfig().replace(&provider.cluster.token(BINDER), &provider.cluster.token(ROTATED));
    provider.write_credentials(&renewed).await;
    let data = data_encoding::BASE64.encode(renewed.as_bytes());
    let taken_over = |secret: &Value| secret["data"]["kubeconfig"] == data.as_str();
    world.consumer.until(&crate::clusters::secrets(), Some("kube-bind"), "provider", taken_over).await;
    world.ready("sheriffs").await;

    // A bundle brings what is offered next.
    world.bundle("all", "provider").await;
    provider.export_crd("cowboys", &crd("cowboys", "Cowboy")).await;
    world.ready("cowboys").await;
    world.consumer.until(&bundles(), None, "all", |bundle| has(bundle, "Ready", "True", "")).await;
    world.consumer.delete(&bundles(), None, "all").await;

    // Unbind: nothing is left.
    world.consumer.delete(&bindings(), None, "sheriffs").await;
    world.consumer.until_gone(&bindings(), None, "sheriffs").await;
    assert_eq!(world.consumer.get(&crd_kind(), None, "sheriffs.wild.io").await, None);
    assert_eq!(provider.cluster.get(&sheriffs(), None, "c-1-wyatt").await, None);
    world.ready("cowboys").await;
    world.stop_konnector().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn providers_that_offer_the_same_and_one_that_goes_away_and_comes_back() {
    let Some(servers) = servers() else { return };
    let first = Provider::on(cluster(servers.cluster(0, &[BINDER]).await), "c-1").await;
    let second = Provider::on(cluster(servers.cluster(1, &[BINDER]).await), "c-2").await;
    let mut world = World::on(cluster(servers.cluster(2, &[KONNECTOR]).await)).await;
    world.start_konnector().await;

    // Two exports have the same name: a bundle does not take the binding of another provider over.
    first.export("sheriffs").await;
    second.export("sheriffs").await;
    world.store("first", &first).await;
    world.store("second", &second).await;
    world.bind("sheriffs", "first").await;
    world.ready("sheriffs").await;
    world.bundle("second", "second").await;
    let clashes = |bundle: &Value| has(bundle, "Synced", "False", "SyncErrors");
    let bundle = world.consumer.until(&bundles(), None, "second", clashes).await;
    assert!(bundle.to_string().contains("leads to another provider"), "{bundle}");
    world.consumer.delete(&bundles(), None, "second").await;
    world.consumer.until_gone(&bundles(), None, "second").await;

    // Two exports have the same CRD: the first one has it.
    second.export("police").await;
    world.bind("police", "second").await;
    world.binding("police", "Connected", "False", "ForeignCustomResourceDefinition").await;
    let binding = world.ready("sheriffs").await;
    assert_eq!(binding["spec"]["kubeconfigSecretRef"]["name"], "first");

    // The provider goes away: what it has stays, here too, and what is ordered meanwhile reaches it when it is back.
    let sheriff = |intent: &str| json!({"apiVersion": "wild.io/v1", "kind": "Sheriff", "metadata": {"name": "wyatt"}, "spec": {"intent": intent}});
    world.consumer.apply(&sheriffs(), &sheriff("peace")).await;
    first.cluster.until(&sheriffs(), None, "c-1-wyatt", |copy| copy["spec"]["intent"] == "peace").await;
    servers.kill(0);
    let binding = world.binding("sheriffs", "Heartbeating", "False", "ClusterBindingUpdateFailed").await;
    assert!(has(&binding, "Connected", "True", ""), "what was true stays so: {binding}");
    world.consumer.apply(&sheriffs(), &sheriff("order")).await;
    assert!(world.consumer.get(&crd_kind(), None, "sheriffs.wild.io").await.is_some());
    servers.revive(0);
    world.ready("sheriffs").await;
    first.cluster.until(&sheriffs(), None, "c-1-wyatt", |copy| copy["spec"]["intent"] == "order").await;

    // When the first binding goes, the second one gets the CRD.
    world.consumer.delete(&bindings(), None, "sheriffs").await;
    world.ready("police").await;
    assert_eq!(first.cluster.get(&sheriffs(), None, "c-1-wyatt").await, None);
    world.stop_konnector().await;
}
