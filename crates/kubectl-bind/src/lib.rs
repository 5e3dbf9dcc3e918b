//! `kubectl bind`.
//!
//! ```text
//!   options ──▶ identity   the uid of this cluster
//!           ├─▶ login, catalogue, consume ──▶ backend over HTTP, callback of the browser, config (logins)
//!           │                         │ answer, export request at the provider, APIServiceBinding here
//!           ├─▶ unbind     and wait until nothing is left
//!           ├─▶ v2         connect, bind, unbind, status, and upgrade from 0.8
//!           └─▶ deploy ◀──────────────┘
//!               deploy ──▶ answer of a backend ──▶ kubeconfig, read with care ──▶ Secret
//!                      └─▶ konnector that is there ──▶ install, upgrade or leave it (carrick-bind-api: install)
//! ```

pub mod backend;
pub mod callback;
pub mod catalogue;
pub mod config;
pub mod consume;
pub mod deploy;
pub mod habits;
pub mod identity;
pub mod login;
pub mod options;
pub mod unbind;
pub mod v2;

/// The version of this program and of the konnector that it installs.
pub const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
