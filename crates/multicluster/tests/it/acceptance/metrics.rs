//! Numbers for Prometheus.

use std::sync::Arc;

use carrick_multicluster::metrics::{MetricsOptions, render};
use carrick_multicluster::{Action, Context, Fleet, MultiClusterController};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::runtime::watcher;

use super::world::{Script, Words, data, eventually, poll};
use carrick_multicluster::testing::FakeEndpoint;

#[tokio::test]
async fn the_numbers_tell_what_happens() {
    let fake = FakeEndpoint::default();
    for name in ["good", "bad"] {
        fake.put("configmaps", "c", "default", name, &data("x"));
    }
    let fleet = Fleet::from(Script::with("https://e", &fake, &["c"]));
    let reconcile = |object: Arc<ConfigMap>, context: Context<Words>| async move {
        context.data.say(object.name_any());
        if object.name_any() == "bad" { Err(std::fmt::Error) } else { Ok(Action::await_change()) }
    };
    let controller = MultiClusterController::<ConfigMap>::on(&fleet, watcher::Config::default()).named("maps");
    let seen = Words::default();
    let (_task, errors) = poll(controller.run(reconcile, |_, _, _| Action::await_change(), Arc::new(seen.clone())));
    errors.hear_many(1).await;
    let wanted = [
        "carrick_fleet_clusters 1",
        r#"carrick_fleet_watch_state{endpoint="https://e",resource="configmaps.v1",state="live"} 1"#,
        r#"carrick_fleet_watch_restarts_total{endpoint="https://e",resource="configmaps.v1"} 0"#,
        "carrick_fleet_provider_failing 0",
        r#"carrick_controller_clusters{controller="maps"} 1"#,
        r#"carrick_controller_queue_depth{controller="maps",state="queued"} 0"#,
        r#"carrick_controller_reconcile_total{controller="maps",result="success"} 1"#,
        r#"carrick_controller_reconcile_total{controller="maps",result="error"} 1"#,
        r#"carrick_controller_queue_wait_seconds_count{controller="maps"} 2"#,
        r#"carrick_controller_reconcile_seconds_bucket{controller="maps",le="+Inf"} 2"#,
    ];
    let text = || render(&fleet, MetricsOptions { busiest_clusters: 3 });
    eventually(|| wanted.iter().all(|line| text().lines().any(|got| got == *line)), text).await;
}
