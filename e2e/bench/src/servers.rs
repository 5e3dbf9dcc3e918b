//! Servers' costs, measured: `cargo xtask bench-servers`.
//!
//! ```text
//!  Contestant   a plane, or real servers, in processes of their own
//!      │ url, token, process ids
//!      ▼
//!   work        creations, patches, reads, lists, watchers, workspaces, as any client sends them: TLS and HTTP/2
//!      │
//!      ▼
//!   Figures ─▶ table, page of the documentation
//! ```

mod client;
mod contestant;
pub mod exports;
mod work;

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use super::page;
use super::report::aligned;
use contestant::{Contestant, Kind};
use work::{Figures, Rate};

pub use contestant::{Serve, serve};

/// Measure planes, and real servers beside them, over the same work.
#[derive(Debug, Parser)]
pub struct Args {
    /// Measure kube-apiserver and kcp, too.
    #[arg(long)]
    real: bool,
    /// For how many seconds each kind of request is sent.
    #[arg(long = "for", value_name = "SECONDS", default_value_t = 5)]
    duration: u64,
    /// How many writes are watched.
    #[arg(long, default_value_t = 2_000)]
    watched: usize,
    /// By how many watchers.
    #[arg(long, default_value_t = 100)]
    watchers: usize,
    /// How many workspaces are made in a plane that plays kcp.
    #[arg(long, default_value_t = 1_000)]
    workspaces: usize,
    /// How many are made in kcp, where each takes seconds.
    #[arg(long, default_value_t = 50)]
    real_workspaces: usize,
    /// Replace the figures in this page of the documentation.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

/// Measures and prints.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let load = page::load();
    let mut all = Vec::new();
    for kind in Kind::ALL.into_iter().filter(|kind| args.real || !kind.is_real()) {
        let figures = measure(&args, kind).await?;
        eprintln!("{}: {} creations/s", kind.name(), per_second(figures.creations));
        all.push((kind, figures));
    }
    let (machine, table) = (page::machine(&load), table(&all));
    println!("{machine}\n\n{table}");
    if let Some(page) = &args.page {
        page::replace(page, "servers", &format!("{machine}.\n\n{table}"))?;
    }
    Ok(())
}

async fn measure(args: &Args, kind: Kind) -> anyhow::Result<Figures> {
    eprintln!("{}: starting", kind.name());
    let (started, empty) = contestant::starts(kind).await?;
    let contestant = Contestant::start(kind).await?;
    let duration = Duration::from_secs(args.duration);
    eprintln!("{}: writing and reading", kind.name());
    let (creations, written) = work::creations(&contestant, duration).await?;
    let patches = work::patches(&contestant, duration, written).await?;
    let reads = work::reads(&contestant, duration, written).await?;
    let (paged, streamed) = (work::paged(&contestant, written).await?, work::streamed(&contestant, written).await?);
    let memory = contestant.memory()?;
    eprintln!("{}: watching", kind.name());
    let events = work::watchers(&contestant, args.watchers, args.watched).await?;
    let workspaces = if kind.is_kcp() {
        eprintln!("{}: making workspaces", kind.name());
        let number = if kind.is_real() { args.real_workspaces } else { args.workspaces };
        Some(work::workspaces(&contestant, number).await?)
    } else {
        None
    };
    Ok(Figures { started, empty, creations, patches, reads, written, memory, paged, streamed, events, workspaces })
}

type Row = (&'static str, fn(&Figures) -> String);

const ROWS: [Row; 15] = [
    ("start to ready, s", |figures| format!("{:.3}", figures.started.as_secs_f64())),
    ("memory when empty, MiB", |figures| mebibytes(figures.empty)),
    ("creations/s", |figures| per_second(figures.creations)),
    ("processor time of a creation, µs", |figures| cost(figures.creations)),
    ("merge patches/s", |figures| per_second(figures.patches)),
    ("processor time of a merge patch, µs", |figures| cost(figures.patches)),
    ("reads/s", |figures| per_second(figures.reads)),
    ("processor time of a read, µs", |figures| cost(figures.reads)),
    ("objects then", |figures| figures.written.to_string()),
    ("memory with them, MiB", |figures| mebibytes(figures.memory)),
    ("objects/s in pages of 500", |figures| format!("{:.0}", figures.paged)),
    ("objects/s as a streaming list", |figures| format!("{:.0}", figures.streamed)),
    ("events/s to all watchers", |figures| per_second(figures.events)),
    ("processor time of an event, µs", |figures| cost(figures.events)),
    ("workspaces ready/s", |figures| figures.workspaces.map_or_else(|| "–".to_owned(), |rate| format!("{rate:.1}"))),
];

fn per_second(rate: Rate) -> String {
    format!("{:.0}", rate.per_second)
}

fn cost(rate: Rate) -> String {
    let micros = rate.each.as_secs_f64() * 1e6;
    if micros < 10.0 { format!("{micros:.1}") } else { format!("{micros:.0}") }
}

fn mebibytes(bytes: u64) -> String {
    (bytes >> 20).to_string()
}

fn table(all: &[(Kind, Figures)]) -> String {
    let mut head = vec![String::new()];
    head.extend(all.iter().map(|(kind, _)| kind.name().to_owned()));
    let lines: Vec<Vec<String>> = ROWS
        .iter()
        .map(|(what, show)| {
            std::iter::once((*what).to_owned()).chain(all.iter().map(|(_, figures)| show(figures))).collect()
        })
        .collect();
    aligned(&head, &lines)
}
