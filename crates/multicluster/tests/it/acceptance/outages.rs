//! Broken watches, dead endpoints, objects nobody understands.

use std::convert::Infallible;
use std::sync::Arc;

use carrick_multicluster::{Action, Context, Fleet, FleetEvent, MultiClusterController, Request, WatchState};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::watcher;
use serde_json::json;

use super::world::{Script, Words, data, eventually, poll};
use carrick_multicluster::testing::FakeEndpoint;

/// Says `+` for an object that is there and `-` for one that is not.
async fn keyed(
    request: Request<ConfigMap>,
    object: Option<Arc<ConfigMap>>,
    context: Context<Words>,
) -> Result<Action, Infallible> {
    let sign = if object.is_some() { '+' } else { '-' };
    context.data.say(format!("{sign}{}/{}", request.cluster, request.obj.name));
    Ok(Action::await_change())
}

#[allow(clippy::trivially_copy_pass_by_ref)] // that is how policies are called
fn policy(_: Request<ConfigMap>, error: &Infallible, _: Context<Words>) -> Action {
    match *error {}
}

#[tokio::test]
async fn deletions_that_a_broken_watch_missed_reach_the_reconciler() {
    let fake = FakeEndpoint::default();
    for number in 0..5 {
        fake.put("configmaps", "c", "default", &format!("o{number}"), &data("x"));
    }
    let seen = Words::default();
    let controller = MultiClusterController::new(Script::with("e", &fake, &["c"]), watcher::Config::default());
    let _running = poll(controller.run_keyed(keyed, policy, Arc::new(seen.clone())));
    seen.hear_many(5).await;
    seen.take();
    fake.set_down(true);
    for number in 1..4 {
        fake.delete("configmaps", "c", "default", &format!("o{number}"));
    }
    fake.put("configmaps", "c", "default", "new", &data("x"));
    fake.expire_watches();
    fake.set_down(false);
    seen.hear_many(4).await;
    assert_eq!(seen.sorted(), ["+c/new", "-c/o1", "-c/o2", "-c/o3"]);
    // The second one, and at most a small one before it to learn the server's version.
    assert!(fake.requests("configmaps").lists <= 3);
}

#[tokio::test]
async fn a_restored_server_is_seen_as_it_is_now_whatever_was_known_before() {
    let fake = FakeEndpoint::default();
    for name in ["kept", "changed", "deleted"] {
        fake.put("configmaps", "c", "default", name, &data("x"));
    }
    let seen = Words::default();
    let controller = MultiClusterController::new(Script::with("e", &fake, &["c"]), watcher::Config::default());
    let _running = poll(controller.run_keyed(keyed, policy, Arc::new(seen.clone())));
    seen.hear_many(3).await;
    let snapshot = fake.snapshot();
    for _ in 0..20 {
        fake.put("configmaps", "c", "default", "changed", &data("undone"));
    }
    fake.delete("configmaps", "c", "default", "deleted");
    fake.put("configmaps", "c", "default", "created", &data("undone"));
    seen.receive("-c/deleted").await;
    seen.receive("+c/created").await;
    seen.take();
    fake.restore(&snapshot);
    for word in ["+c/changed", "+c/deleted", "-c/created"] {
        seen.receive(word).await;
    }
    // Its versions are still below those that were known.
    fake.put("configmaps", "c", "default", "new", &data("x"));
    seen.receive("+c/new").await;
}

#[tokio::test]
async fn a_dead_endpoint_delays_only_its_own_clusters_and_recovers_by_itself() {
    let (dead, well) = (FakeEndpoint::default(), FakeEndpoint::default());
    dead.set_down(true);
    dead.put("configmaps", "d", "default", "o", &data("x"));
    well.put("configmaps", "w", "default", "o", &data("x"));
    let script = Script::with("dead", &dead, &["d"]);
    script.up("well", &well);
    script.engage("w", "well", &well);
    let fleet = Fleet::from(script);
    let seen = Words::default();
    let controller = MultiClusterController::on(&fleet, watcher::Config::default());
    let (_task, errors) = poll(controller.run_keyed(keyed, policy, Arc::new(seen.clone())));
    seen.receive("+w/o").await;
    let failing = || {
        let health = fleet.health();
        let state = |id: &str| health.endpoints.get(id).and_then(|endpoint| endpoint.state().cloned());
        let dead =
            matches!(state("dead"), Some(WatchState::Failing { error, .. }) if error.to_string().contains("503"));
        dead && matches!(state("well"), Some(WatchState::Live))
    };
    eventually(failing, || fleet.health().to_string()).await;
    assert!(!fleet.health().is_live());
    well.put("configmaps", "w", "default", "another", &data("x"));
    seen.receive("+w/another").await;
    assert_eq!(seen.count("+d/o"), 0);
    dead.set_down(false);
    seen.receive("+d/o").await;
    eventually(|| fleet.health().is_live(), || fleet.health().to_string()).await;
    assert_eq!(errors.all().len(), 1, "told once: {:?}", errors.all());
    assert!(errors.all()[0].starts_with("cannot watch configmaps.v1 at endpoint dead: "), "{:?}", errors.all());
}

#[tokio::test]
async fn an_object_that_nobody_understands_is_reported_and_stops_nothing() {
    let fake = FakeEndpoint::default();
    fake.put("configmaps", "bad", "default", "broken", &json!({"data": "not a map"}));
    fake.put("configmaps", "bad", "default", "fine", &data("x"));
    fake.put("configmaps", "good", "default", "fine", &data("x"));
    let seen = Words::default();
    let controller =
        MultiClusterController::new(Script::with("e", &fake, &["bad", "good"]), watcher::Config::default());
    let (_task, errors) = poll(controller.run_keyed(keyed, policy, Arc::new(seen.clone())));
    seen.hear_many(2).await;
    assert_eq!(seen.sorted(), ["+bad/fine", "+good/fine"]);
    errors.hear_many(1).await;
    assert!(errors.all()[0].starts_with("cannot understand cluster://bad/default/broken"), "{:?}", errors.all());
    // Understood at last.
    fake.put("configmaps", "bad", "default", "broken", &data("x"));
    seen.receive("+bad/broken").await;
    // Not understood again is not deleted.
    seen.take();
    fake.put("configmaps", "bad", "default", "broken", &json!({"data": 7}));
    errors.hear_many(2).await;
    fake.put("configmaps", "good", "default", "fine", &data("y"));
    seen.receive("+good/fine").await;
    assert_eq!(seen.all(), ["+good/fine"]);
}

#[tokio::test]
async fn a_cluster_that_joins_wakes_a_watch_that_was_refused() {
    let fake = FakeEndpoint::default();
    fake.set_down(true);
    let script = Script::default();
    script.up("e", &fake);
    script.send(FleetEvent::Synced);
    let seen = Words::default();
    let fleet = Fleet::from(script.clone());
    let controller = MultiClusterController::on(&fleet, watcher::Config::default());
    let _running = poll(controller.run_keyed(keyed, policy, Arc::new(seen.clone())));
    let failing = || {
        let health = fleet.health();
        let state = health.endpoints.get("e").and_then(|endpoint| endpoint.state());
        matches!(state, Some(WatchState::Failing { .. }))
    };
    eventually(failing, || fleet.health().to_string()).await;
    fake.set_down(false);
    fake.put("configmaps", "c", "default", "o", &data("x"));
    script.engage("c", "e", &fake);
    seen.receive("+c/o").await;
}

#[tokio::test]
async fn new_apis_are_listed_anew() {
    let fake = FakeEndpoint::default();
    fake.put("configmaps", "c", "default", "o", &data("x"));
    let script = Script::with("e", &fake, &["c"]);
    let seen = Words::default();
    let controller = MultiClusterController::new(script.clone(), watcher::Config::default());
    let _running = poll(controller.run_keyed(keyed, policy, Arc::new(seen.clone())));
    seen.receive("+c/o").await;
    script.send(FleetEvent::ApisChanged { name: "c".parse().unwrap() });
    script.send(FleetEvent::ApisChanged { name: "c".parse().unwrap() });
    eventually(|| fake.requests("configmaps").lists == 2, || format!("{:?}", fake.requests("configmaps"))).await;
    assert_eq!(seen.all(), ["+c/o"], "nothing has changed");
}
