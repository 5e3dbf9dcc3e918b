//! A scripted API server on loopback: answers requests in the order of a script and remembers what was asked.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use carrick_client::watch::Event;
use carrick_client::{Resource, Server};
use futures::{Stream, StreamExt};
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// What the server does with one request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A status and a JSON body.
    Json(u16, Value),
    /// A status, a header and a body that is no JSON.
    Text(u16, (&'static str, &'static str), &'static str),
    /// Lines of a watch, then something.
    Watch(Vec<Value>, Then),
    /// Kept for the first request whose line holds the text.
    #[allow(dead_code)] // for servers that are asked for several things at once, in the tests of another crate
    For(&'static str, Box<Answer>),
}

/// What follows the lines of a watch.
#[derive(Clone, Copy, Debug)]
pub enum Then {
    /// The stream ends properly.
    End,
    /// The same, but only after so many milliseconds.
    #[allow(dead_code)] // not in the tests of another crate
    EndAfter(u64),
    /// The stream breaks off.
    Break,
    /// Nothing, for ever.
    Hold,
}

/// One request as the server saw it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub line: String,
    pub headers: http::HeaderMap,
    pub version: http::Version,
    pub body: Bytes,
}

/// How the server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Plain,
    TlsHttp1,
    TlsHttp2,
}

#[derive(Default)]
struct State {
    wake: tokio::sync::Notify,
    script: Mutex<VecDeque<Answer>>,
    seen: Mutex<Vec<Seen>>,
    connections: AtomicUsize,
}

impl State {
    /// Takes the first answer of the script that fits a request; waits if there is none.
    async fn answer(&self, line: &str) -> Answer {
        loop {
            let wake = self.wake.notified();
            {
                let mut script = self.script.lock().unwrap();
                let fits =
                    script.iter().position(|answer| !matches!(answer, Answer::For(text, _) if !line.contains(text)));
                match fits.and_then(|index| script.remove(index)) {
                    Some(Answer::For(_, answer)) => return *answer,
                    Some(answer) => return answer,
                    None => {}
                }
            }
            wake.await;
        }
    }
}

/// A running server. It ends with the runtime of the test.
pub struct TestServer {
    state: Arc<State>,
    pub kubeconfig: String,
}

impl TestServer {
    /// A plain server with a script; a request for which it holds nothing waits until it does.
    pub async fn start(script: Vec<Answer>) -> Self {
        Self::start_as(Protocol::Plain, script).await
    }

    pub async fn start_as(protocol: Protocol, script: Vec<Answer>) -> Self {
        Self::start_on(TcpListener::bind("127.0.0.1:0").await.unwrap(), protocol, script)
    }

    pub fn start_on(listener: TcpListener, protocol: Protocol, script: Vec<Answer>) -> Self {
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State { script: Mutex::new(script.into()), ..State::default() });
        let (tls, ca) = tls(protocol);
        tokio::spawn(accept(listener, state.clone(), tls));
        let scheme = if protocol == Protocol::Plain { "http" } else { "https" };
        let ca = if protocol == Protocol::Plain {
            String::new()
        } else {
            format!(", certificate-authority-data: {}", data_encoding::BASE64.encode(ca.as_bytes()))
        };
        let kubeconfig = format!(
            "{{apiVersion: v1, kind: Config, current-context: c, \
             clusters: [{{name: s, cluster: {{server: '{scheme}://{address}/base'{ca}}}}}], \
             users: [{{name: u, user: {{token: secret-token}}}}], \
             contexts: [{{name: c, context: {{cluster: s, user: u, namespace: home}}}}]}}"
        );
        Self { state, kubeconfig }
    }

    pub fn server(&self) -> Server {
        Server::from_kubeconfig_yaml(&self.kubeconfig).unwrap()
    }

    /// Adds to the end of the script.
    #[allow(dead_code)] // for scripts that hold the server's own URL, in the tests of another crate
    pub fn then(&self, answer: Answer) {
        self.state.script.lock().unwrap().push_back(answer);
        self.state.wake.notify_waiters();
    }

    /// All requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap().clone()
    }

    /// Method, path and query of all requests so far.
    pub fn lines(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.line).collect()
    }

    /// How many connections were opened.
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }
}

fn tls(protocol: Protocol) -> (Option<TlsAcceptor>, String) {
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    // Authority and server in one, as `openssl req -x509` makes them.
    let mut params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let signing_key = rcgen::KeyPair::generate().unwrap();
    let cert = params.self_signed(&signing_key).unwrap();
    let key = tokio_rustls::rustls::pki_types::PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let mut config = tokio_rustls::rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = match protocol {
        Protocol::TlsHttp2 => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        Protocol::TlsHttp1 | Protocol::Plain => vec![b"http/1.1".to_vec()],
    };
    let acceptor = (protocol != Protocol::Plain).then(|| TlsAcceptor::from(Arc::new(config)));
    (acceptor, cert.pem())
}

async fn accept(listener: TcpListener, state: Arc<State>, tls: Option<TlsAcceptor>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        state.connections.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(serve(stream, state.clone(), tls.clone()));
    }
}

async fn serve(stream: TcpStream, state: Arc<State>, tls: Option<TlsAcceptor>) {
    let service = hyper::service::service_fn(move |request| answer(request, state.clone()));
    let mut builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
    // As many as kube-apiserver allows.
    builder.http2().max_concurrent_streams(100);
    // Clients that hang up, or do not trust the certificate, are part of the tests.
    match tls {
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                let _ = builder.serve_connection(TokioIo::new(stream), service).await;
            }
        }
        None => {
            let _ = builder.serve_connection(TokioIo::new(stream), service).await;
        }
    }
}

type Body = http_body_util::combinators::BoxBody<Bytes, std::io::Error>;

async fn answer(request: Request<Incoming>, state: Arc<State>) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let line = format!("{} {}", head.method, head.uri.path_and_query().unwrap());
    if line == "GET /version" {
        // Clients ask this of a server that they thought was away; scripts are about other things.
        return Ok(Response::new(lines(vec![json!({})], Then::End)));
    }
    state.seen.lock().unwrap().push(Seen { line: line.clone(), headers: head.headers, version: head.version, body });
    let answer = state.answer(&line).await;
    let response = Response::builder();
    Ok(match answer {
        Answer::Json(code, value) => response.status(code).body(lines(vec![value], Then::End)).unwrap(),
        Answer::Text(code, (name, value), text) => {
            let body = http_body_util::Full::new(Bytes::from_static(text.as_bytes())).map_err(|never| match never {});
            response.status(code).header(name, value).body(body.boxed()).unwrap()
        }
        Answer::Watch(values, then) => response.status(200).body(lines(values, then)).unwrap(),
        Answer::For(_, nested) => panic!("{nested:?} is nested twice"),
    })
}

fn lines(values: Vec<Value>, then: Then) -> Body {
    let lines = futures::stream::iter(values).map(|value| Ok(Frame::data(Bytes::from(format!("{value}\n")))));
    let rest = futures::stream::once(async move {
        match then {
            Then::End => None,
            Then::EndAfter(time) => {
                tokio::time::sleep(Duration::from_millis(time)).await;
                None
            }
            Then::Break => {
                // Let the lines out first; a failing body discards what is still buffered.
                tokio::time::sleep(Duration::from_millis(100)).await;
                Some(Err(std::io::Error::other("broken on purpose")))
            }
            Then::Hold => std::future::pending().await,
        }
    });
    let rest = rest.filter_map(std::future::ready);
    BodyExt::boxed(StreamBody::new(lines.chain(rest)))
}

pub fn secrets() -> Resource {
    Resource::namespaced("", "v1", "Secret", "secrets")
}

/// An object of a list or an event.
pub fn object(name: &str, version: u32) -> Value {
    json!({"metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": version.to_string()}})
}

pub fn list(version: u32, items: &[Value]) -> Answer {
    Answer::Json(
        200,
        json!({"kind": "SecretList", "metadata": {"resourceVersion": version.to_string()}, "items": items}),
    )
}

pub fn page(version: u32, next: &str, items: &[Value]) -> Answer {
    let metadata = json!({"resourceVersion": version.to_string(), "continue": next});
    Answer::Json(200, json!({"kind": "SecretList", "metadata": metadata, "items": items}))
}

pub fn event(kind: &str, object: &Value) -> Value {
    json!({"type": kind, "object": object})
}

pub fn bookmark(version: u32) -> Value {
    json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": version.to_string()}}})
}

pub fn end_of_list(version: u32) -> Value {
    let annotations = json!({"k8s.io/initial-events-end": "true"});
    json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": version.to_string(), "annotations": annotations}}})
}

pub fn status(code: u16, reason: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason})
}

pub fn refused(code: u16, reason: &str) -> Answer {
    Answer::Json(code, status(code, reason))
}

/// The next `count` events as words; panics when they take too long.
pub async fn events(stream: &mut (impl Stream<Item = Event> + Unpin), count: usize) -> Vec<String> {
    let mut words = Vec::new();
    for _ in 0..count {
        let event = tokio::time::timeout(Duration::from_mins(1), stream.next()).await;
        let event = event.unwrap_or_else(|_| panic!("no event after {words:?}")).unwrap();
        words.push(match event {
            Event::Begin => "begin".to_owned(),
            Event::Listed(object) => format!("listed {}@{}", object.name, object.resource_version),
            Event::Synced => "synced".to_owned(),
            Event::Applied(object) => format!("applied {}@{}", object.name, object.resource_version),
            Event::Deleted(object) => format!("deleted {}@{}", object.name, object.resource_version),
            Event::Failing(error @ carrick_client::Error::TooLarge { .. }) => format!("failing {}", error.reason()),
            Event::Failing(error) => format!("failing {:?}", error.status().map(|status| status.code)),
            Event::Recovered => "recovered".to_owned(),
            Event::WentBack { known, found } => format!("went back {known}->{found}"),
        });
    }
    words
}
