//! What Go programs do and Rust crates do not, in one place. No I/O.
//!
//! Kubernetes and the tools around it are written in Go, and what their users write (patterns, URLs, durations, versions, selectors)
//! is read by Go's libraries. A program that checks, evaluates or prints the same things has to do it the same way, down to the messages.
//!
//! ```text
//!            ┌── regex      ^(.*):latest$            ──▶ GoRegex, or what Go says about it
//!            ├── url        https://me@host:1/a%20b  ──▶ Url, or what Go says about it, and back
//!            ├── duration   1h30m, 3 days            ──▶ nanoseconds, and back
//!   text ────┼── semver     v1.2-beta, ^1.2 || ~3    ──▶ Version, Constraints
//!            ├── labels     a=b,c in (d),!e          ──▶ Selector ── uses names
//!            ├── names      example.com/team         ──▶ what Kubernetes says about it
//!            └── json       {"a":}                   ──▶ what Go says about it
//!   f64 ──────── float      ──▶ 1e+06, 0x1p-02
//!   below all: quote (Go's %q), runes (characters of bytes)
//! ```
//!
//! Errors have Go's words, because people look for those. Those that quote what was given have a form without it, which may be a
//! secret.
#![forbid(unsafe_code)]

pub mod duration;
pub mod float;
pub mod json;
pub mod labels;
pub mod names;
pub mod quote;
pub mod regex;
pub mod runes;
pub mod semver;
pub mod url;

/// Runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
