//! An embedded, kcp-like control plane for development and tests.
//!
//! ```text
//!   Plane (plane)                    starts and stops everything
//!     ├─ http/                       TLS, the door (arrival), routes, media types, watch streams
//!     │    └─ faults/                injected errors, delays and disconnects
//!     ├─ controllers/                namespaces, CRD clean-up, owner references, what a plane starts with
//!     ├─ Api (api/)                  the verbs on one resource: create, update, patch, delete, list, watch
//!     │    ├─ admission/             webhooks and policies that users configure
//!     │    └─ extension              where kcp joins in; a plain API server has no extension
//!     └─ kcp/                        that extension: workspaces, exports and bindings, virtual workspaces; it knows no Api
//!
//!   auth/, resource/, definition/    who may do what; what a kind is; what is wrong with a CRD
//!   patch/                           how objects change; what they look like: carrick-schema
//!   conversion, webhook/             other versions of an object; webhooks are called here
//!   store/                           objects, one revision counter, watch
//!   config, release, error, caller, request, status, protobuf, files, go, time, depth: what everybody needs
//! ```
//!
//! Imports point down, and no two files import each other.
//!
//! In a test of your own controller, a kcp in a few milliseconds:
//!
//! ```
//! use carrick_plane::{Config, Mode, Plane, PlaneError, User};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), PlaneError> {
//! let mut config = Config::new(Mode::Kcp);
//! config.users = vec![User::new("a-token", "provider", &[])];
//! let plane = Plane::start(config).await?;
//!
//! // For any client: kube-rs, client-go, kubectl.
//! let admin = plane.kubeconfig("kcp-admin", Some("root"))?;
//! let provider = plane.kubeconfig("provider", Some("root:provider"))?;
//! # assert!(admin.contains("/clusters/root\"") && provider.contains("a-token"));
//! // ... start the controller, create workspaces, check what it does; inject faults if you like: see `faults` ...
//!
//! plane.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! `tests/it/library.rs` is such a test with kube-rs: workspaces, an export, a binding, and a controller over all of them.
//!
//! Guarantees:
//!
//! - **Durability.** Without a data folder, everything is in memory. With one, a write is acknowledged after it has been handed
//!   to the operating system: killing the process at any moment loses no acknowledged write. A power failure may, unless
//!   [`Durability::fsync`] is on. The file is compacted at each start, and in the background when it has grown.
//! - **Bounds.** Bodies, the log for watchers (in changes and bytes) and the time an event waits for its reader are
//!   bounded by [`Limits`]; a client that reads too slowly is disconnected and must list again. Stored objects are not bounded.
//! - **Shards.** [`Config::shards`] spreads workspaces over several endpoints that can be stopped and started one by one.
//!
//! This is not meant for production: one process, one copy of the data.

mod admission;
mod api;
mod auth;
mod caller;
mod config;
mod controllers;
mod conversion;
mod definition;
mod depth;
mod error;
mod extension;
pub mod faults;
mod files;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod go;
mod http;
mod kcp;
mod patch;
mod plane;
// For tests that speak protobuf themselves.
#[doc(hidden)]
pub mod protobuf;
mod release;
mod request;
mod resource;
mod status;
mod store;
mod time;
mod webhook;

use carrick_schema as schema;

pub use auth::{KCP_ADMIN, KUBE_ADMIN, SHARD_ADMIN};
pub use config::{Advertised, Config, Limits, Mode, ServingFiles, User};
pub use error::PlaneError;
pub use faults::Faults;
pub use http::Endpoint;
pub use http::tls::ClientCertificate;
pub use plane::Plane;
pub use store::{Change, Durability, Expired, Key, Kind, LogLimits, Object, Snapshot, Store, Watch};
