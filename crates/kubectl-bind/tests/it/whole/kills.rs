//! `kubectl-bind` that is killed at any of its writes.

use std::time::Duration;

use carrick_bind_api::kinds;
use carrick_client::{ListOptions, Resource};
use carrick_plane::faults::{Effect, Match, Rule, Turn};
use serde_json::{Value, json};

use super::world::{World, of, sheriffs, until, words};
use super::{PERSON, on_planes};

/// Runs a command and kills it when a rule has hit the consumer's plane; whether it did.
pub async fn killed(world: &World, plane: &carrick_plane::Plane, args: &[&str], rule: Rule) -> bool {
    let faults = plane.faults();
    let rule = faults.add(rule);
    let mut child = world.command(args).spawn().unwrap();
    while faults.hits(rule) == 0 && child.try_wait().unwrap().is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let hit = faults.hits(rule) > 0;
    let _ = child.kill();
    let ended = child.wait().unwrap();
    faults.remove(rule);
    assert!(hit || ended.success(), "it failed although nothing was done to it");
    hit
}

/// Everything that the person has written: kinds and names.
async fn written(world: &World) -> Vec<String> {
    let kinds = [
        Resource::namespaced("", "v1", "Secret", "secrets"),
        Resource::namespaced("apps", "v1", "Deployment", "deployments"),
        Resource::namespaced("", "v1", "ServiceAccount", "serviceaccounts"),
        of(kinds::API_SERVICE_BINDING),
    ];
    let mut all = Vec::new();
    for kind in kinds {
        let found = world.consumer.list(&kind, None, &ListOptions::default()).await.unwrap();
        let of_bind = |it: &&Value| it["metadata"]["namespace"].as_str().is_none_or(|at| at == "kube-bind");
        // The names of Secrets are made up by the server.
        let name = |it: &Value| if &*kind.kind == "Secret" { Value::Null } else { it["metadata"]["name"].clone() };
        all.extend(found.iter().filter(of_bind).map(|it| format!("{} {}", kind.kind, name(it))));
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn apiservice_that_is_killed_at_any_write_is_whole_when_it_is_repeated() {
    let mut ends = Vec::new();
    // The last round is the one in which nothing happens.
    for write in 1.. {
        let (world, planes) = on_planes().await;
        assert!(world.login().await);
        let args = ["apiservice", "law", "--template-name", "sheriffs"];
        let writes = Match::writes().filter(|ask| ask.user == PERSON);
        let rule = Rule::new(writes, Effect::ApplyThenCut).on(Turn::Nth(write));
        let hit = killed(&world, &planes[1], &args, rule).await;
        let done = world.run(&args).await;
        assert!(done.status.success(), "killed at write {write}: {}", words(&done));
        let sheriff = json!({"apiVersion": "wild.io/v1", "kind": "Sheriff", "metadata": {"name": "wyatt", "namespace": "default"}});
        let made = async || world.consumer.create(&sheriffs(), Some("default"), &sheriff).await.ok();
        until("the kind is served", made).await;
        ends.push(written(&world).await);
        if !hit {
            break;
        }
    }
    let undisturbed = ends.pop().unwrap();
    assert!(ends.len() >= 5, "only {} writes", ends.len());
    for (end, write) in ends.iter().zip(1..) {
        assert_eq!(end, &undisturbed, "killed at write {write}");
    }
}
