//! The connection pool of one server, with credentials on top.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use http::uri::Authority;
use http::{Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::{Body, ConfigExt};
use tokio::sync::watch;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceBuilder, ServiceExt};

use crate::connect::{ConnectError, Loaded, Source};
use crate::error::chain;
use crate::redirect::{HostPortOverride, redirected};
use crate::requests::{RequestLabels, RequestTotals, Requests};
use crate::route::{Dial, Route};
use crate::trust::Authorities;
use crate::writes::Writes;

mod files;
mod gate;
mod host;
mod lanes;
mod probe;

use files::Files;
use gate::Gates;
use lanes::{Lane, Lanes, Seated, Seats};
use probe::Probed;

pub(crate) use host::Host;
pub use host::Rewind;

/// A cheap handle on the pool: sends requests with absolute URLs.
#[derive(Clone)]
pub(crate) struct Transport {
    shared: Arc<Shared>,
}

struct Shared {
    pool: RwLock<Arc<Pool>>,
    /// What is known about servers, by the address that clients use.
    hosts: Mutex<HashMap<Authority, Arc<Host>>>,
    /// Grows whenever the versions of one of them go back.
    rewound: watch::Sender<u64>,
    /// Held by the one that reads the files; the others wait for the result.
    looking: tokio::sync::Mutex<()>,
    /// The first address of the server, which clients keep using.
    first: Uri,
    files: Files,
    requests: Requests,
    writes: Arc<Writes>,
    /// How many bytes are taken at a time.
    most: AtomicUsize,
    /// Other addresses for those that the server publishes.
    redirects: RwLock<Arc<[HostPortOverride]>>,
}

/// Connections that share one set of credentials.
struct Pool {
    /// Which set of credentials this is.
    number: u64,
    service: BoxCloneSyncService<Request<Body>, Response<Incoming>, BoxError>,
    gates: Gates,
    seats: Arc<Seats>,
    /// Where the server is.
    home: Uri,
    /// Where requests go, and whom they trust there.
    destination: Destination,
    /// Whose connections these are.
    identity: u64,
}

/// How long it may take until a connection is ready, the TLS handshake included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long it may take until a server accepts a connection. The system repeats its attempts less and less often, so for a server that is back
/// after it was cut off, a new attempt succeeds sooner.
const DIAL_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the head of an answer may take, watches included: servers send it before the first event.
const HEAD_TIMEOUT: Duration = Duration::from_mins(1);
/// How often the files of a kubeconfig are checked: about as often as the kubelet renews them in a pod.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);
const LOOK_INTERVAL_WHEN_REFUSED: Duration = Duration::from_millis(200);
/// A connection without a sign of life for the two of these together is dead. Long enough for a server that is busy; short enough that the
/// system does not wait much longer than this before it sends again to a server that is back.
const PING_INTERVAL: Duration = Duration::from_secs(2);
const PING_TIMEOUT: Duration = Duration::from_secs(6);
/// The same for connections without pings: the time without a sign of life after which the system asks for one, the pause between its questions,
/// and their number.
const KEEP_ALIVE: (Duration, Duration, u32) = (Duration::from_secs(5), Duration::from_secs(2), 3);
/// One stream may fill its window while its reader is busy; the connection's window is shared by all streams, so it
/// is much larger: a slow reader must not hold up the others.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 1 << 26;

impl Transport {
    /// Opens a pool; nothing is connected yet.
    pub(crate) fn open(source: Source, loaded: &Loaded) -> Result<Self, ConnectError> {
        let shared = Shared {
            pool: RwLock::new(Arc::new(Pool::open(loaded, 0)?)),
            hosts: Mutex::default(),
            rewound: watch::Sender::new(0),
            looking: tokio::sync::Mutex::default(),
            first: loaded.config.cluster_url.clone(),
            files: Files::new(source, loaded),
            requests: Requests::default(),
            writes: Arc::default(),
            most: AtomicUsize::new(usize::MAX),
            redirects: RwLock::new(Arc::new([])),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Sends one request and waits for the head of its answer. Nothing is sent to a server that is known to be away.
    pub(crate) async fn send(&self, mut request: Request<Body>) -> Result<Response<Seated>, BoxError> {
        self.reopen_if_changed(LOOK_INTERVAL).await;
        let (host, pool) = (self.host(request.uri()), self.pool());
        let seat = pool.seats.take(request.uri());
        let lane = seat.as_ref().map(|seat| seat.lane).unwrap_or_default();
        request.extensions_mut().insert(lane);
        let gate = pool.gates.of(request.uri().authority(), lane);
        let pass = gate.enter().await;
        host.admit().await.map_err(|problem| problem.to_string())?;
        let url = request.uri().clone();
        let answer = self.exchange(&pool, &host, request).await;
        drop(pass);
        let refused = answer.as_ref().is_ok_and(|answer| answer.status() == StatusCode::UNAUTHORIZED);
        if answer.is_err() && host.lost() {
            tokio::spawn(probe::until_answered(self.while_used(), host, version_at(&url)));
        }
        // The next attempt is to use credentials, and an address, that were renewed meanwhile.
        if refused || answer.is_err() {
            self.reopen_if_changed(LOOK_INTERVAL_WHEN_REFUSED).await;
        }
        answer.map(|answer| Seated::new(answer, seat))
    }

    async fn exchange(
        &self,
        pool: &Pool,
        host: &Arc<Host>,
        mut request: Request<Body>,
    ) -> Result<Response<Incoming>, BoxError> {
        let lane = request.extensions().get::<Lane>().copied().unwrap_or_default();
        let gate = pool.gates.of(request.uri().authority(), lane);
        if let Some(moved) = moved(request.uri(), &self.shared.first, &pool.home) {
            *request.uri_mut() = moved;
        }
        let write = (request.method() != Method::GET).then(|| self.shared.writes.begin());
        let (asked, started) = (Requests::asked(&request), Instant::now());
        let answer = match tokio::time::timeout(HEAD_TIMEOUT, pool.service.clone().oneshot(request)).await {
            Ok(answer) => {
                if let Some(write) = write {
                    write.answered();
                }
                answer
            }
            Err(_) => Err(format!("no answer within {} s", HEAD_TIMEOUT.as_secs()).into()),
        };
        self.shared.requests.count(asked, &answer, started.elapsed());
        gate.set_connected(answer.is_ok());
        if let Ok(answer) = &answer {
            let refused = answer.status() == StatusCode::UNAUTHORIZED;
            if host.answered(refused) {
                tokio::spawn(probe::until_renewed(self.while_used(), Arc::clone(host)));
            }
        }
        answer
    }

    /// Waits until all writes that were sent so far are answered; false if that takes longer than given, or one was given up.
    pub(crate) async fn settle_writes(&self, longest: Duration) -> bool {
        self.shared.writes.settle(longest).await
    }

    /// Limits what is taken at a time.
    pub(crate) fn take_at_most(&self, bytes: usize) {
        self.shared.most.store(bytes, Ordering::Relaxed);
    }

    /// How many bytes are taken at a time.
    pub(crate) fn most(&self) -> usize {
        self.shared.most.load(Ordering::Relaxed)
    }

    /// Uses other addresses for those that the server publishes.
    pub(crate) fn redirect(&self, overrides: Vec<HostPortOverride>) {
        *self.shared.redirects.write().unwrap_or_else(PoisonError::into_inner) = overrides.into();
    }

    /// The URL to use for one that the server publishes.
    pub(crate) fn redirected(&self, url: Uri) -> Uri {
        let overrides = self.shared.redirects.read().unwrap_or_else(PoisonError::into_inner).clone();
        redirected(&overrides, &url).unwrap_or(url)
    }

    /// All requests so far.
    pub(crate) fn requests(&self) -> BTreeMap<RequestLabels, RequestTotals> {
        self.shared.requests.read()
    }

    /// Changes whenever the versions of a server go back.
    pub(crate) fn rewound(&self) -> watch::Receiver<u64> {
        self.shared.rewound.subscribe()
    }

    /// The servers whose versions have gone back.
    pub(crate) fn rewinds(&self) -> BTreeMap<String, Rewind> {
        let hosts = self.shared.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.iter().filter_map(|(authority, host)| Some((authority.to_string(), host.rewind()?))).collect()
    }

    /// What is known about the server of a URL.
    pub(crate) fn host(&self, url: &Uri) -> Arc<Host> {
        let Some(authority) = url.authority() else { return Arc::default() };
        let mut hosts = self.shared.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || Arc::new(Host::of_pool(self.shared.rewound.clone()));
        hosts.entry(authority.clone()).or_insert_with(made).clone()
    }

    /// The connections to the server of a URL may be broken: until a request finds that one is not, one goes first.
    pub(crate) fn doubt(&self, url: &Uri) {
        self.pool().gates.doubt(url.authority());
    }

    /// Which set of credentials is in use.
    pub(crate) fn credentials(&self) -> u64 {
        self.pool().number
    }

    /// The pool as long as somebody uses it.
    fn while_used(&self) -> impl Fn() -> Option<Self> + Send + 'static {
        let shared = Arc::downgrade(&self.shared);
        move || shared.upgrade().map(|shared| Self { shared })
    }

    fn pool(&self) -> Arc<Pool> {
        Arc::clone(&self.shared.pool.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Opens a new pool if the files of the kubeconfig have changed. Running watches stay on the old one until they end.
    async fn reopen_if_changed(&self, interval: Duration) {
        let _look = if interval < LOOK_INTERVAL { Some(self.shared.looking.lock().await) } else { None };
        if self.shared.files.are_due(interval) {
            self.reopen_with(Files::changed).await;
        }
    }

    /// Uses the credentials of another source from now on, if it leads to the same server; false if it does not. Running watches stay on the old
    /// pool until they end.
    pub(crate) fn renew_from(&self, source: Source) -> Result<bool, ConnectError> {
        let loaded = source.load()?;
        if Destination::of(&loaded.config) != self.pool().destination {
            return Ok(false);
        }
        self.shared.reopen(&loaded)?;
        self.shared.files.replace(source, &loaded);
        Ok(true)
    }

    /// Uses the credentials of another source until the own files change, if it leads to the same server; false if it does not.
    pub(crate) fn borrow_from(&self, source: &Source) -> Result<bool, ConnectError> {
        let (loaded, pool) = (source.load()?, self.pool());
        if Destination::of(&loaded.config) != pool.destination {
            return Ok(false);
        }
        if identity(&loaded.config) != pool.identity {
            self.shared.reopen(&loaded)?;
        }
        Ok(true)
    }

    async fn reopen_with(&self, load: fn(&Files) -> Option<Loaded>) {
        let shared = Arc::clone(&self.shared);
        let renewed = tokio::task::spawn_blocking(move || {
            if let Some(Err(error)) = load(&shared.files).map(|loaded| shared.reopen(&loaded)) {
                tracing::warn!(%error, "renewed credentials cannot be used, keeping the old ones");
            }
        });
        if let Err(error) = renewed.await {
            tracing::warn!(%error, "looking for renewed credentials has failed");
        }
    }
}

impl Probed for Transport {
    async fn ask(&self, url: Uri) -> Result<(), String> {
        let request = Request::get(url).body(Body::empty()).map_err(|error| error.to_string())?;
        self.reopen_if_changed(LOOK_INTERVAL_WHEN_REFUSED).await;
        let (host, pool) = (self.host(request.uri()), self.pool());
        self.exchange(&pool, &host, request).await.map(drop).map_err(|error| chain(&*error))
    }

    async fn renew(&self, interval: Duration) {
        self.reopen_if_changed(interval).await;
    }

    /// Opens a new pool whether files have changed or not, if that brings other credentials: those of a plugin.
    async fn renew_by_plugin(&self) {
        self.reopen_with(Files::again_by_plugin).await;
    }

    fn credentials(&self) -> u64 {
        self.pool().number
    }
}

impl Shared {
    /// Uses other credentials from now on.
    fn reopen(&self, loaded: &Loaded) -> Result<(), ConnectError> {
        let number = self.pool.read().unwrap_or_else(PoisonError::into_inner).number + 1;
        // This may run a plugin, so nobody waits for it.
        let renewed = Pool::open(loaded, number)?;
        *self.pool.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(renewed);
        for host in self.hosts.lock().unwrap_or_else(PoisonError::into_inner).values() {
            host.signal_retry();
        }
        Ok(())
    }
}

/// All of a configuration but its credentials.
#[derive(PartialEq)]
struct Destination {
    url: Uri,
    namespace: String,
    authorities: Option<Vec<Vec<u8>>>,
    trusts_anybody: bool,
    server_name: Option<String>,
    proxy: Option<Uri>,
}

impl Destination {
    fn of(config: &Config) -> Self {
        Self {
            url: config.cluster_url.clone(),
            namespace: config.default_namespace.clone(),
            authorities: config.root_cert.clone(),
            trusts_anybody: config.accept_invalid_certs,
            server_name: config.tls_server_name.clone(),
            proxy: config.proxy_url.clone(),
        }
    }
}

/// Tells credentials apart.
fn identity(config: &Config) -> u64 {
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(&config.auth_info).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}

/// TLS as the configuration wants it. Servers whose own certificate stands in place of an authority's are trusted, as kubectl trusts them.
pub(crate) fn tls_config(config: &Config) -> Result<rustls::ClientConfig, kube::Error> {
    let mut tls = config.rustls_client_config()?;
    if let Some(certificates) = config.root_cert.as_deref().filter(|_| !config.accept_invalid_certs) {
        let certificates = certificates.iter().map(|certificate| certificate.clone().into()).collect();
        if let Ok(authorities) = Authorities::new(certificates, Arc::clone(tls.crypto_provider())) {
            tls.dangerous().set_certificate_verifier(Arc::new(authorities));
        }
    }
    Ok(tls)
}

impl Pool {
    fn open(loaded: &Loaded, number: u64) -> Result<Self, ConnectError> {
        let credentials =
            |source| ConnectError::Credentials { origin: loaded.origin.clone(), source: Box::new(source) };
        Self::build(&loaded.config, &loaded.route, number).map_err(credentials)
    }

    fn build(config: &Config, route: &Route, number: u64) -> Result<Self, kube::Error> {
        // With two providers compiled in, rustls refuses to choose; the first to install one wins, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();

        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(DIAL_TIMEOUT));
        let (after, interval, times) = KEEP_ALIVE;
        tcp.set_keepalive(Some(after));
        tcp.set_keepalive_interval(Some(interval));
        tcp.set_keepalive_retries(Some(times));

        let mut tls = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls_config(config)?).https_or_http();
        if let Some(name) = &config.tls_server_name {
            let name = name.clone().try_into().map_err(kube::client::RustlsTlsError::InvalidServerName);
            tls = tls.with_server_name_resolver(hyper_rustls::FixedServerNameResolver::new(
                name.map_err(kube::Error::RustlsTls)?,
            ));
        }
        let connector = tls.enable_http1().enable_http2().wrap_connector(Dial::new(tcp, route.clone()));
        let connector = connector.map_future(|connecting| Box::pin(in_time(connecting)));

        let mut builder = hyper_util::client::legacy::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(90))
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .http2_keep_alive_interval(PING_INTERVAL)
            .http2_keep_alive_timeout(PING_TIMEOUT)
            .http2_keep_alive_while_idle(true);

        let service = ServiceBuilder::new()
            .layer(config.extra_headers_layer()?)
            .option_layer(config.auth_layer()?)
            .map_err(BoxError::from)
            .service(Lanes::new(builder, connector));
        let service = BoxCloneSyncService::new(service.map_err(BoxError::from));
        Ok(Self {
            number,
            service,
            gates: Gates::default(),
            seats: Arc::default(),
            home: config.cluster_url.clone(),
            destination: Destination::of(config),
            identity: identity(config),
        })
    }
}

/// The URL that probes ask for: little work for the server, and no permission needed.
fn version_at(url: &Uri) -> Uri {
    let mut parts = url.clone().into_parts();
    parts.path_and_query = Some(http::uri::PathAndQuery::from_static("/version"));
    Uri::from_parts(parts).unwrap_or_else(|_| url.clone())
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

/// A server that hangs may still accept connections: without a limit, the handshake would wait for ever.
async fn in_time<T>(connecting: impl Future<Output = Result<T, BoxError>>) -> Result<T, BoxError> {
    let problem = || format!("not connected within {} s", CONNECT_TIMEOUT.as_secs());
    tokio::time::timeout(CONNECT_TIMEOUT, connecting).await.unwrap_or_else(|_| Err(problem().into()))
}
