//! Many clusters on few endpoints.

use std::convert::Infallible;
use std::sync::Arc;

use carrick_multicluster::{Action, Config, Fleet, FleetEvent, MultiClusterController};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::runtime::watcher;

use super::world::{Script, Words, data, eventually, poll};
use carrick_multicluster::testing::FakeEndpoint;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_clusters_cost_one_list_and_one_watch_per_kind_and_endpoint() {
    const CLUSTERS: usize = 500;
    const OBJECTS: usize = 20;
    let fakes = [FakeEndpoint::default(), FakeEndpoint::default()];
    let script = Script::default();
    for (number, fake) in fakes.iter().enumerate() {
        script.up(&number.to_string(), fake);
        for cluster in 0..CLUSTERS {
            for object in 0..OBJECTS {
                fake.put("configmaps", &format!("c{number}-{cluster}"), "default", &format!("o{object}"), &data("x"));
            }
        }
    }
    for (number, fake) in fakes.iter().enumerate() {
        for cluster in 0..CLUSTERS {
            script.engage(&format!("c{number}-{cluster}"), &number.to_string(), fake);
        }
    }
    script.send(FleetEvent::Synced);
    let fleet = Fleet::from(script.clone());
    let seen: [Words; 2] = Default::default();
    let controllers: Vec<_> = seen
        .iter()
        .map(|seen| {
            let reconcile = |object: Arc<ConfigMap>, context: carrick_multicluster::Context<Words>| async move {
                context.data.say(format!("{}/{}", context.cluster.name(), object.name_any()));
                Ok::<_, Infallible>(Action::await_change())
            };
            let controller = MultiClusterController::<ConfigMap>::on(&fleet, watcher::Config::default())
                .with_config(Config::default().concurrency(16));
            poll(controller.run(reconcile, |_, _, _| Action::backoff(), Arc::new(seen.clone())))
        })
        .collect();
    for seen in &seen {
        seen.hear_many(2 * CLUSTERS * OBJECTS).await;
    }
    for fake in &fakes {
        let requests = fake.requests("configmaps");
        assert_eq!((requests.lists, requests.watches), (1, 1));
    }
    // A new cluster costs only its own objects.
    for seen in &seen {
        let mut all = seen.take();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 2 * CLUSTERS * OBJECTS);
    }
    fakes[0].put("configmaps", "late", "default", "one", &data("x"));
    fakes[0].put("configmaps", "late", "default", "two", &data("x"));
    script.engage("late", "0", &fakes[0]);
    for seen in &seen {
        seen.hear_many(2).await;
        assert_eq!(seen.sorted(), ["late/one", "late/two"]);
    }
    let requests = fakes[0].requests("configmaps");
    assert_eq!((requests.lists, requests.watches), (1, 1));
    assert_eq!(fleet.clusters().len(), 2 * CLUSTERS + 1);
    let health = fleet.health();
    assert!(health.is_live() && health.clusters == 2 * CLUSTERS + 1, "{health}");
    assert!(controllers.iter().all(|(task, errors)| !task.is_finished() && errors.all().is_empty()));
}

#[tokio::test]
async fn objects_of_the_same_name_in_many_clusters_are_many_objects() {
    let fake = FakeEndpoint::default();
    let names = ["a", "b", "c"];
    for cluster in names {
        fake.put("configmaps", cluster, "default", "same", &data(cluster));
    }
    let seen = Words::default();
    let reconcile = |object: Arc<ConfigMap>, context: carrick_multicluster::Context<Words>| async move {
        let value = object.data.as_ref().unwrap()["value"].clone();
        context.data.say(format!("{} has {value}", context.cluster.name()));
        Ok::<_, Infallible>(Action::await_change())
    };
    let controller =
        MultiClusterController::<ConfigMap>::new(Script::with("e", &fake, &names), watcher::Config::default());
    let store = controller.store();
    let _running = poll(controller.run(reconcile, |_, _, _| Action::backoff(), Arc::new(seen.clone())));
    seen.hear_many(3).await;
    assert_eq!(seen.sorted(), ["a has a", "b has b", "c has c"]);
    seen.take();
    fake.put("configmaps", "b", "default", "same", &data("new"));
    seen.receive("b has new").await;
    assert_eq!(seen.all(), ["b has new"]);
    assert_eq!(store.get("a", "default", "same").unwrap().data.as_ref().unwrap()["value"], "a");
}

#[tokio::test]
async fn disengaging_purges_and_drains_without_a_word_of_complaint() {
    let fake = FakeEndpoint::default();
    for number in 0..50 {
        fake.put("configmaps", "leaving", "default", &format!("o{number}"), &data("x"));
    }
    let script = Script::with("e", &fake, &["staying"]);
    let leaving = script.engage("leaving", "e", &fake);
    let (seen, alive) = (Words::default(), Arc::new(()));
    let (data_of, held) = (Arc::new((seen.clone(), alive.clone())), alive.clone());
    drop(alive);
    let reconcile = |object: Arc<ConfigMap>, context: carrick_multicluster::Context<(Words, Arc<()>)>| async move {
        let (seen, alive) = (context.data.0.clone(), context.data.1.clone());
        seen.say(format!("began {}", context.cluster.name()));
        if *context.cluster.name() == "leaving" {
            context.cluster.gone().cancelled().await;
            seen.say("told");
            if object.name_any().ends_with('0') {
                // One that does not listen is aborted in the end.
                futures::future::pending::<()>().await;
            }
            drop(alive);
            return Err(std::io::Error::other("the cluster is gone"));
        }
        Ok(Action::await_change())
    };
    let fleet = Fleet::from(script.clone());
    let controller = MultiClusterController::<ConfigMap>::on(&fleet, watcher::Config::default())
        .with_config(Config::default().concurrency(20).per_cluster(20).grace(std::time::Duration::from_secs(1)));
    let (task, errors) = poll(controller.run(reconcile, |_, _, _| Action::backoff(), data_of));
    seen.hear_many(20).await;
    assert_eq!(seen.count("began leaving"), 20, "as many as may run");
    script.disengage(&leaving);
    // Every running reconcile hears it, and whatever does not end is aborted: nothing holds on to anything any more.
    eventually(|| Arc::strong_count(&held) == 2, || format!("{} left", Arc::strong_count(&held))).await;
    assert!(leaving.gone().is_cancelled());
    assert_eq!((seen.count("began leaving"), seen.count("told")), (20, 20), "what waited was purged");
    fake.put("configmaps", "staying", "default", "o", &data("x"));
    seen.receive("began staying").await;
    assert!(errors.all().is_empty(), "{:?}", errors.all());
    assert!(!task.is_finished());
    assert!(fleet.cluster("leaving").is_err() && fleet.cluster("staying").is_ok());
}
