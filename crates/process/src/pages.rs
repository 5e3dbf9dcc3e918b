//! A small HTTP server.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use data_encoding::BASE64;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Nothing comes from elsewhere, and nothing goes there.
const POLICY: &str = "default-src 'none'; connect-src 'self'; img-src data:; frame-ancestors 'none'; form-action 'none'; base-uri 'none'";

/// What all pages look like, and where it goes in each of them.
const STYLE: &str = include_str!("style.css");
const STYLED: &str = "/* shared */";

/// Why a server does not listen.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The address is malformed, not local, or in use.
    #[error("cannot listen on {address:?} for {flag}: {reason}; choose another address, or 0 to turn it off")]
    Bind {
        /// The flag that named the address.
        flag: &'static str,
        /// The address.
        address: String,
        /// What the system said.
        reason: std::io::Error,
    },
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The status code.
    pub status: StatusCode,
    /// The content type.
    pub kind: &'static str,
    /// The content.
    pub text: String,
}

impl Page {
    /// The content type of plain text, in the form that Prometheus wants.
    pub const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

    /// The content type of pages for people.
    pub const HTML: &str = "text/html; charset=utf-8";

    /// A page for people, with the style that all of them share in place of `/* shared */`.
    pub fn html(status: StatusCode, text: &str) -> Self {
        Self { status, kind: Self::HTML, text: text.replacen(STYLED, STYLE, 1) }
    }

    /// Plain text.
    pub fn text(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, kind: Self::TEXT, text: text.into() }
    }

    /// The page as it is sent: no foreign script runs in it, no other page can embed it, and nobody keeps it.
    pub fn response(self) -> Response<Full<Bytes>> {
        let policy = if self.kind == Self::HTML { policy(&self.text) } else { POLICY.to_owned() };
        // Hashes in base64 are fine in a header.
        let policy = HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static(POLICY));
        let mut response = Response::new(Full::new(Bytes::from(self.text)));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.kind));
        headers.insert(CONTENT_SECURITY_POLICY, policy);
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    /// There is nothing at a path.
    pub fn missing(path: &str) -> Self {
        Self::text(StatusCode::NOT_FOUND, format!("{path} is not here\n"))
    }
}

/// What a page may do: run the scripts and use the styles that are written in it, known by their hashes, and no others. Whatever somebody gets
/// into a page as text has no such hash.
fn policy(page: &str) -> String {
    let mut policy = POLICY.to_owned();
    for (element, directive) in [("script", "script-src"), ("style", "style-src")] {
        let (open, close) = (format!("<{element}>"), format!("</{element}>"));
        let inside = page.split(open.as_str()).skip(1).filter_map(|rest| rest.split_once(close.as_str()));
        let hashes: Vec<String> =
            inside.map(|(text, _)| format!("'sha256-{}'", BASE64.encode(&Sha256::digest(text)))).collect();
        if !hashes.is_empty() {
            // Writing to a String cannot fail.
            let _ = write!(policy, "; {directive} {}", hashes.join(" "));
        }
    }
    policy
}

/// Listens on `host:port` or `:port`, as a flag says.
pub async fn bind(address: &str, flag: &'static str) -> Result<TcpListener, HttpError> {
    let bound = match address.strip_prefix(':') {
        // All addresses of both families where there is IPv6, else all IPv4 addresses.
        Some(port) => match TcpListener::bind(format!("[::]:{port}")).await {
            Ok(listener) => Ok(listener),
            Err(_) => TcpListener::bind(format!("0.0.0.0:{port}")).await,
        },
        None => TcpListener::bind(address).await,
    };
    bound.map_err(|reason| HttpError::Bind { flag, address: address.to_owned(), reason })
}

/// Answers requests, each by its path and query, until told to stop.
pub async fn serve(
    listener: TcpListener,
    answer: impl Fn(&str) -> Page + Send + Sync + 'static,
    stop: CancellationToken,
) {
    let answer = move |request: Request<Incoming>| {
        let page = answer(request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str));
        std::future::ready(page.response())
    };
    serve_requests(listener, answer, stop).await;
}

/// Answers requests until told to stop.
pub async fn serve_requests<F>(
    listener: TcpListener,
    answer: impl Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    stop: CancellationToken,
) where
    F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let answer = Arc::new(answer);
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            // Out of file descriptors, most likely: do not spin.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (answer, stop) = (Arc::clone(&answer), stop.clone());
        tokio::spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let answer = answer(request);
                async move { Ok::<_, Infallible>(answer.await) }
            });
            // The timer limits how long a client may take to send its headers.
            let connection =
                http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
            tokio::select! {
                () = stop.cancelled() => {}
                _ = connection => {}
            }
        });
    }
}

/// Whether the browser was told to go to this machine, rather than to a name that somebody else may have pointed at it.
pub fn is_local(headers: &http::HeaderMap) -> bool {
    let host = headers.get(http::header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name =
        host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit())).map_or(host, |it| it.0);
    let is_address = name.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok();
    is_address || name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    #[test]
    fn only_scripts_and_styles_of_the_page_itself_are_allowed() {
        let page = Page::html(StatusCode::OK, "<style>a</style><p onclick=x><script>alert(1)</script>");
        let policy = page.response().headers()[CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
        // printf 'alert(1)' | openssl dgst -sha256 -binary | base64
        assert!(policy.contains("; script-src 'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='"), "{policy}");
        assert!(policy.contains("; style-src 'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='"), "{policy}");
        assert!(!policy.contains("unsafe-inline") && policy.starts_with("default-src 'none'"), "{policy}");
        let plain = Page::text(StatusCode::OK, "<script>alert(1)</script>").response();
        assert!(!plain.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap().contains("script-src"));
    }

    #[tokio::test]
    async fn an_address_that_is_taken_is_named_with_its_flag() {
        let first = bind("127.0.0.1:0", "--health-address").await.unwrap();
        let address = first.local_addr().unwrap().to_string();
        let error = bind(&address, "--health-address").await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot listen on \"{address}\" for --health-address: ")), "{error}");
    }

    #[tokio::test]
    async fn pages_are_served_until_the_end() {
        let listener = bind("127.0.0.1:0", "--address").await.unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
        let serving = tokio::spawn(serve(listener, |target| Page::text(StatusCode::OK, target), stop.clone()));
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /a?b HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\n/a?b"), "{answer}");
        assert!(answer.contains("frame-ancestors 'none'"), "{answer}");
        stop.cancel();
        serving.await.unwrap();
    }
}
