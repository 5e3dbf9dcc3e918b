//! What the small HTTP servers answer: metrics for Prometheus, probes for the kubelet, the dashboard for people.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use carrick_process::Page;
use http::header::SET_COOKIE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::dashboard::{self, Dashboard};
use super::health::Health;
use super::login::{self, Login, LoginError};
use super::metrics::Metrics;
use super::objects::Wanted;

/// The flag that names the address of the dashboard.
pub(super) const DASHBOARD_FLAG: &str = "--dashboard-address";

/// What a server answers with.
#[derive(Debug, Clone)]
pub enum Pages {
    /// `/metrics`.
    Metrics(Arc<Metrics>),
    /// `/healthz` and `/readyz`.
    Health(Arc<Health>),
}

impl Pages {
    /// The flag that names their address.
    pub fn flag(&self) -> &'static str {
        match self {
            Self::Metrics(_) => "--metrics-address",
            Self::Health(_) => "--health-address",
        }
    }

    /// The answer to a request for a path and a query.
    pub fn answer(&self, target: &str) -> Page {
        let (path, _) = target.split_once('?').unwrap_or((target, ""));
        match (self, path) {
            (Self::Metrics(metrics), "/metrics") => Page::text(StatusCode::OK, metrics.render()),
            (Self::Health(_), "/healthz") => Page::text(StatusCode::OK, "ok\n"),
            (Self::Health(health), "/readyz") => {
                let problems = health.problems();
                if problems.is_empty() {
                    Page::text(StatusCode::OK, "ok\n")
                } else {
                    Page::text(StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", problems.join("\n")))
                }
            }
            _ => Page::missing(path),
        }
    }
}

/// Serves the dashboard until told to stop, to those who may look if there is a login.
pub(super) async fn serve_dashboard(
    listener: TcpListener,
    dashboard: Arc<Dashboard>,
    login: Option<Arc<Login>>,
    stop: CancellationToken,
) {
    let answer = move |request| {
        let (dashboard, login) = (Arc::clone(&dashboard), login.clone());
        async move { answer(&dashboard, login.as_deref(), request).await }
    };
    carrick_process::serve_requests(listener, answer, stop).await;
}

async fn answer(dashboard: &Dashboard, login: Option<&Login>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let target = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str).to_owned();
    let reads = [Method::GET, Method::HEAD].contains(request.method());
    match (login, target.as_str()) {
        (Some(login), "/login" | "/logout") if *request.method() == Method::POST => enter(login, request).await,
        (_, path) if !reads => {
            Page::text(StatusCode::METHOD_NOT_ALLOWED, format!("{path} can only be read\n")).response()
        }
        // Another site must not get at anything by giving its own name to this machine.
        (None, _) if !carrick_process::is_local(request.headers()) => {
            let words = "this is shown only at localhost or an IP address, or to those who log in\n";
            Page::text(StatusCode::FORBIDDEN, words).response()
        }
        (None, target) => look(dashboard, target).response(),
        (Some(login), target) => match login.check(request.headers()).await {
            Ok(()) => with_logout(look(dashboard, target)).response(),
            Err(error) => refused(&error, target == "/").response(),
        },
    }
}

/// The page offers to log out where one has to log in.
fn with_logout(page: Page) -> Page {
    let text = if page.kind == Page::HTML { page.text.replacen("<html", "<html data-login", 1) } else { page.text };
    Page { text, ..page }
}

/// Begins or ends a session.
async fn enter(login: &Login, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let headers = request.headers().clone();
    let cookie = if request.uri().path() == "/logout" {
        login.end(&headers)
    } else {
        // What is longer is no token.
        let body =
            Limited::new(request.into_body(), login::LONGEST).collect().await.map(http_body_util::Collected::to_bytes);
        let token = body.ok().and_then(|body| String::from_utf8(body.to_vec()).ok()).unwrap_or_default();
        match login.begin(token.trim(), &headers).await {
            Ok(cookie) => cookie,
            Err(error) => return refused(&error, false).response(),
        }
    };
    let mut response = Page::text(StatusCode::OK, "ok\n").response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

/// What somebody who may not look gets to see: why, and the way in.
fn refused(error: &LoginError, page: bool) -> Page {
    if let LoginError::Unasked(_) = error {
        tracing::warn!(%error, "Somebody could not log in to the dashboard.");
    }
    if page {
        return Page::html(error.status(), dashboard::LOGIN_PAGE);
    }
    Page::text(error.status(), format!("{error}\n{}", dashboard::WAY_IN))
}

/// What the dashboard shows at a path.
fn look(dashboard: &Dashboard, target: &str) -> Page {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = parameters(query);
    let of = |key: &str| query.get(key).cloned().unwrap_or_default();
    let json =
        |value: serde_json::Value| Page { status: StatusCode::OK, kind: "application/json", text: value.to_string() };
    match path {
        "/" => Page::html(StatusCode::OK, dashboard::PAGE),
        "/state.json" => json(dashboard.state()),
        "/find.json" => {
            let text = of("q").trim_start_matches("cluster://").to_owned();
            json(dashboard.find(&Wanted { text, stopped: query.contains_key("stopped"), reason: of("reason") }))
        }
        "/compare.json" => match dashboard.compare(&of("published"), &of("order")) {
            Some(comparison) => json(comparison),
            None => Page::text(
                StatusCode::NOT_FOUND,
                format!("{} of {} does not exist, or has no copy\n", of("order"), of("published")),
            ),
        },
        "/trace.json" => match dashboard.trace(&of("published"), &of("order")) {
            Some(way) => json(way),
            None => {
                Page::text(StatusCode::NOT_FOUND, format!("{} of {} does not exist\n", of("order"), of("published")))
            }
        },
        path => Page::missing(path),
    }
}

/// The parameters of a query.
fn parameters(query: &str) -> HashMap<String, String> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(k, v)| (decoded(k), decoded(v))).collect()
}

/// A part of a query with its escapes decoded, `+` for a space among them; invalid escapes stay as they are.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let escaped = more.get(..2).filter(|_| *first == b'%');
        let escaped = escaped.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(escaped.unwrap_or(if *first == b'+' { b' ' } else { *first }));
        rest = if escaped.is_some() { &more[2..] } else { more };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_tell_the_truth() {
        let health = Arc::new(Health::default());
        let pages = Pages::Health(Arc::clone(&health));
        let part = health.part("watch of CRDs");
        assert_eq!(pages.answer("/healthz").status, StatusCode::OK);
        let unready = Page::text(StatusCode::SERVICE_UNAVAILABLE, "watch of CRDs: starting\n");
        assert_eq!(pages.answer("/readyz"), unready);
        part.works();
        assert_eq!(pages.answer("/readyz").status, StatusCode::OK);
        assert_eq!(pages.answer("/metrics").status, StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn nothing_is_read_by_a_name_that_somebody_else_gave_to_this_machine() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
        let dashboard = Arc::new(Dashboard::new("a", "s".to_owned(), Arc::default(), Arc::default()));
        let serving = tokio::spawn(serve_dashboard(listener, dashboard, None, stop.clone()));
        let ask = async |path: &str, host: &str| {
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        for path in [
            "/",
            "/state.json",
            "/find.json?q=",
            "/compare.json?published=p&order=o",
            "/trace.json?published=p&order=o",
        ] {
            let answer = ask(path, "rebound.example.com").await;
            assert!(answer.starts_with("HTTP/1.1 403 "), "{path}: {answer}");
        }
        assert!(ask("/state.json", "localhost:8086").await.starts_with("HTTP/1.1 200 "));
        stop.cancel();
        serving.await.unwrap();
    }

    #[test]
    fn content_is_not_shown_under_foreign_names() {
        for (host, local) in [
            ("127.0.0.1:8086", true),
            ("localhost", true),
            ("agent.localhost:1", true),
            ("[::1]:8086", true),
            ("10.0.0.1", true),
            ("evil.example.com:8086", false),
            ("localhost.evil.com", false),
            ("", false),
        ] {
            let headers = http::HeaderMap::from_iter([(http::header::HOST, HeaderValue::from_str(host).unwrap())]);
            assert_eq!(carrick_process::is_local(&headers), local, "{host}");
        }
    }

    #[test]
    fn queries_are_read_without_their_escapes() {
        for (text, wanted) in
            [("a%2Fb", "a/b"), ("%C3%A4", "ä"), ("100%", "100%"), ("a+b", "a b"), ("%zz", "%zz"), ("", "")]
        {
            assert_eq!(decoded(text), wanted);
        }
        let dashboard = Dashboard::new("a", "s".to_owned(), Arc::default(), Arc::default());
        let found = look(&dashboard, "/find.json?stopped&q=a%20b&reason=Forbidden").text;
        assert_eq!(found, r#"{"asked":"a b","found":[],"total":0}"#);
        assert_eq!(
            look(&dashboard, "/find.json?q=cluster://c/ns/n").text,
            r#"{"asked":"c/ns/n","found":[],"total":0}"#
        );
        assert_eq!(look(&dashboard, "/?x").status, StatusCode::OK);
        assert_eq!(look(&dashboard, "/metrics").status, StatusCode::NOT_FOUND);
        let missing = look(&dashboard, "/compare.json?published=p&order=c%2Fns%2Fn");
        assert_eq!(missing, Page::text(StatusCode::NOT_FOUND, "c/ns/n of p does not exist, or has no copy\n"));
        let missing = look(&dashboard, "/trace.json?published=p&order=c%2Fns%2Fn");
        assert_eq!(missing, Page::text(StatusCode::NOT_FOUND, "c/ns/n of p does not exist\n"));
    }
}
