//! The api-syncagent: publishes CRDs into kcp and carries consumers' objects to a service cluster and back.
//!
//! ```text
//!  options ─▶ agent (the shell: watches, controllers, writes)
//!               │ asks
//!               ├─▶ rules   pure: projection, schemas, export, naming, mutation, related resources
//!               └─▶ decide  pure: source + copy + state + rules ─▶ steps
//!  api       the PublishedResource kind and its CRD
//!  logging   the format of log lines
//!  toolkit   what would be published, without an agent; evolve, release, withdraw: for the commands of those names
//! ```

pub mod agent;
pub mod api;
pub mod decide;
pub mod evolve;
pub mod logging;
pub mod options;
pub mod release;
pub mod rules;
pub mod toolkit;
pub mod trace;
pub mod withdraw;

/// Version of the agent; releases name the commit they were built from.
pub const VERSION: &str = match option_env!("CARRICK_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};
