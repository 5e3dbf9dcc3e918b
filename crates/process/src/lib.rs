//! What every agent's process does.
//!
//! ```text
//!  signals  SIGTERM, SIGINT ──▶ CancellationToken
//!  pages    a path ──▶ Page: probes for the kubelet, metrics for Prometheus
//! ```

mod pages;
mod signals;

pub use pages::{HttpError, Page, bind, serve};
pub use signals::stop_on_signals;
