//! kcp as its clients see it: workspaces, exports, bindings, claims and the virtual workspace, through the API of a plane.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    clippy::result_large_err,
    reason = "helpers of tests may panic, take json! by value and return refusals as they are"
)]

#[path = "kcp/access.rs"]
mod access;
#[path = "kcp/admission.rs"]
mod admission;
#[path = "kcp/bindings.rs"]
mod bindings;
#[path = "kcp/claims.rs"]
mod claims;
#[path = "kcp/exports.rs"]
mod exports;
#[path = "kcp/forwarding.rs"]
mod forwarding;
#[path = "kcp/home.rs"]
mod home;
#[path = "kcp/kubectl.rs"]
mod kubectl;
#[path = "kcp/restart.rs"]
mod restart;
#[path = "kcp/views.rs"]
mod views;
#[path = "kcp/workspaces.rs"]
mod workspaces;
#[path = "kcp/world.rs"]
mod world;
