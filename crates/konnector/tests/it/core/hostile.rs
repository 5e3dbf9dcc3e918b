//! A provider that means harm, or whoever hands its kubeconfig out: other Connections go on as if it were not there.

use std::time::Duration;

use carrick_client::Resource;
use carrick_plane::faults::{Effect, Match, Rule};
use serde_json::{Value, json};

use super::world::{
    TEAM, World, cluster, cluster_bindings, connections, crd, has, is_established, message, widget, writes_to,
};
use crate::clusters::{BINDER, Cluster, KONNECTOR, crd_kind};

const GADGETS: &str = "gadgets.example.io";

fn gadgets() -> Resource {
    Resource::namespaced("example.io", "v1", "Gadget", "gadgets")
}

/// Another provider, of gadgets, and a Connection `east` that leads there.
async fn provider_of_gadgets(world: &World) -> Cluster {
    let other = cluster(&[BINDER]).await;
    other.apply(&crd_kind(), &crd("gadgets", "Gadget", "example.io", "Namespaced")).await;
    other.until(&crd_kind(), None, GADGETS, is_established).await;
    world.store_text("east", &other.kubeconfig(BINDER)).await;
    world.connect("east", json!({})).await;
    world.bind("east", "east", json!({"apis": [{"name": GADGETS}]})).await;
    other
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_that_reaches_beyond_itself_is_refused_and_disturbs_nobody() {
    let world = World::bound().await;
    let good = world.provider.kubeconfig(BINDER);
    let token = world.provider.token(BINDER);
    let instead = |of_token: &str| good.replace(&format!("token: {token:?}"), of_token);
    let of_server = |field: &str| good.replace("    server:", &format!("    {field}\n    server:"));
    let cases = [
        ("plain-http", good.replace("https://", "http://"), "does not begin with https://"),
        ("token-file", instead("tokenFile: /etc/passwd"), "names a file in tokenFile"),
        ("program", instead("exec: {command: id}"), "names a program"),
        ("proxy", of_server("proxy-url: http://127.0.0.1:1"), "names a proxy-url"),
        ("unproven", of_server("insecure-skip-tls-verify: true"), "insecure-skip-tls-verify"),
    ];
    for (name, kubeconfig, _) in &cases {
        assert_ne!(kubeconfig, &good, "{name}");
        world.store_text(name, kubeconfig).await;
        world.connect(name, json!({})).await;
    }
    for (name, _, wanted) in &cases {
        let refused = |it: &Value| {
            has(it, "SecretValid", "False", "SecretNotFound") && has(it, "Ready", "False", "SecretNotFound")
        };
        let said = message(&world.consumer.until(&connections(), None, name, refused).await, "SecretValid");
        assert!(said.starts_with("parsing kubeconfig: ") && said.contains(wanted), "{name}: {said}");
        assert!(!said.contains(&token), "{name}: {said}");
    }
    world.probe("a").await;
    world.is_ready(&cluster_bindings(), "west").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_the_server_here_refuses_is_named_and_keeps_nobody_else_waiting() {
    let world = World::bound().await;
    let faults = world.consumer.plane().faults();
    let crds = |ask: &carrick_plane::faults::RequestInfo| ask.resource == "customresourcedefinitions";
    let refused = Match::writes().user(KONNECTOR).filter(crds);
    let rule = faults.add(Rule::new(refused, Effect::refuse(422)));
    let _other = provider_of_gadgets(&world).await;
    let says = |it: &Value| {
        has(it, "Ready", "False", "Pending") && message(it, "Ready").contains("CustomResourceDefinition could not be")
    };
    let binding = world.consumer.until(&cluster_bindings(), None, "east", says).await;
    assert!(has(&binding, "SchemaInSync", "False", "Pending"), "{binding}");
    world.probe("a").await;
    world.is_ready(&cluster_bindings(), "west").await;
    faults.remove(rule);
    world.is_ready(&cluster_bindings(), "east").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_changes_at_one_provider_keeps_nobody_else_waiting_and_ends_in_peace() {
    let world = World::bound().await;
    let other = provider_of_gadgets(&world).await;
    world.is_ready(&cluster_bindings(), "east").await;
    world.consumer.until(&crd_kind(), None, GADGETS, is_established).await;
    let (gadgets, busy) = (gadgets(), (Some(TEAM), "busy"));
    let mut gadget = widget("busy", 1);
    gadget["kind"] = json!("Gadget");
    world.consumer.apply(&gadgets, &gadget).await;
    other.until(&gadgets, busy.0, busy.1, |_| true).await;
    // Both sides change as fast as they can: the status there, the spec here, and the copy's spec by somebody who has no business there.
    let there = async {
        for count in 0..150 {
            let status = json!({"status": {"phase": format!("{count}")}});
            other.client.merge_patch_status(&gadgets, busy.0, busy.1, &status).await.unwrap();
            let forged = json!({"spec": {"size": 1_000 + count}});
            other.client.merge_patch(&gadgets, busy.0, busy.1, &forged).await.unwrap();
        }
    };
    let here = async {
        for count in 0..150 {
            let spec = json!({"spec": {"size": count}});
            world.consumer.client.merge_patch(&gadgets, busy.0, busy.1, &spec).await.unwrap();
        }
    };
    let meanwhile = async {
        for count in 0..15 {
            world.probe(&format!("calm-{count}")).await;
        }
    };
    tokio::join!(there, here, meanwhile);
    other.until(&gadgets, busy.0, busy.1, |copy| copy["spec"]["size"] == 149).await;
    world.consumer.until(&gadgets, busy.0, busy.1, |it| it["status"]["phase"] == "149").await;
    for name in ["east", "west"] {
        world.is_ready(&cluster_bindings(), name).await;
    }
    let mut last = Vec::new();
    for _ in 0..20 {
        let recordings = [world.consumer.plane().faults().record(), other.plane().faults().record()];
        tokio::time::sleep(Duration::from_millis(500)).await;
        last = writes_to(&recordings, "/gadgets/");
        if last.is_empty() {
            return;
        }
    }
    panic!("the konnector goes on writing: {last:?}");
}
