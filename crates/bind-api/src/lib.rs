//! kube-bind's API without I/O: what konnectors, backends and `kubectl bind` have to agree on.
//!
//! ```text
//!  v1alpha2    every kind as a type that loses nothing
//!  kinds       group, version, kind, plural, scope       names   labels, annotations, finalizers
//!  crds        the CustomResourceDefinitions of all kinds
//!
//!  secret      Secret ──▶ kubeconfig, rotation           response   a backend's answer ──▶ kubeconfig, requests
//!  identity    identity ──▶ contract namespace; is it still the same contract?
//!  schema      CRD ──▶ BoundSchema ──▶ CRD of the consumer, and what may be done with the one that is there
//!  mapping     key of a consumer's object ◀──▶ key of its copy
//!  copies      what a copy looks like, whose it is
//!  claims      which Secrets, ConfigMaps and ServiceAccounts travel along
//!  heartbeat   when to send one, what to make of it      version   versions of programs
//!  roles       what a konnector may do on its own cluster    install   what it consists of, and where it keeps kubeconfigs
//!
//!  core        kube-bind v2, core.kbind.io: its kinds, names, conditions, identities, Leases, schemas
//!  problems    everything that can be wrong ──▶ conditions   their types, times and summary    clock   times as text
//! ```
//!
//! Everything is a function of its arguments: there is no client, no clock and no randomness in here.
//!
//! # Types that lose nothing
//!
//! An object that is read and written again is the same JSON, whatever a newer kube-bind has added to it; see
//! [`carrick_kcp::object`] for how.
//!
//! ```
//! use carrick_bind_api::v1alpha2::ApiServiceExport;
//! use serde_json::json;
//!
//! let object = json!({
//!     "apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExport", "metadata": {"name": "widgets", "namespace": "cluster-a"},
//!     "spec": {"resources": [{"group": "example.io", "resource": "widgets", "versions": ["v1"]}],
//!         "informerScope": "Cluster", "isolation": "Prefixed", "fromTheFuture": true},
//! });
//! let export: ApiServiceExport = serde_json::from_value(object.clone())?;
//! assert_eq!(export.spec.resources[0].bound_schema_name(), "widgets.example.io");
//! assert_eq!(serde_json::to_value(&export)?, object);
//! # Ok::<(), serde_json::Error>(())
//! ```

pub mod claims;
pub mod clock;
pub mod conditions;
pub mod copies;
pub mod core;
pub mod crds;
pub mod existing;
pub mod grant;
pub mod heartbeat;
pub mod identity;
pub mod install;
pub mod kinds;
pub mod mapping;
pub mod names;
pub mod problems;
pub mod response;
pub mod roles;
pub mod schema;
pub mod secret;
pub mod v1alpha2;
pub mod version;

pub use {carrick_kcp, jiff};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
