//! A provider with a backend, a consumer with a konnector, and a person with `kubectl-bind`.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use carrick_bind_api::install::HostAliases;
use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_bind_api::{crds, kinds};
use carrick_bind_backend::agent::{BackendConfig, Clusters, SchemaSource, lead};
use carrick_bind_backend::decide::terms::{Address, Logins, Terms};
use carrick_bind_backend::http::{Allowed, Front, GivenKeys, HttpConfig, LoginMethod};
use carrick_bind_backend::provider::{Person, Provider};
use carrick_client::{Client, Resource, Server, Web, WebTrust};
use carrick_konnector::agent::{Budget, CoreConfig, KonnectorConfig};
use http::{Request, header};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Each has a folder of its own.
static STARTED: AtomicUsize = AtomicUsize::new(0);

/// Both clusters, with everything that runs on them.
pub struct World {
    pub provider: Client,
    pub consumer: Client,
    url: String,
    folder: PathBuf,
    _stop: DropGuard,
}

pub fn crd_kind() -> Resource {
    Resource::cluster_wide("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
}

pub fn sheriffs() -> Resource {
    Resource::namespaced("wild.io", "v1", "Sheriff", "sheriffs")
}

pub fn of(kind: kinds::Kind) -> Resource {
    let make = if kinds::is_namespaced(kind) { Resource::namespaced } else { Resource::cluster_wide };
    make(kind.group, kind.version, kind.kind, kind.plural)
}

/// Waits until somebody has done something.
pub async fn until<T>(what: &str, look: impl AsyncFn() -> Option<T>) -> T {
    let found = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), found).await.unwrap_or_else(|_| panic!("{what}: never"))
}

async fn offer(provider: &Client) {
    for crd in crds::provider() {
        provider.create(&crd_kind(), None, &crd).await.unwrap();
    }
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"town": {"type": "string"}, "horse": {"type": "string"}}},
        "status": {"type": "object", "properties": {"result": {"type": "string"}}}}});
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "sheriffs.wild.io", "labels": {"kube-bind.io/exported": "true"}},
        "spec": {"group": "wild.io", "scope": "Namespaced", "names": {"plural": "sheriffs", "kind": "Sheriff", "singular": "sheriff", "listKind": "SheriffList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}]}});
    provider.create(&crd_kind(), None, &crd).await.unwrap();
    let template = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportTemplate", "metadata": {"name": "sheriffs"},
        "spec": {"scope": "Namespaced", "resources": [{"group": "wild.io", "resource": "sheriffs", "versions": ["v1"]}]}});
    let kind = of(kinds::API_SERVICE_EXPORT_TEMPLATE);
    until("templates are served", async || provider.create(&kind, None, &template).await.ok()).await;
    let mut claiming = template;
    claiming["metadata"]["name"] = json!("claiming");
    claiming["spec"]["permissionClaims"] =
        json!([{"group": "", "resource": "secrets", "selector": {"labelSelector": {"matchLabels": {"app": "law"}}}}]);
    provider.create(&kind, None, &claiming).await.unwrap();
}

/// A backend with its front; returns the URL.
async fn backend(server: Server, isolation: Isolation, stop: &CancellationToken) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let everybody = vec!["system:authenticated".to_owned()];
    let terms = Terms {
        namespace_prefix: "cluster-".to_owned(),
        pretty_name: "Wild West Inc.".to_owned(),
        informer_scope: InformerScope::Namespaced,
        isolation,
        address: Address { server: server.url().to_owned(), ..Address::default() },
        cluster_wide_claims: false,
        shared_namespaces: false,
        logins: Logins { groups: everybody.clone(), users: Vec::new() },
        workspace: None,
        most_namespaces: carrick_bind_backend::decide::terms::MOST_NAMESPACES,
    };
    let config = BackendConfig {
        server,
        terms,
        source: SchemaSource::Crds,
        slice: None,
        ignored_bindings: Vec::new(),
        lease: None,
        listen_address: None,
        namespace: "default".to_owned(),
    };
    let clusters = Arc::new(Clusters::start(&config, stop));
    let http = HttpConfig {
        pretty_name: "Wild West Inc.".to_owned(),
        token_expiry: Duration::from_hours(1),
        login: LoginMethod::Embedded { issuer: format!("{url}/oidc") },
        callback: format!("{url}/api/callback"),
        tls: None,
        keys: GivenKeys::default(),
        allowed: Allowed { groups: everybody.clone(), users: Vec::new() },
        consumer_networks: Vec::new(),
        konnector_aliases: HostAliases::default(),
    };
    let front = Front::open(http, Arc::clone(&clusters)).await.unwrap();
    tokio::spawn(front.serve(listener, stop.clone()));
    let (stop, led) = (stop.clone(), Arc::clone(&clusters));
    tokio::spawn(async move { lead(&config, &led, &stop).await.unwrap() });
    // The backend grants this when it begins to serve the cluster.
    let somebody = Person { subject: "somebody".to_owned(), issuer: String::new(), groups: everybody };
    until("whoever has logged in may bind", async || {
        clusters.may_bind("", &somebody).await.is_ok_and(|may| may).then_some(())
    })
    .await;
    url
}

impl World {
    /// A provider and a consumer by the kubeconfigs of their administrators, and the consumer by that of the person.
    pub async fn on(provider: &str, consumer: &str, person: &str) -> Self {
        Self::isolated(provider, consumer, person, Isolation::Prefixed).await
    }

    /// The same, with another isolation of its contracts.
    pub async fn isolated(provider: &str, consumer: &str, person: &str, isolation: Isolation) -> Self {
        let count = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("kubectl-bind-whole-{}-{count}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("kubeconfig"), person).unwrap();
        std::fs::write(folder.join("provider"), provider).unwrap();
        let (provider, consumer) =
            (Server::from_kubeconfig_yaml(provider).unwrap(), Server::from_kubeconfig_yaml(consumer).unwrap());
        offer(&provider.client()).await;
        let stop = CancellationToken::new();
        let url = backend(provider.clone(), isolation, &stop).await;
        let config = KonnectorConfig {
            server: consumer.clone(),
            lease: None,
            server_address: None,
            export: None,
            polling: Duration::from_secs(15),
            namespace: None,
            core: CoreConfig::default(),
            budget: Budget::default(),
        };
        tokio::spawn(carrick_konnector::agent::run(config, stop.clone()));
        Self { provider: provider.client(), consumer: consumer.client(), url, folder, _stop: stop.drop_guard() }
    }

    /// The same, with another look at the consumer.
    pub fn seen_by(mut self, kubeconfig: &str) -> Self {
        self.consumer = Server::from_kubeconfig_yaml(kubeconfig).unwrap().client();
        self
    }

    /// File with the kubeconfig of the provider's administrator.
    pub fn provider_file(&self) -> String {
        self.folder.join("provider").display().to_string()
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-bind"));
        command.arg("--kubeconfig").arg(self.folder.join("kubeconfig"));
        command.arg("--config-file").arg(self.folder.join("config")).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub async fn run(&self, args: &[&str]) -> Output {
        let mut command = self.command(args);
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    /// Logs in; a browser follows where it is led.
    pub async fn login(&self) -> bool {
        let mut child = self.command(&["login", &self.url, "--skip-browser"]).spawn().unwrap();
        let errors = child.stderr.take().unwrap();
        let address = move || {
            let mut lines = BufReader::new(errors).lines().map_while(Result::ok);
            lines.find(|line| line.trim().starts_with("http")).expect("an address").trim().to_owned()
        };
        let mut at = tokio::task::spawn_blocking(address).await.unwrap();
        let web = Web::new(&WebTrust::default()).unwrap();
        loop {
            let answer = web.send(Request::get(&at).body(Bytes::new()).unwrap()).await.unwrap();
            match answer.headers().get(header::LOCATION) {
                Some(next) => next.to_str().unwrap().clone_into(&mut at),
                None => break assert_eq!(answer.status(), 200, "{answer:?}"),
            }
        }
        tokio::task::spawn_blocking(move || child.wait().unwrap().success()).await.unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub fn words(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
