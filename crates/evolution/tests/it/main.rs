//! The tests from outside the crate, in one program: `cargo test -p carrick-evolution --test it [module]`.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod generated;
mod table;
