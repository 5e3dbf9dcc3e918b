//! What Go programs do and Rust crates do not, once. No I/O.
//!
//! Kubernetes and the tools around it are written in Go, and what their users write (patterns, URLs, durations, versions, selectors)
//! is read by Go's libraries. Whoever checks, evaluates or prints the same things has to do it in the same way, to the last message.
//!
//! ```text
//!              ┌── duration   1h30m, 3 days          ──▶ nanoseconds, and back
//!              ├── semver     v1.2-beta, ^1.2 || ~3  ──▶ Version, Constraints
//!   text ──────┘
//!   number ─────── float      1e+06, 0x1p-2          ◀── f64
//! ```
#![forbid(unsafe_code)]

pub mod duration;
pub mod float;
pub mod json;
pub mod labels;
pub mod names;
pub mod quote;
pub mod runes;
pub mod semver;
pub mod url;
