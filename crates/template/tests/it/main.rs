//! The tests from outside the crate, in one program: `cargo test -p carrick-template --test it [module]`.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod limits;
mod mutation;
mod properties;
mod render;
mod seed;
mod sprig;
mod vectors;
