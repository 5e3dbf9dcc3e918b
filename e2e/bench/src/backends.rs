//! Backends' costs, measured: `cargo xtask bench-backends`.
//!
//! ```text
//!  ground   a workspace of kcp, a cluster like any other ◀── Door ── backend ◀── HTTP ── crowd   logins and binds, all at once
//!     ▲
//!     └── census   which requests and exports are ready
//! ```

mod census;
mod crowd;
mod ground;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Parser;
use serde::Serialize;
use serde_json::json;

use super::door::{self, Counts, sum};
use super::field::Servers;
use super::page;
use super::report::{Latency, aligned, count, mib};
use ground::Ground;

/// How long anything may take that a slow backend takes minutes for.
const PATIENCE: Duration = Duration::from_mins(30);

/// Run backends one after the other over the same work on servers of the same kind, and print what they cost.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench-backends", bin_name = "cargo xtask bench-backends")]
pub struct Args {
    /// A backend: its name and its program. May be repeated.
    #[arg(long = "backend", value_name = "NAME=PROGRAM", required = true, value_parser = super::agent)]
    backends: Vec<(String, PathBuf)>,
    /// Which servers. May be repeated.
    #[arg(long = "world", value_enum, default_value = "embedded")]
    worlds: Vec<Servers>,
    /// How many consumers ask for a contract.
    #[arg(long, default_value_t = 200)]
    contracts: usize,
    /// How many exports each of them asks for.
    #[arg(long, default_value_t = 3)]
    exports: usize,
    /// How many people log in and bind at once.
    #[arg(long, default_value_t = 100)]
    logins: usize,
    /// For how many seconds an idle backend is watched.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    idle: u64,
    /// For how many seconds nothing may be asked before a backend counts as being at rest.
    #[arg(long, value_name = "SECONDS", default_value_t = 3)]
    quiet: u64,
    /// Write all figures to a file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Replace the figures in this page of the documentation.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

/// What one backend has cost.
#[derive(Debug, Clone, Serialize)]
struct Figures {
    name: String,
    /// Until every contract has been answered.
    contracts_seconds: f64,
    /// Until every export is in sync, from the same moment.
    exports_seconds: f64,
    exports: usize,
    requests: Vec<(door::Asked, u64)>,
    processor_ms: f64,
    memory: u64,
    /// A login until there is a token.
    login: Latency,
    /// An order until there is a kubeconfig.
    bind: Latency,
    crowd_seconds: f64,
    crowd_peak: u64,
    idle_seconds: u64,
    /// Without watches and the Lease.
    idle_requests: u64,
    idle_processor_ms: f64,
}

/// Measures and prints.
pub async fn run(args: Args) -> anyhow::Result<()> {
    ensure!(args.contracts > 0 && args.exports > 0 && args.logins > 0, "nothing is measured without any work");
    let mut all = Vec::new();
    for servers in &args.worlds {
        let (load, mut figures) = (page::load(), Vec::new());
        for (name, program) in &args.backends {
            ensure!(program.exists(), "{} does not exist", program.display());
            figures.push(measure(&args, *servers, name, program).await.with_context(|| format!("backend {name}"))?);
        }
        let name = if *servers == Servers::Embedded { "embedded backends" } else { "real backends" };
        let (machine, table) = (page::machine(&load), table(&figures));
        println!("{name}: {machine}\n\n{table}");
        if let Some(page) = &args.page {
            let work = format!(
                "{} contracts with {} exports each, {} logins at once",
                args.contracts, args.exports, args.logins
            );
            page::replace(page, name, &format!("{}; {work}.\n{machine}.\n\n{table}", super::where_to(*servers)))?;
        }
        all.push(json!({ "servers": name, "machine": machine, "reports": figures }));
    }
    if let Some(file) = &args.json {
        fs::write(file, serde_json::to_string_pretty(&all)?)
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

async fn measure(args: &Args, servers: Servers, name: &str, program: &Path) -> anyhow::Result<Figures> {
    super::say(name, "preparing");
    let ground = Ground::prepare(servers, args.exports).await?;
    let (mut backend, url) = ground.start(program).await?;
    let doors = [ground.door()];
    let rest = || door::quiet(&doors, Duration::from_secs(args.quiet), PATIENCE);
    rest().await?;
    ground.requests();

    super::say(name, "contracts and exports");
    let before = backend.processor_time()?;
    let started = Instant::now();
    let contracts = census::contracts(&ground, args.contracts, PATIENCE).await?;
    let contracts_seconds = started.elapsed().as_secs_f64();
    census::exports(&ground, &contracts, args.exports, PATIENCE).await?;
    let exports_seconds = started.elapsed().as_secs_f64();
    rest().await?;
    backend.check()?;
    let requests: Counts = ground.requests();
    let processor_ms = backend.processor_time()?.saturating_sub(before).as_secs_f64() * 1e3;
    let (memory, _) = backend.memory()?;

    super::say(name, "logins");
    let started = Instant::now();
    let (mut logins, mut binds) = crowd::all_at_once(&url, args.logins, PATIENCE).await?;
    let crowd_seconds = started.elapsed().as_secs_f64();
    let (_, crowd_peak) = backend.memory()?;

    super::say(name, "at rest");
    rest().await?;
    ground.requests();
    let before = backend.processor_time()?;
    let idle_seconds = args.idle.max(1);
    tokio::time::sleep(Duration::from_secs(idle_seconds)).await;
    let idle_processor_ms = backend.processor_time()?.saturating_sub(before).as_secs_f64() * 1e3;
    let idle_requests = sum(&ground.requests(), |asked| !asked.is_routine());
    backend.stop().await?;
    Ok(Figures {
        name: name.to_owned(),
        contracts_seconds,
        exports_seconds,
        exports: args.contracts * args.exports,
        requests: requests.into_iter().collect(),
        processor_ms,
        memory,
        login: Latency::of(&mut logins),
        bind: Latency::of(&mut binds),
        crowd_seconds,
        crowd_peak,
        idle_seconds,
        idle_requests,
        idle_processor_ms,
    })
}

type Row = (&'static str, fn(&Figures) -> String);

const ROWS: [Row; 13] = [
    ("all contracts answered, s", |it| format!("{:.2}", it.contracts_seconds)),
    ("all exports ready, s", |it| format!("{:.2}", it.exports_seconds)),
    ("requests per export", |it| format!("{:.1}", counted(it, |asked| !asked.is_routine()) / count(it.exports))),
    ("of these writes", |it| {
        format!("{:.1}", counted(it, |asked| asked.is_write() && !asked.is_routine()) / count(it.exports))
    }),
    ("processor time per export, ms", |it| format!("{:.2}", it.processor_ms / count(it.exports))),
    ("memory then, MiB", |it| format!("{:.0}", mib(it.memory))),
    ("login, p50 / p99, ms", |it| format!("{:.0} / {:.0}", it.login.p50, it.login.p99)),
    ("bind, p50 / p99, ms", |it| format!("{:.0} / {:.0}", it.bind.p50, it.bind.p99)),
    ("all logins and binds, s", |it| format!("{:.2}", it.crowd_seconds)),
    ("peak memory then, MiB", |it| format!("{:.0}", mib(it.crowd_peak))),
    ("watched at rest, s", |it| it.idle_seconds.to_string()),
    ("requests at rest, without watches and the Lease", |it| it.idle_requests.to_string()),
    ("processor time at rest, ms", |it| format!("{:.0}", it.idle_processor_ms)),
];

fn counted(figures: &Figures, fits: impl Fn(&door::Asked) -> bool) -> f64 {
    let all: u64 = figures.requests.iter().filter(|(asked, _)| fits(asked)).map(|(_, times)| times).sum();
    count(usize::try_from(all).unwrap_or(usize::MAX))
}

fn table(all: &[Figures]) -> String {
    let head: Vec<String> = std::iter::once(String::new()).chain(all.iter().map(|it| it.name.clone())).collect();
    let line = |(what, show): &Row| std::iter::once((*what).to_owned()).chain(all.iter().map(show)).collect();
    aligned(&head, &ROWS.iter().map(line).collect::<Vec<_>>())
}
