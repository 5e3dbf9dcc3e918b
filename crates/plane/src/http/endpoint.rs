//! One address that clients connect to; it can be stopped and started while the plane keeps running.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::connection::Connection;
use super::guard::guarded;
use super::route;
use super::server::Server;
use crate::auth::certificate;

/// Open requests get this long when the plane stops.
const GRACE: Duration = Duration::from_secs(2);
const HANDSHAKE: Duration = Duration::from_secs(10);

/// One address of a plane.
pub struct Endpoint {
    address: SocketAddr,
    url: String,
    acceptor: TlsAcceptor,
    server: Arc<Server>,
    running: Mutex<Option<Running>>,
    /// Called when the endpoint starts or stops accepting connections.
    on_change: OnChange,
}

/// Called when an endpoint starts or stops accepting connections.
pub(crate) type OnChange = Box<dyn Fn(bool) + Send + Sync>;

struct Running {
    /// Cancelled when the endpoint is stopped on purpose.
    kill: CancellationToken,
    /// Cancelled and replaced to break the current connections.
    connections: Arc<parking_lot::Mutex<CancellationToken>>,
    task: JoinHandle<()>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Serves on a listener.
    pub(crate) fn serve(
        listener: TcpListener,
        url: String,
        tls: Arc<rustls::ServerConfig>,
        server: Arc<Server>,
        on_change: OnChange,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let acceptor = TlsAcceptor::from(tls);
        let running = Running::start(listener, acceptor.clone(), server.clone());
        Ok(Self { address, url, acceptor, server, running: Mutex::new(Some(running)), on_change })
    }

    /// The base address, without a path.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its number: zero is the front proxy.
    pub fn number(&self) -> usize {
        self.server.number
    }

    /// The shard whose clusters it serves; `None` for the front proxy of several shards, which serves all of them.
    pub fn shard(&self) -> Option<usize> {
        self.server.shard
    }

    /// Whether it accepts connections.
    pub async fn is_running(&self) -> bool {
        self.running.lock().await.is_some()
    }

    /// Breaks all connections at once and refuses new ones, like a server that died. Stopping it twice is fine.
    pub async fn stop(&self) {
        let running = self.running.lock().await.take();
        if let Some(running) = running {
            (self.on_change)(false);
            running.kill.cancel();
            // A panic in the accept loop has been reported already.
            let _ = running.task.await;
        }
    }

    /// Accepts connections again, at the same address. Starting it twice is fine.
    pub async fn start(&self) -> io::Result<()> {
        let mut running = self.running.lock().await;
        if running.is_none() {
            let listener = TcpListener::bind(self.address).await?;
            *running = Some(Running::start(listener, self.acceptor.clone(), self.server.clone()));
            (self.on_change)(true);
        }
        Ok(())
    }

    /// Breaks all connections at once; new ones are accepted.
    pub async fn disconnect(&self) {
        if let Some(running) = &*self.running.lock().await {
            let old = std::mem::replace(&mut *running.connections.lock(), running.kill.child_token());
            old.cancel();
        }
    }

    /// Waits for the end of the accept loop after the plane's stop.
    pub(crate) async fn ended(&self) {
        if let Some(running) = self.running.lock().await.take() {
            let _ = running.task.await;
        }
    }
}

impl Running {
    fn start(listener: TcpListener, acceptor: TlsAcceptor, server: Arc<Server>) -> Self {
        let kill = CancellationToken::new();
        let connections = Arc::new(parking_lot::Mutex::new(kill.child_token()));
        let task = tokio::spawn(accept(listener, acceptor, server, kill.clone(), connections.clone()));
        Self { kill, connections, task }
    }
}

/// Accepts connections until the plane stops or the endpoint is killed.
async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    server: Arc<Server>,
    kill: CancellationToken,
    current: Arc<parking_lot::Mutex<CancellationToken>>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = server.stop.cancelled() => break,
            () = kill.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let kill = current.lock().child_token();
                    connections.spawn(connection(stream, acceptor.clone(), server.clone(), kill));
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

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, server: Arc<Server>, kill: CancellationToken) {
    // Small writes of watches must be sent without delay.
    let _ = stream.set_nodelay(true);
    let handshake = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream));
    let stream = tokio::select! {
        () = kill.cancelled() => return,
        shaken = handshake => match shaken {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                debug!(%error, "the TLS handshake failed");
                return;
            }
            Err(_) => return,
        },
    };
    let stop = server.stop.clone();
    let peer = stream.get_ref().1.peer_certificates().and_then(|chain| certificate::caller(chain.first()?));
    let about = Connection { kill: kill.clone(), peer };
    let service = service_fn(move |mut request: Request<Incoming>| {
        let server = server.clone();
        request.extensions_mut().insert(about.clone());
        async move { guarded(route::handle(&server, request)).await }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new());
    builder
        .http2()
        .timer(TokioTimer::new())
        // As many as kube-apiserver and kcp answer at a time.
        .max_concurrent_streams(100)
        .keep_alive_interval(Some(Duration::from_secs(30)))
        .keep_alive_timeout(Duration::from_mins(1));
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let gentle = async {
        tokio::select! {
            result = connection.as_mut() => result,
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        }
    };
    let result = tokio::select! {
        result = gentle => result,
        () = kill.cancelled() => return,
    };
    if let Err(error) = result {
        debug!(%error, "a connection ended early");
    }
}
