//! A panic of one request.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use tracing::error;

use super::negotiate::Format;
use super::reply::{self, Cut, Reply};
use crate::status::Status;

/// A handler that panics still sends a response.
pub(super) async fn guarded(handler: impl Future<Output = Result<Reply, Cut>>) -> Result<Reply, Cut> {
    AssertUnwindSafe(handler).catch_unwind().await.unwrap_or_else(|_| {
        error!("a request handler panicked");
        let status = Status::internal("the request could not be handled: internal error");
        Ok(reply::status(&status, Format::Json))
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
