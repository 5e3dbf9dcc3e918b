//! `carrick-bench`: what agents and servers cost. Run it with `cargo xtask bench`, `bench-konnectors`, `bench-backends`, `bench-corpus`, `bench-imports`,
//! `bench-servers` and `bench-exports`. Agents' costs are measured here; the others have files of their own.
//!
//! ```text
//!  for each agent: fresh servers ─▶ Field   workspaces, bindings, doors, sight
//!                                     │
//!       agent process ── Door ────────┤ every request is counted by verb and resource
//!                                     ▼
//!                    phases: catch up, restart, steady rate, idle, one consumer among a crowd
//!                                     │
//!                    floor: the same three writes, sent directly
//!                                     ▼
//!                    report ─▶ table, JSON, plot, page of the documentation
//! ```

mod backends;
mod corpus;
mod door;
mod field;
mod floor;
mod hostile;
mod imports;
mod konnectors;
mod page;
mod phases;
mod plot;
mod process;
mod published;
mod report;
mod servers;
mod sight;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Parser;
use serde_json::json;

use field::{Field, Servers};
use phases::Trial;
use published::Crds;
use report::Report;

/// Measure.
#[derive(Debug, Parser)]
enum Cli {
    Agents(Args),
    Konnectors(konnectors::Args),
    Backends(backends::Args),
    Corpus(corpus::Args),
    Imports(imports::Args),
    Servers(servers::Args),
    Exports(servers::exports::Args),
    #[command(hide = true)]
    Serve(servers::Serve),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Cli::parse() {
        Cli::Agents(args) => run(args).await,
        Cli::Konnectors(args) => konnectors::run(args).await,
        Cli::Backends(args) => backends::run(args).await,
        Cli::Corpus(args) => corpus::run(args).await,
        Cli::Imports(args) => imports::run(args).await,
        Cli::Servers(args) => servers::run(args).await,
        Cli::Exports(args) => servers::exports::run(args).await,
        Cli::Serve(args) => servers::serve(args).await,
    }
}

/// Run agents one after the other over the same work on servers of the same kind, and print what they cost.
///
/// Every agent gets fresh servers, so that none finds what another has left behind.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
struct Args {
    /// An agent: its name and its program. May be repeated; others are compared with the first one.
    #[arg(long = "agent", value_name = "NAME=PROGRAM", required = true, value_parser = agent)]
    agents: Vec<(String, PathBuf)>,
    /// Which servers. May be repeated.
    #[arg(long = "world", value_enum, default_value = "embedded")]
    worlds: Vec<Servers>,
    /// How many objects are there before an agent starts.
    #[arg(long, default_value_t = 400)]
    objects: usize,
    /// How many bytes the spec of each of them takes beyond a few fields; half of it is what all have in common.
    #[arg(long, default_value_t = 0)]
    bytes: usize,
    /// In how many workspaces.
    #[arg(long, default_value_t = 40)]
    workspaces: usize,
    /// Orders per second while latency is measured.
    #[arg(long, default_value_t = 1.0)]
    rate: f64,
    /// For how many seconds latency is measured.
    #[arg(long = "for", value_name = "SECONDS", default_value_t = 30)]
    duration: u64,
    /// How many objects of other workspaces wait while one consumer orders; 0 leaves this out.
    #[arg(long, default_value_t = 500)]
    backlog: usize,
    /// For how many seconds an idle agent is watched; 0 leaves this out.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    idle: u64,
    /// For how many seconds nothing may be asked before an agent counts as being at rest.
    #[arg(long, value_name = "SECONDS", default_value_t = 3)]
    quiet: u64,
    /// Leave out the floor.
    #[arg(long)]
    no_floor: bool,
    /// Measure only catch-up and restart, at each of these sizes.
    #[arg(long, value_name = "OBJECTSxWORKSPACES,…", value_delimiter = ',', value_parser = size)]
    scale: Vec<(usize, usize)>,
    /// Measure only what published CRDs cost: so many of so many KiB of JSON each, or those in a folder.
    #[arg(long, value_name = "NUMBERxKIB|FOLDER,…", value_delimiter = ',', value_parser = Crds::parse)]
    crds: Vec<Crds>,
    /// Measure only what one workspace with so many orders of so many KiB does to the memory and to another workspace.
    #[arg(long, value_name = "ORDERSxKIB", value_parser = hostile::Attack::parse)]
    hostile: Option<hostile::Attack>,
    /// Write all figures to a file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// With --scale: write a plot to a file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Replace the figures in this page of the documentation.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

fn agent(text: &str) -> Result<(String, PathBuf), String> {
    let (name, program) = text.split_once('=').ok_or("say NAME=PROGRAM")?;
    Ok((name.to_owned(), program.into()))
}

fn size(text: &str) -> Result<(usize, usize), String> {
    let (objects, workspaces) = text.split_once('x').ok_or("say OBJECTSxWORKSPACES, such as 1000x100")?;
    let number = |text: &str| text.parse::<usize>().map_err(|error| format!("{text:?}: {error}"));
    Ok((number(objects)?, number(workspaces)?))
}

/// Measures and prints.
async fn run(args: Args) -> anyhow::Result<()> {
    for (_, program) in &args.agents {
        ensure!(program.exists(), "{} does not exist", program.display());
    }
    ensure!(args.rate > 0.0 && args.workspaces > 0, "nothing is measured at a rate of 0 or without workspaces");
    let mut all = Vec::new();
    for servers in &args.worlds {
        let load = page::load();
        let name = if *servers == Servers::Embedded { "embedded" } else { "real" };
        if let Some(attack) = args.hostile {
            let mut figures = Vec::new();
            for (agent, program) in &args.agents {
                say(agent, &format!("{attack:?}"));
                figures
                    .push(hostile::measure(agent, program, *servers, attack, Duration::from_secs(args.quiet)).await?);
            }
            let (name, machine, table) = (format!("{name} hostile"), page::machine(&load), hostile::table(&figures));
            println!("{name}: {machine}\n\n{table}");
            if let Some(page) = &args.page {
                page::replace(page, &name, &format!("{}.\n{machine}.\n\n{table}", where_to(*servers)))?;
            }
            all.push(json!({ "servers": name, "machine": machine, "reports": figures }));
            continue;
        }
        if !args.crds.is_empty() {
            let figures = publish(&args, *servers).await?;
            let (name, machine, table) =
                (format!("{name} published"), page::machine(&load), published::table(&figures));
            println!("{name}: {machine}\n\n{table}");
            if let Some(page) = &args.page {
                page::replace(page, &name, &format!("{}.\n{machine}.\n\n{table}", where_to(*servers)))?;
            }
            all.push(json!({ "servers": name, "machine": machine, "reports": figures }));
            continue;
        }
        let (reports, table, name) = if args.scale.is_empty() {
            let reports = compare(&args, *servers).await?;
            let table = report::table(&reports);
            (reports, table, name.to_owned())
        } else {
            let reports = grow(&args, *servers).await?;
            let table = report::growth(&reports);
            (reports, table, format!("{name} scale"))
        };
        let machine = page::machine(&load);
        println!("{name}: {machine}\n\n{table}");
        if let Some(page) = &args.page {
            page::replace(page, &name, &format!("{}\n{machine}.\n\n{table}", command(&args, *servers)))?;
        }
        if let Some(svg) = args.svg.as_ref().filter(|_| !args.scale.is_empty()) {
            fs::write(svg, plot::growth(&reports)).with_context(|| format!("cannot write {}", svg.display()))?;
        }
        all.push(json!({ "servers": name, "machine": machine, "reports": reports }));
    }
    if let Some(file) = &args.json {
        let text = serde_json::to_string_pretty(&all)?;
        fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

/// What was measured, in words.
fn command(args: &Args, servers: Servers) -> String {
    let where_to = where_to(servers);
    if !args.scale.is_empty() {
        return format!("{where_to}.");
    }
    format!(
        "{where_to}; {} objects in {} workspaces, {} orders/s for {} s, {} objects of others waiting.",
        args.objects, args.workspaces, args.rate, args.duration, args.backlog
    )
}

fn where_to(servers: Servers) -> &'static str {
    if servers == Servers::Embedded { "Embedded planes" } else { "Real kcp, kube-apiserver and etcd" }
}

/// All agents with all sets of CRDs.
async fn publish(args: &Args, servers: Servers) -> anyhow::Result<Vec<published::Figures>> {
    let mut figures = Vec::new();
    for (name, program) in &args.agents {
        for crds in &args.crds {
            say(name, &format!("publishing {crds:?}"));
            figures.push(published::measure(name, program, servers, crds, Duration::from_secs(args.quiet)).await?);
        }
    }
    Ok(figures)
}

/// All agents over all phases.
async fn compare(args: &Args, servers: Servers) -> anyhow::Result<Vec<Report>> {
    let mut reports = Vec::new();
    if !args.no_floor {
        say("floor", "preparing");
        let field = Field::prepare(servers, args.workspaces).await?;
        // Some agent has to publish the API.
        field.publish(&args.agents[0].1).await?;
        say("floor", "placing");
        let (catch_up, in_a_row) = floor::floor(&field, args.objects).await?;
        say("floor", &format!("{:.1} objects/s", catch_up.rate()));
        reports.push(Report {
            name: "floor".to_owned(),
            catch_up,
            restart: None,
            rested: None,
            crowded: None,
            burst: None,
            idle: None,
            in_a_row: Some(in_a_row),
        });
    }
    for (name, program) in &args.agents {
        reports.push(all_phases(args, servers, name, program).await.with_context(|| format!("agent {name}"))?);
    }
    Ok(reports)
}

async fn all_phases(args: &Args, servers: Servers, name: &str, program: &Path) -> anyhow::Result<Report> {
    say(name, "preparing");
    let field = Field::prepare(servers, args.workspaces).await?;
    let sight = field.publish(program).await?;
    let trial =
        Trial { program, field: &field, sight: &sight, quiet: Duration::from_secs(args.quiet), bytes: args.bytes };
    say(name, "catching up");
    let (agent, catch_up) = trial.catch_up(args.objects).await?;
    say(name, &format!("{:.1} objects/s", catch_up.rate()));
    say(name, "restarting");
    let (agent, restart) = trial.restart(agent).await?;
    say(name, &format!("{:.2} s, {} writes", restart.seconds, restart.writes));
    say(name, "working at a steady rate");
    let rested = trial.rested(args.rate, Duration::from_secs(args.duration)).await?;
    let idle = match args.idle {
        0 => None,
        seconds => {
            say(name, "doing nothing");
            Some(trial.idle(&agent, Duration::from_secs(seconds)).await?)
        }
    };
    let (agent, crowded) = match args.backlog {
        0 => (agent, None),
        backlog => {
            say(name, "working in a crowd");
            let (agent, crowded) = trial.crowded(agent, backlog).await?;
            (agent, Some(crowded))
        }
    };
    agent.stop().await?;
    Ok(Report {
        name: name.to_owned(),
        catch_up,
        restart: Some(restart),
        rested: Some(rested),
        crowded,
        burst: None,
        idle,
        in_a_row: None,
    })
}

/// All agents at all sizes.
async fn grow(args: &Args, servers: Servers) -> anyhow::Result<Vec<Report>> {
    let mut reports = Vec::new();
    for (name, program) in &args.agents {
        for (objects, workspaces) in &args.scale {
            say(name, &format!("preparing {objects} objects in {workspaces} workspaces"));
            let field = Field::prepare(servers, *workspaces).await?;
            let sight = field.publish(program).await?;
            let trial = Trial {
                program,
                field: &field,
                sight: &sight,
                quiet: Duration::from_secs(args.quiet),
                bytes: args.bytes,
            };
            say(name, "catching up");
            let (agent, catch_up) = trial.catch_up(*objects).await?;
            say(name, &format!("{:.1} objects/s", catch_up.rate()));
            let (agent, restart) = trial.restart(agent).await?;
            say(name, &format!("restarted in {:.2} s, {} writes", restart.seconds, restart.writes));
            agent.stop().await?;
            let restart = Some(restart);
            let name = name.clone();
            reports.push(Report {
                name,
                catch_up,
                restart,
                rested: None,
                crowded: None,
                burst: None,
                idle: None,
                in_a_row: None,
            });
        }
    }
    Ok(reports)
}

/// Progress, apart from the figures.
fn say(agent: &str, what: &str) {
    eprintln!("{agent}: {what}");
}
