//! `kubectl bind`, as far as it needs no backend.
//!
//! ```text
//!   options ──▶ identity   the uid of this cluster
//!           └─▶ deploy ──▶ answer of a backend ──▶ kubeconfig, read with care ──▶ Secret
//!                      └─▶ konnector that is there ──▶ install, upgrade or leave it
//! ```

pub mod deploy;
pub mod identity;
pub mod options;

/// The version of this program and of the konnector that it installs.
pub const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
