//! The tests from outside the crate, in one program: `cargo test -p carrick-multicluster --test it [module]`.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod acceptance;
#[cfg(feature = "kcp")]
mod apiexport;
mod coordination;
mod processes;
mod providers;
mod store;
