//! Logs on stderr, off by default.

use std::io::IsTerminal;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// What to log without `--verbose`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quiet {
    /// Nothing at all: steps report what goes wrong.
    Silent,
    /// Warnings and errors.
    Warnings,
}

/// Starts logging. `RUST_LOG` overrides everything else: `debug`, or `carrick_syncagent=debug,warn`.
pub fn init(quiet: Quiet, verbose: bool) {
    let level = match (verbose, quiet) {
        (true, _) => LevelFilter::INFO,
        (false, Quiet::Warnings) => LevelFilter::WARN,
        (false, Quiet::Silent) => LevelFilter::OFF,
    };
    let wanted = std::env::var("RUST_LOG").ok().filter(|wanted| !wanted.is_empty());
    let wanted = wanted.and_then(|wanted| wanted.parse::<Targets>().ok());
    let filter = wanted.unwrap_or_else(|| Targets::new().with_default(level));
    let ansi = std::io::stderr().is_terminal();
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(ansi).with_filter(filter);
    tracing_subscriber::registry().with(lines).init();
}
