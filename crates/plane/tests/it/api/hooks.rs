//! A webhook for tests: HTTPS on loopback with an authority of its own.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What a webhook answers: code and body; `None` never answers.
pub type Answer = Option<(u16, String)>;
type Handler = Arc<dyn Fn(&Value) -> Answer + Send + Sync>;

pub struct Hook {
    address: SocketAddr,
    ca: String,
    /// What was asked, in order: the path and the document.
    asked: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Hook {
    /// Starts a webhook that answers like this.
    pub async fn start(handler: impl Fn(&Value) -> Answer + Send + Sync + 'static) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = params.self_signed(&key).unwrap();
        let issuer = Issuer::new(params, key);
        let own_key = KeyPair::generate().unwrap();
        let own = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&own_key, &issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.der().clone()], PrivateKeyDer::try_from(own_key.serialize_der()).unwrap())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let handler: Handler = Arc::new(handler);
        let seen = asked.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, handler, seen) = (acceptor.clone(), handler.clone(), seen.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(move |request| answer(request, handler.clone(), seen.clone()));
                    let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { address, ca: ca.pem(), asked }
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// A `clientConfig` for a path.
    pub fn client(&self, path: &str) -> Value {
        json!({"url": self.url(path), "caBundle": data_encoding::BASE64.encode(self.ca.as_bytes())})
    }

    /// What was asked since the last time.
    pub fn asked(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

async fn answer(
    request: Request<Incoming>,
    handler: Handler,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
) -> Result<Response<Full<Bytes>>, std::convert::Infallible> {
    let path = request.uri().to_string();
    let content = request.into_body().collect().await.unwrap().to_bytes();
    let document: Value = serde_json::from_slice(&content).unwrap();
    asked.lock().unwrap().push((path, document.clone()));
    let Some((code, body)) = handler(&document) else { return std::future::pending().await };
    let kind = if body.starts_with('{') { "application/json" } else { "text/plain" };
    let response = Response::builder().status(code).header("content-type", kind);
    Ok(response.body(Full::new(Bytes::from(body))).unwrap())
}

/// An answer to an `AdmissionReview`.
#[allow(clippy::unnecessary_wraps, reason = "what a webhook answers may be nothing")]
pub fn respond(review: &Value, mut response: Value) -> Answer {
    response["uid"] = review["request"]["uid"].clone();
    let (version, kind) = (&review["apiVersion"], &review["kind"]);
    Some((200, json!({"apiVersion": version, "kind": kind, "response": response}).to_string()))
}

/// Allows a request.
pub fn allow(review: &Value) -> Answer {
    respond(review, json!({"allowed": true}))
}

/// Allows a request with a JSON patch.
pub fn patch(review: &Value, operations: &Value) -> Answer {
    let patch = data_encoding::BASE64.encode(operations.to_string().as_bytes());
    respond(review, json!({"allowed": true, "patch": patch, "patchType": "JSONPatch"}))
}

/// A configuration with one webhook for ConfigMaps.
pub fn configuration(kind: &str, name: &str, client: &Value, extra: &Value) -> Value {
    let mut hook = json!({
        "name": format!("{name}.example.io"), "clientConfig": client, "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "timeoutSeconds": 5,
        "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
    });
    for (key, value) in extra.as_object().into_iter().flatten() {
        hook[key.as_str()] = value.clone();
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "webhooks": [hook],
    })
}

pub const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
pub const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
pub const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
pub const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
