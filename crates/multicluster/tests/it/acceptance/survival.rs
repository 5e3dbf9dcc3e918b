//! What the code of users may do wrong without harm to anybody else.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use carrick_multicluster::{
    Action, ClusterKey, Config, Context, Endpoint, Fleet, FleetEvent, MultiClusterController, Provider, Request,
};
use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::controller::Action as KubeAction;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::world::{Script, Warnings, Words, data, eventually, poll};
use carrick_multicluster::testing::FakeEndpoint;

fn config() -> watcher::Config {
    watcher::Config::default()
}

async fn named(object: Arc<ConfigMap>, context: Context<Words>) -> Result<Action, Infallible> {
    context.data.say(format!("{}/{}", context.cluster.name(), object.name_any()));
    Ok(Action::await_change())
}

#[allow(clippy::trivially_copy_pass_by_ref)] // that is how policies are called
fn policy(_: Arc<ConfigMap>, error: &Infallible, _: Context<Words>) -> Action {
    match *error {}
}

/// Two clusters with one object each.
fn two_clusters() -> (FakeEndpoint, Script) {
    let fake = FakeEndpoint::default();
    for cluster in ["a", "b"] {
        fake.put("configmaps", cluster, "default", "x", &data("x"));
    }
    let script = Script::with("e", &fake, &["a", "b"]);
    (fake, script)
}

#[tokio::test]
async fn a_mapper_that_panics_over_one_object_is_told_and_maps_the_others() {
    let (fake, script) = two_clusters();
    // One is there before the controller looks, one comes later: both ways into the mapper.
    fake.put("secrets", "a", "default", "bad-at-start", &json!({}));
    fake.put("secrets", "b", "default", "x", &json!({}));
    let seen = Words::default();
    let controller =
        MultiClusterController::<ConfigMap>::new(script, config()).watches(config(), |_, secret: &Secret| {
            assert!(!secret.name_any().starts_with("bad"), "cannot map {}", secret.name_any());
            [ObjectRef::new(&secret.name_any()).within("default")]
        });
    let (_task, errors) = poll(controller.run(named, policy, Arc::new(seen.clone())));
    seen.receive("a/x").await;
    seen.receive("b/x").await;
    seen.take();
    fake.put("secrets", "a", "default", "bad", &json!({}));
    fake.put("secrets", "b", "default", "x", &json!({"metadata": {"labels": {"a": "b"}}}));
    seen.receive("b/x").await;
    let reported = "the mapper panicked over cluster://a/default/bad: cannot map bad";
    eventually(|| errors.all().iter().any(|error| error.starts_with(reported)), || format!("{:?}", errors.all())).await;
    assert!(errors.all().iter().any(|error| error.contains("cluster://a/default/bad-at-start")), "{:?}", errors.all());
}

#[tokio::test]
async fn a_mapper_over_another_fleet_that_panics_is_told_and_maps_the_others() {
    let (_fake, script) = two_clusters();
    let service = FakeEndpoint::default();
    service.put("secrets", "s", "default", "bad-at-start", &json!({}));
    let other = Script::with("service", &service, &["s"]);
    let seen = Words::default();
    let controller = MultiClusterController::<ConfigMap>::new(script, config()).watches_from(
        other,
        config(),
        |_, secret: &Secret| {
            let name = secret.name_any();
            assert!(!name.starts_with("bad"), "cannot map {name}");
            [Request::new("a".parse().unwrap(), ObjectRef::new(&name).within("default"))]
        },
    );
    let (_task, errors) = poll(controller.run(named, policy, Arc::new(seen.clone())));
    seen.hear_many(2).await;
    seen.take();
    service.put("secrets", "s", "default", "bad", &json!({}));
    service.put("secrets", "s", "default", "x", &json!({}));
    seen.receive("a/x").await;
    let reported = "the mapper panicked over cluster://s/default/bad: cannot map bad";
    eventually(|| errors.all().iter().any(|error| error.starts_with(reported)), || format!("{:?}", errors.all())).await;
}

#[tokio::test]
async fn a_predicate_that_panics_is_told_and_its_object_counts_as_changed() {
    let (fake, script) = two_clusters();
    let seen = Words::default();
    let predicate = |object: &ConfigMap| {
        let value = object.data.as_ref().map(|data| data["value"].clone());
        assert!(value.as_deref() != Some("bad"), "no such value");
        Some(u64::from(value.as_deref() == Some("x")))
    };
    let controller = MultiClusterController::<ConfigMap>::new(script, config()).predicate(predicate);
    let (_task, errors) = poll(controller.run(named, policy, Arc::new(seen.clone())));
    seen.hear_many(2).await;
    seen.take();
    fake.put("configmaps", "a", "default", "x", &data("bad"));
    seen.receive("a/x").await;
    fake.put("configmaps", "b", "default", "x", &data("y"));
    seen.receive("b/x").await;
    assert!(errors.all()[0].starts_with("the predicate panicked over cluster://a/default/x: no such value"));
}

#[tokio::test]
async fn an_index_that_panics_over_one_object_is_told_and_holds_the_others() {
    let (fake, script) = two_clusters();
    fake.put("configmaps", "a", "default", "bad-at-start", &data("bad"));
    let seen = Words::default();
    let controller = MultiClusterController::<ConfigMap>::new(script, config());
    let store = controller.store();
    store.index("value", |object: &ConfigMap| {
        let value = object.data.as_ref().map(|data| data["value"].clone()).unwrap_or_default();
        assert!(value != "bad", "cannot index that");
        vec![value]
    });
    let (_task, errors) = poll(controller.run(named, policy, Arc::new(seen.clone())));
    seen.hear_many(3).await;
    seen.take();
    fake.put("configmaps", "a", "default", "x", &data("bad"));
    seen.receive("a/x").await;
    fake.put("configmaps", "b", "default", "x", &data("y"));
    seen.receive("b/x").await;
    assert_eq!(store.by_index("b", "value", "y").len(), 1);
    assert!(store.by_index("a", "value", "x").is_empty(), "what it was found under before is gone");
    fake.put("configmaps", "a", "default", "x", &data("good"));
    eventually(|| store.by_index("a", "value", "good").len() == 1, || "the index".to_owned()).await;
    fake.delete("configmaps", "a", "default", "bad-at-start");
    eventually(|| store.len() == 2, || "the end of the bad one".to_owned()).await;
    let reported = "the index \"value\" panicked over cluster://a/default/x: cannot index that";
    assert!(errors.all().iter().any(|error| error.starts_with(reported)), "{:?}", errors.all());
    // Indexed when it is there already, a bad object harms no other either.
    fake.put("configmaps", "a", "default", "x", &data("bad"));
    let is_bad = |object: Arc<ConfigMap>| object.data.as_ref().is_some_and(|data| data["value"] == "bad");
    eventually(|| store.get("a", "default", "x").is_some_and(is_bad), || "the change".to_owned()).await;
    store.index("late", |object: &ConfigMap| {
        assert!(object.data.as_ref().unwrap()["value"] != "bad", "cannot index that");
        vec!["all".to_owned()]
    });
    assert_eq!(store.by_index_all("late", "all").len(), 1);
}

/// A spec whose decoder panics over some values.
#[derive(Clone, Debug)]
struct Fussy;

impl<'de> Deserialize<'de> for Fussy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        assert!(value != json!("bad"), "no such spec");
        Ok(Self)
    }
}

#[tokio::test]
async fn a_decoder_that_panics_over_one_object_is_told_and_decodes_the_others() {
    type Widget = kube::core::Object<Fussy, Value>;
    let fake = FakeEndpoint::default();
    let spec = |text: &str| json!({"apiVersion": "v1", "kind": "Widget", "spec": text});
    fake.put("widgets", "a", "default", "x", &spec("bad"));
    fake.put("widgets", "b", "default", "x", &spec("good"));
    let seen = Words::default();
    let widgets = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Widget"));
    let controller =
        MultiClusterController::<Widget>::new_with(Script::with("e", &fake, &["a", "b"]), config(), widgets);
    let reconcile = |object: Arc<Widget>, context: Context<Words>| async move {
        context.data.say(format!("{}/{}", context.cluster.name(), object.name_any()));
        Ok::<_, Infallible>(Action::await_change())
    };
    let (_task, errors) = poll(controller.run(reconcile, |_, _, _| Action::backoff(), Arc::new(seen.clone())));
    seen.receive("b/x").await;
    fake.put("widgets", "a", "default", "y", &spec("bad"));
    fake.put("widgets", "b", "default", "y", &spec("good"));
    seen.receive("b/y").await;
    fake.put("widgets", "a", "default", "x", &spec("good"));
    seen.receive("a/x").await;
    // The last state of a deleted object does not matter.
    fake.delete("widgets", "a", "default", "y");
    fake.put("widgets", "a", "default", "z", &spec("good"));
    seen.receive("a/z").await;
    let reported = "cannot understand cluster://a/default/x: the decoder panicked: no such spec";
    assert!(errors.all().iter().any(|error| error.starts_with(reported)), "{:?}", errors.all());
}

#[tokio::test]
async fn a_function_that_panics_over_a_cluster_leaves_the_others_alone() {
    let (fake, _) = two_clusters();
    let script = Script::default();
    let key = ClusterKey::with(|object| {
        assert!(&*object.name != "bad", "whose is that");
        carrick_multicluster::ClusterName::new(object.cluster.clone()).ok()
    });
    script.send(FleetEvent::EndpointUp(Endpoint::new("e", fake.client(), key)));
    fake.put("configmaps", "b", "default", "bad", &data("x"));
    for cluster in ["a", "b"] {
        script.engage(cluster, "e", &fake);
    }
    let seen = Words::default();
    let controller = MultiClusterController::<ConfigMap>::new(script, config()).clusters(|cluster| {
        assert!(*cluster.name() != "a", "not that one");
        true
    });
    let (_task, errors) = poll(controller.run(named, policy, Arc::new(seen.clone())));
    seen.receive("b/x").await;
    fake.put("configmaps", "b", "default", "bad", &data("y"));
    fake.put("configmaps", "b", "default", "y", &data("x"));
    seen.receive("b/y").await;
    assert_eq!(seen.sorted(), ["b/x", "b/y"]);
    let reported = |words: &str| errors.all().iter().any(|error| error.starts_with(words));
    assert!(reported("the cluster filter panicked over cluster a: not that one"), "{:?}", errors.all());
    assert!(reported("the cluster key panicked over default/bad at endpoint e: whose is that"), "{:?}", errors.all());
}

#[tokio::test]
async fn a_trigger_that_panics_is_told_and_the_rest_goes_on() {
    let (fake, script) = two_clusters();
    let seen = Words::default();
    let trigger = futures::stream::poll_fn(|_| panic!("out of requests"));
    let controller = MultiClusterController::<ConfigMap>::new(script, config()).trigger(trigger);
    let (_task, errors) = poll(controller.run(named, policy, Arc::new(seen.clone())));
    seen.hear_many(2).await;
    fake.put("configmaps", "b", "default", "y", &data("x"));
    seen.receive("b/y").await;
    assert!(errors.all()[0].starts_with("the trigger panicked: out of requests"), "{:?}", errors.all());
}

#[tokio::test]
async fn a_requeue_after_all_eternity_is_none() {
    let (fake, script) = two_clusters();
    let seen = Words::default();
    let reconcile = |object: Arc<ConfigMap>, context: Context<Words>| async move {
        context.data.say(format!("{}/{}", context.cluster.name(), object.name_any()));
        match (&**context.cluster.name(), &*object.name_any()) {
            ("a", "x") => Ok(Action::requeue(Duration::MAX)),
            ("a", _) => Ok(Action::from(KubeAction::requeue(Duration::MAX))),
            _ => Err(std::fmt::Error),
        }
    };
    let eternal = Config::default()
        .grace(Duration::MAX)
        .backoff(Duration::MAX, Duration::MAX)
        .retry_unknown_cluster_after(Duration::MAX);
    let controller = MultiClusterController::<ConfigMap>::new(script.clone(), config()).with_config(eternal);
    let forever = |object: Arc<ConfigMap>, _: &std::fmt::Error, _: Context<Words>| {
        if object.name_any() == "x" { Action::requeue(Duration::MAX) } else { Action::backoff() }
    };
    let (task, _) = poll(controller.run(reconcile, forever, Arc::new(seen.clone())));
    seen.hear_many(2).await;
    for cluster in ["a", "b"] {
        fake.put("configmaps", cluster, "default", "y", &data("y"));
    }
    seen.hear_many(4).await;
    fake.put("configmaps", "a", "default", "x", &data("y"));
    seen.hear_many(5).await;
    assert!(!task.is_finished());
}

#[tokio::test]
async fn a_dead_cluster_of_another_fleet_does_not_stop_those_that_live() {
    let (consumers, dead, well) = (FakeEndpoint::default(), FakeEndpoint::default(), FakeEndpoint::default());
    consumers.put("configmaps", "a", "default", "x", &data("x"));
    dead.set_down(true);
    let other = Script::with("dead", &dead, &["dead"]);
    other.up("well", &well);
    other.engage("well", "well", &well);
    let other = Fleet::from(other);
    let seen = Words::default();
    let controller = MultiClusterController::<ConfigMap>::new(Script::with("e", &consumers, &["a"]), config())
        .watches_from(&other, config(), |_, copy: &ConfigMap| {
            [Request::new("a".parse().unwrap(), ObjectRef::new(&copy.name_any()).within("default"))]
        })
        .with_config(Config::default().wait_for_failing(Duration::ZERO));
    let (_task, errors) = poll(controller.run(named, policy, Arc::new(seen.clone())));
    seen.receive("a/x").await;
    let reported = |words: &str| errors.all().iter().any(|error| error.starts_with(words));
    eventually(|| reported("cannot watch configmaps.v1 at endpoint dead"), || format!("{:?}", errors.all())).await;
    // Once it lives again, what it has counts.
    seen.take();
    dead.put("configmaps", "dead", "default", "x", &data("x"));
    dead.set_down(false);
    seen.receive("a/x").await;
}

/// A provider that tells another fleet each time it is asked, and panics the first time.
struct Shaky(Arc<AtomicUsize>, FakeEndpoint);

impl Provider for Shaky {
    fn events(&self) -> BoxStream<'static, FleetEvent> {
        let first = self.0.fetch_add(1, Ordering::Relaxed) == 0;
        let script = Script::with("e", &self.1, &["a", if first { "b" } else { "c" }]);
        if first {
            script.up("gone", &self.1);
        }
        let reported = script.events().take(if first { 5 } else { 4 });
        let end = futures::stream::poll_fn(move |_| if first { panic!("out of clusters") } else { Poll::Pending });
        reported.chain(end).boxed()
    }
}

#[tokio::test]
async fn a_provider_that_panics_is_told_and_asked_anew() {
    let (fake, _) = two_clusters();
    fake.put("configmaps", "c", "default", "x", &data("x"));
    let fleet = Fleet::from(Shaky(Arc::default(), fake));
    let seen = Words::default();
    let controller = MultiClusterController::<ConfigMap>::on(&fleet, config());
    let (_task, errors) = poll(controller.run(named, policy, Arc::new(seen.clone())));
    seen.receive("a/x").await;
    seen.receive("c/x").await;
    eventually(|| fleet.cluster("b").is_err(), || "the end of a cluster that is not told any more".to_owned()).await;
    eventually(|| fleet.health().is_live(), || fleet.health().to_string()).await;
    assert_eq!(fleet.health().endpoints.len(), 1);
    assert!(errors.all()[0].starts_with("cannot see changes of the provider: "), "{:?}", errors.all());
    assert!(errors.all()[0].contains("out of clusters"), "{:?}", errors.all());
}

#[tokio::test]
async fn every_outage_and_every_bad_function_has_one_warning() {
    for quiet in [false, true] {
        let warnings = Warnings::default();
        // With a single subscriber in the process, a thread without one that comes first to a place in the code would switch it off for all.
        let _another = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
        let _guard = tracing::subscriber::set_default(warnings.clone());
        let (fake, script) = two_clusters();
        let fleet = Fleet::builder(script.clone());
        let fleet = if quiet { fleet.quiet().build() } else { fleet.build() };
        let seen = Words::default();
        let run = || {
            let controller = MultiClusterController::<ConfigMap>::on(&fleet, config());
            let controller =
                controller.watches(config(), |_, _: &Secret| -> Vec<ObjectRef<ConfigMap>> { panic!("bad") });
            poll(controller.run(named, policy, Arc::new(seen.clone())))
        };
        let (first, second) = (run(), run());
        seen.hear_many(4).await;
        fleet.store::<ConfigMap>().unwrap().index("bad", |_| panic!("bad"));
        warnings.0.take();
        // Both controllers report, and each warns of its own mapper; what they share is warned of once.
        for number in 0..3 {
            fake.put("secrets", "a", "default", &number.to_string(), &json!({}));
            fake.put("configmaps", "a", "default", &number.to_string(), &data("x"));
        }
        seen.hear_many(10).await;
        fake.set_down(true);
        let failing = || fleet.health().endpoints["e"].watches.iter().all(|watch| watch.state.as_str() == "failing");
        eventually(failing, || fleet.health().to_string()).await;
        let error = carrick_client::Error::Request { request: "watch".into(), problem: "no way".into() };
        script.send(FleetEvent::Failing { source: "hub".into(), error });
        for (_, errors) in [&first, &second] {
            let count = |words: &str| errors.all().iter().filter(|error| error.starts_with(words)).count();
            eventually(|| count("cannot see changes of hub") == 1, || format!("{:?}", errors.all())).await;
            eventually(|| count("cannot watch ") == 2, || format!("{:?}", errors.all())).await;
            assert_eq!((count("the mapper panicked"), count("the index \"bad\" panicked")), (3, 3));
        }
        let mut wanted = vec!["A function panicked; later panics of it are not logged."; 3];
        if !quiet {
            wanted = [
                &["A function panicked; later panics of it are not logged."; 3][..],
                &["A watch fails; retrying."; 2],
                &["Cannot see changes of the fleet; retrying."],
            ]
            .concat();
        }
        assert_eq!(warnings.0.sorted(), wanted, "quiet: {quiet}");
    }
}
