//! How requests reach a server: through our own pool, or through a kube client.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use kube::client::Body;
use tower::BoxError;

use crate::transport::{Host, Transport};

/// The query by which a server only says what it would do.
pub(crate) const DRY_RUN: &str = "dryRun=All";

/// The body of an answer, whoever brought it.
pub(crate) type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

/// How long a kube client may take for the head of an answer; its own retries can take minutes.
const HEAD_TIMEOUT: Duration = Duration::from_mins(1);

/// A cheap handle on a way to send requests.
#[derive(Clone)]
pub(crate) enum Channel {
    /// Our own pool; requests have absolute URLs.
    Pool(Transport),
    /// The same, read-only: whatever might change something is refused.
    ReadOnly(Transport),
    /// A kube client, which knows its server; requests have no host.
    Kube(kube::Client),
}

impl Channel {
    /// Sends one request and waits for the head of its answer.
    ///
    /// Boxed, because it is part of every future that sends a request.
    pub(crate) fn send(&self, request: Request<Body>) -> BoxFuture<'_, Result<Response<AnswerBody>, BoxError>> {
        self.send_inline(request).boxed()
    }

    async fn send_inline(&self, request: Request<Body>) -> Result<Response<AnswerBody>, BoxError> {
        match self {
            Self::ReadOnly(_) if request.method() != Method::GET && request.uri().query() != Some(DRY_RUN) => {
                Err("this client only reads".into())
            }
            Self::Pool(transport) | Self::ReadOnly(transport) => {
                let answer = transport.send(request).await?;
                Ok(answer.map(|body| body.map_err(BoxError::from).boxed_unsync()))
            }
            Self::Kube(client) => {
                let answer = tokio::time::timeout(HEAD_TIMEOUT, client.send(request)).await;
                let answer = answer.map_err(|_| format!("no answer within {} s", HEAD_TIMEOUT.as_secs()))??;
                Ok(answer.map(|body| body.map_err(BoxError::from).boxed_unsync()))
            }
        }
    }

    /// What is known about the server of a URL; nothing about the server of a kube client.
    pub(crate) fn host(&self, url: &str) -> Option<Arc<Host>> {
        Some(self.transport()?.host(&url.parse().ok()?))
    }

    /// Notes that the connection to the server of a URL may be broken.
    pub(crate) fn doubt(&self, url: &str) {
        if let (Some(transport), Ok(url)) = (self.transport(), url.parse()) {
            transport.doubt(&url);
        }
    }

    /// Which set of credentials is in use; a kube client manages its own.
    pub(crate) fn credentials(&self) -> u64 {
        self.transport().map_or(0, Transport::credentials)
    }

    /// How many bytes are taken from the server at a time.
    pub(crate) fn most(&self) -> usize {
        self.transport().map_or(usize::MAX, Transport::most)
    }

    pub(crate) fn transport(&self) -> Option<&Transport> {
        match self {
            Self::Pool(transport) | Self::ReadOnly(transport) => Some(transport),
            Self::Kube(_) => None,
        }
    }
}
