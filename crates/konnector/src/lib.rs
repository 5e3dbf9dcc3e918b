//! The konnector's decisions, without I/O.
//!
//! ```text
//!   what was seen (Seen: unknown, absent or present) ──▶ decide ──▶ plan: writes, statuses, when to look again
//!                                                          │
//!       carrick-bind-api: schemas, mappings, claims, conditions, heartbeats
//! ```
//!
//! Carrying out a plan and deciding again yields an empty plan; the tests check that.

pub mod agent;
pub mod decide;
