//! The two small HTTP servers: metrics for Prometheus, probes for the kubelet.

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

use super::health::Health;
use super::metrics::Metrics;

/// Why a server does not listen.
#[derive(Debug, Error)]
pub enum HttpError {
    /// The address is malformed, not ours, or taken.
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
}

impl Pages {
    fn flag(&self) -> &'static str {
        match self {
            Self::Metrics(_) => "--metrics-address",
            Self::Health(_) => "--health-address",
        }
    }

    fn answer(&self, path: &str) -> (StatusCode, String) {
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
            _ => (StatusCode::NOT_FOUND, format!("{path} is not here\n")),
        }
    }
}

/// Listens on `host:port` or `:port`.
pub async fn bind(address: &str, pages: &Pages) -> Result<TcpListener, HttpError> {
    let bound = match address.strip_prefix(':') {
        // All addresses of both families where there is IPv6, else of the one there is.
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
                let (status, text) = pages.answer(request.uri().path());
                async move {
                    let mut response = Response::new(Full::new(Bytes::from(text)));
                    *response.status_mut() = status;
                    let kind = http::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
                    response.headers_mut().insert(http::header::CONTENT_TYPE, kind);
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

    #[tokio::test]
    async fn an_address_that_is_taken_is_named_with_its_flag() {
        let pages = Pages::Health(Arc::default());
        let first = bind("127.0.0.1:0", &pages).await.unwrap();
        let address = first.local_addr().unwrap().to_string();
        let error = bind(&address, &pages).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot listen on \"{address}\" for --health-address: ")), "{error}");
    }
}
