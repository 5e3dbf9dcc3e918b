//! Logs on stderr, off by default.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// What to log without `--verbose`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quiet {
    /// Nothing at all: steps report what goes wrong.
    Silent,
    /// Warnings and errors.
    Warnings,
}

/// Starts logging. `RUST_LOG` overrides everything else.
pub fn init(quiet: Quiet, verbose: bool) {
    let level = match (verbose, quiet) {
        (true, _) => LevelFilter::INFO,
        (false, Quiet::Warnings) => LevelFilter::WARN,
        (false, Quiet::Silent) => LevelFilter::OFF,
    };
    let filter = EnvFilter::builder().with_default_directive(level.into()).from_env_lossy();
    let ansi = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(ansi).init();
}
