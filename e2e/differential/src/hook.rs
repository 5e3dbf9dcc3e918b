//! A webhook that servers call: HTTPS on loopback, with an authority of its own. It remembers what it was asked.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// Answers a document.
type Respond = fn(&Value) -> Value;

/// A running webhook; it ends when it is dropped.
pub struct Hook {
    address: SocketAddr,
    authority: String,
    asked: Arc<Mutex<Vec<Value>>>,
    task: JoinHandle<()>,
}

impl Drop for Hook {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Hook {
    /// Starts one.
    pub async fn start(respond: Respond) -> anyhow::Result<Self> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = params.self_signed(&key)?.pem();
        let issuer = Issuer::new(params, key);
        let own = KeyPair::generate()?;
        let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])?.signed_by(&own, &issuer)?;
        let private = PrivateKeyDer::try_from(own.serialize_der()).map_err(|why| anyhow::anyhow!("{why}"))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)?;
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.context("no port for a webhook")?;
        let address = listener.local_addr()?;
        let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
        let seen = asked.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, seen) = (acceptor.clone(), seen.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(move |request| answer(request, respond, seen.clone()));
                    // A caller that goes away is no concern of a webhook.
                    let _ = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Ok(Self { address, authority, asked, task })
    }

    /// Where it is.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// A `clientConfig` for a path.
    pub fn client(&self, path: &str) -> Value {
        let authority = data_encoding::BASE64.encode(self.authority.as_bytes());
        json!({ "url": format!("https://{}{path}", self.address), "caBundle": authority })
    }

    /// What it was asked since the last time.
    pub fn asked(&self) -> Vec<Value> {
        std::mem::take(&mut *self.asked.lock())
    }
}

async fn answer(
    request: http::Request<Incoming>,
    respond: Respond,
    asked: Arc<Mutex<Vec<Value>>>,
) -> Result<http::Response<Full<Bytes>>, Infallible> {
    let path = request.uri().to_string();
    let content = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let document: Value = serde_json::from_slice(&content).unwrap_or_default();
    asked.lock().push(json!({ "path": path, "document": document }));
    let mut response = http::Response::new(Full::new(Bytes::from(respond(&document).to_string())));
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    Ok(response)
}
