//! Import, drift and restarts, measured: `cargo xtask bench-imports`.
//!
//! ```text
//!  objects of the service cluster ──▶ import into all tenants' workspaces: is each generation what it was?
//!        orders change ──▶ every change arrives
//!        restarts with spec.drift Ignore and Report, in turn ──▶ processor time
//!        the agent rests, somebody changes labels of every copy, it starts ──▶ when all of it is reported
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use carrick_client::ListOptions;
use carrick_e2e_stage::agent::config;
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::condition;
use carrick_syncagent::agent::import::{Action, ImportOutcome, Request, Selected, import};
use clap::Parser;
use data_encoding::BASE64;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use super::field::{Field, Servers};
use super::page;
use super::phases::Trial;

/// Namespace of the objects that exist.
const OWN: &str = "own";
/// How many of the benchmark's own requests are in flight.
const IN_FLIGHT: usize = 16;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_mins(30);
/// How often it is checked whether drift is reported.
const CHECK: Duration = Duration::from_millis(20);
/// The label that says whose an object is.
const TENANT: &str = "tenant";
/// The beginning of labels that orders set and somebody changes.
const FIELD: &str = "drift.example.com/field-";

/// Measure what import and drift cost: objects of many tenants are imported and changed, and the agent starts anew.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench-imports", bin_name = "cargo xtask bench-imports")]
pub struct Args {
    /// The agent's program.
    #[arg(long, value_name = "PROGRAM")]
    agent: PathBuf,
    /// Which servers. May be repeated.
    #[arg(long = "world", value_enum, default_value = "embedded")]
    worlds: Vec<Servers>,
    /// How many objects exist.
    #[arg(long, default_value_t = 1_000)]
    objects: usize,
    /// Of how many tenants.
    #[arg(long, default_value_t = 20)]
    tenants: usize,
    /// How many fields of each somebody changes.
    #[arg(long, default_value_t = 10)]
    fields: usize,
    /// How often the agent starts anew with each policy.
    #[arg(long, default_value_t = 5)]
    restarts: usize,
    /// For how many seconds nothing may be asked before the agent counts as being at rest.
    #[arg(long, value_name = "SECONDS", default_value_t = 3)]
    quiet: u64,
    /// Replace the figures in this page of the documentation.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

/// What was measured.
struct Figures {
    imported: usize,
    import: Duration,
    unchanged: usize,
    edits: Duration,
    /// Processor time of each restart in milliseconds, by policy.
    restarts: BTreeMap<&'static str, Vec<f64>>,
    writes: u64,
    drifted: usize,
    reported: Duration,
}

/// Measures and prints.
pub async fn run(args: Args) -> anyhow::Result<()> {
    ensure!(args.tenants > 0 && args.restarts > 0, "nothing is measured without tenants or restarts");
    ensure!(args.agent.exists(), "{} does not exist", args.agent.display());
    for servers in &args.worlds {
        let load = page::load();
        let figures = measure(&args, *servers).await?;
        let (machine, table) = (page::machine(&load), table(&args, &figures));
        println!("{}: {machine}\n\n{table}", super::where_to(*servers));
        if let Some(page) = &args.page {
            let name = if *servers == Servers::Embedded { "embedded imports" } else { "real imports" };
            page::replace(page, name, &format!("{}. {machine}.\n\n{table}", super::where_to(*servers)))?;
        }
    }
    Ok(())
}

async fn measure(args: &Args, servers: Servers) -> anyhow::Result<Figures> {
    super::say("imports", "preparing");
    let field = Field::prepare(servers, args.tenants).await?;
    let sight = field.publish(&args.agent).await?;
    let quiet = Duration::from_secs(args.quiet);
    let trial = Trial { program: &args.agent, field: &field, sight: &sight, quiet, bytes: 0 };
    let ground = Ground { args, field: &field };
    ground.create().await?;
    let before = ground.generations().await?;
    let mut agent = field.start(&args.agent)?;

    super::say("imports", "importing");
    let begun = Instant::now();
    let imported = ground.import().await?;
    let import = begun.elapsed();
    let after = ground.generations().await?;
    let unchanged = before.iter().filter(|(name, generation)| after.get(*name) == Some(generation)).count();
    super::say("imports", &format!("{imported} in {:.1} s, generation of {unchanged} unchanged", import.as_secs_f64()));
    let edits = ground.edit().await?;
    super::say("imports", &format!("edits of all arrived after {:.1} s", edits.as_secs_f64()));

    let (mut restarts, mut writes) = (BTreeMap::<_, Vec<f64>>::new(), 0);
    for policy in ["Ignore", "Report"] {
        ground.drift(policy).await?;
        // The first one notes what is there, if that is asked for.
        (agent, _) = trial.restart(agent).await?;
        for _ in 0..args.restarts {
            let (next, restart) = trial.restart(agent).await?;
            super::say("imports", &format!("{policy}: {:.0} ms, {} writes", restart.processor_ms, restart.writes));
            restarts.entry(policy).or_default().push(restart.processor_ms);
            writes += restart.writes;
            agent = next;
        }
    }

    agent.stop().await?;
    ground.meddle().await?;
    let begun = Instant::now();
    let agent = field.start(&args.agent)?;
    ground.reported(args.objects).await?;
    let reported = begun.elapsed();
    super::say("imports", &format!("drift of all was reported {:.2} s after the start", reported.as_secs_f64()));
    let drifted = ground.drifted_fields().await?;
    agent.stop().await?;
    Ok(Figures { imported, import, unchanged, edits, restarts, writes, drifted, reported })
}

/// The objects that exist, and their tenants.
struct Ground<'a> {
    args: &'a Args,
    field: &'a Field,
}

impl Ground<'_> {
    fn name(number: usize) -> String {
        format!("db-{number}")
    }

    async fn create(&self) -> anyhow::Result<()> {
        let stage = &self.field.stage;
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": OWN } });
        stage.service.create(&kinds::namespaces(), None, &namespace).await?;
        self.each(async |number| {
            let mut labels = json!({ TENANT: format!("team-{}", number % self.args.tenants) });
            for field in 0..self.args.fields {
                labels[format!("{FIELD}{field}")] = "ordered".into();
            }
            let object = json!({
                "apiVersion": stage.buckets().api_version(), "kind": "Bucket",
                "metadata": { "name": Self::name(number), "labels": labels }, "spec": { "region": "eu", "size": 1 },
            });
            stage.service.create(&stage.buckets(), Some(OWN), &object).await?;
            Ok(())
        })
        .await
    }

    /// Does something for each object, many at once.
    async fn each(&self, work: impl AsyncFn(usize) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let work = &work;
        let all = stream::iter(0..self.args.objects).map(|number| async move { work(number).await });
        all.buffer_unordered(IN_FLIGHT).try_collect::<Vec<()>>().await.map(drop)
    }

    async fn generations(&self) -> anyhow::Result<BTreeMap<String, i64>> {
        let stage = &self.field.stage;
        let objects = stage.service.list(&stage.buckets(), Some(OWN), &ListOptions::default()).await?;
        let of =
            |it: &Value| Some((it["metadata"]["name"].as_str()?.to_owned(), it["metadata"]["generation"].as_i64()?));
        Ok(objects.iter().filter_map(of).collect())
    }

    /// Imports everything, each object into the workspace of its tenant.
    async fn import(&self) -> anyhow::Result<usize> {
        let stage = &self.field.stage;
        let org = stage.provider.path.rsplit_once(':').map_or("root", |(org, _)| org);
        let request = Request {
            selected: Selected::Labelled(TENANT.to_owned()),
            patience: PATIENCE,
            wait: PATIENCE,
            ..Request::new(
                &stage.published_name("Bucket"),
                &format!("{org}:{{{{ .Object.metadata.labels.{TENANT} }}}}"),
            )
        };
        let done = import(config(stage)?, &request, Action::Import, &|_| ()).await?;
        let imported = done.count(ImportOutcome::Imported);
        ensure!(imported == self.args.objects, "only {imported} were imported:\n{done}");
        Ok(imported)
    }

    /// Consumers change all orders; returns when every change has arrived.
    async fn edit(&self) -> anyhow::Result<Duration> {
        let (stage, begun) = (&self.field.stage, Instant::now());
        self.each(async |number| {
            let team = &self.field.teams[number % self.args.tenants];
            stage.reorder(team, &Self::name(number), json!({ "size": 2 })).await?;
            Ok(())
        })
        .await?;
        wait("all changes have arrived", async || {
            let objects = stage.service.list(&stage.buckets(), Some(OWN), &ListOptions::default()).await?;
            Ok(objects.iter().all(|object| object["spec"]["size"] == 2))
        })
        .await?;
        Ok(begun.elapsed())
    }

    async fn drift(&self, policy: &str) -> anyhow::Result<()> {
        let patch = json!({ "spec": { "drift": { "policy": policy } } });
        let name = self.field.stage.published_name("Bucket");
        self.field.stage.service.merge_patch(&kinds::published_resources(), None, &name, &patch).await?;
        Ok(())
    }

    /// Somebody changes what the orders have set.
    async fn meddle(&self) -> anyhow::Result<()> {
        let stage = &self.field.stage;
        let fields = (0..self.args.fields).map(|field| (format!("{FIELD}{field}"), "changed".into()));
        let patch = json!({ "metadata": { "labels": Value::Object(fields.collect()) } });
        self.each(async |number| {
            stage.service.merge_patch(&stage.buckets(), Some(OWN), &Self::name(number), &patch).await?;
            Ok(())
        })
        .await
    }

    /// Waits until the condition counts so many copies.
    async fn reported(&self, copies: usize) -> anyhow::Result<()> {
        let stage = &self.field.stage;
        let (name, words) = (stage.published_name("Bucket"), format!("{copies} cop"));
        wait("all drift is reported", async || {
            let found = stage.service.get(&kinds::published_resources(), None, &name).await?.context("it is gone")?;
            let said = condition(&found, "DriftFree");
            Ok(said["status"] == "False" && said["message"].as_str().is_some_and(|text| text.starts_with(&words)))
        })
        .await
    }

    /// How many fields are noted as reported, in all state Secrets.
    async fn drifted_fields(&self) -> anyhow::Result<usize> {
        let stage = &self.field.stage;
        let secrets = stage.service.list(&kinds::secrets(), Some(&stage.agent_namespace()), &ListOptions::default());
        let mut count = 0;
        for secret in secrets.await? {
            let data = secret["data"].as_object().into_iter().flatten();
            for (_, text) in data.filter(|(key, _)| key.ends_with(".seen")) {
                let bytes = BASE64.decode(text.as_str().unwrap_or_default().as_bytes())?;
                let seen: Value = serde_json::from_slice(&bytes)?;
                count += seen["drift"].as_object().map_or(0, serde_json::Map::len);
            }
        }
        Ok(count)
    }
}

async fn wait(what: &str, mut is_so: impl AsyncFnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let begun = Instant::now();
    let mut ticks = tokio::time::interval(CHECK);
    while !is_so().await? {
        ensure!(begun.elapsed() < PATIENCE, "it took too long until {what}");
        ticks.tick().await;
    }
    Ok(())
}

fn median(all: &[f64]) -> f64 {
    let mut all = all.to_vec();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or_default()
}

fn table(args: &Args, figures: &Figures) -> String {
    let of = |policy: &str| figures.restarts.get(policy).map(|all| median(all)).unwrap_or_default();
    let (ignore, report) = (of("Ignore"), of("Report"));
    let rows = [
        (format!("objects of {} tenants imported", args.tenants), figures.imported.to_string()),
        ("– in so many seconds".to_owned(), format!("{:.1}", figures.import.as_secs_f64())),
        ("– with the generation that they had".to_owned(), format!("{} of {}", figures.unchanged, figures.imported)),
        (
            "every order changed once, until all copies have it, s".to_owned(),
            format!("{:.1}", figures.edits.as_secs_f64()),
        ),
        (format!("processor time of a restart, ms, median of {}: Ignore", args.restarts), format!("{ignore:.0}")),
        ("– Report".to_owned(), format!("{report:.0}")),
        ("– Report to Ignore".to_owned(), format!("{:.2}", report / ignore)),
        ("writes in all these restarts".to_owned(), figures.writes.to_string()),
        ("fields that others had changed while the agent did not run".to_owned(), figures.drifted.to_string()),
        ("– all reported so many seconds after its start".to_owned(), format!("{:.2}", figures.reported.as_secs_f64())),
    ];
    let rows = rows.into_iter().map(|(what, figure)| format!("| {what} | {figure} |\n"));
    format!("| | |\n| --- | ---: |\n{}", rows.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_run_does_not_count() {
        assert!((median(&[1.0, 90.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!(median(&[]).abs() < f64::EPSILON);
    }
}
