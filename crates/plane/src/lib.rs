//! An embedded, kcp-like control plane for development and tests.
//!
//! ```text
//!   Plane (plane.rs)            starts and stops everything
//!     └─ http/                  TLS, routes, media types, watch streams
//!          ├─ faults/           errors, delays and cuts on purpose
//!          ├─ auth/             tokens, RBAC
//!          └─ Api (api/)        the verbs on one resource: create, update, patch, delete, list
//!               ├─ Resource     what a kind is: names, versions, schema (resource/, schema/)
//!               ├─ Extension    what makes it kcp: clusters, bindings, virtual workspaces (kcp/)
//!               └─ Store        objects, one revision counter, watch (store/)
//!     └─ controllers/           namespaces, CRD clean-up, owner references
//! ```
//!
//! Nothing here is meant for production: one process, one copy of the data.

pub mod api;
pub mod auth;
pub mod controllers;
pub mod extension;
pub mod faults;
mod http;
pub mod kcp;
pub mod plane;
pub mod resource;
pub mod schema;
pub mod status;
pub mod store;

pub use api::{Api, Caller, Scope, WriteOptions};
pub use extension::{Attributes, Extension, Operation, Review, Target, VirtualView};
pub use faults::Faults;
pub use http::Endpoint;
pub use http::tls::ClientCertificate;
pub use plane::{Config, Limits, Mode, Plane, PlaneError, User};
pub use resource::{Column, Origin, Resource, Version};
pub use status::{Cause, Status};
pub use store::{Change, Durability, Expect, Expired, Key, Kind, LogLimits, Store, StoreError, Stored, Topic, Watch};
