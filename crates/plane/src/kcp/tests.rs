//! kcp as its clients see it: workspaces, exports, bindings, claims and the virtual workspace, through the API of a plane.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    clippy::result_large_err,
    reason = "helpers of tests may panic, take json! by value and return refusals as they are"
)]

mod access;
mod admission;
mod bindings;
mod claims;
mod exports;
mod forwarding;
mod home;
mod kubectl;
mod restart;
mod views;
mod workspaces;
mod world;
