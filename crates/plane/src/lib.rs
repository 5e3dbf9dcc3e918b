//! An embedded, kcp-like control plane for development and tests.
//!
//! ```text
//!   Plane (plane.rs)            starts and stops everything
//!     └─ http/                  TLS, routes, media types, watch streams
//!          ├─ faults/           injected errors, delays and disconnects
//!          ├─ auth/             tokens, RBAC
//!          └─ Api (api/)        the verbs on one resource: create, update, patch, delete, list
//!               ├─ Resource     what a kind is: names, versions, schema (resource/, schema/)
//!               ├─ Extension    what makes it kcp: clusters, bindings, virtual workspaces (kcp/)
//!               ├─ admission/   webhooks and policies that users configure; conversion, webhook/
//!               └─ Store        objects, one revision counter, watch (store/)
//!     └─ controllers/           namespaces, CRD clean-up, owner references
//! ```
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
//! `tests/library.rs` is such a test with kube-rs: workspaces, an export, a binding, and a controller over all of them.
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
pub mod api;
pub mod auth;
mod caller;
mod config;
pub mod controllers;
mod conversion;
mod definition;
mod error;
pub mod extension;
pub mod faults;
mod files;
mod go;
mod http;
pub mod kcp;
mod patch;
pub mod plane;
#[doc(hidden)]
pub mod protobuf;
mod request;
pub mod resource;
pub mod schema;
pub mod status;
pub mod store;
mod time;
mod webhook;

pub use api::{Api, Scope, WriteOptions};
pub use caller::Caller;
pub use config::{Advertised, Config, Limits, Mode, ServingFiles, User};
pub use error::PlaneError;
pub use extension::{Extension, Review, VirtualView};
pub use faults::Faults;
pub use http::Endpoint;
pub use http::tls::ClientCertificate;
pub use plane::Plane;
pub use request::{Attributes, Operation, Target};
pub use resource::{Catalog, Column, Origin, Resource, Version};
pub use status::{Cause, Status};
pub use store::{
    Change, Durability, Expect, Expired, Key, Kind, LogLimits, Object, Page, Selection, Store, StoreError, Stored,
    Topic, Watch,
};
