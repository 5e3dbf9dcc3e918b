//! The conversion webhook: kcp asks, the rules of the PublishedResources answer.
//!
//! It has a catalog of its own, so that every replica can answer, not only the one that leads.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::sync::watch::Receiver;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::catalog::Catalog;
use super::health::Part;
use crate::rules::review;

/// The flag that names the address.
pub(super) const FLAG: &str = "--conversion-address";
/// How long a client may take for its handshake, and for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// kcp waits no longer for an answer.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// A list is converted as a whole.
const LARGEST_BODY: usize = 32 << 20;
/// Larger bodies wait for each other.
const SMALL_BODY: usize = 1 << 20;
/// How many large bodies are in memory at the same time. Whoever can reach the address can send some.
const LARGE_BODIES: usize = 1;
/// How many bodies are read and converted at the same time: what is read of one takes many times its room.
const AT_WORK: usize = 2;
/// Connections at the same time. Others wait to be accepted.
const MOST_CONNECTIONS: usize = 32;

/// Where the conversion webhook is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversionServer {
    /// `host:port` or `:port`.
    pub address: String,
    /// File with its certificates.
    pub cert: PathBuf,
    /// File with its key.
    pub key: PathBuf,
}

/// Why conversions cannot be served.
#[derive(Debug, Error)]
pub enum ConversionServerError {
    /// Certificate and key cannot be used.
    #[error(
        "cannot serve conversions with certificate {cert:?} and key {key:?}: {problem}; see --conversion-cert-file and --conversion-key-file"
    )]
    Tls {
        /// File with the certificates.
        cert: PathBuf,
        /// File with the key.
        key: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

impl ConversionServer {
    /// Reads certificate and key.
    pub(super) fn load(&self) -> Result<Arc<ServerConfig>, ConversionServerError> {
        let wrong =
            |problem: String| ConversionServerError::Tls { cert: self.cert.clone(), key: self.key.clone(), problem };
        let certificates = CertificateDer::pem_file_iter(&self.cert).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let certificates = certificates.map_err(|error| wrong(format!("certificate: {error}")))?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| wrong(format!("key: {error}")))?;
        let config =
            ServerConfig::builder_with_provider(Arc::new(default_provider())).with_safe_default_protocol_versions();
        let config = config.map_err(|error| wrong(error.to_string()))?.with_no_client_auth();
        let mut config = config.with_single_cert(certificates, key).map_err(|error| wrong(error.to_string()))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    fn changed(&self) -> Option<SystemTime> {
        let changed = |file: &PathBuf| std::fs::metadata(file).and_then(|file| file.modified()).ok();
        changed(&self.cert).max(changed(&self.key))
    }

    /// Answers reviews until told to stop.
    pub(super) async fn serve(
        self,
        listener: TcpListener,
        mut tls: Arc<ServerConfig>,
        catalog: Receiver<Arc<Catalog>>,
        part: Part,
        stop: CancellationToken,
    ) {
        part.works();
        let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let (large, work) = (Semaphore::new(LARGE_BODIES), Semaphore::new(AT_WORK));
        let answers = Arc::new(Answers { catalog, large, work });
        let mut loaded = self.changed();
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let accepted = tokio::select! {
                () = stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            let Ok((stream, _)) = accepted else {
                // Out of file descriptors, most likely: do not spin.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            // Certificates are renewed while the agent runs.
            let changed = self.changed();
            if changed != loaded {
                match self.load() {
                    Ok(config) => {
                        (tls, loaded) = (config, changed);
                        part.works();
                    }
                    Err(error) => part.fails(&error),
                }
            }
            let (acceptor, answers, stop) = (TlsAcceptor::from(Arc::clone(&tls)), Arc::clone(&answers), stop.clone());
            tokio::spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = connection(stream, acceptor, answers) => {}
                }
                drop(place);
            });
        }
    }
}

/// What questions are answered with.
struct Answers {
    catalog: Receiver<Arc<Catalog>>,
    large: Semaphore,
    work: Semaphore,
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, answers: Arc<Answers>) {
    let Ok(Ok(stream)) = tokio::time::timeout(HEAD_TIMEOUT, acceptor.accept(stream)).await else { return };
    let service = service_fn(move |request: Request<Incoming>| {
        let answers = Arc::clone(&answers);
        async move { Ok::<_, Infallible>(answers.answer(request).await) }
    });
    // Whether the client is still there at the end does not matter.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

impl Answers {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        if request.method() != Method::POST {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "conversion reviews are posted\n");
        }
        let is_small = request.body().size_hint().upper().is_some_and(|size| size <= SMALL_BODY as u64);
        let (_place, limit) =
            if is_small { (None, SMALL_BODY) } else { (self.large.acquire().await.ok(), LARGEST_BODY) };
        let body = tokio::time::timeout(BODY_TIMEOUT, Limited::new(request.into_body(), limit).collect()).await;
        let Ok(Ok(body)) = body else {
            return plain(StatusCode::BAD_REQUEST, "the body is too large, or took too long\n");
        };
        let (body, catalog) = (body.to_bytes(), Arc::clone(&self.catalog.borrow()));
        let _turn = self.work.acquire().await;
        // Rules are bounded, but a list may be long, and other tasks must not wait for it.
        let answered = tokio::task::spawn_blocking(move || {
            review::answer(&body, |group, kind| {
                let rules = catalog.entries.values().filter_map(|entry| entry.rules.as_ref().ok());
                let mut rules = rules.filter(|rules| rules.remote.group == group && rules.remote.kind == kind);
                rules.next().map(|rules| &rules.conversions)
            })
        });
        let Ok(Some(answered)) = answered.await else {
            return plain(StatusCode::BAD_REQUEST, "the body is no ConversionReview\n");
        };
        if let Some(problem) = &answered.problem {
            tracing::warn!(problem, "An object cannot be converted.");
        }
        let mut response = Response::new(Full::new(Bytes::from(answered.text)));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    response
}
