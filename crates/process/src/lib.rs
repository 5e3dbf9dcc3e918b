//! What every agent's process does.
//!
//! ```text
//!  signals  SIGTERM, SIGINT ──▶ CancellationToken
//!  lines    what is logged ──▶ stderr, as JSON or for people
//!  go_flags  arguments of programs in Go ──▶ ours
//!  printable  what others wrote ──▶ text that a terminal only shows
//!  allocator  memory for programs that are linked with musl
//!  pages    a path ──▶ Page: probes for the kubelet, metrics for Prometheus
//! ```

#[cfg(target_env = "musl")]
mod allocator;
pub mod go_flags;
mod lines;
mod logging;
mod pages;
pub mod printable;
mod signals;

pub use lines::{Format, Lines};
pub use logging::{log_to_stderr, logging_format};
pub use pages::{HttpError, Page, bind, is_local, serve, serve_requests};
pub use signals::stop_on_signals;
