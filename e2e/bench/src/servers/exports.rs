//! What large exports cost a plane that plays kcp: `cargo xtask bench-exports`.
//!
//! One provider exports many large kinds, one consumer binds them. Then requests are sent one after the other, in the consumer's workspace
//! and through the virtual workspace of the export.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Parser;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use super::client::{Ask, Client};
use super::contestant::{Contestant, Kind};
use crate::page;
use crate::published::large;
use crate::report::{aligned, count, mib};

/// How many schemas are created at once.
const IN_FLIGHT: usize = 4;
/// How many kinds share a group.
const PER_GROUP: usize = 10;
/// How long everything may take to be bound, and to come to rest.
const PATIENCE: Duration = Duration::from_mins(10);
/// A plane is at rest when it takes no processor time for so long.
const REST: Duration = Duration::from_secs(1);
const NAME: &str = "large";

/// Measure requests, discovery, OpenAPI, memory and processor time with large exports.
#[derive(Debug, Parser)]
pub struct Args {
    /// So many kinds are bound.
    #[arg(long, value_name = "NUMBER,…", value_delimiter = ',', default_values_t = [24, 120, 650])]
    kinds: Vec<usize>,
    /// So many KiB of JSON has each; 120 are about 160 KiB of YAML.
    #[arg(long, default_value_t = 120)]
    kib: usize,
    /// How often each request is sent.
    #[arg(long, default_value_t = 200)]
    requests: usize,
    /// For how many seconds a plane at rest is watched.
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    idle: u64,
    /// The planes of another build of this program are measured.
    #[arg(long, value_name = "PROGRAM")]
    server: Option<PathBuf>,
    /// Replace the figures in this page of the documentation.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

/// What was measured with so many kinds, each row with its name.
struct Figures {
    kinds: usize,
    rows: Vec<(&'static str, String)>,
}

/// Measures and prints.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let load = page::load();
    let mut all = Vec::new();
    for kinds in &args.kinds {
        all.push(measure(&args, *kinds).await.with_context(|| format!("with {kinds} kinds"))?);
    }
    let (machine, table) = (page::machine(&load), table(&all));
    println!("{machine}\n\n{table}");
    if let Some(page) = &args.page {
        page::replace(page, "exports", &format!("{} KiB of JSON for each kind. {machine}.\n\n{table}", args.kib))?;
    }
    Ok(())
}

fn table(all: &[Figures]) -> String {
    let mut head = vec!["kinds bound".to_owned()];
    head.extend(all.iter().map(|figures| figures.kinds.to_string()));
    let names = all.first().map(|figures| figures.rows.iter().map(|(name, _)| *name)).into_iter().flatten();
    let line = |(at, name): (usize, &str)| {
        let cells = all.iter().map(|figures| figures.rows[at].1.clone());
        std::iter::once(name.to_owned()).chain(cells).collect::<Vec<_>>()
    };
    aligned(&head, &names.enumerate().map(line).collect::<Vec<_>>())
}

async fn measure(args: &Args, kinds: usize) -> anyhow::Result<Figures> {
    eprintln!("{kinds} kinds: publishing");
    let program = args.server.clone().map_or_else(std::env::current_exe, Ok)?;
    let contestant = Contestant::start_with(Kind::PlaneAsKcp, &program).await?;
    let (root, bare) = (contestant.client()?, contestant.bare_client()?);
    let provider = workspace(&root, "provider").await?;
    let consumer = workspace(&root, "consumer").await?;
    let begin = Instant::now();
    let bytes = publish(&bare, &provider, kinds, args.kib).await?;
    let published = begin.elapsed();
    eprintln!("{kinds} kinds: binding");
    let begin = Instant::now();
    let endpoint = bind(&bare, &provider, &consumer, kinds).await?;
    let bound = begin.elapsed();
    rest(&contestant).await?;
    let memory = contestant.memory()?;
    eprintln!("{kinds} kinds: requests");
    let all = |group: usize| format!("/apis/{}/v1", group_name(group));
    let kind = kinds / 2;
    let objects = format!("{}/namespaces/default/large{kind}s", all(kind));
    let (workspace, view) = (format!("/clusters/{consumer}"), format!("{endpoint}/clusters/{consumer}"));
    let object = |name: String| {
        json!({ "apiVersion": format!("{}/v1", group_name(kind)), "kind": format!("Large{kind}"),
            "metadata": { "name": name, "namespace": "default" }, "spec": {} })
    };
    let sent = Requests { contestant: &contestant, client: &bare, number: args.requests };
    let mut rows = vec![
        ("schemas, MiB of JSON", format!("{:.1}", mib(bytes))),
        ("published, s", format!("{:.1}", published.as_secs_f64())),
        ("bound, s", format!("{:.2}", bound.as_secs_f64())),
    ];
    let created = sent.time(|at| Ask::post(format!("{workspace}{objects}"), object(format!("o{at}")))).await?;
    rows.push(("workspace: creation, ms", created));
    let read = sent.time(|at| Ask::get(format!("{workspace}{objects}/o{at}"))).await?;
    rows.push(("workspace: read, ms", read));
    let patch = |at: usize| json!({ "metadata": { "labels": { "again": format!("l{at}") } } });
    let patched = sent.time(|at| Ask::patch(format!("{workspace}{objects}/o{at}"), patch(at))).await?;
    rows.push(("workspace: merge patch, ms", patched));
    rows.push((
        "view: creation, ms",
        sent.time(|at| Ask::post(format!("{view}{objects}"), object(format!("v{at}")))).await?,
    ));
    rows.push(("view: read, ms", sent.time(|at| Ask::get(format!("{view}{objects}/v{at}"))).await?));
    rows.push((
        "view: merge patch, ms",
        sent.time(|at| Ask::patch(format!("{view}{objects}/v{at}"), patch(at + 1))).await?,
    ));
    let everywhere = format!("{endpoint}/clusters/*{}/large{}s", all(0), 0);
    rows.push(("view: list of all workspaces, ms", sent.time(|_| Ask::get(everywhere.clone())).await?));
    let once = Requests { contestant: &contestant, client: &bare, number: 1 };
    for (name, again, base) in [
        ("workspace: discovery, first, s", "workspace: discovery, again, s", workspace.clone()),
        ("view: discovery, first, s", "view: discovery, again, s", format!("{endpoint}/clusters/*")),
    ] {
        rows.push((name, format!("{:.3}", discover(&bare, &base, kinds).await?.as_secs_f64())));
        rows.push((again, format!("{:.3}", discover(&bare, &base, kinds).await?.as_secs_f64())));
    }
    let index = format!("{workspace}/openapi/v3");
    rows.push(("workspace: OpenAPI index, first, ms", once.time(|_| Ask::get(index.clone())).await?));
    rows.push(("workspace: OpenAPI index, again, ms", sent.time(|_| Ask::get(index.clone())).await?));
    let document = format!("{index}{}", all(kind));
    let some = Requests { number: args.requests.div_ceil(10), ..sent };
    rows.push(("workspace: OpenAPI of 10 kinds, ms", some.time(|_| Ask::get(document.clone())).await?));
    rest(&contestant).await?;
    let before = contestant.processor_time()?;
    tokio::time::sleep(Duration::from_secs(args.idle)).await;
    let idle = contestant.processor_time()?.saturating_sub(before);
    rows.push(("at rest: processor time per s, ms", format!("{:.0}", idle.as_secs_f64() * 1e3 / count_of(args.idle))));
    rows.push(("memory when bound, MiB", format!("{:.0}", mib(memory))));
    rows.push(("memory after all of this, MiB", format!("{:.0}", mib(contestant.memory()?))));
    rows.push(("memory at its highest, MiB", format!("{:.0}", mib(contestant.highest_memory()?))));
    Ok(Figures { kinds, rows })
}

fn count_of(seconds: u64) -> f64 {
    count(usize::try_from(seconds).unwrap_or(1).max(1))
}

fn group_name(kind: usize) -> String {
    format!("g{}.example.com", kind / PER_GROUP)
}

/// Requests of one sort, one after the other.
struct Requests<'a> {
    contestant: &'a Contestant,
    client: &'a Client,
    number: usize,
}

impl Requests<'_> {
    /// Median and maximum in milliseconds, and what one of them takes of the plane's processor time.
    async fn time(&self, ask: impl Fn(usize) -> Ask) -> anyhow::Result<String> {
        let mut all = Vec::new();
        let before = self.contestant.processor_time()?;
        for at in 0..self.number {
            let begin = Instant::now();
            self.client.send(ask(at)).await?;
            all.push(begin.elapsed());
        }
        all.sort_unstable();
        let millis = |at: usize| all.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e3);
        let (median, longest) = (millis(all.len() / 2), millis(all.len().saturating_sub(1)));
        let spent = self.contestant.processor_time()?.saturating_sub(before).as_secs_f64() * 1e3 / count(all.len());
        Ok(if self.number == 1 { format!("{median:.1}") } else { format!("{median:.2} ({longest:.1}), {spent:.2}") })
    }
}

/// Everything that `kubectl api-resources` asks for.
async fn discover(client: &Client, base: &str, wanted: usize) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    let get = |path: String| async move {
        let document = client.send(Ask::get(format!("{base}{path}"))).await?;
        anyhow::Ok(serde_json::from_slice::<Value>(&document)?)
    };
    get("/api".to_owned()).await?;
    let groups = get("/apis".to_owned()).await?;
    let versions: BTreeSet<String> = texts(&groups["groups"], "/versions/0/groupVersion");
    let documents: Vec<Value> = stream::iter(versions.into_iter().map(|version| format!("/apis/{version}")))
        .map(get)
        .buffered(IN_FLIGHT)
        .try_collect()
        .await?;
    let found = documents.iter().map(|document| texts(&document["resources"], "/name").len()).sum::<usize>();
    ensure!(found >= wanted, "{found} resources instead of {wanted}");
    Ok(begin.elapsed())
}

/// The texts at a JSON pointer in each element of a list.
fn texts(list: &Value, pointer: &str) -> BTreeSet<String> {
    let all = list.as_array().into_iter().flatten();
    all.filter_map(|one| one.pointer(pointer)?.as_str()).map(str::to_owned).collect()
}

/// A new workspace below the root; its logical cluster.
async fn workspace(root: &Client, name: &str) -> anyhow::Result<String> {
    const WORKSPACES: &str = "/apis/tenancy.kcp.io/v1alpha1/workspaces";
    let object = json!({ "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": { "name": name },
        "spec": { "type": { "name": "universal", "path": "root" } } });
    root.send(Ask::post(WORKSPACES, object)).await?;
    let found = until(root, &format!("{WORKSPACES}/{name}"), |found| found["status"]["phase"] == "Ready").await?;
    Ok(found["spec"]["cluster"].as_str().context("no cluster")?.to_owned())
}

/// Creates the schemas and an export of all of them; their size.
async fn publish(bare: &Client, provider: &str, kinds: usize, kib: usize) -> anyhow::Result<u64> {
    const SCHEMAS: &str = "/apis/apis.kcp.io/v1alpha1/apiresourceschemas";
    let create = |at: usize| async move {
        let crd = large::crd(&group_name(at), at, kib);
        let mut spec = crd["spec"].clone();
        for version in spec["versions"].as_array_mut().into_iter().flatten() {
            version["schema"] = version["schema"]["openAPIV3Schema"].take();
        }
        let object = json!({ "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema",
            "metadata": { "name": schema_name(at) }, "spec": spec });
        let size = object.to_string().len() as u64;
        bare.send(Ask::post(format!("/clusters/{provider}{SCHEMAS}"), object)).await?;
        anyhow::Ok(size)
    };
    let sizes: Vec<u64> = stream::iter(0..kinds).map(create).buffer_unordered(IN_FLIGHT).try_collect().await?;
    let resource = |at: usize| json!({ "name": format!("large{at}s"), "group": group_name(at), "schema": schema_name(at), "storage": { "crd": {} } });
    let spec = json!({ "resources": (0..kinds).map(resource).collect::<Vec<_>>(),
        "permissionClaims": [{ "group": "", "resource": "configmaps", "verbs": ["*"] }] });
    let export = json!({ "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": { "name": NAME }, "spec": spec });
    bare.send(Ask::post(format!("/clusters/{provider}/apis/apis.kcp.io/v1alpha2/apiexports"), export)).await?;
    Ok(sizes.into_iter().sum())
}

fn schema_name(at: usize) -> String {
    format!("v1.large{at}s.{}", group_name(at))
}

/// Binds the export; the path of its virtual workspace.
async fn bind(bare: &Client, provider: &str, consumer: &str, kinds: usize) -> anyhow::Result<String> {
    let bindings = format!("/clusters/{consumer}/apis/apis.kcp.io/v1alpha2/apibindings");
    let claim = json!({ "group": "", "resource": "configmaps", "verbs": ["*"], "state": "Accepted", "selector": { "matchAll": true } });
    let object = json!({ "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": { "name": NAME },
        "spec": { "reference": { "export": { "path": provider, "name": NAME } }, "permissionClaims": [claim] } });
    bare.send(Ask::post(bindings.clone(), object)).await?;
    let all_bound = |found: &Value| {
        found["status"]["phase"] == "Bound" && found["status"]["boundResources"].as_array().map(Vec::len) == Some(kinds)
    };
    until(bare, &format!("{bindings}/{NAME}"), all_bound).await?;
    let slice = format!("/clusters/{provider}/apis/apis.kcp.io/v1alpha1/apiexportendpointslices/{NAME}");
    let slice = until(bare, &slice, |found| found["status"]["endpoints"][0]["url"].is_string()).await?;
    let url = slice["status"]["endpoints"][0]["url"].as_str().unwrap_or_default();
    Ok(format!("/services/{}", url.split_once("/services/").context("no virtual workspace")?.1))
}

/// Reads an object until it is as wanted.
async fn until(client: &Client, path: &str, wanted: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
    let begin = Instant::now();
    loop {
        let found: Value = serde_json::from_slice(&client.send(Ask::get(path)).await?)?;
        if wanted(&found) {
            return Ok(found);
        }
        ensure!(begin.elapsed() < PATIENCE, "{path} is not ready: {}", found["status"]["conditions"]);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until the plane takes no processor time any more, or has not come to rest for too long.
async fn rest(contestant: &Contestant) -> anyhow::Result<()> {
    let begin = Instant::now();
    let mut before = contestant.processor_time()?;
    while begin.elapsed() < PATIENCE.min(Duration::from_mins(1)) {
        tokio::time::sleep(REST).await;
        let now = contestant.processor_time()?;
        if now.saturating_sub(before) < Duration::from_millis(20) {
            return Ok(());
        }
        before = now;
    }
    eprintln!("the plane does not come to rest");
    Ok(())
}
