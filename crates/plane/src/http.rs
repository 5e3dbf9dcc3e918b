//! The HTTP side: connections, routes, media types, streams.

mod arrival;
mod body;
mod call;
mod connection;
mod control;
mod discovery;
mod documents;
mod duration;
mod endpoint;
mod guard;
mod health;
mod impersonate;
mod jsonpath;
mod negotiate;
mod numbering;
mod openapi;
mod options;
mod pods;
mod reply;
mod request;
mod resource;
mod reviews;
mod root;
mod route;
mod scale;
mod server;
mod slow;
mod table;
pub(crate) mod tls;
mod token;
mod watch;

pub(crate) use control::Control;
pub use endpoint::Endpoint;
pub(crate) use endpoint::OnChange;
pub(crate) use server::Server;
pub(crate) use slow::SlowReaders;
