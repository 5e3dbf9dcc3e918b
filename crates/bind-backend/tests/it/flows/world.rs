//! A provider with a backend, and consumers with konnectors.

use std::time::Duration;

use carrick_bind_api::crds;
use carrick_bind_api::kinds::{self, Kind, is_namespaced};
use carrick_bind_api::response::BindingResponse;
use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_bind_backend::agent::{self, BackendConfig, Clusters, LeaseConfig, SchemaSource};
use carrick_bind_backend::backend;
use carrick_bind_backend::decide::roles::{self, Subject};
use carrick_bind_backend::decide::terms::{Address, Logins, Terms};
use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, DeleteOptions, Resource, Server};
use carrick_konnector::agent::{Budget, CoreConfig, KonnectorConfig};
use carrick_plane::{Config, Mode, Plane, User};
use data_encoding::BASE64;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_mins(1);

/// The user that the backend is.
pub const BACKEND: &str = "backend";
/// What the portal's user shows.
pub const PORTAL_TOKEN: &str = "token-of-portal";
/// The user that the konnector is on its own cluster.
pub const KONNECTOR: &str = "konnector";

pub fn of(kind: Kind) -> Resource {
    let make = if is_namespaced(kind) { Resource::namespaced } else { Resource::cluster_wide };
    make(kind.group, kind.version, kind.kind, kind.plural)
}

pub fn secrets() -> Resource {
    Resource::namespaced("", "v1", "Secret", "secrets")
}

pub fn namespaces() -> Resource {
    Resource::cluster_wide("", "v1", "Namespace", "namespaces")
}

pub fn crd_kind() -> Resource {
    Resource::cluster_wide("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
}

/// A kind of the provider, in its own scope.
pub fn things(plural: &str, kind: &str, namespaced: bool) -> Resource {
    let make = if namespaced { Resource::namespaced } else { Resource::cluster_wide };
    make("wild.io", "v1", kind, plural)
}

/// A cluster, as its administrator sees it.
pub struct Cluster {
    pub plane: Plane,
    pub client: Client,
}

impl Cluster {
    pub async fn start() -> Self {
        let mut config = Config::new(Mode::Kube);
        config.users = vec![
            // Its rights are those that `kube-bind-backend roles` prints.
            User::new("token-of-backend", BACKEND, &[]),
            User::new("token-of-konnector", KONNECTOR, &["system:masters"]),
            User::new(PORTAL_TOKEN, "portal", &["system:masters"]),
        ];
        let plane = Plane::start(config).await.unwrap();
        let server = Server::from_kubeconfig_yaml(&plane.kubeconfig("admin", None).unwrap()).unwrap();
        Self { client: server.client(), plane }
    }

    pub async fn apply(&self, resource: &Resource, object: &Value) -> Value {
        let namespace = object["metadata"]["namespace"].as_str();
        if let Some(namespace) = namespace {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            self.client.apply_as(&namespaces(), None, &object, "test").await.unwrap();
        }
        let applied = self.client.apply_as(resource, namespace, object, "test").await;
        applied.unwrap_or_else(|error| panic!("{error}: {object}"))
    }

    pub async fn get(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> Option<Value> {
        self.client.get(resource, namespace, name).await.unwrap()
    }

    pub async fn delete(&self, resource: &Resource, namespace: Option<&str>, name: &str) {
        self.client.delete(resource, namespace, name, &DeleteOptions::default()).await.unwrap();
    }

    /// Waits until an object is as wanted.
    pub async fn until(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        let mut last = None;
        let found = async {
            let options = WatchOptions {
                namespace: namespace.map(str::to_owned),
                ..WatchOptions::fields(format!("metadata.name={name}"))
            };
            let mut events = std::pin::pin!(watch(self.client.clone(), resource.clone(), options));
            loop {
                if let Some(Event::Listed(object) | Event::Applied(object)) = events.next().await
                    && &*object.name == name
                {
                    let object = object.value();
                    if wanted(&object) {
                        return object;
                    }
                    last = Some(object);
                }
            }
        };
        let found = tokio::time::timeout(PATIENCE, found).await;
        found.unwrap_or_else(|_| panic!("{resource} {name} does not become what it should: {last:#?}"))
    }

    /// Waits until an object is gone.
    pub async fn until_gone(&self, resource: &Resource, namespace: Option<&str>, name: &str) {
        let gone = async {
            while self.get(resource, namespace, name).await.is_some() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        assert!(tokio::time::timeout(PATIENCE, gone).await.is_ok(), "{resource} {name} stays");
    }
}

/// A provider with a backend.
pub struct Provider {
    pub cluster: Cluster,
    config: BackendConfig,
    stop: CancellationToken,
    backend: Option<JoinHandle<()>>,
}

impl Provider {
    /// A provider with a running backend.
    pub async fn start(scope: InformerScope, isolation: Isolation) -> Self {
        let mut provider = Self::without_backend(scope, isolation).await;
        provider.start_backend();
        provider
    }

    /// The same, where consumers may have one namespace together.
    pub async fn sharing(scope: InformerScope) -> Self {
        let mut provider = Self::without_backend(scope, Isolation::None).await;
        provider.config.terms.shared_namespaces = true;
        provider.start_backend();
        provider
    }

    pub async fn without_backend(informer_scope: InformerScope, isolation: Isolation) -> Self {
        let cluster = Cluster::start().await;
        for crd in crds::provider() {
            cluster.apply(&crd_kind(), &crd).await;
            let name = crd["metadata"]["name"].as_str().unwrap();
            cluster.until(&crd_kind(), None, name, established).await;
        }
        let terms = Terms {
            namespace_prefix: "cluster-".to_owned(),
            pretty_name: "Wild West Inc.".to_owned(),
            informer_scope,
            isolation,
            address: Address { server: cluster.plane.url().to_owned(), ..Address::default() },
            cluster_wide_claims: false,
            shared_namespaces: false,
            logins: Logins { groups: vec!["cowhands".to_owned()], users: Vec::new() },
            workspace: None,
            most_namespaces: carrick_bind_backend::decide::terms::MOST_NAMESPACES,
        };
        let server = Server::from_kubeconfig_yaml(&cluster.plane.kubeconfig(BACKEND, None).unwrap()).unwrap();
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
        let provider = Self { cluster, config, stop: CancellationToken::new(), backend: None };
        provider.grant().await;
        provider
    }

    /// Gives the backend the rights that it needs for what is offered now: what `kube-bind-backend roles` prints.
    pub async fn grant(&self) {
        let own = "default".to_owned();
        let subject = Subject {
            account: BACKEND.to_owned(),
            namespace: own.clone(),
            own_namespace: own,
            lease_name: "kube-bind-backend".to_owned(),
        };
        let mut all = roles::base(&subject, &self.config.terms);
        all.extend(agent::roles::of_cluster(&self.cluster.client, &subject).await.unwrap());
        for mut object in all {
            if object["subjects"][0]["name"] == BACKEND {
                object["subjects"] =
                    json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": BACKEND}]);
            }
            let kind = object["kind"].as_str().unwrap().to_owned();
            let make = if kind.starts_with("Cluster") { Resource::cluster_wide } else { Resource::namespaced };
            let resource = make("rbac.authorization.k8s.io", "v1", &kind, &format!("{}s", kind.to_lowercase()));
            self.cluster.apply(&resource, &object).await;
        }
    }

    /// Another replica, which waits for the Lease like all others from now on: its task, and what stops it.
    pub fn start_replica(&self, identity: &str) -> (JoinHandle<()>, CancellationToken) {
        let (config, stop) = (self.replica_config(identity), CancellationToken::new());
        let ending = stop.clone();
        (tokio::spawn(async move { backend::run(config, None, ending).await.unwrap() }), stop)
    }

    /// Lets the backend write this authority into kubeconfigs, by its flag or because it trusts that itself.
    pub fn trust(&mut self, authority: &str, by_flag: bool) {
        let address = &mut self.config.terms.address;
        (address.authority, address.authority_given) = (Some(authority.to_owned()), by_flag);
    }

    /// The options of a backend.
    pub fn config(&self) -> &BackendConfig {
        &self.config
    }

    /// What ends the backend.
    pub fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// The options of a replica.
    pub fn replica_config(&self, identity: &str) -> BackendConfig {
        let mut config = self.config.clone();
        config.lease = Some(LeaseConfig {
            name: "kube-bind-backend".to_owned(),
            namespace: "default".to_owned(),
            identity: Some(identity.to_owned()),
            duration: Some(Duration::from_secs(2)),
        });
        config
    }

    pub fn start_backend(&mut self) {
        self.stop = CancellationToken::new();
        let (config, stop) = (self.config.clone(), self.stop.clone());
        self.backend = Some(tokio::spawn(async move { backend::run(config, None, stop).await.unwrap() }));
    }

    /// Ends the backend without a word.
    pub async fn kill_backend(&mut self) {
        self.stop.cancel();
        if let Some(backend) = self.backend.take() {
            backend.abort();
            let _ = backend.await;
        }
    }

    /// What the HTTP front would ask.
    pub fn front(&self) -> Clusters {
        Clusters::start(&self.config, &self.stop)
    }

    /// Offers an API.
    pub async fn offer(&self, plural: &str, kind: &str, scope: &str) {
        self.cluster.apply(&crd_kind(), &crd(plural, kind, scope)).await;
        self.cluster.until(&crd_kind(), None, &format!("{plural}.wild.io"), established).await;
        self.grant().await;
    }

    /// Asks for a contract, as the portal does: the contract namespace, and the kubeconfig.
    pub async fn contract(&self, identity: &str) -> (String, String) {
        let name = format!("for-{identity}");
        self.ask(&request(&name, identity, "jane")).await;
        let request = self.until_request(&name, "Succeeded").await;
        let secret = request["status"]["kubeconfigSecretRef"].clone();
        assert_eq!(secret, json!({"name": format!("{name}-binding-response"), "key": "binding-response"}));
        let secret = self.cluster.get(&secrets(), Some("default"), secret["name"].as_str().unwrap()).await.unwrap();
        let text = BASE64.decode(secret["data"]["binding-response"].as_str().unwrap().as_bytes()).unwrap();
        let answer = BindingResponse::parse(std::str::from_utf8(&text).unwrap()).unwrap();
        (request["status"]["namespace"].as_str().unwrap().to_owned(), answer.kubeconfig_text().unwrap())
    }

    pub async fn ask(&self, request: &Value) {
        self.cluster.apply(&of(kinds::BINDABLE_RESOURCES_REQUEST), request).await;
    }

    pub async fn until_request(&self, name: &str, phase: &str) -> Value {
        let resource = of(kinds::BINDABLE_RESOURCES_REQUEST);
        self.cluster.until(&resource, Some("default"), name, |it| it["status"]["phase"] == phase).await
    }

    /// Asks for an export of one API, with claims.
    pub async fn export(&self, contract: &str, plural: &str, claims: Value) -> Value {
        let object = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportRequest",
            "metadata": {"name": plural, "namespace": contract},
            "spec": {"resources": [{"group": "wild.io", "resource": plural, "versions": ["v1alpha1"]}], "permissionClaims": claims}});
        self.cluster.apply(&of(kinds::API_SERVICE_EXPORT_REQUEST), &object).await;
        self.grant().await;
        let resource = of(kinds::API_SERVICE_EXPORT_REQUEST);
        self.cluster.until(&resource, Some(contract), plural, |it| it["status"]["phase"] == "Succeeded").await
    }

    /// What the backend writes from now on and for a second more.
    pub async fn writes(&self) -> Vec<String> {
        let recording = self.cluster.plane.faults().record();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let writes = recording.writes();
        let ours = writes.into_iter().filter(|record| record.ask.user == BACKEND);
        ours.map(|record| format!("{} {}", record.ask.verb, record.ask.path)).collect()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A client with the rights of a consumer.
pub fn as_consumer(kubeconfig: &str) -> Client {
    Server::from_kubeconfig_yaml(kubeconfig).unwrap().client()
}

/// A consumer with a konnector.
pub struct Consumer {
    pub cluster: Cluster,
    config: KonnectorConfig,
    stop: CancellationToken,
    konnector: Option<JoinHandle<()>>,
}

impl Consumer {
    /// A consumer that binds everything of a contract.
    pub async fn start(kubeconfig: &str) -> Self {
        Self::with(kubeconfig, json!({"kube-bind.io/accepted-claims": "configmaps,secrets,serviceaccounts"})).await
    }

    /// The same, with annotations on the bundle.
    pub async fn with(kubeconfig: &str, annotations: Value) -> Self {
        let cluster = Cluster::start().await;
        let server = Server::from_kubeconfig_yaml(&cluster.plane.kubeconfig(KONNECTOR, None).unwrap()).unwrap();
        let polling = Duration::from_secs(15);
        let config = KonnectorConfig {
            server,
            lease: None,
            server_address: None,
            export: None,
            polling,
            namespace: None,
            core: CoreConfig::default(),
            budget: Budget::default(),
        };
        let mut consumer = Self { cluster, config, stop: CancellationToken::new(), konnector: None };
        consumer.start_konnector();
        let cluster = &consumer.cluster;
        for name in ["apiservicebindings.kube-bind.io", "apiservicebindingbundles.kube-bind.io"] {
            cluster.until(&crd_kind(), None, name, established).await;
        }
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "provider", "namespace": "kube-bind"},
            "data": {"kubeconfig": BASE64.encode(kubeconfig.as_bytes())}});
        cluster.apply(&secrets(), &secret).await;
        let bundle = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceBindingBundle",
            "metadata": {"name": "all", "annotations": annotations},
            "spec": {"kubeconfigSecretRef": {"namespace": "kube-bind", "name": "provider", "key": "kubeconfig"}}});
        cluster.apply(&of(kinds::API_SERVICE_BINDING_BUNDLE), &bundle).await;
        consumer
    }

    pub fn start_konnector(&mut self) {
        self.stop = CancellationToken::new();
        let (config, stop) = (self.config.clone(), self.stop.clone());
        self.konnector = Some(tokio::spawn(async move { carrick_konnector::agent::run(config, stop).await.unwrap() }));
    }

    /// Ends the konnector without a word.
    pub async fn kill_konnector(&mut self) {
        self.stop.cancel();
        if let Some(konnector) = self.konnector.take() {
            konnector.abort();
            let _ = konnector.await;
        }
    }

    pub async fn until_bound(&self, name: &str) {
        let ready = |it: &Value| has(it, "Ready", "True", "") && has(it, "InformersSynced", "True", "");
        self.cluster.until(&of(kinds::API_SERVICE_BINDING), None, name, ready).await;
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

pub fn request(name: &str, identity: &str, author: &str) -> Value {
    json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "BindableResourcesRequest", "metadata": {"name": name, "namespace": "default"},
        "spec": {"clusterIdentity": {"identity": identity}, "author": author}})
}

pub fn has(object: &Value, type_: &str, status: &str, reason: &str) -> bool {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions
        .any(|it| it["type"] == type_ && it["status"] == status && it["reason"].as_str().unwrap_or_default() == reason)
}

pub fn established(crd: &Value) -> bool {
    has(crd, "Established", "True", "InitialNamesAccepted")
}

pub fn crd(plural: &str, kind: &str, scope: &str) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.wild.io"), "labels": {"kube-bind.io/exported": "true"}},
        "spec": {"group": "wild.io", "scope": scope,
            "names": {"plural": plural, "kind": kind, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"intent": {"type": "string"}}},
                    "status": {"type": "object", "properties": {"result": {"type": "string"}}}}}}}]}})
}

pub fn thing(kind: &str, namespace: Option<&str>, name: &str) -> Value {
    let mut object =
        json!({"apiVersion": "wild.io/v1", "kind": kind, "metadata": {"name": name}, "spec": {"intent": "x"}});
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}
