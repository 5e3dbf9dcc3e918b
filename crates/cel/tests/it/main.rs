//! The tests from outside the crate, in one program: `cargo test -p carrick-cel --test it [module]`.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod admission;
mod mutation;
mod properties;
mod rule;
mod seed;
mod vectors;
