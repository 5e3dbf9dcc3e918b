//! The tests from outside the crate, in one program: `cargo test -p carrick-kubectl-bind --test it [module]`.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod backend;
mod program;
mod real;
mod whole;
