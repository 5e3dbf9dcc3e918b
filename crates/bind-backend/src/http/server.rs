//! The server: connections, their limits, and their end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::answer::{Answer, Fault};
use super::asked::Asked;
use super::front::Front;
use crate::provider::Provider;

/// Connections at the same time. Others wait to be accepted.
const MOST_CONNECTIONS: usize = 1024;
/// How long a client may take for its handshake, and for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take for the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// How much of a request's head is read.
const LARGEST_HEAD: usize = 64 << 10;
/// How long open requests may go on after the end was announced.
const GRACE: Duration = Duration::from_secs(5);

impl<P: Provider> Front<P> {
    /// Answers requests until told to stop.
    pub async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let acceptor = self.tls.clone().map(TlsAcceptor::from);
        let (front, places) = (Arc::new(self), Arc::new(Semaphore::new(MOST_CONNECTIONS)));
        let mut connections = JoinSet::new();
        loop {
            let accepted = async {
                let place = Arc::clone(&places).acquire_owned().await;
                (place, listener.accept().await)
            };
            let (place, accepted) = tokio::select! {
                () = stop.cancelled() => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
                accepted = accepted => accepted,
            };
            let (Ok(place), Ok((stream, _))) = (place, accepted) else {
                // Out of file descriptors, most likely: do not spin.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let (front, acceptor, stop) = (Arc::clone(&front), acceptor.clone(), stop.clone());
            connections.spawn(async move {
                front.connection(stream, acceptor, stop).await;
                drop(place);
            });
        }
        drop(listener);
        let ended = tokio::time::timeout(GRACE, async { while connections.join_next().await.is_some() {} }).await;
        if ended.is_err() {
            connections.shutdown().await;
        }
    }

    async fn connection(self: Arc<Self>, stream: TcpStream, acceptor: Option<TlsAcceptor>, stop: CancellationToken) {
        // Answers are small and wait for nothing.
        let _ = stream.set_nodelay(true);
        match acceptor {
            None => self.exchange(stream, false, stop).await,
            Some(acceptor) => {
                if let Ok(Ok(stream)) = tokio::time::timeout(HEAD_TIMEOUT, acceptor.accept(stream)).await {
                    self.exchange(stream, true, stop).await;
                }
            }
        }
    }

    async fn exchange<S>(self: Arc<Self>, stream: S, is_tls: bool, stop: CancellationToken)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service = service_fn(move |request: Request<Incoming>| {
            let front = Arc::clone(&self);
            async move { Ok::<_, Infallible>(front.answer(request, is_tls).await) }
        });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_header_size(LARGEST_HEAD);
        let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            _ = connection.as_mut() => {}
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                // Whether the client is still there does not matter now.
                let _ = connection.await;
            }
        }
    }

    async fn answer(&self, request: Request<Incoming>, is_tls: bool) -> Answer {
        let asked = match tokio::time::timeout(BODY_TIMEOUT, Asked::read(request, is_tls)).await {
            Ok(Ok(asked)) => asked,
            Ok(Err(fault)) => return closing(fault.answer()),
            Err(_) => return closing(Fault::bad("the body took too long").answer()),
        };
        let answer = self.route(&asked).await;
        // Without the query, in which tokens and codes travel.
        tracing::debug!(method = %asked.method, path = asked.path, status = answer.status().as_u16(), "Answered.");
        answer
    }
}

/// What is left of the body is not read.
fn closing(mut answer: Answer) -> Answer {
    super::answer::set(&mut answer, http::header::CONNECTION, "close");
    answer
}
