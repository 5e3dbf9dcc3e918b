//! Logs on stderr, in the reference agent's format.

pub use carrick_process::Format;
use carrick_process::Lines;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer, SubscriberExt};

/// Sends this project's logs to stderr; dependencies log only errors.
pub fn init(format: Format, debug: bool) {
    let level = if debug { LevelFilter::DEBUG } else { LevelFilter::INFO };
    let filter = Targets::new()
        .with_default(LevelFilter::ERROR)
        .with_target("carrick", level)
        .with_target("api_syncagent", level);
    let subscriber = tracing_subscriber::registry().with(Lines { format }.with_filter(filter));
    // A program that embeds the agent may have set up logging already; then its own is kept.
    let _ = tracing::subscriber::set_global_default(subscriber);
}
