//! A connection to a server, without anything that would cost time of its own.

use std::sync::Arc;

use anyhow::{Context, bail};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client as Http;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value;

/// What is sent to which path, if anything.
pub struct Ask {
    method: &'static str,
    path: String,
    body: Option<Value>,
}

impl Ask {
    /// Reads something.
    pub fn get(path: impl Into<String>) -> Self {
        Self { method: "GET", path: path.into(), body: None }
    }

    /// Creates something.
    pub fn post(path: impl Into<String>, body: Value) -> Self {
        Self { method: "POST", path: path.into(), body: Some(body) }
    }

    /// Sends a merge patch.
    pub fn patch(path: impl Into<String>, body: Value) -> Self {
        Self { method: "PATCH", path: path.into(), body: Some(body) }
    }
}

/// One HTTP/2 connection.
#[derive(Clone)]
pub struct Client {
    http: Http<HttpsConnector<HttpConnector>, Full<Bytes>>,
    base: Arc<str>,
    token: Arc<str>,
}

impl Client {
    /// Connects with the first request.
    pub fn new(base: &str, authority: &[u8], token: &str) -> anyhow::Result<Self> {
        let mut roots = rustls::RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authority) {
            roots.add(certificate?)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        // Otherwise the body of a request waits 40 ms for the acknowledgement of its headers.
        tcp.set_nodelay(true);
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_only()
            .enable_http2()
            .wrap_connector(tcp);
        let http = Http::builder(TokioExecutor::new()).http2_only(true).build(connector);
        Ok(Self { http, base: base.into(), token: token.into() })
    }

    /// Sends a request; an answer that is no success is an error.
    pub async fn open(&self, ask: Ask) -> anyhow::Result<Incoming> {
        let Ask { method, path, body } = ask;
        let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", media)
            .body(Full::new(body.map(|body| Bytes::from(body.to_string())).unwrap_or_default()))?;
        let answer = self.http.request(request).await.with_context(|| format!("{method} {path}"))?;
        let code = answer.status();
        if !code.is_success() {
            let said = answer.into_body().collect().await?.to_bytes();
            bail!("{method} {path}: {code}: {}", String::from_utf8_lossy(&said));
        }
        Ok(answer.into_body())
    }

    /// Sends a request and waits for the whole answer.
    pub async fn send(&self, ask: Ask) -> anyhow::Result<Bytes> {
        Ok(self.open(ask).await?.collect().await?.to_bytes())
    }
}
