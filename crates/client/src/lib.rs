//! HTTP/2 clients for many workspaces of one server, and a watch loop that never loses an event.
//!
//! ```text
//!   kubeconfig ──▶ Server ─── one connection pool, one set of credentials
//!                    │ at_path("/clusters/root:a"), at_url("https://…/clusters/*")
//!                    ▼
//!                  Client ─── one base URL; JSON verbs, discovery, kube()
//!                    │
//!                    ▼
//!                  watch  ─── list, watch, relist … as one endless stream of events about Objects
//! ```
//!
//! A [`Server`] is opened once per API server. Its [`Client`]s are cheap: each is a base URL on the shared pool, so
//! a thousand workspaces and their watches travel over one HTTP/2 connection.
//!
//! Requests are not repeated by this crate: callers know what may be repeated. Only [`watch::watch`] retries by itself.

pub mod discovery;
pub mod watch;

mod channel;
mod client;
mod compact;
mod connect;
mod error;
mod kcp;
mod object;
mod requests;
mod resource;
mod server;
mod transport;
mod writes;

pub use client::{Client, DeleteOptions, ListOptions};
pub use connect::{ConnectError, Overrides};
pub use error::{Error, Status, StatusCause, StatusDetails};
pub use object::{Object, Packer};
pub use requests::{Answers, Asked};
pub use resource::Resource;
pub use server::Server;
