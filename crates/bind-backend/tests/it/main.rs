//! The tests from outside the crate, in one program: `cargo test -p carrick-bind-backend --test it [module]`.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod chart;
mod flows;
mod http;
mod http_issuer;
mod http_log;
mod issuer;
mod kcp;
mod model;
mod output;
mod program;
