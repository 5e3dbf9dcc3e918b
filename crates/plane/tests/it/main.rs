//! The tests from outside the crate, in one program: `cargo test -p carrick-plane --test it [module]`.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod api;
mod kubectl;
mod library;
