//! What workspaces cost: `cargo bench -p carrick-multicluster --bench fleet`.
//!
//! ```text
//!   this process: fills workspaces, changes objects, measures
//!     ├── server    an embedded control plane with an export and W workspaces that bind it
//!     └── watcher   one controller over all of them; its time and memory are what is measured
//! ```
//!
//! The same number of objects is spread over 1, 10, 100 and 1 000 workspaces, and each is reconciled when it is listed and
//! when it changes. Then 100 000 objects lie in 1 000 workspaces, as compact bytes and as `DynamicObject`s.
//! A number as argument is the number of objects of the first part (20 000); `quick` leaves out the second.

#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a measurement that fails may panic; figures are rounded"
)]

use std::convert::Infallible;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrick_client::{Client, Object, Resource, Server};
use carrick_multicluster::providers::kcp::ApiExport;
use carrick_multicluster::{Action, Config, Context, Fleet, MultiClusterController, Request, WatchConfig};
use carrick_plane::{Config as PlaneConfig, Mode, Plane};
use futures::{Stream, StreamExt};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};
use tokio::sync::watch;

/// Says to a child which part it plays.
const PART: &str = "CARRICK_BENCH_PART";
const EXPORT: &str = "bench.example.com";
const IN_FLIGHT: usize = 64;
const OBJECTS: usize = 20_000;
const MANY: usize = 100_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match std::env::var(PART).ok().as_deref() {
        Some("server") => runtime.block_on(serve()),
        Some(part) => runtime.block_on(reconcile(part == "typed")),
        None => runtime.block_on(measure()),
    }
}

async fn measure() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let objects = arguments.iter().find_map(|text| text.parse().ok()).unwrap_or(OBJECTS);
    println!("| objects | workspaces | listed/s | CPU each | changed/s | CPU each | memory | per object |");
    println!("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for workspaces in [1, 10, 100, 1000] {
        row(objects, workspaces, &["compact"]).await;
    }
    if !arguments.iter().any(|text| text == "quick") {
        row(MANY, 1000, &["compact", "typed"]).await;
    }
}

/// Measures one number of objects in one number of workspaces, with each kind of watcher.
async fn row(objects: usize, workspaces: usize, watchers: &[&str]) {
    let mut server = Part::start("server", "");
    let kubeconfig = server.hear()["kubeconfig"].as_str().unwrap().to_owned();
    let kcp = Server::from_kubeconfig_yaml(&kubeconfig).unwrap();
    let consumers = fill(&kcp, objects, workspaces).await;
    for kind in watchers {
        let mut watcher = Part::start(kind, &kubeconfig);
        let empty = watcher.hear();
        let begin = Instant::now();
        let listed = watcher.ask(&json!({ "until": objects }));
        let listing = begin.elapsed().as_secs_f64();
        let begin = Instant::now();
        for_each(objects, {
            let consumers = consumers.clone();
            move |number| change(consumers[number % consumers.len()].clone(), number)
        })
        .await;
        let changed = watcher.ask(&json!({ "until": 2 * objects }));
        let changing = begin.elapsed().as_secs_f64();
        let rate = |seconds: f64| objects as f64 / seconds;
        let cpu = |after: &Value, before: &Value| {
            1e6 * (after["cpu"].as_f64().unwrap() - before["cpu"].as_f64().unwrap()) / objects as f64
        };
        let memory = changed["memory"].as_f64().unwrap();
        let each = 1024.0 * (memory - empty["memory"].as_f64().unwrap()) / objects as f64;
        let kind = if *kind == "typed" { " (typed)" } else { "" };
        println!(
            "| {objects}{kind} | {workspaces} | {:.0} | {:.0} µs | {:.0} | {:.0} µs | {memory:.0} MiB | {each:.2} KiB |",
            rate(listing),
            cpu(&listed, &empty),
            rate(changing),
            cpu(&changed, &listed),
        );
    }
}

fn widgets() -> Resource {
    Resource::namespaced(EXPORT, "v1", "Widget", "widgets")
}

/// Makes workspaces with objects, and returns a client of each.
async fn fill(kcp: &Server, objects: usize, workspaces: usize) -> Arc<Vec<Client>> {
    let root = kcp.at_path("/clusters/root");
    export(&root).await;
    let clients: Vec<Client> =
        (0..workspaces).map(|number| kcp.at_path(&format!("/clusters/root:w{number}"))).collect();
    let clients = Arc::new(clients);
    for_each(workspaces, {
        let clients = clients.clone();
        move |number| bind(root.clone(), clients[number].clone(), number)
    })
    .await;
    for_each(objects, {
        let clients = clients.clone();
        move |number| create(clients[number % clients.len()].clone(), number)
    })
    .await;
    clients
}

async fn export(root: &Client) {
    let kcp = |kind: &str, plural: &str| Resource::cluster_wide("apis.kcp.io", "v1alpha1", kind, plural);
    let name = format!("v1.widgets.{EXPORT}");
    let names = json!({"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"});
    let spec = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    let schema = json!({
        "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema", "metadata": {"name": name},
        "spec": {"group": EXPORT, "names": names, "scope": "Namespaced", "versions": [version]},
    });
    root.create(&kcp("APIResourceSchema", "apiresourceschemas"), None, &schema).await.unwrap();
    let export = json!({
        "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExport", "metadata": {"name": EXPORT},
        "spec": {"latestResourceSchemas": [name]},
    });
    root.create(&kcp("APIExport", "apiexports"), None, &export).await.unwrap();
}

/// Makes a workspace and binds the export in it.
async fn bind(root: Client, client: Client, number: usize) {
    let workspaces = Resource::cluster_wide("tenancy.kcp.io", "v1alpha1", "Workspace", "workspaces");
    let workspace = json!({
        "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": format!("w{number}")}, "spec": {},
    });
    root.create(&workspaces, None, &workspace).await.unwrap();
    let bindings = Resource::cluster_wide("apis.kcp.io", "v1alpha1", "APIBinding", "apibindings");
    let binding = json!({
        "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIBinding", "metadata": {"name": EXPORT},
        "spec": {"reference": {"export": {"path": "root", "name": EXPORT}}},
    });
    eventually("a workspace can be used", async || client.create(&bindings, None, &binding).await.is_ok()).await;
    eventually("a binding serves its API", async || client.get(&widgets(), Some("default"), "none").await.is_ok())
        .await;
}

async fn create(client: Client, number: usize) {
    let widget = json!({
        "apiVersion": format!("{EXPORT}/v1"), "kind": "Widget",
        "metadata": {"name": format!("widget-{number}"), "namespace": "default"}, "spec": {"size": 1},
    });
    eventually("an object can be created", async || {
        match client.create(&widgets(), Some("default"), &widget).await {
            // The API of a binding appears a moment after the binding says so.
            Err(error) if error.is_not_found() => false,
            answer => answer.is_ok(),
        }
    })
    .await;
}

async fn change(client: Client, number: usize) {
    let time = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_micros();
    let patch = json!({ "metadata": { "annotations": { "changed": time.to_string() } } });
    client.merge_patch(&widgets(), Some("default"), &format!("widget-{number}"), &patch).await.unwrap();
}

async fn eventually(what: &str, mut met: impl AsyncFnMut() -> bool) {
    for _ in 0..500 {
        if met().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("waited in vain until {what}");
}

/// Calls a function for every number below `count`, many at a time.
async fn for_each<F: Future<Output = ()>>(count: usize, work: impl Fn(usize) -> F) {
    futures::stream::iter(0..count).for_each_concurrent(IN_FLIGHT, work).await;
}

/// The server's process: says where it is and stays until its input ends.
async fn serve() {
    let plane = Plane::start(PlaneConfig::new(Mode::Kcp)).await.unwrap();
    say(&json!({"kubeconfig": plane.kubeconfig("kcp-admin", Some("root")).unwrap()}));
    tokio::task::spawn_blocking(|| std::io::stdin().lines().count()).await.unwrap();
}

/// The watcher's process: runs a controller, and answers each question as soon as so many reconciles are done.
async fn reconcile(typed: bool) {
    let mut kubeconfig = String::new();
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        if line.is_empty() {
            break;
        }
        kubeconfig += &line;
        kubeconfig.push('\n');
    }
    let client = Server::from_kubeconfig_yaml(&kubeconfig).unwrap().at_path("/clusters/root");
    say(&costs());
    let fleet = Fleet::from(ApiExport::new(client, EXPORT));
    let (done, mut seen) = watch::channel(0_usize);
    let config = Config::default().concurrency(IN_FLIGHT).per_cluster(0);
    if typed {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(EXPORT, "v1", "Widget"));
        let controller = MultiClusterController::<DynamicObject>::new_with(&fleet, WatchConfig::default(), resource);
        tokio::spawn(drain(controller.with_config(config).run_keyed(
            async |_: Request<DynamicObject>, _, context: Context<watch::Sender<usize>>| count(&context.data),
            |_, _, _| Action::backoff(),
            Arc::new(done),
        )));
    } else {
        let controller = MultiClusterController::compact(&fleet, WatchConfig::default(), widgets());
        tokio::spawn(drain(controller.with_config(config).run_keyed(
            async |_: Request<Object>, _, context: Context<watch::Sender<usize>>| count(&context.data),
            |_, _, _| Action::backoff(),
            Arc::new(done),
        )));
    }
    let (asked, mut questions) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            asked.send(serde_json::from_str::<Value>(&line.unwrap()).unwrap()).unwrap();
        }
    });
    while let Some(question) = questions.recv().await {
        let until = usize::try_from(question["until"].as_u64().unwrap()).unwrap();
        seen.wait_for(|done| *done >= until).await.unwrap();
        say(&costs());
    }
    std::process::exit(0);
}

#[allow(clippy::unnecessary_wraps)] // as a reconciler answers
fn count(done: &watch::Sender<usize>) -> Result<Action, Infallible> {
    done.send_modify(|done| *done += 1);
    Ok(Action::await_change())
}

async fn drain(reports: impl Stream) {
    reports.for_each(async |_| {}).await;
}

/// Processor time in seconds and resident memory in MiB of this process, where the system tells.
fn costs() -> Value {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    let stat = read("stat");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    let status = read("status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: f64 = line.and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or(0.0);
    json!({"cpu": (ticks(11) + ticks(12)) / 100.0, "memory": kib / 1024.0})
}

fn say(value: &Value) {
    println!("{value}");
    std::io::stdout().flush().unwrap();
}

/// A process that plays one part.
struct Part {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Part {
    fn start(part: &str, input: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env(PART, part)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut this = Self { child, output };
        this.tell(input);
        this
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn ask(&mut self, question: &Value) -> Value {
        self.tell(&question.to_string());
        self.hear()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
