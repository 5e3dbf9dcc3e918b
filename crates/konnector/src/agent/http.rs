//! The small HTTP server: probes for the kubelet, metrics for Prometheus.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderValue, Request, Response, StatusCode, header};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::health::Health;
use super::metrics::Metrics;

/// Why a server does not listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The address is malformed, not local, or in use.
    #[error("cannot listen on {address:?}: {source}; choose another --server-address, or 0 to turn it off")]
    Bind {
        /// The address.
        address: String,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Listens on `host:port` or `:port`.
pub async fn bind(address: &str) -> Result<TcpListener, HttpError> {
    let bound = match address.strip_prefix(':') {
        // All addresses of both families where there is IPv6, else all IPv4 addresses.
        Some(port) => match TcpListener::bind(format!("[::]:{port}")).await {
            Ok(listener) => Ok(listener),
            Err(_) => TcpListener::bind(format!("0.0.0.0:{port}")).await,
        },
        None => TcpListener::bind(address).await,
    };
    bound.map_err(|source| HttpError::Bind { address: address.to_owned(), source })
}

/// Answers requests until told to stop.
pub async fn serve(listener: TcpListener, health: Arc<Health>, metrics: Arc<Metrics>, stop: CancellationToken) {
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
        let (health, metrics, stop) = (Arc::clone(&health), Arc::clone(&metrics), stop.clone());
        tokio::spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let (status, kind, text) = answer(request.uri().path(), &health, &metrics);
                let mut response = Response::new(Full::new(Bytes::from(text)));
                *response.status_mut() = status;
                response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
                async move { Ok::<_, Infallible>(response) }
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

fn answer(path: &str, health: &Health, metrics: &Metrics) -> (StatusCode, &'static str, String) {
    const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
    match path {
        "/healthz" => {
            let (works, checks) = health.checks();
            let status = if works { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
            (status, "application/json", format!("{checks}\n"))
        }
        "/readyz" => match health.unready() {
            None => (StatusCode::OK, TEXT, "ok\n".to_owned()),
            Some(why) => (StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{why}\n")),
        },
        "/metrics" => (StatusCode::OK, TEXT, metrics.render()),
        path => (StatusCode::NOT_FOUND, TEXT, format!("{path} is not here\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_answer_as_those_of_kube_bind_do() {
        let (health, metrics) = (Health::default(), Metrics::default());
        let answer = |path| answer(path, &health, &metrics);
        assert_eq!(
            answer("/healthz"),
            (StatusCode::OK, "application/json", "{\"leaderElection\":\"ok\"}\n".to_owned())
        );
        assert_eq!(answer("/readyz").0, StatusCode::OK);
        assert!(answer("/metrics").2.contains("konnector_leading 0"));
        assert_eq!(answer("/").0, StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn an_address_that_is_taken_is_named_with_its_flag() {
        let first = bind("127.0.0.1:0").await.unwrap();
        let address = first.local_addr().unwrap().to_string();
        let error = bind(&address).await.unwrap_err().to_string();
        assert!(error.contains(&address) && error.contains("--server-address"), "{error}");
    }
}
