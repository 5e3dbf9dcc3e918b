//! The tests from outside the crate, in one program: `cargo test -p carrick --test it [module]`.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod as_kcp;
mod bind;
mod bind_doctor;
mod demo;
mod dev;
mod diff;
mod found;
mod https;
mod import;
mod look;
mod machine;
mod mesh;
mod plane;
mod provider;
mod running;
mod terminal;
mod toolkit;
