//! Three processes share the clusters of a fleet, one of them is killed: nothing is ever reconciled by two at once, nothing is forgotten.
//!
//! The processes are this very test program, started again with [`LOG`] set. Each writes down when it begins and ends a reconcile.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use carrick_client::{Client, Overrides, Resource, Server};
use carrick_multicluster::coordination::Sharded;
use carrick_multicluster::providers::Namespaces;
use carrick_multicluster::{Action, Config, Context, Fleet, MultiClusterController};
use carrick_plane::{Mode, Plane};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::runtime::watcher;
use serde_json::json;

const LOG: &str = "CARRICK_TEST_LOG";
const KUBECONFIG: &str = "CARRICK_TEST_KUBECONFIG";
const NAME: &str = "CARRICK_TEST_NAME";
const CLUSTERS: usize = 12;
const OBJECTS: usize = 3;
/// A third of this is how long a process of a slow machine may be held up between its last renewal and the end of its work.
const LEASE: Duration = Duration::from_secs(9);

/// Not a test of its own: what each of the processes does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_of_the_group() {
    let Some(log) = std::env::var_os(LOG) else { return };
    let kubeconfig = PathBuf::from(std::env::var_os(KUBECONFIG).unwrap());
    let client = Server::from_kubeconfig(&kubeconfig, &Overrides::default()).unwrap().client();
    let log = Arc::new(OpenOptions::new().create(true).append(true).open(log).unwrap());
    // Shares depend on names, so names that are always the same give shares that are.
    let name = std::env::var(NAME).unwrap();
    let sharded = Sharded::new(client.clone(), "test").identity(&name).namespace("default").slots(16).duration(LEASE);
    let fleet = Fleet::builder(Namespaces::new(client).labels("tenant=true")).coordinator(sharded).build();
    let config = Config::default().grace(LEASE / 6);
    let controller = MultiClusterController::<ConfigMap>::on(&fleet, watcher::Config::default().labels("work=true"));
    let run = controller.with_config(config).run(reconcile, |_, error: &Infallible, _| match *error {}, log);
    run.for_each(async |_| {}).await;
}

async fn reconcile(object: Arc<ConfigMap>, context: Context<File>) -> Result<Action, Infallible> {
    let round = object.data.as_ref().and_then(|data| data.get("round")).cloned().unwrap_or_default();
    let what = format!("{}/{} {round}", context.cluster.name(), object.name_any());
    say(&context.data, "begin", &what);
    tokio::time::sleep(Duration::from_millis(60)).await;
    say(&context.data, "end", &what);
    Ok(Action::requeue(Duration::from_millis(40)))
}

/// One line per call, whole or not at all.
fn say(mut log: &File, word: &str, what: &str) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
    log.write_all(format!("{word} {what} {now}\n").as_bytes()).unwrap();
}

/// One run of the reconciler.
#[derive(Debug)]
struct Run {
    object: String,
    round: String,
    begin: u128,
    /// Not known if the process was killed meanwhile.
    end: Option<u128>,
}

struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
    killed: Option<u128>,
}

impl Process {
    fn start(name: &'static str, folder: &Path) -> Self {
        let log = folder.join(format!("{name}.log"));
        File::create(&log).unwrap();
        let output = File::create(folder.join(format!("{name}.out"))).unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::a_process_of_the_group", "--nocapture"])
            .env(LOG, &log)
            .env(NAME, name)
            .env(KUBECONFIG, folder.join("kubeconfig"))
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        Self { name, child, log, killed: None }
    }

    /// Kills the process, which cannot do anything about it.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.killed = Some(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos());
    }

    fn runs(&self) -> Vec<Run> {
        let text = std::fs::read_to_string(&self.log).unwrap();
        let mut runs: Vec<Run> = Vec::new();
        // The last line may be half written.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for line in whole.lines() {
            let mut words = line.split(' ');
            let mut word = || words.next().unwrap().to_owned();
            let (what, object, round, at) = (word(), word(), word(), word().parse().unwrap());
            if what == "begin" {
                runs.push(Run { object, round, begin: at, end: None });
            } else {
                let run = runs.iter_mut().rev().find(|run| run.object == object).unwrap();
                assert!(run.end.is_none(), "{} ended {object} twice", self.name);
                run.end = Some(at);
            }
        }
        runs
    }

    /// Objects whose reconcile ended after a moment, in a round.
    fn done(&self, round: &str, after: u128) -> BTreeSet<String> {
        let ended = self.runs().into_iter().filter(|run| run.round == round && run.begin > after && run.end.is_some());
        ended.map(|run| run.object).collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn until(what: &str, patience: Duration, mut good: impl FnMut() -> bool) {
    let start = Instant::now();
    while !good() {
        assert!(start.elapsed() < patience, "{what}: not within {patience:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn now() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos()
}

fn config_maps() -> Resource {
    Resource::namespaced("", "v1", "ConfigMap", "configmaps")
}

async fn create_objects(client: &Client) -> BTreeSet<String> {
    let namespaces = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
    let mut all = BTreeSet::new();
    for cluster in (0..CLUSTERS).map(|n| format!("tenant-{n}")) {
        let namespace = json!({"metadata": {"name": cluster, "labels": {"tenant": "true"}}});
        client.create(&namespaces, None, &namespace).await.unwrap();
        for name in (0..OBJECTS).map(|n| format!("object-{n}")) {
            let object = json!({"metadata": {"name": name, "labels": {"work": "true"}}, "data": {"round": "first"}});
            client.create(&config_maps(), Some(&cluster), &object).await.unwrap();
            all.insert(format!("{cluster}/{name}"));
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_three_processes_one_is_killed_and_no_object_is_reconciled_by_two_at_once_or_forgotten() {
    let plane = Plane::start(carrick_plane::Config::new(Mode::Kube)).await.unwrap();
    let folder = std::env::temp_dir().join(format!("carrick-processes-{}", uuid::Uuid::new_v4()));
    std::fs::create_dir_all(&folder).unwrap();
    let kubeconfig = plane.kubeconfig("admin", None).unwrap();
    std::fs::write(folder.join("kubeconfig"), &kubeconfig).unwrap();
    let client = Server::from_kubeconfig_yaml(&kubeconfig).unwrap().client();
    let all = create_objects(&client).await;
    let patience = Duration::from_mins(1);

    // The first has everything; the others join while it works, so that clusters are handed over.
    let mut processes = vec![Process::start("one", &folder)];
    until("the first process works on everything", patience, || processes[0].done("first", 0) == all);
    processes.push(Process::start("two", &folder));
    processes.push(Process::start("three", &folder));
    until("the others have their share", patience, || processes.iter().all(|it| it.done("first", 0).len() > 3));
    let shares_since = now();
    until("everything is worked on by somebody", patience, || {
        let done = processes.iter().flat_map(|it| it.done("first", shares_since));
        done.collect::<BTreeSet<_>>() == all
    });

    let orphans = processes[1].done("first", shares_since);
    processes[1].kill();
    let killed = processes[1].killed.unwrap();
    let kind = config_maps();
    for object in &all {
        let (cluster, name) = object.split_once('/').unwrap();
        let patch = json!({"data": {"round": "second"}});
        client.merge_patch(&kind, Some(cluster), name, &patch).await.unwrap();
    }
    until("the survivors work on everything", patience, || {
        let done = [&processes[0], &processes[2]].into_iter().flat_map(|it| it.done("second", killed));
        done.collect::<BTreeSet<_>>() == all
    });
    for survivor in [0, 2] {
        processes[survivor].kill();
    }

    // The promise. A run that was cut off ended with its process.
    let mut runs: BTreeMap<String, Vec<(u128, u128, &str)>> = BTreeMap::new();
    let mut first_adopted = Vec::new();
    for process in &processes {
        for run in process.runs() {
            let end = run.end.or(process.killed).unwrap();
            if process.name != "two" && orphans.contains(&run.object) && run.begin > killed {
                first_adopted.push(run.begin - killed);
            }
            runs.entry(run.object).or_default().push((run.begin, end, process.name));
        }
    }
    let total: usize = runs.values().map(Vec::len).sum();
    for (object, runs) in &mut runs {
        runs.sort_unstable();
        for pair in runs.windows(2) {
            let ((_, end, by), (begin, _, then)) = (pair[0], pair[1]);
            assert!(end <= begin, "{object}: {by} ended {} ms after {then} had begun", (end - begin) / 1_000_000);
        }
    }
    let first = first_adopted.iter().min().copied().unwrap_or_default() / 1_000_000;
    println!("{total} runs of {} objects; {} orphans, the first adopted after {first} ms", all.len(), orphans.len());
    assert!(!orphans.is_empty(), "the killed process had nothing to do");
    std::fs::remove_dir_all(folder).unwrap();
}
