//! Konnectors' costs, measured: `cargo xtask bench-konnectors`.
//!
//! ```text
//!  consumer: the service cluster ◀── Door ── konnector ── Door ──▶ provider: a workspace of kcp, a cluster like any other
//!                     ▲                                                      ▲
//!                     └──────────────── Sight: what becomes visible ─────────┘
//! ```

mod api;
mod ground;
mod sight;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use carrick_e2e_stage::contract::Contract;
use clap::Parser;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::json;

use super::door::{self, sum};
use super::field::Servers;
use super::page;
use super::process::{Process, own_memory};
use super::report::{self, Burst, CatchUp, Idle, Latency, Report, Requests, Restart, Rested};
use api::Api;
use ground::Ground;
use sight::Sight;

/// How long anything may take that slow konnectors take minutes for.
const PATIENCE: Duration = Duration::from_mins(30);
/// As many as a konnector may have in flight.
const IN_FLIGHT: usize = 32;
/// How many objects are placed one after the other.
const IN_A_ROW: usize = 30;

/// Run konnectors one after the other over the same work on servers of the same kind, and print what they cost.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench-konnectors", bin_name = "cargo xtask bench-konnectors")]
pub struct Args {
    /// A konnector: its name and its program. May be repeated; others are compared with the first one.
    #[arg(long = "konnector", value_name = "NAME=PROGRAM", required = true, value_parser = super::agent)]
    konnectors: Vec<(String, PathBuf)>,
    /// Which servers. May be repeated.
    #[arg(long = "world", value_enum, default_value = "embedded")]
    worlds: Vec<Servers>,
    /// Which contract.
    #[arg(long, value_enum, default_value = "0.8")]
    api: Api,
    /// How many objects are there before a konnector starts.
    #[arg(long, default_value_t = 500)]
    objects: usize,
    /// On how many objects it is started anew.
    #[arg(long, default_value_t = 1_000)]
    restart: usize,
    /// Objects per second while latency is measured.
    #[arg(long, default_value_t = 1.0)]
    rate: f64,
    /// For how many seconds latency is measured.
    #[arg(long = "for", value_name = "SECONDS", default_value_t = 30)]
    duration: u64,
    /// How many objects are created at once.
    #[arg(long, default_value_t = 50)]
    burst: usize,
    /// For how many seconds an idle konnector is watched.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    idle: u64,
    /// For how many seconds nothing may be asked before a konnector counts as being at rest.
    #[arg(long, value_name = "SECONDS", default_value_t = 3)]
    quiet: u64,
    /// Write all figures to a file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Replace the figures in this page of the documentation.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

/// Measures and prints.
pub async fn run(args: Args) -> anyhow::Result<()> {
    ensure!(args.rate > 0.0, "nothing is measured at a rate of 0");
    let mut all = Vec::new();
    for servers in &args.worlds {
        let load = page::load();
        let mut reports = vec![floor(&args, *servers).await.context("the floor")?];
        for (name, program) in &args.konnectors {
            ensure!(program.exists(), "{} does not exist", program.display());
            reports.push(measure(&args, *servers, name, program).await.with_context(|| format!("konnector {name}"))?);
        }
        let name = if *servers == Servers::Embedded { "embedded konnectors" } else { "real konnectors" };
        let name = &format!("{name}{}", args.api.suffix());
        let (machine, table) = (page::machine(&load), table(args.api, &reports));
        println!("{name}: {machine}\n\n{table}");
        if let Some(page) = &args.page {
            let what = format!(
                "{}; {} objects, restart on {}, {} objects/s for {} s.\n{machine}.\n\n{table}",
                super::where_to(*servers),
                args.objects,
                args.restart.max(args.objects),
                args.rate,
                args.duration
            );
            page::replace(page, name, &what)?;
        }
        all.push(json!({ "servers": name, "machine": machine, "reports": reports }));
    }
    if let Some(file) = &args.json {
        fs::write(file, serde_json::to_string_pretty(&all)?)
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

/// The table of agents, in the words of kube-bind.
fn table(api: Api, reports: &[Report]) -> String {
    report::table_of(reports, &[("service cluster", "consumer"), ("kcp", "provider"), ("three writes", api.writes())])
}

async fn measure(args: &Args, servers: Servers, name: &str, program: &Path) -> anyhow::Result<Report> {
    super::say(name, "preparing");
    let ground = Ground::prepare(servers, args.api).await?;
    let contract = ground.contract()?;
    ground.bind(&contract, program).await?;
    let sight = Sight::open(&contract, args.api);
    let trial = Trial { args, ground: &ground, contract: &contract, sight: &sight, program };
    super::say(name, "catching up");
    let (konnector, catch_up) = trial.catch_up().await?;
    super::say(name, &format!("{:.1} objects/s", catch_up.rate()));
    let (konnector, restart) = trial.restart(konnector).await?;
    super::say(name, &format!("restarted in {:.2} s, {} writes", restart.seconds, restart.writes));
    let rested = Some(trial.rested().await?);
    let idle = Some(trial.idle(&konnector).await?);
    let burst = Some(trial.burst(&konnector).await?);
    konnector.stop().await?;
    let (name, restart) = (name.to_owned(), Some(restart));
    Ok(Report { name, catch_up, restart, rested, crowded: None, burst, idle, in_a_row: None })
}

struct Trial<'a> {
    args: &'a Args,
    ground: &'a Ground,
    contract: &'a Contract<'a>,
    sight: &'a Sight,
    program: &'a Path,
}

impl Trial<'_> {
    async fn catch_up(&self) -> anyhow::Result<(Process, CatchUp)> {
        let objects = self.args.objects;
        order(self.contract, 0..objects).await?;
        self.ground.requests();
        let started = Instant::now();
        let konnector = self.ground.start(self.program)?;
        self.sight.placed(1, PATIENCE).await?;
        let first = started.elapsed();
        self.sight.placed(objects, PATIENCE).await?;
        let all = started.elapsed();
        self.rest().await?;
        let (memory, peak) = konnector.memory()?;
        let counted = CatchUp {
            objects,
            workspaces: 1,
            seconds: all.as_secs_f64(),
            first_seconds: first.as_secs_f64(),
            processor_ms: Some(konnector.processor_time()?.as_secs_f64() * 1e3),
            memory: Some(memory),
            peak: Some(peak),
            servers_memory: own_memory(),
            requests: self.ground.requests(),
        };
        Ok((konnector, counted))
    }

    async fn restart(&self, konnector: Process) -> anyhow::Result<(Process, Restart)> {
        let objects = self.args.restart.max(self.args.objects);
        order(self.contract, self.args.objects..objects).await?;
        self.sight.placed(objects, PATIENCE).await?;
        self.rest().await?;
        konnector.stop().await?;
        self.ground.requests();
        let started = Instant::now();
        let konnector = self.ground.start(self.program)?;
        let last = self.rest().await?;
        let (memory, peak) = konnector.memory()?;
        let requests = self.ground.requests();
        let is_write = |asked: &door::Asked| asked.is_write() && !asked.is_routine();
        let writes = sum(&requests.kcp, is_write) + sum(&requests.service, is_write);
        let processor_ms = konnector.processor_time()?.as_secs_f64() * 1e3;
        let seconds = last.duration_since(started).as_secs_f64();
        Ok((konnector, Restart { seconds, writes, processor_ms, memory, peak, requests }))
    }

    async fn rested(&self) -> anyhow::Result<Rested> {
        let mut ticks = tokio::time::interval(Duration::from_secs_f64(1.0 / self.args.rate));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut copies, mut statuses) = (Vec::new(), Vec::new());
        let (started, kind) = (Instant::now(), self.contract.sheriffs());
        while started.elapsed() < Duration::from_secs(self.args.duration) {
            ticks.tick().await;
            let name = format!("steady-{}", copies.len());
            self.contract.order(&name, "steady").await?;
            let sent = Instant::now();
            let copy = self.args.api.copy_name(&name);
            copies.push(self.sight.copied(&copy, PATIENCE).await?.saturating_duration_since(sent));
            let status = json!({ "status": { "result": name } });
            let sent = Instant::now();
            self.contract.provider.merge_patch_status(&kind, None, &copy, &status).await?;
            statuses.push(self.sight.told(&name, PATIENCE).await?.saturating_duration_since(sent));
        }
        Ok(Rested { copy: Latency::of(&mut copies), status: Latency::of(&mut statuses) })
    }

    async fn idle(&self, konnector: &Process) -> anyhow::Result<Idle> {
        self.rest().await?;
        self.ground.requests();
        let before = konnector.processor_time()?;
        let seconds = self.args.idle.max(1);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let used = konnector.processor_time()?.saturating_sub(before);
        let (memory, peak) = konnector.memory()?;
        let asked = self.ground.requests();
        let requests = sum(&asked.kcp, |_| true) + sum(&asked.service, |_| true);
        Ok(Idle { seconds, requests, processor_ms: used.as_secs_f64() * 1e3, memory, peak })
    }

    /// Many orders at once.
    async fn burst(&self, konnector: &Process) -> anyhow::Result<Burst> {
        self.rest().await?;
        let before = konnector.processor_time()?;
        let orders = stream::iter(0..self.args.burst).map(|number| async move {
            let name = format!("burst-{number}");
            self.contract.order(&name, "burst").await?;
            anyhow::Ok((name, Instant::now()))
        });
        let sent: Vec<_> = orders.buffer_unordered(IN_FLIGHT).try_collect().await?;
        let mut copies = Vec::new();
        for (name, at) in sent {
            let copied = self.sight.copied(&self.args.api.copy_name(&name), PATIENCE).await?;
            copies.push(copied.saturating_duration_since(at));
        }
        self.rest().await?;
        let used = konnector.processor_time()?.saturating_sub(before);
        let (memory, _) = konnector.memory()?;
        Ok(Burst { copy: Latency::of(&mut copies), processor_ms: used.as_secs_f64() * 1e3, memory })
    }

    async fn rest(&self) -> anyhow::Result<Instant> {
        door::quiet(&self.ground.doors(), Duration::from_secs(self.args.quiet), PATIENCE).await
    }
}

/// Creates objects on the consumer.
async fn order(contract: &Contract<'_>, numbers: std::ops::Range<usize>) -> anyhow::Result<()> {
    let orders = stream::iter(numbers).map(|number| async move {
        contract.order(&format!("order-{number}"), &format!("intent {number}")).await.map(drop)
    });
    orders.buffer_unordered(IN_FLIGHT).try_collect().await
}

/// What the servers allow: the writes of an object (finalizer, copy, and under 0.8 its trace), sent directly.
async fn floor(args: &Args, servers: Servers) -> anyhow::Result<Report> {
    super::say("floor", "preparing");
    let ground = Ground::prepare(servers, args.api).await?;
    let contract = ground.contract()?;
    // Some konnector has to bring the API.
    ground.bind(&contract, &args.konnectors[0].1).await?;
    order(&contract, 0..args.objects + IN_A_ROW).await?;
    let hands = ground.hands(&contract)?;
    ground.requests();
    let started = Instant::now();
    let placing = stream::iter(0..args.objects).map(|number| hands.place(number)).buffer_unordered(IN_FLIGHT);
    let mut placing = std::pin::pin!(placing);
    placing.try_next().await?.context("nothing to place")?;
    let first_seconds = started.elapsed().as_secs_f64();
    while placing.try_next().await?.is_some() {}
    let seconds = started.elapsed().as_secs_f64();
    let requests = ground.requests();
    let mut times = Vec::new();
    for number in args.objects..args.objects + IN_A_ROW {
        let started = Instant::now();
        hands.place(number).await?;
        times.push(started.elapsed());
    }
    let (objects, servers_memory) = (args.objects, own_memory());
    let (processor_ms, memory, peak) = (None, None, None);
    let catch_up = CatchUp {
        objects,
        workspaces: 1,
        seconds,
        first_seconds,
        processor_ms,
        memory,
        peak,
        servers_memory,
        requests,
    };
    super::say("floor", &format!("{:.1} objects/s", catch_up.rate()));
    let (name, in_a_row) = ("floor".to_owned(), Some(Latency::of(&mut times)));
    Ok(Report { name, catch_up, restart: None, rested: None, crowded: None, burst: None, idle: None, in_a_row })
}
