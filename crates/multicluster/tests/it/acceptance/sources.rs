//! Owners, mappers, other fleets, triggers and predicates.

use std::convert::Infallible;
use std::sync::Arc;

use carrick_multicluster::{Action, Context, Fleet, MultiClusterController, Request};
use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{predicates, watcher};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::world::{Script, Words, data, eventually, poll};
use carrick_multicluster::testing::FakeEndpoint;

async fn named<K: kube::Resource>(object: Arc<K>, context: Context<Words>) -> Result<Action, Infallible> {
    context.data.say(format!("{}/{}", context.cluster.name(), object.name_any()));
    Ok(Action::await_change())
}

#[allow(clippy::trivially_copy_pass_by_ref)] // that is how policies are called
fn policy<K>(_: Arc<K>, error: &Infallible, _: Context<Words>) -> Action {
    match *error {}
}

fn config() -> watcher::Config {
    watcher::Config::default()
}

fn owned_by(api_version: &str, kind: &str, name: &str) -> Value {
    let owner = json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": "u", "controller": true});
    json!({"metadata": {"ownerReferences": [owner]}})
}

#[tokio::test]
async fn owners_are_reconciled_in_their_own_cluster_only() {
    let fake = FakeEndpoint::default();
    for cluster in ["a", "b"] {
        fake.put("deployments", cluster, "default", "app", &json!({}));
        fake.put("namespaces", cluster, "", "team", &json!({}));
    }
    let fleet = Fleet::from(Script::with("e", &fake, &["a", "b"]));
    let (deployments, namespaces) = (Words::default(), Words::default());
    let controller = MultiClusterController::<Deployment>::on(&fleet, config()).owns::<ConfigMap>(config());
    let _one = poll(controller.run(named, policy, Arc::new(deployments.clone())));
    let controller = MultiClusterController::<Namespace>::on(&fleet, config()).owns::<ConfigMap>(config());
    let _two = poll(controller.run(named, policy, Arc::new(namespaces.clone())));
    for seen in [&deployments, &namespaces] {
        seen.hear_many(2).await;
        seen.take();
    }
    fake.put("configmaps", "b", "default", "child", &owned_by("apps/v1", "Deployment", "app"));
    deployments.receive("b/app").await;
    fake.put("configmaps", "a", "default", "child", &owned_by("v1", "Namespace", "team"));
    namespaces.receive("a/team").await;
    // A child that changes hands concerns the old owner as well.
    fake.put("configmaps", "b", "default", "child", &owned_by("v1", "Namespace", "team"));
    namespaces.receive("b/team").await;
    deployments.hear_many(2).await;
    assert_eq!(deployments.all(), ["b/app", "b/app"]);
    assert_eq!(namespaces.all(), ["a/team", "b/team"]);
    let requests = fake.requests("configmaps");
    assert_eq!((requests.lists, requests.watches), (1, 1), "both share one watch");
}

#[tokio::test]
async fn mappers_see_other_kinds_of_the_same_cluster() {
    let fake = FakeEndpoint::default();
    for cluster in ["a", "b"] {
        fake.put("configmaps", cluster, "default", "user", &data("creds"));
    }
    let seen = Words::default();
    let controller = MultiClusterController::<ConfigMap>::new(Script::with("e", &fake, &["a", "b"]), config());
    let store = controller.store();
    store.index("secret", |object: &ConfigMap| object.data.iter().flat_map(|data| data.values().cloned()).collect());
    let users = store.clone();
    let controller = controller.watches(config(), move |cluster, secret: &Secret| {
        let users = users.by_index(cluster, "secret", &secret.name_any());
        users.iter().map(|user| ObjectRef::from_obj(&**user)).collect::<Vec<_>>()
    });
    let _running = poll(controller.run(named, policy, Arc::new(seen.clone())));
    seen.hear_many(2).await;
    seen.take();
    fake.put("secrets", "a", "default", "unused", &json!({}));
    fake.put("secrets", "b", "default", "creds", &json!({}));
    seen.receive("b/user").await;
    assert_eq!(seen.all(), ["b/user"]);
}

#[tokio::test]
async fn objects_of_another_fleet_concern_any_cluster() {
    let (consumers, service) = (FakeEndpoint::default(), FakeEndpoint::default());
    consumers.put("configmaps", "a", "default", "order", &data("x"));
    let copy_of = |cluster: &str, name: &str| json!({"metadata": {"labels": {"cluster": cluster, "name": name}}});
    service.put("configmaps", "service", "copies", "orphan", &copy_of("b", "gone"));
    let other = Script::with("service", &service, &["service"]);
    let seen = Words::default();
    let reconcile = |request: Request<ConfigMap>, object: Option<Arc<ConfigMap>>, context: Context<Words>| async move {
        let sign = if object.is_some() { '+' } else { '-' };
        context.data.say(format!("{sign}{}/{}", request.cluster, request.obj.name));
        Ok::<_, Infallible>(Action::await_change())
    };
    let script = Script::with("e", &consumers, &["a"]);
    let controller = MultiClusterController::<ConfigMap>::new(script.clone(), config()).watches_from(
        other,
        config(),
        |_, copy: &ConfigMap| {
            let label = |key: &str| copy.labels().get(key).cloned();
            let (cluster, name) = (label("cluster")?, label("name")?);
            Some(Request::new(cluster.try_into().ok()?, ObjectRef::new(&name).within("default")))
        },
    );
    let _running = poll(controller.run_keyed(reconcile, |_, _, _| Action::backoff(), Arc::new(seen.clone())));
    seen.receive("+a/order").await;
    // The cluster of the orphan joins later, and finds it.
    script.engage("b", "e", &consumers);
    seen.receive("-b/gone").await;
    assert_eq!(seen.take(), ["+a/order", "-b/gone"]);
    service.put("configmaps", "service", "copies", "copy", &copy_of("a", "order"));
    seen.receive("+a/order").await;
    // A copy that changes its mind concerns both.
    seen.take();
    service.put("configmaps", "service", "copies", "copy", &copy_of("b", "gone"));
    seen.hear_many(2).await;
    assert_eq!(seen.sorted(), ["+a/order", "-b/gone"]);
    seen.take();
    service.delete("configmaps", "service", "copies", "copy");
    seen.receive("-b/gone").await;
}

#[tokio::test]
async fn nothing_is_reconciled_before_another_fleet_is_known() {
    let (consumers, service) = (FakeEndpoint::default(), FakeEndpoint::default());
    consumers.put("configmaps", "a", "default", "order", &data("x"));
    service.set_down(true);
    let other = Fleet::from(Script::with("service", &service, &["service"]));
    let seen = Words::default();
    let script = Script::with("e", &consumers, &["a"]);
    let controller = MultiClusterController::<ConfigMap>::new(script, config()).watches_from(
        &other,
        config(),
        |_, _: &ConfigMap| None,
    );
    let store = controller.store();
    let _running = poll(controller.run(named, policy, Arc::new(seen.clone())));
    eventually(|| !store.is_empty(), || "the order".to_owned()).await;
    let watched = || other.health().endpoints.get("service").is_some_and(|endpoint| !endpoint.watches.is_empty());
    eventually(watched, || "the watch".to_owned()).await;
    assert!(seen.all().is_empty());
    service.set_down(false);
    seen.receive("a/order").await;
}

#[tokio::test]
async fn triggers_and_predicates_say_what_counts() {
    let fake = FakeEndpoint::default();
    let object = |generation: i64, label: &str| json!({"metadata": {"generation": generation, "labels": {"l": label}}});
    fake.put("configmaps", "a", "default", "x", &object(1, "one"));
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let requests = futures::stream::poll_fn(move |context| receiver.poll_recv(context)).boxed();
    let seen = Words::default();
    let controller = MultiClusterController::<ConfigMap>::new(Script::with("e", &fake, &["a"]), config())
        .predicate(predicates::generation)
        .trigger(requests);
    let store = controller.store();
    let _running = poll(controller.run(named, policy, Arc::new(seen.clone())));
    seen.hear_many(1).await;
    fake.put("configmaps", "a", "default", "x", &object(1, "two"));
    let label = || store.get("a", "default", "x").is_some_and(|object| object.labels()["l"] == "two");
    eventually(label, || "the label".to_owned()).await;
    assert_eq!(seen.all().len(), 1, "only a label has changed");
    fake.put("configmaps", "a", "default", "x", &object(2, "two"));
    seen.hear_many(2).await;
    sender.send(Request::new("a".parse().unwrap(), ObjectRef::new("x").within("default"))).unwrap();
    seen.hear_many(3).await;
}

#[tokio::test]
async fn clusters_that_are_filtered_out_are_left_alone() {
    let fake = FakeEndpoint::default();
    for cluster in ["a", "b"] {
        fake.put("configmaps", cluster, "default", "x", &data("x"));
    }
    let seen = Words::default();
    let controller = MultiClusterController::<ConfigMap>::new(Script::with("e", &fake, &["a", "b"]), config())
        .clusters(|cluster| *cluster.name() == "b");
    let _running = poll(controller.run(named, policy, Arc::new(seen.clone())));
    seen.hear_many(1).await;
    fake.put("configmaps", "a", "default", "y", &data("x"));
    fake.put("configmaps", "b", "default", "y", &data("x"));
    seen.hear_many(2).await;
    assert_eq!(seen.sorted(), ["b/x", "b/y"]);
}
