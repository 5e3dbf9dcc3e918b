//! The tests from outside the crate, in one program: `cargo test -p carrick-konnector --test it [module]`.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod chart;
mod clusters;
mod core;
mod objects;
mod real;
mod scenarios;
mod workspaces;
