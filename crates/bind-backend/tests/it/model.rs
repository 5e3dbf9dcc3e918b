//! A provider in memory, and a browser without a screen: enough for the rules of HTTP.

#![allow(dead_code, clippy::missing_panics_doc, reason = "every test uses another part")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use carrick_bind_api::install::HostAliases;
use carrick_bind_backend::http::{Allowed, Front, GivenKeys, HttpConfig, LoginMethod, TlsFiles};
use carrick_bind_backend::provider::{BindOrder, Bound, Person, Provider, ProviderError};
use carrick_client::{Web, WebTrust};
use http::{Request, Response, StatusCode, header};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// What a provider keeps. Its answers depend on what was asked of it before.
#[derive(Default)]
pub struct Model {
    pub state: Mutex<State>,
}

#[derive(Default)]
pub struct State {
    pub keys: BTreeMap<String, Vec<u8>>,
    /// Identity of each contract: its author, and its exports.
    pub contracts: BTreeMap<String, (String, Vec<String>)>,
    pub orders: Vec<BindOrder>,
    pub people: Vec<Person>,
    pub denied: bool,
    pub is_away: bool,
    /// Why nobody can be served.
    pub problem: Option<String>,
    /// What is handed out instead of a made-up kubeconfig.
    pub kubeconfig: Option<String>,
}

impl State {
    fn handed_out(&self) -> String {
        self.kubeconfig.clone().unwrap_or_else(|| {
            "{current-context: a, contexts: [{name: a, context: {cluster: b, user: c, namespace: c-1}}], \
             clusters: [{name: b, cluster: {server: 'https://provider.example'}}], users: [{name: c, user: {token: s3cret}}]}"
                .to_owned()
        })
    }
}

impl Model {
    fn check(&self, cluster: &str) -> Result<(), ProviderError> {
        if self.state.lock().is_away {
            return Err(ProviderError::Unavailable("the cluster does not answer".to_owned()));
        }
        match cluster {
            "" | "one" | "two" => Ok(()),
            other => Err(ProviderError::NotFound(format!("there is no cluster {other}"))),
        }
    }
}

pub fn template() -> Value {
    json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportTemplate",
        "metadata": {"name": "widgets", "creationTimestamp": "2026-11-01T00:00:00Z"},
        "spec": {"scope": "Namespaced", "description": "Widgets <for> all",
            "resources": [{"group": "example.io", "resource": "widgets", "versions": ["v1"]}],
            "permissionClaims": [{"group": "", "resource": "secrets", "selector": {"labelSelector": {}}}]}})
}

impl Provider for Model {
    fn problem(&self) -> Option<String> {
        self.state.lock().problem.clone()
    }

    async fn templates(&self, cluster: &str) -> Result<Value, ProviderError> {
        self.check(cluster)?;
        Ok(json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": [template()]}))
    }

    async fn collections(&self, cluster: &str) -> Result<Value, ProviderError> {
        self.check(cluster)?;
        let collection = json!({"metadata": {"name": "all", "creationTimestamp": "2026-11-01T00:00:00Z"},
            "spec": {"description": "Everything", "templates": [{"name": "widgets"}]}});
        Ok(json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": [collection]}))
    }

    async fn bind(&self, cluster: &str, order: &BindOrder) -> Result<Bound, ProviderError> {
        self.check(cluster)?;
        if order.template != "widgets" {
            return Err(ProviderError::NotFound(format!("there is no template {:?}", order.template)));
        }
        let mut state = self.state.lock();
        let entry = state.contracts.entry(order.identity.clone());
        let (author, exports) = entry.or_insert_with(|| (order.author.clone(), Vec::new()));
        if *author != order.author {
            return Err(ProviderError::Forbidden("the identity belongs to somebody else".to_owned()));
        }
        if order.request_export && !exports.contains(&order.name) {
            exports.push(order.name.clone());
        }
        state.orders.push(order.clone());
        let kubeconfig = state.handed_out();
        let request = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportRequest",
            "metadata": {"name": order.name}, "spec": {"resources": template()["spec"]["resources"]}});
        Ok(Bound {
            kubeconfig: kubeconfig.into_bytes(),
            namespace: "c-1".to_owned(),
            requests: vec![request],
            binding_name: order.request_export.then(|| order.name.clone()),
        })
    }

    async fn kubeconfig(&self, cluster: &str, identity: &str) -> Result<Vec<u8>, ProviderError> {
        self.check(cluster)?;
        let state = self.state.lock();
        if !state.contracts.contains_key(identity) {
            return Err(ProviderError::NotFound("nothing is bound yet".to_owned()));
        }
        Ok(state.handed_out().into_bytes())
    }

    async fn exports(&self, cluster: &str, identity: &str) -> Result<Option<(String, Vec<String>)>, ProviderError> {
        self.check(cluster)?;
        let state = self.state.lock();
        Ok(state.contracts.get(identity).map(|(_, exports)| ("c-1".to_owned(), exports.clone())))
    }

    async fn may_bind(&self, cluster: &str, person: &Person) -> Result<bool, ProviderError> {
        self.check(cluster)?;
        let mut state = self.state.lock();
        state.people.push(person.clone());
        Ok(!state.denied)
    }

    async fn keys(
        &self,
        make: &(dyn Fn() -> BTreeMap<String, Vec<u8>> + Send + Sync),
    ) -> Result<BTreeMap<String, Vec<u8>>, ProviderError> {
        let mut state = self.state.lock();
        if state.keys.is_empty() {
            state.keys = make();
        }
        Ok(state.keys.clone())
    }
}

/// A front that serves on a port of its own.
pub struct Running {
    pub url: String,
    pub model: Arc<Model>,
    pub web: Web,
    _stop: DropGuard,
}

/// What is unusual about a front.
#[derive(Default)]
pub struct Setup {
    pub model: Arc<Model>,
    pub tls: Option<TlsFiles>,
    pub trust: WebTrust,
    pub login: Option<LoginMethod>,
    pub expiry: Option<Duration>,
    pub consumer_networks: Vec<&'static str>,
    /// Names that konnectors get to know.
    pub konnector_aliases: HostAliases,
}

impl Running {
    pub async fn start() -> Self {
        Self::with(Setup::default()).await
    }

    pub async fn with(setup: Setup) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let scheme = if setup.tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let config = HttpConfig {
            pretty_name: "Widgets Inc.".to_owned(),
            token_expiry: setup.expiry.unwrap_or(Duration::from_hours(1)),
            login: setup.login.unwrap_or_else(|| LoginMethod::Embedded { issuer: format!("{url}/oidc") }),
            callback: format!("{url}/api/callback"),
            tls: setup.tls,
            keys: GivenKeys::default(),
            allowed: Allowed::default(),
            consumer_networks: setup.consumer_networks.iter().map(|it| it.parse().unwrap()).collect(),
            konnector_aliases: setup.konnector_aliases,
        };
        let front = Front::open(config, Arc::clone(&setup.model)).await.unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(front.serve(listener, stop.clone()));
        Self { url, model: setup.model, web: Web::new(&setup.trust).unwrap(), _stop: stop.drop_guard() }
    }

    pub async fn send(&self, request: Request<Bytes>) -> Response<Bytes> {
        self.web.send(request).await.unwrap()
    }

    pub async fn get(&self, path: &str) -> Response<Bytes> {
        self.get_with(path, &[]).await
    }

    pub async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Response<Bytes> {
        let url = if path.starts_with('/') { format!("{}{path}", self.url) } else { path.to_owned() };
        let mut request = Request::get(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Bytes::new()).unwrap()).await
    }

    pub async fn post(&self, path: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Response<Bytes> {
        let mut request = Request::post(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(body.into()).unwrap()).await
    }

    /// Logs in as a command line does; returns the token.
    pub async fn login(&self, cluster: &str) -> String {
        let cluster = if cluster.is_empty() { String::new() } else { format!("&cluster_id={cluster}") };
        let begin = format!(
            "/api/authorize?redirect_url=http%3A%2F%2F127.0.0.1%3A9%2Fcallback%3Fnonce%3Dn&session_id=sid&client_type=cli{cluster}"
        );
        let at_issuer = location(&self.get(&begin).await);
        let back = location(&self.get(&at_issuer).await);
        let end = location(&self.get(&back).await);
        assert!(end.starts_with("http://127.0.0.1:9/callback?nonce=n&"), "{end}");
        value(&end, "access_token").expect("a token")
    }
}

/// Where an answer leads.
pub fn location(answer: &Response<Bytes>) -> String {
    let place = answer.headers().get(header::LOCATION);
    let body = String::from_utf8_lossy(answer.body());
    place.unwrap_or_else(|| panic!("{} {body}", answer.status())).to_str().unwrap().to_owned()
}

/// A value of a URL's query.
pub fn value(url: &str, name: &str) -> Option<String> {
    let query = url.split_once('?')?.1;
    form_urlencoded::parse(query.as_bytes()).find(|(other, _)| other == name).map(|(_, value)| value.into_owned())
}

pub fn body(answer: &Response<Bytes>) -> Value {
    serde_json::from_slice(answer.body()).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(answer.body())))
}

pub fn text(answer: &Response<Bytes>) -> String {
    String::from_utf8_lossy(answer.body()).into_owned()
}

/// Status and code of an error object.
pub fn error(answer: &Response<Bytes>) -> (StatusCode, String) {
    let object = body(answer);
    assert_eq!(
        (&object["kind"], &object["apiVersion"]),
        (&json!("Error"), &json!("kube-bind.io/v1alpha2")),
        "{object}"
    );
    (answer.status(), object["code"].as_str().unwrap().to_owned())
}
