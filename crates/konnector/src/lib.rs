//! The konnector: joins a cluster to kube-bind providers.
//!
//! ```text
//!   what was seen (Seen: unknown, absent or present) ──▶ decide ──▶ plan: writes, statuses, when to look again
//!        ▲                                                 │                        │
//!        │              carrick-bind-api: schemas, mappings, claims, conditions     ▼
//!        └───────────────── agent: watches, one session per contract ◀──────── writes
//! ```
//!
//! Carrying out a plan and deciding again yields an empty plan; the tests check that. `options` is for the program `konnector`.

pub mod agent;
pub mod decide;
pub mod options;

/// The version that providers are told.
pub const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
