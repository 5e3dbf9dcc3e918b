//! The provider's side of kube-bind.
//!
//! ```text
//!   requests of consumers (objects, or HTTP with a login) ──▶ decide ──▶ contract: namespace, rights, kubeconfig
//!                                                              │          exports, BoundSchemas, service namespaces
//!                                                              ▼
//!                                            agent: watches, one session per cluster or workspace
//! ```

pub mod agent;
pub mod backend;
pub mod decide;
pub mod http;
pub mod options;
pub mod provider;

/// The version that consumers are told.
pub const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
