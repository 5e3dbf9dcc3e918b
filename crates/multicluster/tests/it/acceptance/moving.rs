//! Clusters that move from one endpoint to another.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use carrick_multicluster::{Action, Cluster, Context, Fleet, FleetEvent, MultiClusterController, Request};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::watcher;

use super::world::{Script, Words, data, eventually, poll};
use carrick_multicluster::testing::FakeEndpoint;

struct World {
    old: FakeEndpoint,
    new: FakeEndpoint,
    script: Script,
    cluster: Cluster,
    fleet: Fleet,
    seen: Words,
    errors: Words,
}

/// A cluster with two objects at the old endpoint, reconciled there.
async fn settled() -> World {
    settled_with(Duration::from_hours(1)).await
}

/// The same, in a fleet that gives moving objects some time.
async fn settled_with(grace: Duration) -> World {
    let (old, new) = (FakeEndpoint::default(), FakeEndpoint::default());
    let script = Script::default();
    script.up("old", &old);
    script.up("new", &new);
    for name in ["x", "y"] {
        old.put("configmaps", "c", "default", name, &data("1"));
    }
    let cluster = script.engage("c", "old", &old);
    script.send(FleetEvent::Synced);
    let fleet = Fleet::builder(script.clone()).move_grace(grace).build();
    let seen = Words::default();
    let reconcile = |request: Request<ConfigMap>, object: Option<Arc<ConfigMap>>, context: Context<Words>| async move {
        let what = object.map_or_else(|| "deleted".to_owned(), |object| object.data.clone().unwrap()["value"].clone());
        context.data.say(format!("{} {what} at {}", request.obj.name, context.cluster.endpoint()));
        Ok::<_, Infallible>(Action::await_change())
    };
    let controller = MultiClusterController::<ConfigMap>::on(&fleet, watcher::Config::default());
    let reports = controller.run_keyed(reconcile, |_, _, _| Action::backoff(), Arc::new(seen.clone()));
    let (_task, errors) = poll(reports);
    seen.hear_many(2).await;
    assert_eq!(seen.sorted(), ["x 1 at old", "y 1 at old"]);
    seen.take();
    World { old, new, script, cluster, fleet, seen, errors }
}

impl World {
    fn arrive(&self) {
        for name in ["x", "y"] {
            self.new.put("configmaps", "c", "default", name, &data("arrived"));
        }
    }

    fn leave(&self) {
        for name in ["x", "y"] {
            self.old.delete("configmaps", "c", "default", name);
        }
    }

    /// The cluster works at its new place, and nothing was ever told to be deleted.
    async fn works(self) {
        self.new.put("configmaps", "c", "default", "x", &data("2"));
        self.seen.receive("x 2 at new").await;
        assert!(!self.seen.all().iter().any(|word| word.contains("deleted")), "{:?}", self.seen.all());
        assert!(self.errors.all().is_empty());
        assert_eq!(self.fleet.store::<ConfigMap>().unwrap().list("c").len(), 2);
        // What really is deleted is told.
        self.new.delete("configmaps", "c", "default", "y");
        self.seen.receive("y deleted at new").await;
    }
}

#[tokio::test]
async fn a_cluster_that_arrives_before_it_leaves_loses_nothing() {
    let world = settled().await;
    world.arrive();
    // The new endpoint speaks before anybody knows of the move.
    world.seen.hear_many(2).await;
    assert_eq!(world.seen.sorted(), ["x arrived at old", "y arrived at old"]);
    let arrived = world.script.engage("c", "new", &world.new);
    world.leave();
    world.script.disengage(&world.cluster);
    assert!(arrived.epoch() > world.cluster.epoch());
    world.works().await;
}

#[tokio::test]
async fn a_cluster_whose_objects_vanish_before_they_arrive_loses_nothing() {
    let world = settled().await;
    world.script.engage("c", "new", &world.new);
    // The fleet has heard of the move before the old endpoint empties.
    eventually(|| world.cluster.gone().is_cancelled(), || "the end of the old epoch".to_owned()).await;
    world.leave();
    world.arrive();
    world.script.disengage(&world.cluster);
    world.script.send(FleetEvent::EndpointDown("old".into()));
    world.works().await;
}

#[tokio::test]
async fn a_cluster_that_leaves_before_it_arrives_loses_nothing() {
    let world = settled().await;
    world.script.disengage(&world.cluster);
    eventually(|| world.fleet.cluster("c").is_err(), || "the cluster to leave".to_owned()).await;
    world.leave();
    world.arrive();
    world.script.engage("c", "new", &world.new);
    world.works().await;
}

#[tokio::test]
async fn what_was_deleted_on_the_way_is_told_once_the_new_endpoint_is_listed() {
    let world = settled_with(Duration::from_millis(20)).await;
    world.new.put("configmaps", "c", "default", "x", &data("1"));
    world.script.engage("c", "new", &world.new);
    world.seen.receive("y deleted at new").await;
    assert!(world.fleet.store::<ConfigMap>().unwrap().get("c", "default", "x").is_some());
}

#[tokio::test]
async fn work_that_the_old_endpoint_refuses_after_a_move_is_done_again_at_the_new_one() {
    let (old, new) = (FakeEndpoint::default(), FakeEndpoint::default());
    for fake in [&old, &new] {
        fake.put("configmaps", "c", "default", "x", &data("1"));
    }
    let script = Script::with("old", &old, &["c"]);
    script.up("new", &new);
    let seen = Words::default();
    let reconcile = |_: Arc<ConfigMap>, context: Context<Words>| async move {
        context.data.say(format!("began at {}", context.cluster.endpoint()));
        if *context.cluster.endpoint() == "old" {
            context.cluster.gone().cancelled().await;
            let client = kube::Api::<ConfigMap>::namespaced(context.cluster.client(), "default");
            client.get("x").await?;
        }
        Ok::<_, kube::Error>(Action::await_change())
    };
    let controller = MultiClusterController::<ConfigMap>::new(script.clone(), watcher::Config::default());
    let (_task, errors) = poll(controller.run(reconcile, |_, _, _| Action::await_change(), Arc::new(seen.clone())));
    seen.receive("began at old").await;
    old.forbid("c");
    script.engage("c", "new", &new);
    seen.receive("began at new").await;
    assert!(errors.all().is_empty());
}

#[tokio::test]
async fn a_cluster_that_returns_misses_nothing_that_was_said_before_anybody_knew() {
    returns(|_, _| {}).await;
}

#[tokio::test]
async fn nor_does_one_that_is_said_to_be_gone_before_it_is_said_to_be_back() {
    returns(Script::disengage).await;
}

/// A cluster moves and returns; before that is known, something else may be.
async fn returns(meanwhile: impl FnOnce(&Script, &Cluster)) {
    let world = settled().await;
    world.arrive();
    world.seen.hear_many(2).await;
    let moved = world.script.engage("c", "new", &world.new);
    world.leave();
    world.new.put("configmaps", "c", "default", "x", &data("2"));
    world.seen.receive("x 2 at new").await;
    // It is on its way back, and the old endpoint is not listened to yet: a later event of another cluster has passed.
    world.script.engage("other", "old", &world.old);
    for name in ["x", "y", "early"] {
        world.old.put("configmaps", "c", "default", name, &data("returned"));
    }
    world.old.put("configmaps", "other", "default", "passed", &data("1"));
    world.seen.receive("passed 1 at old").await;
    meanwhile(&world.script, &moved);
    world.script.engage("c", "old", &world.old);
    world.seen.receive("early returned at old").await;
    assert!(!world.seen.all().iter().any(|word| word.contains("deleted")), "{:?}", world.seen.all());
}
