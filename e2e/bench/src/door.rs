//! The door through which an agent reaches a server: it passes everything on and counts what is asked.
//!
//! It takes the place of the world's cable and ends TLS itself, so that any agent's requests can be told apart by verb and
//! resource, on any server, without the server's help. Whatever it costs, it costs every agent the same.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use carrick_e2e_stage::connect::{CONNECTION_WINDOW, NAME, STREAM_WINDOW, connect};
use http::{Request, Response, StatusCode, Uri, Version};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use parking_lot::Mutex;
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde::Serialize;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// What is asked of a server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Asked {
    /// `get`, `list`, `watch`, `create`, `update`, `patch` or `delete`.
    pub verb: &'static str,
    /// Plural of the kind, with the subresource if there is one; empty for discovery.
    pub resource: String,
}

impl Asked {
    /// Whether something is to be changed.
    pub fn is_write(&self) -> bool {
        // Asking for rights is a POST, too.
        matches!(self.verb, "create" | "update" | "patch" | "delete") && !self.resource.ends_with("accessreviews")
    }

    /// Whether it goes on in an agent at rest as well: leases are renewed, watches begin anew.
    pub fn is_routine(&self) -> bool {
        self.verb == "watch" || self.resource == "leases"
    }

    fn of(request: &Request<Incoming>) -> Self {
        Self::from(request.method().as_str(), request.uri().path(), request.uri().query().unwrap_or_default())
    }

    fn from(method: &str, path: &str, query: &str) -> Self {
        let mut parts =
            path.split('/').filter(|part| !part.is_empty()).skip_while(|part| !matches!(*part, "api" | "apis"));
        let versions = if parts.next() == Some("apis") { 2 } else { 1 };
        let mut rest: Vec<&str> = parts.skip(versions).collect();
        // A namespace in front of something else is only where that lies.
        if rest.len() > 2 && rest[0] == "namespaces" && !matches!(rest[2], "status" | "finalize") {
            rest.drain(..2);
        }
        let resource = match rest.as_slice() {
            [] => String::new(),
            [kind] | [kind, _] => (*kind).to_owned(),
            [kind, _, subresource, ..] => format!("{kind}/{subresource}"),
        };
        let watch = query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"));
        let verb = match method {
            "POST" => "create",
            "PUT" => "update",
            "PATCH" => "patch",
            "DELETE" => "delete",
            _ if watch => "watch",
            _ if rest.len() == 1 => "list",
            _ => "get",
        };
        Self { verb, resource }
    }
}

/// How often each thing was asked.
pub type Counts = BTreeMap<Asked, u64>;

/// Adds up what fits.
pub fn sum(counts: &Counts, fits: impl Fn(&Asked) -> bool) -> u64 {
    counts.iter().filter(|(asked, _)| fits(asked)).map(|(_, count)| count).sum()
}

struct Book {
    counts: Counts,
    /// When something was asked last that is no routine.
    last: Instant,
}

/// A door to one server; closed when dropped.
pub struct Door {
    book: Arc<Mutex<Book>>,
    authority: String,
    task: JoinHandle<()>,
}

impl Drop for Door {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Upstream = Client<HttpsConnector<HttpConnector>, Incoming>;
type Answer = Response<BoxBody<Bytes, hyper::Error>>;

impl Door {
    /// Opens a door at an address, to the server at a URL whose authority a kubeconfig knows.
    pub async fn open(at: SocketAddr, server: &str, kubeconfig: &str) -> anyhow::Result<Self> {
        // Whoever is first wins; both choose the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let kubeconfig = kubeconfig.to_owned();
        connect::<Incoming>(&kubeconfig)?;
        // Servers limit what one connection carries, so every connection at the door has one of its own behind it.
        let upstream = move || connect(&kubeconfig);
        let uri: Uri = server.parse()?;
        let host = uri.authority().context("the server has no address")?.to_string();
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(vec![NAME.to_owned()])?.self_signed(&key)?;
        let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut tls =
            ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate.der().clone()], private)?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let listener = TcpListener::bind(at).await.with_context(|| format!("cannot listen at {at}"))?;
        let book = Arc::new(Mutex::new(Book { counts: Counts::new(), last: Instant::now() }));
        let task = tokio::spawn(serve(listener, TlsAcceptor::from(Arc::new(tls)), upstream, host, book.clone()));
        Ok(Self { book, authority: data_encoding::BASE64.encode(certificate.pem().as_bytes()), task })
    }

    /// A kubeconfig that trusts this door instead of its server.
    pub fn kubeconfig(&self, kubeconfig: &str) -> anyhow::Result<String> {
        let mut config: Value = serde_json::from_str(kubeconfig)?;
        config["clusters"][0]["cluster"]["certificate-authority-data"] = Value::from(self.authority.clone());
        Ok(config.to_string())
    }

    /// What was asked since the counts were taken last.
    pub fn take(&self) -> Counts {
        std::mem::take(&mut self.book.lock().counts)
    }

    /// When something was asked last that is no routine.
    pub fn last(&self) -> Instant {
        self.book.lock().last
    }
}

/// Waits until nothing but routine was asked at any door for a while; returns when something was asked last.
pub async fn quiet(doors: &[&Door], pause: Duration, patience: Duration) -> anyhow::Result<Instant> {
    let started = Instant::now();
    loop {
        let last = doors.iter().map(|door| door.last()).max().unwrap_or(started).max(started);
        let left = pause.saturating_sub(last.elapsed());
        if left.is_zero() {
            return Ok(last);
        }
        anyhow::ensure!(started.elapsed() < patience, "not quiet after {} s", patience.as_secs());
        tokio::time::sleep(left.min(Duration::from_millis(100))).await;
    }
}

async fn serve(
    listener: TcpListener,
    tls: TlsAcceptor,
    upstream: impl Fn() -> anyhow::Result<Upstream>,
    host: String,
    book: Arc<Mutex<Book>>,
) {
    let mut connections = tokio::task::JoinSet::new();
    let host: Arc<str> = host.into();
    loop {
        tokio::select! {
            accepted = listener.accept() => if let (Ok((stream, _)), Ok(upstream)) = (accepted, upstream()) {
                connections.spawn(talk(stream, tls.clone(), upstream, host.clone(), book.clone()));
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Serves one connection. Agents may break it off when they like.
async fn talk(stream: TcpStream, tls: TlsAcceptor, upstream: Upstream, host: Arc<str>, book: Arc<Mutex<Book>>) {
    let _ = stream.set_nodelay(true);
    let Ok(stream) = tls.accept(stream).await else { return };
    let service = service_fn(move |request: Request<Incoming>| {
        let (upstream, host, book) = (upstream.clone(), host.clone(), book.clone());
        async move {
            let asked = Asked::of(&request);
            let routine = asked.is_routine();
            *book.lock().counts.entry(asked).or_default() += 1;
            let answer = pass_on(&upstream, &host, request).await;
            if !routine {
                book.lock().last = Instant::now();
            }
            Ok::<_, Infallible>(answer)
        }
    });
    let mut server = auto::Builder::new(TokioExecutor::new());
    // As many requests at a time as kube-apiserver answers.
    server.http2().max_concurrent_streams(100);
    server.http2().initial_stream_window_size(STREAM_WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

async fn pass_on(upstream: &Upstream, host: &str, mut request: Request<Incoming>) -> Answer {
    let path = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let answer = match format!("https://{host}{path}").parse() {
        Ok(uri) => {
            *request.uri_mut() = uri;
            *request.version_mut() = Version::HTTP_2;
            for name in ["connection", "host", "upgrade"] {
                request.headers_mut().remove(name);
            }
            upstream.request(request).await.map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    match answer {
        Ok(answer) => answer.map(BodyExt::boxed),
        Err(problem) => {
            let mut answer = Response::new(Full::from(problem).map_err(|never| match never {}).boxed());
            *answer.status_mut() = StatusCode::BAD_GATEWAY;
            answer
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_apart_by_verb_and_resource() {
        for (method, path, query, verb, resource) in [
            ("GET", "/api/v1/namespaces/a/secrets/b", "", "get", "secrets"),
            ("GET", "/api/v1/secrets", "limit=500", "list", "secrets"),
            ("GET", "/apis/a.b/v1/buckets", "watch=true&x=y", "watch", "buckets"),
            ("POST", "/clusters/root:a/apis/a.b/v1/namespaces/default/buckets", "", "create", "buckets"),
            (
                "PUT",
                "/services/apiexport/c/e/clusters/x/apis/a.b/v1/namespaces/n/buckets/b/status",
                "",
                "update",
                "buckets/status",
            ),
            ("PATCH", "/apis/a.b/v1/buckets/b", "", "patch", "buckets"),
            ("GET", "/api/v1/namespaces/a", "", "get", "namespaces"),
            ("PUT", "/api/v1/namespaces/a/finalize", "", "update", "namespaces/finalize"),
            ("GET", "/apis", "", "get", ""),
        ] {
            let asked = Asked::from(method, path, query);
            assert_eq!((asked.verb, asked.resource.as_str()), (verb, resource), "{method} {path}");
        }
    }
}
