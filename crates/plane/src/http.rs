//! The HTTP side: connections, routes, media types, streams.

mod body;
mod call;
mod discovery;
mod documents;
mod duration;
mod endpoint;
mod health;
mod impersonate;
mod jsonpath;
mod negotiate;
mod openapi;
mod options;
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

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use tracing::error;

use crate::status::Status;

pub use endpoint::Endpoint;
pub(crate) use endpoint::OnChange;
pub(crate) use server::Server;
pub(crate) use slow::SlowReaders;

/// A handler that panics still sends a response.
async fn guarded(handler: impl Future<Output = Result<reply::Reply, reply::Cut>>) -> Result<reply::Reply, reply::Cut> {
    AssertUnwindSafe(handler).catch_unwind().await.unwrap_or_else(|_| {
        error!("a request handler panicked");
        let status = Status::internal("the request could not be handled: internal error");
        Ok(reply::status(&status, negotiate::Format::Json))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_an_internal_error() {
        let answer = guarded(async { panic!("on purpose") }).await.unwrap();
        assert_eq!(answer.status(), 500);
        assert_eq!(answer.headers()["content-type"], "application/json");
    }
}
