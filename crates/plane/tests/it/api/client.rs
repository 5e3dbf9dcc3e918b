//! A plane and a small HTTPS client for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use carrick_plane::{ClientCertificate, Config, Mode, Plane, User};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client as Http;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};

pub const WIDGETS: &str = "/apis/example.io/v1/namespaces/default/widgets";
pub const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// How long anything may take, also on a slow machine.
pub const PATIENCE: Duration = Duration::from_mins(1);

pub struct World {
    pub plane: Plane,
    pub admin: Client,
}

#[derive(Clone)]
pub struct Client {
    http: Http<HttpsConnector<HttpConnector>, Full<Bytes>>,
    base: String,
    token: Option<String>,
}

pub struct Answer {
    pub code: u16,
    pub headers: http::HeaderMap,
    pub body: Value,
    pub text: String,
}

impl World {
    pub async fn start() -> World {
        let mut config = Config::new(Mode::Kube);
        config.users = vec![User::new("bob-token", "bob", &["developers"])];
        Self::with(config).await
    }

    pub async fn with(config: Config) -> World {
        let plane = Plane::start(config).await.unwrap();
        let admin = Client::new(&plane, plane.token("admin"));
        World { plane, admin }
    }

    /// A kcp with some users, whose tokens are their names.
    pub async fn kcp(users: &[&str]) -> World {
        let mut config = Config::new(Mode::Kcp);
        config.users = users.iter().map(|name| User::new(name, name, &[])).collect();
        let plane = Plane::start(config).await.unwrap();
        let admin = Client::new(&plane, plane.token("kcp-admin"));
        World { plane, admin }
    }

    pub fn user(&self, name: &str) -> Client {
        Client::new(&self.plane, self.plane.token(name))
    }

    pub fn with_token(&self, token: Option<&str>) -> Client {
        Client::new(&self.plane, token.map(str::to_owned))
    }

    /// With a CRD for widgets.
    pub async fn with_widgets() -> World {
        let world = Self::start().await;
        world.admin.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", widget_crd()).await.expect(201);
        world
    }
}

impl Client {
    fn new(plane: &Plane, token: Option<String>) -> Client {
        Self::at(plane.url(), plane.ca_pem(), token)
    }

    pub fn at(url: &str, ca_pem: &str, token: Option<String>) -> Client {
        Self::build(url, ca_pem, token, None)
    }

    /// Says who it is with a certificate.
    pub fn with_certificate(plane: &Plane, certificate: &ClientCertificate) -> Client {
        Self::build(plane.url(), plane.ca_pem(), None, Some(certificate))
    }

    fn build(url: &str, ca_pem: &str, token: Option<String>, certificate: Option<&ClientCertificate>) -> Client {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let tls = match certificate {
            None => tls.with_no_client_auth(),
            Some(ClientCertificate { certificate, key }) => {
                let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
                tls.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap()).unwrap()
            }
        };
        let connector =
            hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_all_versions().build();
        let http = Http::builder(TokioExecutor::new()).build(connector);
        Client { http, base: url.to_owned(), token }
    }

    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> http::Response<Incoming> {
        self.try_send(method, path, headers, body).await.unwrap()
    }

    /// Fails if the connection does.
    pub async fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<http::Response<Incoming>, hyper_util::client::legacy::Error> {
        let mut request = Request::builder()
            .method(Method::from_bytes(method.as_bytes()).unwrap())
            .uri(format!("{}{path}", self.base));
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        tokio::time::timeout(PATIENCE, self.http.request(request)).await.expect("an answer in time")
    }

    pub async fn call(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Answer {
        self.try_call(method, path, headers, body).await.expect("a whole answer")
    }

    /// None if the connection fails.
    pub async fn try_call(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Option<Answer> {
        let response = self.try_send(method, path, headers, body).await.ok()?;
        let code = response.status().as_u16();
        let headers = response.headers().clone();
        let content = response.into_body().collect().await.ok()?.to_bytes();
        let text = String::from_utf8_lossy(&content).into_owned();
        Some(Answer { code, headers, body: serde_json::from_str(&text).unwrap_or(Value::Null), text })
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, &[], Vec::new()).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.call("POST", path, &[("content-type", "application/json")], body.to_string().into()).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.call("PUT", path, &[("content-type", "application/json")], body.to_string().into()).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", path, &[], Vec::new()).await
    }

    pub async fn patch(&self, path: &str, kind: &str, body: Value) -> Answer {
        let media = match kind {
            "apply" => "application/apply-patch+yaml".to_owned(),
            other => format!("application/{other}-patch+json"),
        };
        self.call("PATCH", path, &[("content-type", &media)], body.to_string().into()).await
    }

    pub async fn watch(&self, path: &str) -> Lines {
        let response = self.send("GET", path, &[], Vec::new()).await;
        assert_eq!(response.status(), 200);
        Lines { body: response.into_body(), buffer: Vec::new() }
    }

    /// Reads a path until its answer fits.
    pub async fn until(&self, path: &str, fits: impl Fn(&Answer) -> bool) -> Answer {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = self.get(path).await;
            if fits(&answer) {
                return answer;
            }
            assert!(Instant::now() < deadline, "{path} never became as expected: {}", answer.text);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Answer {
    #[track_caller]
    pub fn expect(self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", self.text);
        self.body
    }

    #[track_caller]
    pub fn refused(self, code: u16, message: &str) {
        assert_eq!((self.code, self.body["message"].as_str().unwrap_or_default()), (code, message), "{}", self.text);
        assert_eq!(self.body["kind"], "Status");
    }
}

/// The events of a watch.
pub struct Lines {
    body: Incoming,
    buffer: Vec<u8>,
}

impl Lines {
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await.expect("an event in time")?;
            self.buffer.extend(frame.ok()?.into_data().unwrap());
        }
    }

    /// Type and name of the next event.
    pub async fn event(&mut self) -> (String, String) {
        let event = self.next().await.expect("an event");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&event["type"]), text(&event["object"]["metadata"]["name"]))
    }
}

pub fn widget_crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.io"},
        "spec": {
            "group": "example.io", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [
                {
                    "name": "v1", "served": true, "storage": true,
                    "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
                    "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                    "schema": {"openAPIV3Schema": widget_schema()},
                },
                {
                    "name": "v1beta1", "served": true, "storage": false, "deprecated": true,
                    "subresources": {"status": {}}, "schema": {"openAPIV3Schema": widget_schema()},
                },
            ],
        },
    })
}

fn widget_schema() -> Value {
    json!({
        "type": "object", "required": ["spec"], "properties": {
            "spec": {
                "type": "object", "required": ["size"],
                "x-kubernetes-validations": [
                    {"rule": "self.size <= 100", "message": "size is too big"},
                    {"rule": "!has(oldSelf.fixed) || (has(self.fixed) && self.fixed == oldSelf.fixed)", "message": "fixed is immutable"},
                ],
                "properties": {
                    "size": {"type": "integer", "minimum": 1},
                    "color": {"type": "string", "enum": ["red", "green"], "default": "red"},
                    "fixed": {"type": "string", "maxLength": 5, "pattern": "^[a-z]*$"},
                    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                    "ports": {
                        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                        "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}},
                    },
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                },
            },
            "status": {"type": "object", "properties": {"size": {"type": "integer"}, "phase": {"type": "string"}}},
        },
    })
}

pub fn widget(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

pub fn map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}
