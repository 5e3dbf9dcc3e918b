//! The small HTTP servers: metrics for Prometheus, probes for the kubelet, the dashboard for people.

use std::convert::Infallible;
use std::sync::Arc;

use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::dashboard::{self, Dashboard};
use super::health::Health;
use super::metrics::Metrics;

/// Why a server does not listen.
#[derive(Debug, Error)]
pub enum HttpError {
    /// The address is malformed, not local, or in use.
    #[error("cannot listen on {address:?} for {flag}: {source}; choose another address, or 0 to turn it off")]
    Bind {
        /// The flag that named the address.
        flag: &'static str,
        /// The address.
        address: String,
        /// What the system said.
        source: std::io::Error,
    },
}

/// What a server answers with.
#[derive(Debug, Clone)]
pub enum Pages {
    /// `/metrics`.
    Metrics(Arc<Metrics>),
    /// `/healthz` and `/readyz`.
    Health(Arc<Health>),
    /// `/`, `/state.json` and `/find.json`.
    Dashboard(Arc<Dashboard>),
}

impl Pages {
    fn flag(&self) -> &'static str {
        match self {
            Self::Metrics(_) => "--metrics-address",
            Self::Health(_) => "--health-address",
            Self::Dashboard(_) => "--dashboard-address",
        }
    }

    fn answer(&self, target: &str) -> (StatusCode, String) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        match (self, path) {
            (Self::Metrics(metrics), "/metrics") => (StatusCode::OK, metrics.render()),
            (Self::Health(_), "/healthz") => (StatusCode::OK, "ok\n".to_owned()),
            (Self::Health(health), "/readyz") => {
                let problems = health.problems();
                if problems.is_empty() {
                    (StatusCode::OK, "ok\n".to_owned())
                } else {
                    (StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", problems.join("\n")))
                }
            }
            (Self::Dashboard(_), "/") => (StatusCode::OK, dashboard::PAGE.to_owned()),
            (Self::Dashboard(dashboard), "/state.json") => (StatusCode::OK, dashboard.state().to_string()),
            (Self::Dashboard(dashboard), "/find.json") => {
                let asked = query.strip_prefix("q=").unwrap_or_default();
                (StatusCode::OK, dashboard.find(&decoded(asked)).to_string())
            }
            _ => (StatusCode::NOT_FOUND, format!("{path} is not here\n")),
        }
    }
}

/// The content type at a path.
fn content_type(path: &str) -> &'static str {
    match path {
        "/" => "text/html; charset=utf-8",
        "/state.json" | "/find.json" => "application/json",
        _ => "text/plain; version=0.0.4; charset=utf-8",
    }
}

/// A part of a query with its escapes decoded; invalid escapes stay as they are.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let escaped = more.get(..2).filter(|_| *first == b'%');
        let escaped = escaped.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &more[2..] } else { more };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Listens on `host:port` or `:port`.
pub async fn bind(address: &str, pages: &Pages) -> Result<TcpListener, HttpError> {
    let bound = match address.strip_prefix(':') {
        // All addresses of both families where there is IPv6, else all IPv4 addresses.
        Some(port) => match TcpListener::bind(format!("[::]:{port}")).await {
            Ok(listener) => Ok(listener),
            Err(_) => TcpListener::bind(format!("0.0.0.0:{port}")).await,
        },
        None => TcpListener::bind(address).await,
    };
    bound.map_err(|source| HttpError::Bind { flag: pages.flag(), address: address.to_owned(), source })
}

/// Answers requests until told to stop.
pub async fn serve(listener: TcpListener, pages: Pages, stop: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            // Out of file descriptors, most likely: do not spin.
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            continue;
        };
        let pages = pages.clone();
        let stop = stop.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let target = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
                let (status, text) = pages.answer(target);
                let kind = content_type(request.uri().path());
                async move {
                    let mut response = Response::new(Full::new(Bytes::from(text)));
                    *response.status_mut() = status;
                    let headers = response.headers_mut();
                    headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
                    // No foreign script runs in the page, and no other page can embed it.
                    let policy =
                        "default-src 'self' 'unsafe-inline'; img-src data:; frame-ancestors 'none'; form-action 'none'";
                    headers.insert(http::header::CONTENT_SECURITY_POLICY, http::HeaderValue::from_static(policy));
                    headers.insert(http::header::X_CONTENT_TYPE_OPTIONS, http::HeaderValue::from_static("nosniff"));
                    Ok::<_, Infallible>(response)
                }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_tell_the_truth() {
        let health = Arc::new(Health::default());
        let pages = Pages::Health(Arc::clone(&health));
        let part = health.part("watch of CRDs");
        assert_eq!(pages.answer("/healthz").0, StatusCode::OK);
        assert_eq!(pages.answer("/readyz"), (StatusCode::SERVICE_UNAVAILABLE, "watch of CRDs: starting\n".to_owned()));
        part.works();
        assert_eq!(pages.answer("/readyz").0, StatusCode::OK);
        assert_eq!(pages.answer("/metrics").0, StatusCode::NOT_FOUND);
    }

    #[test]
    fn queries_are_read_without_their_escapes() {
        for (text, wanted) in [("a%2Fb", "a/b"), ("%C3%A4", "ä"), ("100%", "100%"), ("%zz", "%zz"), ("", "")] {
            assert_eq!(decoded(text), wanted);
        }
        let dashboard = Dashboard::new("a", "s".to_owned(), Arc::default(), Arc::default());
        let pages = Pages::Dashboard(Arc::new(dashboard));
        assert_eq!(pages.answer("/find.json?q=a%20b").1, r#"{"asked":"a b","found":[]}"#);
        assert_eq!(pages.answer("/?x").0, StatusCode::OK);
        assert_eq!(pages.answer("/metrics").0, StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn an_address_that_is_taken_is_named_with_its_flag() {
        let pages = Pages::Health(Arc::default());
        let first = bind("127.0.0.1:0", &pages).await.unwrap();
        let address = first.local_addr().unwrap().to_string();
        let error = bind(&address, &pages).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot listen on \"{address}\" for --health-address: ")), "{error}");
    }
}
