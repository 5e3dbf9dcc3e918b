//! Processes that stop in peace hand over at once. Leases live far longer here than anybody waits, so that nothing can be had by expiry.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::{Client, Resource, Server};
use carrick_multicluster::coordination::{Coordinator, Election, Leader, Sharded};
use carrick_multicluster::providers::Namespaces;
use carrick_multicluster::{Action, Context, Fleet, MultiClusterController};
use carrick_plane::faults::{Effect, Match, Rule};
use carrick_plane::{Config, Mode, Plane};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::runtime::watcher;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const LEASE: Duration = Duration::from_mins(10);
const CLUSTERS: usize = 6;

/// A process of its own in all but memory.
struct Process {
    fleet: Fleet,
    done: watch::Receiver<BTreeSet<String>>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

/// What is reconciled at this moment, by whomever.
type Running = Arc<Mutex<BTreeSet<String>>>;

struct Work {
    done: watch::Sender<BTreeSet<String>>,
    running: Running,
}

async fn reconcile(object: Arc<ConfigMap>, context: Context<Work>) -> Result<Action, Infallible> {
    let what = format!("{}/{}", context.cluster.name(), object.name_any());
    assert!(context.data.running.lock().insert(what.clone()), "{what} is reconciled by two at once");
    tokio::time::sleep(Duration::from_millis(5)).await;
    context.data.running.lock().remove(&what);
    context.data.done.send_if_modified(|done| done.insert(what));
    Ok(Action::requeue(Duration::from_millis(5)))
}

impl Process {
    fn start(client: &Client, coordinator: impl Coordinator, running: &Running) -> Self {
        let fleet = Fleet::builder(Namespaces::new(client.clone()).labels("tenant=true")).coordinator(coordinator);
        let fleet = fleet.build();
        let (stop, (sender, done)) = (CancellationToken::new(), watch::channel(BTreeSet::new()));
        let controller =
            MultiClusterController::<ConfigMap>::on(&fleet, watcher::Config::default().labels("work=true"))
                .graceful_shutdown_on(stop.clone().cancelled_owned());
        let work = Arc::new(Work { done: sender, running: running.clone() });
        let reports = controller.run(reconcile, |_, error: &Infallible, _| match *error {}, work);
        let task = tokio::spawn(reports.for_each(async |report| {
            if let Err(error) = report {
                panic!("{error}");
            }
        }));
        Self { fleet, done, stop, task }
    }

    async fn does(&mut self, what: &str, condition: impl Fn(&BTreeSet<String>) -> bool) {
        let patience = Duration::from_mins(1);
        let waited = tokio::time::timeout(patience, self.done.wait_for(condition)).await;
        assert!(waited.is_ok(), "waited in vain until {what}");
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
        self.fleet.release().await;
    }
}

async fn plane() -> (Plane, Client, BTreeSet<String>) {
    let plane = Plane::start(Config::new(Mode::Kube)).await.unwrap();
    let client = Server::from_kubeconfig_yaml(&plane.kubeconfig("admin", None).unwrap()).unwrap().client();
    let namespaces = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
    let maps = Resource::namespaced("", "v1", "ConfigMap", "configmaps");
    let mut all = BTreeSet::new();
    for cluster in (0..CLUSTERS).map(|number| format!("tenant-{number}")) {
        let namespace = json!({"metadata": {"name": cluster, "labels": {"tenant": "true"}}});
        client.create(&namespaces, None, &namespace).await.unwrap();
        let object = json!({"metadata": {"name": "object", "labels": {"work": "true"}}});
        client.create(&maps, Some(&cluster), &object).await.unwrap();
        all.insert(format!("{cluster}/object"));
    }
    (plane, client, all)
}

#[tokio::test]
async fn a_leader_that_stops_lets_the_next_begin_at_once() {
    let (_plane, client, all) = plane().await;
    let candidate = |name: &str| {
        // Those who stand by look seven times in a Lease's duration.
        let election = Election::new(client.clone(), "test").namespace("default").identity(name);
        Leader::elect(election.duration(Duration::from_secs(15)))
    };
    let running = Running::default();
    let mut first = Process::start(&client, candidate("first"), &running);
    first.does("the first works on everything", |done| *done == all).await;
    let mut second = Process::start(&client, candidate("second"), &running);
    second.fleet.wait_cluster("tenant-0", Duration::from_mins(1)).await.unwrap();
    assert!(second.done.borrow().is_empty(), "the second did not wait");
    first.stop().await;
    assert!(running.lock().is_empty(), "something still ran");
    second.does("the second works on everything", |done| *done == all).await;
    let leases = Resource::namespaced("coordination.k8s.io", "v1", "Lease", "leases");
    let lease = client.get(&leases, Some("default"), "test").await.unwrap().unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], "second");
    second.stop().await;
}

#[tokio::test]
async fn a_process_that_stops_leaves_its_share_to_the_others_at_once() {
    let (_plane, client, all) = plane().await;
    let member =
        |name: &str| Sharded::new(client.clone(), "test").identity(name).namespace("default").slots(8).duration(LEASE);
    let running = Running::default();
    let mut first = Process::start(&client, member("first"), &running);
    first.does("the first works on everything", |done| *done == all).await;
    let mut second = Process::start(&client, member("second"), &running);
    second.does("the second has a share", |done| !done.is_empty()).await;
    first.stop().await;
    second.does("the second works on everything", |done| *done == all).await;
    second.stop().await;
    let leases = Resource::namespaced("coordination.k8s.io", "v1", "Lease", "leases");
    let left = client.list(&leases, Some("default"), &carrick_client::ListOptions::default()).await.unwrap();
    let held = left.iter().filter(|lease| lease["spec"]["holderIdentity"].as_str().is_some_and(|it| !it.is_empty()));
    assert_eq!(held.count(), 0, "{left:?}");
}

#[tokio::test]
async fn a_leader_whose_work_was_cut_off_does_not_let_the_next_begin() {
    let (_plane, client, _) = plane().await;
    let election = Election::new(client.clone(), "cut-off").namespace("default").identity("first");
    let fleet =
        Fleet::builder(Namespaces::new(client.clone()).labels("tenant=true")).coordinator(Leader::elect(election));
    let fleet = fleet.build();
    let (stop, begun) = (CancellationToken::new(), Arc::new(tokio::sync::Notify::new()));
    let controller = MultiClusterController::<ConfigMap>::on(&fleet, watcher::Config::default().labels("work=true"))
        .with_config(carrick_multicluster::Config::default().shutdown_grace(Duration::from_millis(50)))
        .graceful_shutdown_on(stop.clone().cancelled_owned());
    let hang = |_: Arc<ConfigMap>, context: Context<tokio::sync::Notify>| async move {
        context.data.notify_one();
        std::future::pending::<Result<Action, Infallible>>().await
    };
    let reports = controller.run(hang, |_, error: &Infallible, _| match *error {}, begun.clone());
    let task = tokio::spawn(reports.for_each(async |_| {}));
    begun.notified().await;
    stop.cancel();
    task.await.unwrap();
    fleet.release().await;
    let leases = Resource::namespaced("coordination.k8s.io", "v1", "Lease", "leases");
    let lease = client.get(&leases, Some("default"), "cut-off").await.unwrap().unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], "first");
}

#[tokio::test]
async fn a_candidate_that_gives_up_releases_what_it_got_without_an_answer() {
    let (plane, client, _) = plane().await;
    let creates = Match::any().verbs(&["create"]).resource("coordination.k8s.io", "leases");
    plane.faults().add(Rule::new(creates, Effect::apply_then_refuse(500)));
    let mut election = Election::new(client.clone(), "given-up").namespace("default").identity("first");
    let failed = tokio::sync::Notify::new();
    let report = |state: Result<(), &str>| {
        if state.is_err() {
            failed.notify_one();
        }
    };
    tokio::select! {
        _ = election.acquire(&report) => panic!("it leads without an answer"),
        () = failed.notified() => {}
    }
    let leases = Resource::namespaced("coordination.k8s.io", "v1", "Lease", "leases");
    let lease = async || client.get(&leases, Some("default"), "given-up").await.unwrap().unwrap();
    assert_eq!(lease().await["spec"]["holderIdentity"], "first");
    election.release().await;
    assert_eq!(lease().await["spec"]["holderIdentity"], "");
}
