//! The tests from outside the crate, in one program: `cargo test -p carrick-json --test it [module]`.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod corpus;
mod hashes;
mod paths;
mod properties;
