//! Logs on stderr, in the reference agent's format, and spans to a collector.

pub use carrick_process::Format;
use carrick_process::Lines;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer, SubscriberExt};

use crate::traces::Traces;

/// Sends this project's logs to stderr; dependencies log only errors. Spans go to `traces`.
pub fn init(format: Format, debug: bool, traces: Option<Traces>) {
    let level = if debug { LevelFilter::DEBUG } else { LevelFilter::INFO };
    let filter = Targets::new()
        .with_default(LevelFilter::ERROR)
        .with_target("carrick", level)
        .with_target("api_syncagent", level);
    let ours = Targets::new().with_target("carrick", LevelFilter::INFO);
    let subscriber = tracing_subscriber::registry()
        .with(Lines { format }.with_filter(filter))
        .with(traces.map(|traces| traces.with_filter(ours)));
    // A program that embeds the agent may have set up logging already; then its own is kept.
    let _ = tracing::subscriber::set_global_default(subscriber);
}
