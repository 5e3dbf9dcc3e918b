//! HTTP/2 clients for many clusters or workspaces behind one server, and a watch that never loses an event.
//!
//! ```text
//!   kubeconfig ──▶ Server ─── one connection pool, one set of credentials
//!                    │ at_path("/clusters/root:a"), at_url("https://…/clusters/*")
//!                    ▼
//!                  Client ─── one base URL; JSON verbs, discovery, kube()
//!                    │
//!                    ▼
//!                  watch  ─── list, watch, relist … as one endless stream of events about Objects
//!
//!   trust ─── certificates checked as programs in Go check them, below the pool and for webhooks
//! ```
//!
//! A [`Server`] is opened once per API server. Its [`Client`]s are cheap: each is a base URL on the shared pool, so
//! the requests of a thousand workspaces travel over one HTTP/2 connection. Servers limit how many requests they answer on one at a time,
//! so many watches get connections of their own.
//!
//! Requests are not repeated by this crate: callers know what may be repeated. Only [`watch::watch`] retries by itself.
//!
//! ```no_run
//! use carrick_client::{ListOptions, Overrides, Resource, Server};
//! use kube::Api;
//! # use k8s_openapi::api::core::v1::ConfigMap;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::infer(None, &Overrides::default())?;
//! let client = server.at_path("/clusters/root:team-a");
//! let maps = Resource::namespaced("", "v1", "ConfigMap", "configmaps");
//! for map in client.list(&maps, None, &ListOptions::labels("app=shop")).await? {
//!     println!("{}", map["metadata"]["name"]);
//! }
//! // The same workspace on the same connection, typed.
//! let map = Api::<ConfigMap>::namespaced(client.kube(), "default").get("settings").await?;
//! # drop(map);
//! # Ok(())
//! # }
//! ```
//!
//! What the API shows of other crates is re-exported: [`kube`], [`futures`] and [`serde_json`].

/// The README's examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

pub mod discovery;
pub mod trust;
pub mod watch;
pub mod wording;

mod channel;
mod client;
mod compact;
mod connect;
mod error;
mod inline;
#[cfg(feature = "kcp")]
mod kcp;
mod lists;
mod object;
mod packer;
mod payload;
mod redirect;
mod requests;
mod resource;
mod route;
mod server;
mod token;
mod transport;
mod verbs;
mod web;
mod writes;

pub use client::Client;
pub use connect::{ConnectError, Overrides};
pub use error::{Error, Status, StatusCause, StatusDetails};
pub use inline::{InlineKubeconfig, RefusedKubeconfig};
pub use lists::ListOptions;
pub use object::{CLUSTER_ANNOTATION, Object};
pub use packer::Packer;
pub use redirect::HostPortOverride;
pub use requests::{RequestLabels, RequestTotals};
pub use resource::Resource;
pub use server::Server;
pub use transport::Rewind;
pub use verbs::DeleteOptions;
pub use web::{Web, WebTrust};

pub use {futures, kube, serde_json};
