//! Errors, retries, panics, hand-overs and the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use carrick_multicluster::{
    Action, Cluster, ClusterError, ClusterKey, Config, Context, Coordinator, Endpoint, Fleet, FleetEvent,
    MultiClusterController, Ownership, Request,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::controller::Action as KubeAction;
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

use super::world::{Script, Words, data, eventually, poll};
use carrick_multicluster::testing::{FakeEndpoint, RequestCounts};

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("it is {0}")]
    Broken(&'static str),
    #[error("no cluster")]
    Cluster(#[source] ClusterError),
    #[error("no answer")]
    Kube(#[source] kube::Error),
}

fn config() -> watcher::Config {
    watcher::Config::default()
}

fn one_object(cluster: &str) -> (FakeEndpoint, Script) {
    let fake = FakeEndpoint::default();
    fake.put("configmaps", cluster, "default", "x", &data("x"));
    let script = Script::with("e", &fake, &[cluster]);
    (fake, script)
}

#[tokio::test]
async fn failures_and_panics_are_reported_and_tried_again_with_growing_pauses() {
    let (_fake, script) = one_object("c");
    let seen = Words::default();
    let reconcile = |_: Arc<ConfigMap>, context: Context<Words>| {
        context.data.say(format!("attempt {} because {}", context.attempt, context.reason.as_str()));
        // A panic before the first await must be caught too.
        assert!(context.attempt != 1, "out of luck");
        async move { if context.attempt < 3 { Err(Failure::Broken("broken")) } else { Ok(KubeAction::await_change()) } }
    };
    let controller = MultiClusterController::<ConfigMap>::new(script, config());
    let (_task, errors) = poll(controller.run(reconcile, |_, _, _| Action::backoff(), Arc::new(seen.clone())));
    seen.receive("attempt 3 because retried").await;
    assert_eq!(seen.all()[1..], ["attempt 1", "attempt 2", "attempt 3"].map(|text| format!("{text} because retried")));
    let wanted = [
        "cannot reconcile cluster://c/default/x: it is broken",
        "the reconciler panicked over cluster://c/default/x: out of luck",
        "cannot reconcile cluster://c/default/x: it is broken",
    ];
    assert_eq!(errors.all(), wanted);
}

#[tokio::test]
async fn a_missing_cluster_is_waited_for_and_the_end_of_another_one_is_a_failure() {
    let (fake, script) = one_object("c");
    let gone = script.engage("left", "e", &fake);
    let seen = Words::default();
    let fleet = Fleet::from(script.clone());
    let reconcile = |_: Arc<ConfigMap>, context: Context<Words>| async move {
        let wanted = if context.fleet.cluster("later").is_ok() { "left" } else { "later" };
        context.data.say(format!("looks for {wanted}"));
        context.fleet.cluster(wanted).map_err(Failure::Cluster)?;
        Ok(Action::await_change())
    };
    let controller = MultiClusterController::<ConfigMap>::on(&fleet, config())
        .with_config(Config::default().retry_unknown_cluster_after(Duration::from_millis(1)));
    script.disengage(&gone);
    eventually(|| fleet.cluster("left").is_err(), || "the cluster to leave".to_owned()).await;
    let policy = |_: Arc<ConfigMap>, error: &Failure, context: Context<Words>| {
        context.data.say(format!("policy: {}", std::error::Error::source(error).unwrap()));
        Action::await_change()
    };
    let (_task, errors) = poll(controller.run(reconcile, policy, Arc::new(seen.clone())));
    eventually(|| seen.count("looks for later") > 3, || "retries".to_owned()).await;
    assert!(errors.all().is_empty() && seen.all().iter().all(|word| word == "looks for later"), "{:?}", errors.all());
    let waiting = tokio::spawn({
        let fleet = fleet.clone();
        async move { fleet.wait_cluster("later", Duration::from_mins(1)).await }
    });
    script.engage("later", "e", &fake);
    assert_eq!(*waiting.await.unwrap().unwrap().name(), "later");
    seen.receive("policy: cluster \"left\" has left the fleet").await;
    errors.receive("cannot reconcile cluster://c/default/x: no cluster").await;
    // Of the request's own cluster it is the end.
    seen.take();
    fake.put("configmaps", "left", "default", "x", &data("x"));
    let gone = script.engage("left", "e", &fake);
    seen.receive("looks for left").await;
    script.disengage(&gone);
    let timeout = fleet.wait_cluster("never", Duration::from_millis(1)).await;
    assert_eq!(timeout, Err(ClusterError::Unknown { cluster: "never".into() }));
}

#[tokio::test]
async fn a_refusal_by_a_cluster_that_is_just_leaving_is_no_failure() {
    let (fake, script) = one_object("c");
    fake.put("configmaps", "d", "default", "x", &data("x"));
    let leaving = script.engage("c", "e", &fake);
    script.engage("d", "e", &fake);
    fake.forbid("c");
    fake.forbid("d");
    let seen = Words::default();
    let reconcile = |object: Arc<ConfigMap>, context: Context<Words>| async move {
        let api: Api<ConfigMap> = Api::namespaced(context.cluster.client(), "default");
        let result = api.get(&object.name_any()).await;
        context.data.say(format!("{} refuses", context.cluster.name()));
        result.map(|_| Action::await_change()).map_err(Failure::Kube)
    };
    let controller = MultiClusterController::<ConfigMap>::new(script.clone(), config());
    let policy = |_: Arc<ConfigMap>, _: &Failure, _: Context<Words>| Action::await_change();
    let (_task, errors) = poll(controller.run(reconcile, policy, Arc::new(seen.clone())));
    seen.receive("c refuses").await;
    script.disengage(&leaving);
    // The other one stays, so its refusal is a failure.
    errors.hear_many(1).await;
    assert_eq!(errors.all(), ["cannot reconcile cluster://d/default/x: no answer"]);
}

#[tokio::test]
async fn an_unchanged_reconciler_of_kube_runs_in_every_cluster_with_its_client() {
    struct Ctx {
        client: kube::Client,
        seen: Words,
    }
    async fn reconcile(object: Arc<ConfigMap>, ctx: Arc<Ctx>) -> Result<KubeAction, kube::Error> {
        let api: Api<ConfigMap> = Api::namespaced(ctx.client.clone(), &object.namespace().unwrap_or_default());
        let here = api.get(&object.name_any()).await?;
        ctx.seen.say(format!("{} {}", object.name_any(), here.annotations()["kcp.io/cluster"]));
        Ok(KubeAction::requeue(Duration::from_hours(1)))
    }
    fn error_policy(_: Arc<ConfigMap>, _: &kube::Error, _: Arc<Ctx>) -> KubeAction {
        KubeAction::requeue(Duration::from_secs(5))
    }
    let fake = FakeEndpoint::default();
    for cluster in ["a", "b"] {
        for name in ["x", "y"] {
            fake.put("configmaps", cluster, "default", name, &data("x"));
        }
    }
    let (seen, contexts) = (Words::default(), Words::default());
    let (reported, making) = (seen.clone(), contexts.clone());
    let make = move |cluster: &Cluster| {
        making.say(cluster.name().to_string());
        Arc::new(Ctx { client: cluster.client(), seen: reported.clone() })
    };
    let controller = MultiClusterController::<ConfigMap>::new(Script::with("e", &fake, &["a", "b"]), config());
    let (_task, errors) = poll(controller.run_uniform(make, reconcile, error_policy));
    seen.hear_many(4).await;
    assert_eq!(seen.sorted(), ["x a", "x b", "y a", "y b"]);
    assert_eq!(contexts.sorted(), ["a", "b"]);
    assert!(errors.all().is_empty());
}

/// A coordinator that the test drives.
pub struct Manual {
    pub ownership: watch::Sender<Ownership>,
    pub drained: Arc<Mutex<Vec<u64>>>,
}

impl Coordinator for Manual {
    fn ownership(&self) -> watch::Receiver<Ownership> {
        self.ownership.subscribe()
    }

    fn drained(&self, version: u64) {
        self.drained.lock().push(version);
    }
}

#[tokio::test]
async fn a_cluster_is_handed_over_only_after_its_work_has_ended() {
    let fake = FakeEndpoint::default();
    for cluster in ["a", "b"] {
        fake.put("configmaps", cluster, "default", "x", &data("x"));
    }
    let ownership = watch::Sender::new(Ownership::new(1, |name| *name == "a"));
    let drained = Arc::new(Mutex::new(Vec::new()));
    let coordinator = Manual { ownership: ownership.clone(), drained: drained.clone() };
    let fleet = Fleet::builder(Script::with("e", &fake, &["a", "b"])).coordinator(coordinator).build();
    let (seen, permits) = (Words::default(), Arc::new(Semaphore::new(0)));
    let reconcile = |_: Arc<ConfigMap>, context: Context<(Words, Arc<Semaphore>)>| async move {
        context.data.0.say(format!("began {}", context.cluster.name()));
        context.data.1.acquire().await.unwrap().forget();
        context.data.0.say(format!("ended {}", context.cluster.name()));
        Ok::<_, Failure>(Action::await_change())
    };
    let controller = MultiClusterController::<ConfigMap>::on(&fleet, config());
    let context = Arc::new((seen.clone(), permits.clone()));
    let _running = poll(controller.run(reconcile, |_, _, _| Action::backoff(), context));
    seen.receive("began a").await;
    eventually(|| *drained.lock() == [1], || format!("{:?}", drained.lock())).await;
    ownership.send_replace(Ownership::new(2, |name| *name == "b"));
    seen.receive("began b").await;
    assert_eq!(*drained.lock(), [1], "a still runs");
    permits.add_permits(1);
    eventually(|| drained.lock().last() == Some(&2), || format!("{:?}", drained.lock())).await;
    assert!(seen.count("ended a") == 1 || seen.count("ended b") == 1);
    // And back: everything is looked at again.
    seen.take();
    permits.add_permits(10);
    ownership.send_replace(Ownership::all(3));
    seen.receive("ended a").await;
}

#[tokio::test]
async fn a_graceful_shutdown_starts_nothing_new_and_lets_work_end() {
    let fake = FakeEndpoint::default();
    for name in ["x", "y"] {
        fake.put("configmaps", "c", "default", name, &data("x"));
    }
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (seen, permits) = (Words::default(), Arc::new(Semaphore::new(0)));
    let reconcile = |_: Arc<ConfigMap>, context: Context<(Words, Arc<Semaphore>)>| async move {
        context.data.0.say("began");
        context.stop.cancelled().await;
        context.data.1.acquire().await.unwrap().forget();
        context.data.0.say("ended");
        Ok::<_, Failure>(Action::await_change())
    };
    let controller = MultiClusterController::<ConfigMap>::new(Script::with("e", &fake, &["c"]), config())
        .with_config(Config::default().concurrency(1))
        .graceful_shutdown_on(async move { drop(stopped.await) });
    let context = Arc::new((seen.clone(), permits.clone()));
    let (task, _) = poll(controller.run(reconcile, |_, _, _| Action::backoff(), context));
    seen.receive("began").await;
    stop.send(()).unwrap();
    permits.add_permits(1);
    task.await.unwrap();
    assert_eq!(seen.all(), ["began", "ended"]);
}

#[tokio::test]
async fn one_object_never_runs_twice_at_once() {
    let (fake, script) = one_object("c");
    let (seen, permits) = (Words::default(), Arc::new(Semaphore::new(0)));
    let reconcile = |object: Arc<ConfigMap>, context: Context<(Words, Arc<Semaphore>)>| async move {
        context.data.0.say(object.data.as_ref().unwrap()["value"].clone());
        context.data.1.acquire().await.unwrap().forget();
        Ok::<_, Failure>(Action::await_change())
    };
    let controller = MultiClusterController::<ConfigMap>::new(script, config());
    let store = controller.store();
    let context = Arc::new((seen.clone(), permits.clone()));
    let _running = poll(controller.run(reconcile, |_, _, _| Action::backoff(), context));
    seen.receive("x").await;
    for value in ["1", "2", "3"] {
        fake.put("configmaps", "c", "default", "x", &data(value));
    }
    let value = || store.get("c", "default", "x").is_some_and(|object| object.data.as_ref().unwrap()["value"] == "3");
    eventually(value, || "the last change".to_owned()).await;
    assert_eq!(seen.all(), ["x"]);
    permits.add_permits(10);
    seen.receive("3").await;
    assert_eq!(seen.all(), ["x", "3"], "three changes, one more look");
}

/// A controller that says `+` for an object that is there and `-` for one that is not; it fails, or waits, if told so.
fn watch_deletions(fleet: &Fleet, seen: &Words, fails: &Arc<AtomicBool>) -> tokio::task::JoinHandle<()> {
    let reconcile = |request: Request<ConfigMap>, object: Option<Arc<ConfigMap>>, context: Context<Shared>| async move {
        let sign = if object.is_some() { '+' } else { '-' };
        let (seen, fails) = &*context.data;
        seen.say(format!("{sign}{}/{}", request.cluster, request.obj.name));
        if fails.load(Ordering::Relaxed) { Err(Failure::Broken("broken")) } else { Ok(Action::await_change()) }
    };
    let controller = MultiClusterController::<ConfigMap>::on(fleet, config());
    let slowly = |_: Request<ConfigMap>, _: &Failure, _: Context<Shared>| Action::requeue(Duration::from_hours(1));
    poll(controller.run_keyed(reconcile, slowly, Arc::new((seen.clone(), fails.clone())))).0
}

type Shared = (Words, Arc<AtomicBool>);

#[tokio::test]
async fn deletions_outlast_a_hand_over() {
    let fake = FakeEndpoint::default();
    for name in ["failed", "unseen", "back"] {
        fake.put("configmaps", "a", "default", name, &data("x"));
    }
    fake.put("configmaps", "b", "default", "other", &data("x"));
    let ownership = watch::Sender::new(Ownership::all(1));
    let coordinator = Manual { ownership: ownership.clone(), drained: Arc::default() };
    let fleet = Fleet::builder(Script::with("e", &fake, &["a", "b"])).coordinator(coordinator).build();
    let (seen, fails) = (Words::default(), Arc::new(AtomicBool::new(false)));
    let _running = watch_deletions(&fleet, &seen, &fails);
    seen.hear_many(4).await;
    // Tried in vain before the hand-over, and tried again in an hour.
    fails.store(true, Ordering::Relaxed);
    fake.delete("configmaps", "a", "default", "failed");
    seen.receive("-a/failed").await;
    ownership.send_replace(Ownership::new(2, |name| *name == "b"));
    fake.put("configmaps", "b", "default", "sign", &data("x"));
    seen.receive("+b/sign").await;
    // Deleted while somebody else works on the cluster.
    fails.store(false, Ordering::Relaxed);
    fake.delete("configmaps", "a", "default", "unseen");
    fake.delete("configmaps", "a", "default", "back");
    fake.put("configmaps", "a", "default", "back", &data("again"));
    fake.put("configmaps", "b", "default", "second-sign", &data("x"));
    seen.receive("+b/second-sign").await;
    seen.take();
    ownership.send_replace(Ownership::all(3));
    for word in ["-a/failed", "-a/unseen", "+a/back"] {
        seen.receive(word).await;
    }
    assert_eq!(seen.all().len(), 3, "{:?}", seen.all());
}

#[tokio::test]
async fn clusters_of_others_are_not_watched_where_each_has_its_own_endpoint() {
    let (a, b) = (FakeEndpoint::default(), FakeEndpoint::default());
    a.put("configmaps", "a", "default", "x", &data("x"));
    b.put("configmaps", "b", "default", "x", &data("x"));
    let script = Script::default();
    for (name, fake) in [("a", &a), ("b", &b)] {
        let key = ClusterKey::Fixed(name.parse().unwrap());
        script.send(FleetEvent::EndpointUp(Endpoint::new(name, fake.client(), key)));
        script.engage(name, name, fake);
    }
    script.send(FleetEvent::Synced);
    let (ownership, drained) = (watch::Sender::new(Ownership::new(1, |name| *name == "a")), Arc::default());
    let coordinator = Manual { ownership: ownership.clone(), drained: Arc::clone(&drained) };
    let fleet = Fleet::builder(script.clone()).coordinator(coordinator).build();
    let (seen, fails) = (Words::default(), Arc::new(AtomicBool::new(false)));
    let _running = watch_deletions(&fleet, &seen, &fails);
    seen.receive("+a/x").await;
    a.put("configmaps", "a", "default", "y", &data("x"));
    seen.receive("+a/y").await;
    assert_eq!(b.requests("configmaps"), RequestCounts::default(), "another process watches that");
    let informer = fleet.informer::<ConfigMap>(config());
    // Handed over: the one is read, the other is let go as soon as nothing runs there.
    seen.take();
    ownership.send_replace(Ownership::new(2, |name| *name == "b"));
    seen.receive("+b/x").await;
    eventually(|| drained.lock().contains(&2), || format!("{:?}", drained.lock())).await;
    eventually(|| informer.store().clusters() == ["b"], || format!("{:?}", informer.store().clusters())).await;
    eventually(|| !a.is_watched(), || "the end of the watch".to_owned()).await;
    assert!(fleet.health().is_live());
    // And back: read anew before anything is reconciled there.
    seen.take();
    a.delete("configmaps", "a", "default", "y");
    ownership.send_replace(Ownership::all(3));
    seen.receive("+a/x").await;
    assert_eq!(seen.count("+a/y"), 0);
}

#[tokio::test]
async fn failures_of_providers_reach_the_stream_once_per_outage() {
    let (_fake, script) = one_object("c");
    let (other, seen) = (Script::with("o", &FakeEndpoint::default(), &["o"]), Words::default());
    let reconcile = |_: Arc<ConfigMap>, context: Context<Words>| async move {
        context.data.say("seen");
        Ok::<_, Failure>(Action::await_change())
    };
    let controller = MultiClusterController::<ConfigMap>::new(script.clone(), config()).watches_from(
        other.clone(),
        config(),
        |_, _: &ConfigMap| None,
    );
    let (_task, errors) = poll(controller.run(reconcile, |_, _, _| Action::backoff(), Arc::new(seen.clone())));
    seen.receive("seen").await;
    let error = |text: &str| carrick_client::Error::Request { request: "watch".into(), problem: text.into() };
    script.send(FleetEvent::Failing { source: "hub".into(), error: error("no way") });
    other.send(FleetEvent::Failing { source: "other hub".into(), error: error("no way there") });
    errors.hear_many(2).await;
    let errors = errors.sorted();
    assert!(errors[0].starts_with("cannot see changes of hub: ") && errors[0].contains("no way"), "{errors:?}");
    assert!(
        errors[1].starts_with("cannot see changes of other hub: ") && errors[1].contains("no way there"),
        "{errors:?}"
    );
}

#[tokio::test]
async fn a_shutdown_waits_for_what_runs_and_reports_what_it_aborts() {
    let fake = FakeEndpoint::default();
    for name in ["hangs", "ends"] {
        fake.put("configmaps", "c", "default", name, &data("x"));
    }
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let seen = Words::default();
    let reconcile = |object: Arc<ConfigMap>, context: Context<Words>| async move {
        context.data.say("began");
        context.stop.cancelled().await;
        if object.name_any() == "hangs" {
            std::future::pending::<()>().await;
        }
        // Longer than a cluster that leaves would be waited for.
        tokio::time::sleep(Duration::from_millis(50)).await;
        context.data.say("ended");
        Ok::<_, Failure>(Action::await_change())
    };
    let times = Config::default().grace(Duration::from_millis(1)).shutdown_grace(Duration::from_secs(4));
    let controller = MultiClusterController::<ConfigMap>::new(Script::with("e", &fake, &["c"]), config())
        .with_config(times)
        .graceful_shutdown_on(async move { drop(stopped.await) });
    let (task, errors) = poll(controller.run(reconcile, |_, _, _| Action::backoff(), Arc::new(seen.clone())));
    seen.hear_many(2).await;
    stop.send(()).unwrap();
    task.await.unwrap();
    assert_eq!(seen.all(), ["began", "began", "ended"]);
    assert_eq!(errors.all().len(), 1);
    assert!(
        errors.all()[0].starts_with("the reconcile of cluster://c/default/hangs was aborted"),
        "{:?}",
        errors.all()
    );
}
