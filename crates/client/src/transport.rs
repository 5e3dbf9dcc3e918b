//! The connection pool of one server, with credentials on top.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::{Body, ConfigExt};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceBuilder, ServiceExt};

mod gate;

use gate::Gates;

/// A cheap handle on the pool: sends requests with absolute URLs.
#[derive(Clone)]
pub(crate) struct Transport {
    service: BoxCloneSyncService<Request<Body>, Response<Incoming>, BoxError>,
    gates: Arc<Gates>,
}

/// How long it may take until a connection is ready, the TLS handshake included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the head of an answer may take, watches included: servers send it before the first event.
const HEAD_TIMEOUT: Duration = Duration::from_mins(1);
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// One stream may fill its window while its reader is busy; the connection's window is shared by all streams, so it
/// is much larger: a slow reader must not hold up the others.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 1 << 26;

impl Transport {
    /// Opens a pool; nothing is connected yet.
    pub(crate) fn open(config: &Config) -> Result<Self, kube::Error> {
        // With two providers compiled in, rustls refuses to choose; the first to install one wins, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();

        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.set_keepalive(Some(Duration::from_secs(30)));

        let mut tls =
            hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
        if let Some(name) = &config.tls_server_name {
            let name = name.clone().try_into().map_err(kube::client::RustlsTlsError::InvalidServerName);
            tls = tls.with_server_name_resolver(hyper_rustls::FixedServerNameResolver::new(
                name.map_err(kube::Error::RustlsTls)?,
            ));
        }
        let connector = tls.enable_http1().enable_http2().wrap_connector(tcp);
        let connector = connector.map_future(|connecting| Box::pin(in_time(connecting)));

        let pool = hyper_util::client::legacy::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(90))
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .http2_keep_alive_interval(PING_INTERVAL)
            .http2_keep_alive_timeout(PING_TIMEOUT)
            .http2_keep_alive_while_idle(true)
            .build::<_, Body>(connector);

        let service = ServiceBuilder::new()
            .layer(config.extra_headers_layer()?)
            .option_layer(config.auth_layer()?)
            .map_err(BoxError::from)
            .service(pool);
        let service = BoxCloneSyncService::new(service.map_err(BoxError::from));
        Ok(Self { service, gates: Arc::default() })
    }

    /// Sends one request and waits for the head of its answer.
    pub(crate) async fn send(&self, request: Request<Body>) -> Result<Response<Incoming>, BoxError> {
        let gate = self.gates.of(&request);
        let pass = gate.enter().await;
        let answer = match tokio::time::timeout(HEAD_TIMEOUT, self.service.clone().oneshot(request)).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("no answer within {} s", HEAD_TIMEOUT.as_secs()).into()),
        };
        gate.set_connected(answer.is_ok());
        drop(pass);
        answer
    }
}

/// A server that hangs accepts connections all the same: without a limit, the handshake would wait for ever.
async fn in_time<T>(connecting: impl Future<Output = Result<T, BoxError>>) -> Result<T, BoxError> {
    let problem = || format!("not connected within {} s", CONNECT_TIMEOUT.as_secs());
    tokio::time::timeout(CONNECT_TIMEOUT, connecting).await.unwrap_or_else(|_| Err(problem().into()))
}
