//! The tests from outside the crate, in one program: `cargo test -p xtask --test it [module]`.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod circles;
mod features;
mod layout;
mod proofs;
mod words;
