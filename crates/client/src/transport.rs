//! The connection pool of one server, with credentials on top.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use http::{Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::{Body, ConfigExt};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceBuilder, ServiceExt};

use crate::connect::{ConnectError, Loaded, Source};
use crate::requests::{Answers, Asked, Requests};

mod environment;
mod files;
mod gate;
mod proxy;

use files::Files;
use gate::Gates;
use proxy::Dial;

pub(crate) use environment::Environment;
pub(crate) use proxy::{Proxy, Way};

/// A cheap handle on the pool: sends requests with absolute URLs.
#[derive(Clone)]
pub(crate) struct Transport {
    shared: Arc<Shared>,
}

struct Shared {
    pool: RwLock<Arc<Pool>>,
    /// Where the server was in the beginning. Clients keep this address for ever.
    first: Uri,
    files: Files,
    requests: Requests,
}

/// Connections that share one set of credentials.
struct Pool {
    service: BoxCloneSyncService<Request<Body>, Response<Incoming>, BoxError>,
    gates: Gates,
    /// Where the server is.
    home: Uri,
}

/// How long it may take until a connection is ready, the TLS handshake included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the head of an answer may take, watches included: servers send it before the first event.
const HEAD_TIMEOUT: Duration = Duration::from_mins(1);
/// How often the files of a kubeconfig are looked at: about as often as the kubelet renews them in a pod.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);
const LOOK_INTERVAL_WHEN_REFUSED: Duration = Duration::from_millis(200);
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// One stream may fill its window while its reader is busy; the connection's window is shared by all streams, so it
/// is much larger: a slow reader must not hold up the others.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 1 << 26;

impl Transport {
    /// Opens a pool; nothing is connected yet.
    pub(crate) fn open(source: Source, loaded: &Loaded) -> Result<Self, ConnectError> {
        let files = Files::new(source, loaded);
        let pool = RwLock::new(Arc::new(Pool::open(loaded)?));
        let first = loaded.config.cluster_url.clone();
        Ok(Self { shared: Arc::new(Shared { pool, first, files, requests: Requests::default() }) })
    }

    /// Sends one request and waits for the head of its answer.
    pub(crate) async fn send(&self, mut request: Request<Body>) -> Result<Response<Incoming>, BoxError> {
        self.renew(LOOK_INTERVAL).await;
        let pool = Arc::clone(&self.shared.pool.read().unwrap_or_else(PoisonError::into_inner));
        if let Some(moved) = moved(request.uri(), &self.shared.first, &pool.home) {
            *request.uri_mut() = moved;
        }
        let gate = pool.gates.of(&request);
        let pass = gate.enter().await;
        let (asked, started) = (Requests::asked(&request), Instant::now());
        let answer = match tokio::time::timeout(HEAD_TIMEOUT, pool.service.clone().oneshot(request)).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("no answer within {} s", HEAD_TIMEOUT.as_secs()).into()),
        };
        self.shared.requests.count(asked, &answer, started.elapsed());
        gate.set_connected(answer.is_ok());
        drop(pass);
        // Whoever asks again shall do so with credentials, and at an address, that were renewed meanwhile.
        if answer.as_ref().map_or(true, |answer| answer.status() == StatusCode::UNAUTHORIZED) {
            self.renew(LOOK_INTERVAL_WHEN_REFUSED).await;
        }
        answer
    }

    /// All requests so far.
    pub(crate) fn requests(&self) -> BTreeMap<Asked, Answers> {
        self.shared.requests.read()
    }

    /// Opens a new pool if the files of the kubeconfig have changed. Running watches stay on the old one until they end.
    async fn renew(&self, interval: Duration) {
        if !self.shared.files.are_due(interval) {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let renewed = tokio::task::spawn_blocking(move || {
            if let Some(loaded) = shared.files.changed() {
                match Pool::open(&loaded) {
                    Ok(pool) => *shared.pool.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(pool),
                    Err(error) => tracing::warn!(%error, "renewed credentials cannot be used, keeping the old ones"),
                }
            }
        });
        if let Err(error) = renewed.await {
            tracing::warn!(%error, "looking for renewed credentials has failed");
        }
    }
}

impl Pool {
    fn open(loaded: &Loaded) -> Result<Self, ConnectError> {
        let credentials =
            |source| ConnectError::Credentials { origin: loaded.origin.clone(), source: Box::new(source) };
        Self::build(&loaded.config, &loaded.way).map_err(credentials)
    }

    fn build(config: &Config, way: &Way) -> Result<Self, kube::Error> {
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
        let connector = tls.enable_http1().enable_http2().wrap_connector(Dial::new(tcp, way.clone()));
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
        Ok(Self { service, gates: Gates::default(), home: config.cluster_url.clone() })
    }
}

/// The URL at the server's new address, if it is one at the old address and the server has moved.
fn moved(url: &Uri, old: &Uri, new: &Uri) -> Option<Uri> {
    let place = |url: &Uri| (url.scheme().cloned(), url.authority().cloned());
    if place(url) != place(old) || place(old) == place(new) {
        return None;
    }
    let mut parts = url.clone().into_parts();
    (parts.scheme, parts.authority) = place(new);
    Uri::from_parts(parts).ok()
}

/// A server that hangs accepts connections all the same: without a limit, the handshake would wait for ever.
async fn in_time<T>(connecting: impl Future<Output = Result<T, BoxError>>) -> Result<T, BoxError> {
    let problem = || format!("not connected within {} s", CONNECT_TIMEOUT.as_secs());
    tokio::time::timeout(CONNECT_TIMEOUT, connecting).await.unwrap_or_else(|_| Err(problem().into()))
}
