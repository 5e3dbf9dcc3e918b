//! A busy cluster does not hold up a calm one.

use std::convert::Infallible;
use std::sync::Arc;

use carrick_multicluster::{Action, Config, Context, MultiClusterController};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::runtime::watcher;
use tokio::sync::Semaphore;

use super::world::{Script, Words, data, eventually, poll};
use carrick_multicluster::testing::FakeEndpoint;

/// Starts a controller over a cluster with ten thousand objects, each of which waits for a permit.
async fn busy(
    concurrency: usize,
) -> (FakeEndpoint, Words, Arc<Semaphore>, carrick_multicluster::FleetStore<ConfigMap>) {
    let fake = FakeEndpoint::default();
    for number in 0..10_000 {
        fake.put("configmaps", "busy", "default", &format!("o{number}"), &data("x"));
    }
    let (seen, permits) = (Words::default(), Arc::new(Semaphore::new(0)));
    let reconcile = |object: Arc<ConfigMap>, context: Context<(Words, Arc<Semaphore>)>| async move {
        context.data.0.say(format!("{}/{}", context.cluster.name(), object.name_any()));
        context.data.1.acquire().await.unwrap().forget();
        Ok::<_, Infallible>(Action::await_change())
    };
    let script = Script::with("e", &fake, &["busy", "calm"]);
    let controller = MultiClusterController::<ConfigMap>::new(script, watcher::Config::default())
        .with_config(Config::default().concurrency(concurrency).per_cluster(0));
    let store = controller.store();
    let context = Arc::new((seen.clone(), permits.clone()));
    tokio::spawn(poll(controller.run(reconcile, |_, _, _| Action::backoff(), context)).0);
    seen.hear_many(concurrency).await;
    assert_eq!(store.len(), 10_000);
    (fake, seen, permits, store)
}

#[tokio::test]
async fn ten_thousand_waiting_objects_do_not_delay_the_single_object_of_another_cluster() {
    for concurrency in [1, 4] {
        let (fake, seen, permits, store) = busy(concurrency).await;
        fake.put("configmaps", "calm", "default", "only", &data("x"));
        eventually(|| store.get("calm", "default", "only").is_some(), || "the object".to_owned()).await;
        // Each permit ends one reconcile and lets another one start.
        permits.add_permits(2);
        seen.receive("calm/only").await;
        let before = seen.all().iter().position(|word| word == "calm/only").unwrap();
        assert!(before <= concurrency + 1, "{before} objects of the busy cluster went first");
    }
}

#[tokio::test]
async fn nor_does_a_list_of_ten_thousand_delay_its_own_urgent_change() {
    let (fake, seen, permits, store) = busy(1).await;
    fake.put("configmaps", "busy", "default", "new", &data("x"));
    eventually(|| store.get("busy", "default", "new").is_some(), || "the object".to_owned()).await;
    permits.add_permits(2);
    seen.receive("busy/new").await;
    let before = seen.all().iter().position(|word| word == "busy/new").unwrap();
    assert!(before <= 2, "{before} listed objects went before the new one");
}
