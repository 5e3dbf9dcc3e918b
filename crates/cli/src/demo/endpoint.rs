//! A small httpbin: an HTTP server on loopback that echoes each request.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use data_encoding::BASE64;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, WWW_AUTHENTICATE};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::{Map, Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The login for the password-protected part of an endpoint.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// User name.
    pub username: String,
    /// Password.
    pub password: String,
}

/// A running endpoint. Dropping it stops it.
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    region: watch::Sender<String>,
    _stop: DropGuard,
}

impl Endpoint {
    /// Starts an endpoint on a free port.
    pub async fn start(region: &str, credentials: Credentials) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (sender, receiver) = watch::channel(region.to_owned());
        let stop = CancellationToken::new();
        let site = Arc::new(Site { region: receiver, credentials });
        tokio::spawn(stop.clone().run_until_cancelled_owned(serve(listener, site, stop.clone())));
        Ok(Self { address, region: sender, _stop: stop.drop_guard() })
    }

    /// Where it answers.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Makes it claim to run in another region.
    pub fn set_region(&self, region: &str) {
        self.region.send_if_modified(|current| {
            let changed = current != region;
            region.clone_into(current);
            changed
        });
    }
}

/// What all connections of one endpoint share.
struct Site {
    region: watch::Receiver<String>,
    credentials: Credentials,
}

async fn serve(listener: TcpListener, site: Arc<Site>, stop: CancellationToken) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let connection = connection(stream, peer, Arc::clone(&site));
                tokio::spawn(stop.clone().run_until_cancelled_owned(connection));
            }
            // Most likely out of file descriptors; some will be freed soon.
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::task::yield_now().await;
            }
        }
    }
}

async fn connection(stream: TcpStream, peer: SocketAddr, site: Arc<Site>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = site.answer(&request, peer);
        async move { Ok::<_, Infallible>(answer) }
    });
    let server = auto::Builder::new(TokioExecutor::new()).http1_only();
    if let Err(error) = server.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a connection ended early");
    }
}

impl Site {
    fn answer<B>(&self, request: &Request<B>, peer: SocketAddr) -> Response<Full<Bytes>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return reply(StatusCode::METHOD_NOT_ALLOWED, &json!({"error": "only GET and HEAD are answered"}));
        }
        let path = request.uri().path();
        let body = match path {
            "/" => json!({"region": self.region(), "try": ROUTES}),
            "/get" => json!({
                "args": arguments(request.uri().query().unwrap_or_default()),
                "headers": headers(request.headers()),
                "origin": peer.ip().to_string(),
                "url": url(request),
                "region": self.region(),
            }),
            "/headers" => json!({"headers": headers(request.headers())}),
            "/ip" => json!({"origin": peer.ip().to_string()}),
            "/uuid" => json!({"uuid": uuid::Uuid::new_v4().to_string()}),
            "/basic-auth" => return self.authenticate(request.headers()),
            _ => match path.strip_prefix("/status/").and_then(|code| StatusCode::from_bytes(code.as_bytes()).ok()) {
                // Status codes below 200 only announce another response.
                Some(code) if code.as_u16() >= 200 => return reply(code, &Value::Null),
                _ => return reply(StatusCode::NOT_FOUND, &json!({"error": "no such page", "try": ROUTES})),
            },
        };
        reply(StatusCode::OK, &body)
    }

    fn region(&self) -> String {
        self.region.borrow().clone()
    }

    fn authenticate(&self, headers: &HeaderMap) -> Response<Full<Bytes>> {
        let wanted = basic(&self.credentials);
        if headers.get(AUTHORIZATION).is_some_and(|given| given.as_bytes() == wanted.as_bytes()) {
            return reply(StatusCode::OK, &json!({"authenticated": true, "user": self.credentials.username}));
        }
        let mut answer = reply(StatusCode::UNAUTHORIZED, &json!({"authenticated": false}));
        answer.headers_mut().insert(WWW_AUTHENTICATE, http::HeaderValue::from_static("Basic realm=\"httpbin\""));
        answer
    }
}

const ROUTES: [&str; 6] = ["/get?a=b", "/headers", "/ip", "/uuid", "/status/418", "/basic-auth"];

/// The Authorization header for the credentials.
pub fn basic(credentials: &Credentials) -> String {
    format!("Basic {}", BASE64.encode(format!("{}:{}", credentials.username, credentials.password).as_bytes()))
}

fn reply(status: StatusCode, body: &Value) -> Response<Full<Bytes>> {
    let text = if body.is_null() { String::new() } else { format!("{body:#}\n") };
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    answer
}

fn headers(headers: &HeaderMap) -> Map<String, Value> {
    headers
        .iter()
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned().into()))
        .collect()
}

fn url<B>(request: &Request<B>) -> String {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let path = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    format!("http://{host}{path}")
}

/// The arguments of a query; one given several times becomes a list.
fn arguments(query: &str) -> Map<String, Value> {
    let mut all = Map::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (key, value) = (decode(key), Value::from(decode(value)));
        match all.get_mut(&key) {
            None => {
                all.insert(key, value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = json!([first.take(), value]),
        }
    }
    all
}

/// Decodes percent-escapes in a query; anything that is not an escape stays.
fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = (first == b'%')
            .then(|| tail.get(..2))
            .flatten()
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        if let Some(byte) = escaped {
            bytes.push(byte);
            rest = &tail[2..];
        } else {
            bytes.push(if first == b'+' { b' ' } else { first });
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    async fn ask(method: Method, path: &str, auth: Option<&str>) -> (u16, Value) {
        let (_sender, region) = watch::channel("eu-north".to_owned());
        let credentials = Credentials { username: "u".into(), password: "p".into() };
        let mut request = Request::builder().method(method).uri(path).header(HOST, "bin");
        if let Some(auth) = auth {
            request = request.header(AUTHORIZATION, auth);
        }
        let request = request.body(()).unwrap();
        let answer = Site { region, credentials }.answer(&request, ([127, 0, 0, 1], 1).into());
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    #[tokio::test]
    async fn get_returns_what_was_requested_and_where() {
        let (status, body) = ask(Method::GET, "/get?a=1&a=2&b=x%20y+z&c", None).await;
        let wanted = json!({
            "args": {"a": ["1", "2"], "b": "x y z", "c": ""},
            "headers": {"host": "bin"},
            "origin": "127.0.0.1",
            "url": "http://bin/get?a=1&a=2&b=x%20y+z&c",
            "region": "eu-north",
        });
        assert_eq!((status, body), (200, wanted));
    }

    #[tokio::test]
    async fn every_page_answers_with_its_code() {
        let login = basic(&Credentials { username: "u".into(), password: "p".into() });
        let cases = [
            (Method::GET, "/", None, 200),
            (Method::GET, "/headers", None, 200),
            (Method::HEAD, "/ip", None, 200),
            (Method::GET, "/uuid", None, 200),
            (Method::GET, "/status/418", None, 418),
            (Method::GET, "/status/101", None, 404),
            (Method::GET, "/status/x", None, 404),
            (Method::GET, "/nothing", None, 404),
            (Method::POST, "/get", None, 405),
            (Method::GET, "/basic-auth", None, 401),
            (Method::GET, "/basic-auth", Some("Basic eDp5"), 401),
            (Method::GET, "/basic-auth", Some(login.as_str()), 200),
        ];
        for (method, path, auth, wanted) in cases {
            assert_eq!(ask(method, path, auth).await.0, wanted, "{path}");
        }
    }

    #[test]
    fn broken_escapes_stay_as_they_are() {
        assert_eq!(decode("100%"), "100%");
        assert_eq!(decode("%zz%4"), "%zz%4");
        assert_eq!(decode("%41%ff"), "A\u{fffd}");
    }
}
