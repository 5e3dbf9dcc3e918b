//! Contracts: heartbeats, credentials, and who is who.

use serde_json::{Value, json};

use super::world::{World, has, message};
use crate::clusters::{BINDER, Provider, ROTATED, cluster_bindings, crd_kind, exports, secret, secrets};

async fn world() -> (World, Provider) {
    let (world, provider) = (World::start().await, Provider::start("c-1").await);
    provider.export("sheriffs").await;
    world.store("provider", &provider).await;
    world.bind("sheriffs", "provider").await;
    world.ready("sheriffs").await;
    (world, provider)
}

fn data(secret: &Value) -> String {
    let bytes = data_encoding::BASE64.decode(secret["data"]["kubeconfig"].as_str().unwrap().as_bytes()).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_labelled_secret_alone_starts_heartbeats() {
    let (world, provider) = (World::start().await, Provider::start("c-1").await);
    provider.export("sheriffs").await;
    let mut object = secret("kube-bind", "provider", &provider.kubeconfig());
    object["metadata"]["labels"] = json!({"kube-bind.io/provider-kubeconfig": "true"});
    world.consumer.apply(&secrets(), &object).await;
    let beats = |it: &Value| it["status"]["lastHeartbeatTime"].is_string();
    provider.cluster.until(&cluster_bindings(), Some("c-1"), "cluster", beats).await;
    // And the provider is told that nobody uses its export yet.
    let unbound = |it: &Value| has(it, "Connected", "False", "APIServiceBindingNotFound");
    provider.cluster.until(&exports(), Some("c-1"), "sheriffs", unbound).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn renewed_credentials_are_taken_over_and_the_old_ones_are_used_no_more() {
    let (world, provider) = world().await;
    let old = provider.kubeconfig();
    // The same rights under another name.
    let token = |user: &str| provider.cluster.token(user);
    let new = old.replace(&token(BINDER), &token(ROTATED));
    assert_ne!(old, new);
    let recording = provider.cluster.plane().faults().record();
    provider.write_credentials(&new).await;
    world.consumer.until(&secrets(), Some("kube-bind"), "provider", |it| data(it) == new).await;
    provider.cluster.until_watched(ROTATED, "boundschemas").await;
    world.ready("sheriffs").await;
    // From now on nothing goes out with the old ones.
    recording.clear();
    let mut changed = crate::clusters::sheriff_crd();
    changed["spec"]["names"]["shortNames"] = json!(["sh"]);
    provider.write_schema(&changed).await;
    let followed = |crd: &Value| crd["spec"]["names"]["shortNames"] == json!(["sh"]);
    world.consumer.until(&crd_kind(), None, "sheriffs.wild.io", followed).await;
    assert_eq!(recording.count(|record| record.ask.user == BINDER), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_credentials_are_refused_and_nothing_stops() {
    let (world, provider) = world().await;
    let good = provider.kubeconfig();
    let token = format!("    token: {:?}\n", provider.cluster.token(BINDER));
    assert!(good.contains(&token));
    for (instead, wanted) in [
        ("    exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh}\n", "names a program"),
        ("    tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token\n", "names a file in tokenFile"),
        ("    token: t\n    as: admin\n", "acts as another user"),
    ] {
        provider.write_credentials(&good.replace(&token, instead)).await;
        let refused = |it: &Value| {
            has(it, "SecretValid", "False", "ProviderSecretInvalid") && message(it, "SecretValid").contains(wanted)
        };
        provider.cluster.until(&cluster_bindings(), Some("c-1"), "cluster", refused).await;
        let stored = world.consumer.get(&secrets(), Some("kube-bind"), "provider").await.unwrap();
        assert_eq!(data(&stored), good, "{instead}");
    }
    provider.write_credentials(&good).await;
    provider.cluster.until(&cluster_bindings(), Some("c-1"), "cluster", |it| has(it, "SecretValid", "True", "")).await;
    world.ready("sheriffs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binding_stays_with_the_contract_that_it_was_made_for() {
    let (world, provider) = world().await;
    let other = Provider::start("c-1").await;
    other.export("sheriffs").await;
    world.store("provider", &other).await;
    let binding = world.binding("sheriffs", "Connected", "False", "ContractChanged").await;
    assert!(message(&binding, "Connected").contains("another provider or a new contract"), "{binding}");
    assert!(world.consumer.get(&crd_kind(), None, "sheriffs.wild.io").await.is_some());
    let export = other.cluster.get(&exports(), Some("c-1"), "sheriffs").await.unwrap();
    assert!(!has(&export, "Connected", "True", ""), "{export}");
    world.store("provider", &provider).await;
    world.ready("sheriffs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_cluster_on_the_same_contract_is_reported() {
    let (world, provider) = world().await;
    let at = Some("c-1");
    for minute in 1..=2 {
        let beat = format!("2126-01-01T00:0{minute}:00Z");
        let patch = json!({"status": {"lastHeartbeatTime": beat}});
        provider.cluster.client.merge_patch_status(&cluster_bindings(), at, "cluster", &patch).await.unwrap();
        // A heartbeat from the future is replaced at once.
        provider
            .cluster
            .until(&cluster_bindings(), at, "cluster", |it| it["status"]["lastHeartbeatTime"] != beat.as_str())
            .await;
    }
    let binding = world.binding("sheriffs", "Heartbeating", "False", "ForeignHeartbeat").await;
    assert!(message(&binding, "Heartbeating").contains("another konnector heartbeats in contract namespace c-1"));
}
