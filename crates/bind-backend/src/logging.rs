//! Logs on stderr, one line per event, for people.

use tracing_subscriber::EnvFilter;

/// Sends this project's logs to stderr; dependencies log only errors. From a verbosity of 4 on, as with other programs of Kubernetes, details too.
pub fn init(verbosity: u8) {
    let level = match verbosity {
        0..=3 => "info",
        4..=7 => "debug",
        _ => "trace",
    };
    let filter = ["client", "bind_backend", "multicluster"].map(|part| format!("carrick_{part}={level}"));
    let filter = EnvFilter::new(format!("error,kube_bind_backend={level},{}", filter.join(",")));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false);
    // A program that embeds the backend may have set up logging already; then its own is kept.
    let _ = lines.try_init();
}
