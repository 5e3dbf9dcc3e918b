//! The HTTP side: connections, routes, media types, streams.

mod body;
mod discovery;
mod duration;
mod jsonpath;
mod negotiate;
mod openapi;
mod options;
mod protobuf;
mod reply;
mod request;
mod resource;
mod reviews;
mod route;
mod scale;
mod table;
pub(crate) mod tls;
mod watch;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error};

use crate::api::Api;
use crate::auth::Tokens;
use crate::status::Status;

/// Open requests get this long when the plane stops.
const GRACE: Duration = Duration::from_secs(2);
const HANDSHAKE: Duration = Duration::from_secs(10);

/// What every request needs.
pub(crate) struct Server {
    pub(crate) api: Arc<Api>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) stop: CancellationToken,
}

/// Accepts connections until `stop` is cancelled.
pub(crate) async fn serve(
    listener: TcpListener,
    config: Arc<rustls::ServerConfig>,
    api: Arc<Api>,
    tokens: Arc<Tokens>,
    stop: CancellationToken,
) {
    let acceptor = TlsAcceptor::from(config);
    let server = Arc::new(Server { api, tokens, stop: stop.clone() });
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, acceptor.clone(), server.clone()));
                }
                Err(error) => {
                    // Out of file descriptors, most likely: wait for connections to end.
                    debug!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
    drop(listener);
    let ended = tokio::time::timeout(GRACE, async { while connections.join_next().await.is_some() {} }).await;
    if ended.is_err() {
        connections.shutdown().await;
    }
}

/// A handler that panics still answers.
async fn guarded(handler: impl Future<Output = reply::Reply>) -> reply::Reply {
    AssertUnwindSafe(handler).catch_unwind().await.unwrap_or_else(|_| {
        error!("a request handler panicked");
        let status = Status::internal("the request could not be handled: internal error");
        reply::status(&status, negotiate::Format::Json)
    })
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, server: Arc<Server>) {
    // Small writes of watches must not wait for more to send.
    let _ = stream.set_nodelay(true);
    let stream = match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            debug!(%error, "the TLS handshake failed");
            return;
        }
        Err(_) => return,
    };
    let stop = server.stop.clone();
    let service = service_fn(move |request| {
        let server = server.clone();
        async move { Ok::<_, std::convert::Infallible>(guarded(route::handle(&server, request)).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new());
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(1000)
        .keep_alive_interval(Some(Duration::from_secs(30)))
        .keep_alive_timeout(Duration::from_mins(1));
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        debug!(%error, "a connection ended early");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_an_internal_error() {
        let answer = guarded(async { panic!("on purpose") }).await;
        assert_eq!(answer.status(), 500);
        assert_eq!(answer.headers()["content-type"], "application/json");
    }
}
