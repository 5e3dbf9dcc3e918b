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
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;
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
const LARGEST_BODY: usize = 64 << 20;
/// Connections at the same time. Others wait to be accepted.
const MOST_CONNECTIONS: usize = 64;

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
            let (acceptor, catalog, stop) = (TlsAcceptor::from(Arc::clone(&tls)), catalog.clone(), stop.clone());
            tokio::spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = connection(stream, acceptor, catalog) => {}
                }
                drop(place);
            });
        }
    }
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, catalog: Receiver<Arc<Catalog>>) {
    let Ok(Ok(stream)) = tokio::time::timeout(HEAD_TIMEOUT, acceptor.accept(stream)).await else { return };
    let service = service_fn(move |request: Request<Incoming>| {
        let catalog = catalog.clone();
        async move { Ok::<_, Infallible>(answer(request, &catalog).await) }
    });
    // Whether the client is still there at the end does not matter.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(request: Request<Incoming>, catalog: &Receiver<Arc<Catalog>>) -> Response<Full<Bytes>> {
    if request.method() != Method::POST {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "conversion reviews are posted\n");
    }
    let body = tokio::time::timeout(BODY_TIMEOUT, Limited::new(request.into_body(), LARGEST_BODY).collect()).await;
    let Ok(Ok(body)) = body else {
        return plain(StatusCode::BAD_REQUEST, "the body is too large, or took too long\n");
    };
    let Ok(review) = serde_json::from_slice::<Value>(&body.to_bytes()) else {
        return plain(StatusCode::BAD_REQUEST, "the body is not JSON\n");
    };
    let catalog = Arc::clone(&catalog.borrow());
    let answered = review::answer(&review, |group, kind| {
        let rules = catalog.entries.values().filter_map(|entry| entry.rules.as_ref().ok());
        let mut rules = rules.filter(|rules| rules.remote.group == group && rules.remote.kind == kind);
        rules.next().map(|rules| &rules.conversions)
    });
    let failure = &answered["response"]["result"]["message"];
    if let Some(problem) = failure.as_str() {
        tracing::warn!(problem, "An object cannot be converted.");
    }
    let mut response = Response::new(Full::new(Bytes::from(answered.to_string())));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    response
}
