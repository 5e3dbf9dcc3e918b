//! How requests reach a server: through our own pool, or through a kube client.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use kube::client::Body;
use tower::BoxError;

use crate::transport::Transport;

/// The body of an answer, whoever brought it.
pub(crate) type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

/// How long a kube client may take for the head of an answer; its own retries can take minutes.
const HEAD_TIMEOUT: Duration = Duration::from_mins(1);

/// A cheap handle on a way to send requests.
#[derive(Clone)]
pub(crate) enum Channel {
    /// Our own pool; requests have absolute URLs.
    Pool(Transport),
    /// The same, for looking only: whatever might change something is refused.
    ReadOnly(Transport),
    /// A kube client, which knows its server; requests have no host.
    Kube(kube::Client),
}

impl Channel {
    /// Sends one request and waits for the head of its answer.
    pub(crate) async fn send(&self, request: Request<Body>) -> Result<Response<AnswerBody>, BoxError> {
        match self {
            Self::ReadOnly(_) if request.method() != Method::GET => Err("this client only reads".into()),
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
}
