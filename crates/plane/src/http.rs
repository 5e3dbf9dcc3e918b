//! The HTTP side: connections, routes, media types, streams.

mod body;
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
mod route;
mod scale;
mod slow;
mod table;
pub(crate) mod tls;
mod token;
mod watch;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use tokio_util::sync::CancellationToken;
use tracing::error;

use crate::api::Api;
use crate::auth::Tokens;
use crate::auth::accounts::Checked;
use crate::faults::Faults;
use crate::plane::Limits;
use crate::status::Status;

pub use endpoint::Endpoint;
pub(crate) use endpoint::OnChange;
pub(crate) use slow::SlowReaders;

/// What every request needs.
pub(crate) struct Server {
    pub(crate) api: Arc<Api>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) faults: Faults,
    pub(crate) limits: Limits,
    pub(crate) slow: Arc<SlowReaders>,
    /// Which endpoint this is.
    pub(crate) number: usize,
    /// The shard whose clusters it serves; `None` for the front proxy, which serves all of them.
    pub(crate) shard: Option<usize>,
    pub(crate) stop: CancellationToken,
}

impl Server {
    /// The caller that a bearer token belongs to, whatever its audience.
    pub(crate) fn check(&self, token: &str) -> Option<Checked> {
        let accounts = &self.api.accounts;
        match self.tokens.caller(token) {
            Some(caller) => Some(Checked { caller, audiences: vec![accounts.issuer().to_owned()] }),
            None => accounts.check(&self.api.store, token),
        }
    }
}

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
