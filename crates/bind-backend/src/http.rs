//! The HTTP front: login, catalogue and orders, for browsers and for `kubectl bind`.
//!
//! ```text
//!   options ──▶ config ──▶ Front ──▶ server ──▶ asked ──▶ route ──┬▶ login ◀──▶ oidc (embedded or external issuer)
//!                            ▲                                    ├▶ api   ──▶ Provider
//!              keys of a Secret                                   └▶ pages ──▶ Provider
//!
//!   login: browser ──▶ /api/authorize ──state (encrypted)──▶ issuer ──code, state──▶ /api/callback ──▶ token or cookie
//!   code: what a command line gets, encrypted for a URL ──▶ command line ──▶ /api/exchange ──▶ token or kubeconfig
//!   session: token (signed) or cookie (encrypted) ──▶ who, which cluster, until when ──▶ may they bind?
//! ```
//!
//! Nothing is remembered between requests, so anonymous requests cannot fill memory, and replicas need nothing but the same keys.

mod answer;
mod api;
mod apply;
mod asked;
mod code;
mod config;
mod error;
mod front;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod join;
mod jose;
mod keys;
mod login;
mod networks;
mod oidc;
mod options;
mod pages;
mod redirect;
mod route;
mod secrecy;
mod server;
mod session;
mod tls;
mod token;

pub use config::{Allowed, GivenKeys, HttpConfig, LoginMethod, TlsFiles};
pub use error::FrontError;
pub use front::Front;
pub use networks::Network;
pub use options::{HttpOptions, OptionsError};
pub use secrecy::CryptoError;
