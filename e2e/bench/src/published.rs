//! What published kinds cost an agent's memory: many large CRDs, no objects.

pub mod large;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use carrick_client::ListOptions;
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::condition;
use carrick_syncagent::api;
use futures::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use serde_json::{Value, json};

use super::door;
use super::field::{Field, Servers};
use super::process::Process;
use super::report::{aligned, mib};

/// How many CRDs are installed at once.
const IN_FLIGHT: usize = 4;
/// How long everything may take to be published.
const PATIENCE: Duration = Duration::from_mins(30);
/// How often is looked.
const GLANCE: Duration = Duration::from_millis(200);

/// Which CRDs.
#[derive(Debug, Clone)]
pub enum Crds {
    /// So many, each of so many KiB of JSON.
    Made(usize, usize),
    /// Those in a folder.
    Read(PathBuf),
}

impl Crds {
    /// `NUMBERxKIB`, or a folder.
    pub fn parse(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('x').and_then(|(number, kib)| Some((number.parse().ok()?, kib.parse().ok()?)));
        match numbers {
            Some((number, kib)) => Ok(Self::Made(number, kib)),
            None if Path::new(text).is_dir() => Ok(Self::Read(text.into())),
            None => Err("say NUMBERxKIB, such as 12x1100, or name a folder".to_owned()),
        }
    }

    fn load(&self, group: &str) -> anyhow::Result<Vec<Value>> {
        match self {
            Self::Made(number, kib) => Ok((0..*number).map(|i| large::crd(group, i, *kib)).collect()),
            Self::Read(folder) => large::read(folder),
        }
    }
}

/// What it cost.
#[derive(Debug, Serialize)]
pub struct Figures {
    /// Name of the agent.
    name: String,
    /// How many CRDs.
    crds: usize,
    /// Their JSON, in bytes.
    bytes: u64,
    /// From the start of the process until all are published.
    seconds: f64,
    /// Resident memory at rest and at its highest, in bytes.
    published: (u64, u64),
    /// The same after a restart.
    restarted: (u64, u64),
    /// Processor time of both in milliseconds.
    processor_ms: (f64, f64),
}

/// Publishes them all, rests, and starts anew.
pub async fn measure(
    name: &str,
    program: &Path,
    servers: Servers,
    crds: &Crds,
    quiet: Duration,
) -> anyhow::Result<Figures> {
    let field = Field::prepare(servers, 1).await?;
    let crds = crds.load(&field.stage.group)?;
    let bytes = crds.iter().map(|crd| crd.to_string().len() as u64).sum();
    let count = crds.len();
    stream::iter(&crds).map(|crd| install(&field, crd)).buffer_unordered(IN_FLIGHT).try_collect::<()>().await?;
    drop(crds);
    let started = Instant::now();
    let mut agent = field.start(program)?;
    let wanted = count + 1;
    loop {
        agent.check()?;
        let listed = field.stage.export().await?["spec"]["latestResourceSchemas"].as_array().map_or(0, Vec::len);
        if listed >= wanted {
            break;
        }
        if started.elapsed() > PATIENCE {
            let missing = unpublished(&field).await?;
            anyhow::bail!("only {listed} of {wanted} are published: {missing}");
        }
        tokio::time::sleep(GLANCE).await;
    }
    let seconds = started.elapsed().as_secs_f64();
    let (agent, published, first) = rested(&field, agent, quiet).await?;
    agent.stop().await?;
    let agent = field.start(program)?;
    let (agent, restarted, second) = rested(&field, agent, quiet).await?;
    agent.stop().await?;
    let processor_ms = (first, second);
    Ok(Figures { name: name.to_owned(), crds: count, bytes, seconds, published, restarted, processor_ms })
}

/// Memory and processor time of an agent that has come to rest.
async fn rested(field: &Field, agent: Process, quiet: Duration) -> anyhow::Result<(Process, (u64, u64), f64)> {
    door::quiet(&field.doors(), quiet, PATIENCE).await?;
    let (memory, processor) = (agent.memory()?, agent.processor_time()?.as_secs_f64() * 1e3);
    Ok((agent, memory, processor))
}

/// Installs a CRD and a PublishedResource for it.
async fn install(field: &Field, crd: &Value) -> anyhow::Result<()> {
    let (service, name) = (&field.stage.service, crd["metadata"]["name"].as_str().context("a CRD without a name")?);
    let installed = service.create(&kinds::crds(), None, crd).await;
    installed.with_context(|| format!("cannot install {name}"))?;
    let started = Instant::now();
    loop {
        let crd = service.get(&kinds::crds(), None, name).await?.context("the CRD is gone")?;
        if condition(&crd, "Established")["status"] == "True" {
            break;
        }
        ensure!(started.elapsed() < PATIENCE, "{name} is not established: {}", crd["status"]);
        tokio::time::sleep(GLANCE).await;
    }
    let resource = json!({ "apiGroup": crd["spec"]["group"], "kind": crd["spec"]["names"]["kind"] });
    let object = json!({
        "apiVersion": format!("{}/{}", api::GROUP, api::VERSION),
        "kind": "PublishedResource",
        "metadata": { "name": name, "labels": { "stage": field.stage.id } },
        "spec": { "resource": resource },
    });
    service.create(&kinds::published_resources(), None, &object).await?;
    Ok(())
}

/// The first PublishedResources that have no schema, with the reason.
async fn unpublished(field: &Field) -> anyhow::Result<String> {
    let labels = ListOptions::labels(field.stage.selector());
    let all = field.stage.service.list(&kinds::published_resources(), None, &labels).await?;
    let missing = all.iter().filter(|pr| pr["status"]["resourceSchemaName"].is_null()).take(3);
    let missing = missing.map(|pr| format!("{}: {}", pr["metadata"]["name"], pr["status"]));
    Ok(missing.collect::<Vec<_>>().join("; "))
}

/// All figures, for people.
pub fn table(all: &[Figures]) -> String {
    let head = [
        "agent",
        "CRDs",
        "JSON, MiB",
        "published, s",
        "at rest, MiB",
        "highest, MiB",
        "restarted: at rest, MiB",
        "restarted: highest, MiB",
        "processor time, s",
        "restarted: processor time, s",
    ];
    let lines: Vec<Vec<String>> = all
        .iter()
        .map(|one| {
            vec![
                one.name.clone(),
                one.crds.to_string(),
                format!("{:.1}", mib(one.bytes)),
                format!("{:.1}", one.seconds),
                format!("{:.1}", mib(one.published.0)),
                format!("{:.1}", mib(one.published.1)),
                format!("{:.1}", mib(one.restarted.0)),
                format!("{:.1}", mib(one.restarted.1)),
                format!("{:.1}", one.processor_ms.0 / 1e3),
                format!("{:.1}", one.processor_ms.1 / 1e3),
            ]
        })
        .collect();
    aligned(&head.map(str::to_owned), &lines)
}
