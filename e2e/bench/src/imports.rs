//! Import, drift and restarts, measured: `cargo xtask bench-imports`.
//!
//! ```text
//!  objects of two public operators' kinds ──▶ import into all tenants' workspaces: is each generation what it was?
//!        orders change ──▶ every change arrives
//!        restarts with spec.drift Ignore and Report, in turn ──▶ processor time
//!        the agent is stopped, somebody changes ten fields of every copy, it starts ──▶ when all of it is reported
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use carrick_client::{ListOptions, Resource};
use carrick_e2e_stage::corpus::kind::CustomKind;
use carrick_e2e_stage::corpus::{files, folder, lacking, life};
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{NAMESPACE, Workspace, condition};
use carrick_syncagent::agent::explain::{Question, explain};
use carrick_syncagent::agent::import::{Action, ImportOutcome, Request, Selected, import};
use clap::Parser;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use super::field::{Field, Servers};
use super::page;
use super::phases::Trial;
use super::process::Process;
use super::report::aligned;

/// Namespace of the objects that exist.
const OWN: &str = "own";
/// How many of the benchmark's own requests are in flight.
const IN_FLIGHT: usize = 16;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_mins(30);
/// How often it is checked whether something has become so.
const CHECK: Duration = Duration::from_millis(20);
/// The label that says whose an object is: the name of the tenant's logical cluster.
const TENANT: &str = "tenant";
/// The kinds.
const TRIED: [Tried; 2] = [
    Tried {
        crd: "clusters.postgresql.cnpg.io",
        spec: || json!({ "instances": 1, "storage": { "size": "1Gi" } }),
        fields: "/spec/postgresql/parameters",
        edited: "/spec/instances",
    },
    Tried {
        crd: "certificates.cert-manager.io",
        spec: || {
            json!({
                "secretName": "tls", "dnsNames": ["example.com"], "issuerRef": { "name": "ca" }, "revisionHistoryLimit": 1,
            })
        },
        fields: "/spec/secretTemplate/annotations",
        edited: "/spec/revisionHistoryLimit",
    },
];

/// Measure what import and drift cost: objects of many tenants are imported and changed, and the agent is restarted.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench-imports", bin_name = "cargo xtask bench-imports")]
pub struct Args {
    /// The agent's program.
    #[arg(long, value_name = "PROGRAM")]
    agent: PathBuf,
    /// Which servers. May be repeated.
    #[arg(long = "world", value_enum, default_value = "embedded")]
    worlds: Vec<Servers>,
    /// How many objects exist, half of each kind.
    #[arg(long, default_value_t = 1_000)]
    objects: usize,
    /// Of how many tenants.
    #[arg(long, default_value_t = 20)]
    tenants: usize,
    /// How many fields of each somebody changes.
    #[arg(long, default_value_t = 10)]
    fields: usize,
    /// How often the agent is restarted with each policy.
    #[arg(long, default_value_t = 5)]
    restarts: usize,
    /// For how many seconds nothing may be asked before the agent counts as being at rest.
    #[arg(long, value_name = "SECONDS", default_value_t = 3)]
    quiet: u64,
    /// Replace the figures in this page of the documentation.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

/// A kind that is tried.
struct Tried {
    /// Name of the CRD.
    crd: &'static str,
    /// The spec of an object, without the fields that somebody changes later.
    spec: fn() -> Value,
    /// Where these are: a map of texts.
    fields: &'static str,
    /// A number that consumers change.
    edited: &'static str,
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
            page::replace(page, name, &format!("{}.\n{machine}.\n\n{table}", super::where_to(*servers)))?;
        }
    }
    Ok(())
}

async fn measure(args: &Args, servers: Servers) -> anyhow::Result<Figures> {
    say("preparing servers, workspaces and kinds");
    let field = Field::prepare(servers, args.tenants).await?;
    let sight = field.publish(&args.agent).await?;
    let quiet = Duration::from_secs(args.quiet);
    let trial = Trial { program: &args.agent, field: &field, sight: &sight, quiet, bytes: 0 };
    let mut agent = field.start(&args.agent)?;
    let ground = Ground::prepare(args, &field).await?;
    ground.create().await?;
    let before = ground.generations().await?;

    say("importing");
    let begun = Instant::now();
    let imported = ground.import().await?;
    let import = begun.elapsed();
    let after = ground.generations().await?;
    let unchanged = before.iter().filter(|(name, generation)| after.get(*name) == Some(generation)).count();
    say(&format!("{imported} in {:.1} s, generation of {unchanged} unchanged", import.as_secs_f64()));
    let edits = ground.edit().await?;
    say(&format!("edits of all arrived after {:.1} s", edits.as_secs_f64()));

    let (mut restarts, mut writes) = (BTreeMap::<_, Vec<f64>>::new(), 0);
    for policy in ["Ignore", "Report"] {
        ground.drift(policy).await?;
        // The first one notes what is there, if that is asked for.
        (agent, _) = trial.restart(agent).await?;
        for _ in 0..args.restarts {
            let (next, restart) = trial.restart(agent).await?;
            say(&format!("{policy}: {:.0} ms, {} writes", restart.processor_ms, restart.writes));
            restarts.entry(policy).or_default().push(restart.processor_ms);
            writes += restart.writes;
            agent = next;
        }
    }

    let (agent, reported) = ground.report_anew(agent).await?;
    say(&format!("drift of all was reported {:.2} s after the start", reported.as_secs_f64()));
    let drifted = ground.drifted_fields().await?;
    agent.stop().await?;
    Ok(Figures { imported, import, unchanged, edits, restarts, writes, drifted, reported })
}

/// A kind on the servers.
struct Kind {
    tried: &'static Tried,
    resource: Resource,
}

/// The objects that exist, and their tenants.
struct Ground<'a> {
    args: &'a Args,
    field: &'a Field,
    kinds: Vec<Kind>,
}

impl<'a> Ground<'a> {
    /// Installs and publishes the kinds and waits until every tenant is served.
    async fn prepare(args: &'a Args, field: &'a Field) -> anyhow::Result<Self> {
        let folder = folder().context(lacking().unwrap_or_default())?;
        let corpus = files::read(&folder, &|name| TRIED.iter().any(|tried| tried.crd == name))?;
        let mut kinds = Vec::new();
        for tried in &TRIED {
            let crd = corpus.crds.get(tried.crd).with_context(|| format!("the corpus has no {}", tried.crd))?;
            let kind = CustomKind::of(&crd.value);
            field.stage.install_crd(&kind.crd).await?;
            life::publish(&field.stage, &kind, tried.crd).await?;
            let version = kind.version().context("it has no served version")?;
            let resource = kind.resource(version["name"].as_str().unwrap_or_default());
            for team in &field.teams {
                wait(&format!("{} can list {}", team.path, tried.crd), async || {
                    Ok(team.client.list(&resource, None, &ListOptions::default()).await.is_ok())
                })
                .await?;
            }
            kinds.push(Kind { tried, resource });
        }
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": OWN } });
        field.stage.service.create(&kinds::namespaces(), None, &namespace).await?;
        Ok(Self { args, field, kinds })
    }

    fn kind(&self, number: usize) -> &Kind {
        &self.kinds[number % self.kinds.len()]
    }

    /// The tenant of an object: each has objects of every kind.
    fn team(&self, number: usize) -> &Workspace {
        &self.field.teams[number / self.kinds.len() % self.field.teams.len()]
    }

    fn fields(&self, value: &str) -> Value {
        (0..self.args.fields)
            .map(|field| (format!("field_{field}"), value.into()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }

    async fn create(&self) -> anyhow::Result<()> {
        self.each(async |number| {
            let kind = self.kind(number);
            let mut object = json!({
                "apiVersion": kind.resource.api_version(), "kind": *kind.resource.kind,
                "metadata": { "name": name(number), "labels": { TENANT: self.team(number).cluster } },
                "spec": (kind.tried.spec)(),
            });
            place(&mut object, kind.tried.fields, self.fields("ordered"));
            self.field.stage.service.create(&kind.resource, Some(OWN), &object).await?;
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

    /// All objects, with the kind of each.
    async fn objects(&self) -> anyhow::Result<Vec<(&Kind, Value)>> {
        let mut all = Vec::new();
        for kind in &self.kinds {
            let objects = self.field.stage.service.list(&kind.resource, Some(OWN), &ListOptions::default()).await?;
            all.extend(objects.into_iter().map(|object| (kind, object)));
        }
        Ok(all)
    }

    async fn generations(&self) -> anyhow::Result<BTreeMap<String, i64>> {
        let of =
            |it: &Value| Some((it["metadata"]["name"].as_str()?.to_owned(), it["metadata"]["generation"].as_i64()?));
        Ok(self.objects().await?.iter().filter_map(|(_, object)| of(object)).collect())
    }

    /// Imports everything, each object into the workspace of its tenant.
    async fn import(&self) -> anyhow::Result<usize> {
        let mut all = 0;
        for kind in &self.kinds {
            let request = Request {
                selected: Selected::Labelled(TENANT.to_owned()),
                namespace: NAMESPACE.to_owned(),
                patience: PATIENCE,
                wait: PATIENCE,
                ..Request::new(kind.tried.crd, &format!("{{{{ .Object.metadata.labels.{TENANT} }}}}"))
            };
            let done = import(self.field.config()?, &request, Action::Import, &|_| ()).await?;
            all += done.count(ImportOutcome::Imported);
            ensure!(done.due() == 0, "some were not imported:\n{done}");
        }
        ensure!(all == self.args.objects, "only {all} of {} objects were imported", self.args.objects);
        Ok(all)
    }

    /// Consumers change all orders; returns when every change has arrived.
    async fn edit(&self) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        self.each(async |number| {
            let (kind, mut patch) = (self.kind(number), json!({}));
            place(&mut patch, kind.tried.edited, 2.into());
            self.team(number).client.merge_patch(&kind.resource, Some(NAMESPACE), &name(number), &patch).await?;
            Ok(())
        })
        .await?;
        wait("all changes have arrived", async || {
            let objects = self.objects().await?;
            Ok(objects.iter().all(|(kind, object)| object.pointer(kind.tried.edited) == Some(&json!(2))))
        })
        .await?;
        Ok(begun.elapsed())
    }

    async fn drift(&self, policy: &str) -> anyhow::Result<()> {
        let patch = json!({ "spec": { "drift": { "policy": policy } } });
        for kind in &self.kinds {
            let published = kinds::published_resources();
            self.field.stage.service.merge_patch(&published, None, kind.tried.crd, &patch).await?;
        }
        Ok(())
    }

    /// While the agent is stopped, somebody changes what the orders have set. How long it takes from its start until the conditions count all.
    async fn report_anew(&self, agent: Process) -> anyhow::Result<(Process, Duration)> {
        agent.stop().await?;
        self.each(async |number| {
            let (kind, mut patch) = (self.kind(number), json!({}));
            place(&mut patch, kind.tried.fields, self.fields("changed"));
            self.field.stage.service.merge_patch(&kind.resource, Some(OWN), &name(number), &patch).await?;
            Ok(())
        })
        .await?;
        let begun = Instant::now();
        let agent = self.field.start(&self.args.agent)?;
        wait("all drift is reported", async || {
            let mut copies = 0;
            for kind in &self.kinds {
                let published = kinds::published_resources();
                let found =
                    self.field.stage.service.get(&published, None, kind.tried.crd).await?.context("it is gone")?;
                let said = condition(&found, "DriftFree");
                let message = said["message"].as_str().filter(|_| said["status"] == "False").unwrap_or_default();
                copies += message.split_once(" cop").and_then(|(count, _)| count.parse::<usize>().ok()).unwrap_or(0);
            }
            Ok(copies == self.args.objects)
        })
        .await?;
        Ok((agent, begun.elapsed()))
    }

    /// How many fields `carrick drift` finds.
    async fn drifted_fields(&self) -> anyhow::Result<usize> {
        let report = explain(self.field.config()?, &Question::default()).await?;
        let objects = report.published_resources.iter().flat_map(|published| &published.objects);
        let copies = objects.filter_map(|object| object.plan.as_ref()?.drift.as_ref()).flatten();
        Ok(copies.map(|copy| copy.fields.len()).sum())
    }
}

fn name(number: usize) -> String {
    format!("thing-{number}")
}

/// Sets a value, and makes the objects above it.
fn place(object: &mut Value, pointer: &str, value: Value) {
    let mut at = object;
    for key in pointer.split('/').skip(1) {
        at = &mut at[key];
    }
    *at = value;
}

fn say(what: &str) {
    eprintln!("imports: {what}");
}

async fn wait(what: &str, mut is_so: impl AsyncFnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let begun = Instant::now();
    let mut ticks = tokio::time::interval(CHECK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
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
        (
            format!("CloudNativePG Clusters and cert-manager Certificates of {} tenants imported", args.tenants),
            figures.imported.to_string(),
        ),
        ("– in so many seconds".to_owned(), format!("{:.1}", figures.import.as_secs_f64())),
        ("– with the generation that they had".to_owned(), format!("{} of {}", figures.unchanged, figures.imported)),
        (
            "every order changed once, until all objects have it, s".to_owned(),
            format!("{:.1}", figures.edits.as_secs_f64()),
        ),
        (format!("processor time of a restart, ms, median of {}: `Ignore`", args.restarts), format!("{ignore:.0}")),
        ("– `Report`".to_owned(), format!("{report:.0}")),
        ("– `Report` to `Ignore`".to_owned(), format!("{:.2}", report / ignore)),
        ("writes in all these restarts".to_owned(), figures.writes.to_string()),
        ("fields that others had changed while the agent did not run".to_owned(), figures.drifted.to_string()),
        ("– all reported so many seconds after its start".to_owned(), format!("{:.2}", figures.reported.as_secs_f64())),
    ];
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(what, figure)| vec![what, figure]).collect();
    aligned(&[String::new(), String::new()], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_run_does_not_count() {
        assert!((median(&[1.0, 90.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!(median(&[]).abs() < f64::EPSILON);
    }

    #[test]
    fn a_value_is_placed_where_nothing_was() {
        let mut object = json!({ "spec": { "a": 1 } });
        place(&mut object, "/spec/b/c", 2.into());
        assert_eq!(object, json!({ "spec": { "a": 1, "b": { "c": 2 } } }));
    }
}
