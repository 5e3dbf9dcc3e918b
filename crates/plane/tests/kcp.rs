//! kcp as its clients see it: workspaces, exports, bindings, claims and the virtual workspace, through the API of a plane.

#[path = "kcp/access.rs"]
mod access;
#[path = "kcp/bindings.rs"]
mod bindings;
#[path = "kcp/claims.rs"]
mod claims;
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
