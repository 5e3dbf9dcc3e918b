//! A consumer with a konnector, a provider with an API server and nothing else.

use std::sync::Arc;
use std::time::Duration;

use carrick_bind_api::core::{BINDING, CLUSTER_BINDING, CONNECTION, crds};
use carrick_client::{Resource, Server};
use carrick_konnector::agent::{self, Budget, CoreConfig, KonnectorConfig};
use carrick_plane::faults::Recording;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::clusters::{BINDER, Cluster, KONNECTOR, ROTATED, crd_kind, resource, secret, secrets};
use crate::real::servers::Servers;

/// The namespace of objects.
pub const TEAM: &str = "team";
/// The API that is offered.
pub const WIDGETS: &str = "widgets.example.io";

pub fn connections() -> Resource {
    resource(CONNECTION)
}

pub fn cluster_bindings() -> Resource {
    resource(CLUSTER_BINDING)
}

pub fn bindings() -> Resource {
    resource(BINDING)
}

pub fn widgets() -> Resource {
    Resource::namespaced("example.io", "v1", "Widget", "widgets")
}

pub fn leases() -> Resource {
    Resource::namespaced("coordination.k8s.io", "v1", "Lease", "leases")
}

/// A CRD as providers have it; with the label it is offered.
pub fn crd(plural: &str, kind: &str, group: &str, scope: &str) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}"), "labels": {"core.kbind.io/exported": "true"}},
        "spec": {"group": group, "scope": scope,
            "names": {"plural": plural, "kind": kind, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                    "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}}}}]}})
}

pub fn widget_crd() -> Value {
    crd("widgets", "Widget", "example.io", "Namespaced")
}

pub fn widget(name: &str, size: u32) -> Value {
    json!({"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": name, "namespace": TEAM},
        "spec": {"size": size}})
}

pub fn has(object: &Value, type_: &str, status: &str, reason: &str) -> bool {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|it| it["type"] == type_ && it["status"] == status && it["reason"] == reason)
}

pub fn message(object: &Value, type_: &str) -> String {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let found = conditions.find(|it| it["type"] == type_);
    found.and_then(|it| it["message"].as_str()).unwrap_or_default().to_owned()
}

pub fn is_established(crd: &Value) -> bool {
    let mut conditions = crd["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|it| it["type"] == "Established" && it["status"] == "True")
}

/// What konnectors have written to paths with this part.
pub fn writes_to(recordings: &[Recording; 2], part: &str) -> Vec<String> {
    let writes = recordings.iter().flat_map(Recording::writes);
    let own = writes.filter(|it| [KONNECTOR, BINDER].contains(&it.ask.user.as_str()) && it.ask.path.contains(part));
    own.map(|it| format!("{} {}", it.ask.verb, it.ask.path)).collect()
}

/// Where clusters come from.
#[derive(Clone)]
pub enum Ground {
    Planes,
    /// Real API servers, which end with the last of these.
    Servers(Arc<Servers>),
}

impl Ground {
    /// Real servers; nothing if nobody says where their binaries are.
    pub fn real() -> Option<Self> {
        crate::real::servers().map(|servers| Self::Servers(Arc::new(servers)))
    }

    /// A cluster in which these users exist, and nothing more.
    pub async fn strict_cluster(&self, users: &[&str]) -> Cluster {
        match self {
            Self::Planes => Cluster::start(users).await,
            Self::Servers(servers) => {
                let started = servers.another(users).await;
                Cluster::real(&started.url, &started.authority, started.tokens)
            }
        }
    }

    /// A cluster in which these users may do everything.
    pub async fn cluster(&self, users: &[&str]) -> Cluster {
        empowered(self.strict_cluster(users).await, users).await
    }
}

/// A plane in which these users may do everything.
pub async fn cluster(users: &[&str]) -> Cluster {
    Ground::Planes.cluster(users).await
}

async fn empowered(cluster: Cluster, users: &[&str]) -> Cluster {
    let rbac = "rbac.authorization.k8s.io";
    let subjects: Vec<Value> =
        users.iter().map(|name| json!({"apiGroup": rbac, "kind": "User", "name": name})).collect();
    let binding = json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "all"},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"}, "subjects": subjects});
    cluster.apply(&Resource::cluster_wide(rbac, "v1", "ClusterRoleBinding", "clusterrolebindings"), &binding).await;
    cluster
}

/// Two clusters and a konnector.
pub struct World {
    pub ground: Ground,
    pub consumer: Cluster,
    pub provider: Cluster,
    /// What the next konnector gives to one object.
    pub budget: Budget,
    stop: CancellationToken,
    konnector: Option<JoinHandle<()>>,
}

impl World {
    /// Both clusters, with the CRDs of v2 here and widgets there, and a running konnector.
    pub async fn start() -> Self {
        Self::start_on(&Ground::Planes).await
    }

    pub async fn start_on(ground: &Ground) -> Self {
        Self::start_with(ground, Budget::default()).await
    }

    async fn start_with(ground: &Ground, budget: Budget) -> Self {
        let mut world = Self::without_konnector_on(ground).await;
        world.budget = budget;
        world.install().await;
        world.offer(&widget_crd()).await;
        world.start_konnector();
        world
    }

    pub async fn without_konnector() -> Self {
        Self::without_konnector_on(&Ground::Planes).await
    }

    pub async fn without_konnector_on(ground: &Ground) -> Self {
        let (consumer, provider) = futures::join!(ground.cluster(&[KONNECTOR]), ground.cluster(&[BINDER, ROTATED]));
        let (ground, stop) = (ground.clone(), CancellationToken::new());
        Self { ground, consumer, provider, budget: Budget::default(), stop, konnector: None }
    }

    /// Installs the CRDs of v2.
    pub async fn install(&self) {
        for crd in crds::all() {
            self.consumer.apply(&crd_kind(), &crd).await;
            let name = crd["metadata"]["name"].as_str().unwrap();
            self.consumer.until(&crd_kind(), None, name, is_established).await;
        }
    }

    /// The provider has a CRD.
    pub async fn offer(&self, crd: &Value) {
        self.provider.apply(&crd_kind(), crd).await;
        let name = crd["metadata"]["name"].as_str().unwrap();
        self.provider.until(&crd_kind(), None, name, is_established).await;
    }

    pub fn start_konnector(&mut self) {
        let config = KonnectorConfig {
            server: Server::from_kubeconfig_yaml(&self.consumer.kubeconfig(KONNECTOR)).unwrap(),
            lease: None,
            server_address: None,
            export: None,
            polling: Duration::from_secs(15),
            namespace: None,
            core: CoreConfig::default(),
            budget: self.budget,
        };
        self.stop = CancellationToken::new();
        let stop = self.stop.clone();
        self.konnector = Some(tokio::spawn(async move { agent::run(config, stop).await.unwrap() }));
    }

    pub async fn stop_konnector(&mut self) {
        self.stop.cancel();
        if let Some(konnector) = self.konnector.take() {
            konnector.await.unwrap();
        }
    }

    /// Ends the konnector in the middle of whatever it does.
    pub async fn kill_konnector(&mut self) {
        if let Some(konnector) = self.konnector.take() {
            konnector.abort();
            assert!(konnector.await.is_err_and(|error| error.is_cancelled()), "the konnector has ended on its own");
        }
    }

    /// Stores a kubeconfig of the provider in Secret `kbind/<name>`.
    pub async fn store(&self, name: &str, user: &str) {
        self.store_text(name, &self.provider.kubeconfig(user)).await;
    }

    pub async fn store_text(&self, name: &str, kubeconfig: &str) {
        self.consumer.apply(&secrets(), &secret("kbind", name, kubeconfig)).await;
    }

    pub async fn connect(&self, name: &str, spec: Value) {
        let mut object = json!({"apiVersion": "core.kbind.io/v1alpha1", "kind": "Connection", "metadata": {"name": name},
            "spec": {"kubeconfigSecretRef": {"namespace": "kbind", "name": name}, "schema": {"source": "CRD"}}});
        carrick_json::merge::apply(&mut object["spec"], &spec);
        self.consumer.apply(&connections(), &object).await;
    }

    pub async fn bind(&self, name: &str, connection: &str, spec: Value) {
        let mut object = json!({"apiVersion": "core.kbind.io/v1alpha1", "kind": "ClusterBinding", "metadata": {"name": name},
            "spec": {"connectionRef": {"name": connection}, "apis": [{"name": WIDGETS}]}});
        carrick_json::merge::apply(&mut object["spec"], &spec);
        self.consumer.apply(&cluster_bindings(), &object).await;
    }

    /// Secret, Connection and ClusterBinding `west`, ready.
    pub async fn bound() -> Self {
        Self::bound_on(&Ground::Planes).await
    }

    pub async fn bound_on(ground: &Ground) -> Self {
        Self::start_on(ground).await.with_west().await
    }

    /// The same with a konnector that gives so much to one object.
    pub async fn bound_with(budget: Budget) -> Self {
        Self::start_with(&Ground::Planes, budget).await.with_west().await
    }

    async fn with_west(self) -> Self {
        let world = self;
        world.store("west", BINDER).await;
        world.connect("west", json!({})).await;
        world.bind("west", "west", json!({})).await;
        world.is_ready(&cluster_bindings(), "west").await;
        world
    }

    /// Waits until a Connection or ClusterBinding is ready.
    pub async fn is_ready(&self, kind: &Resource, name: &str) -> Value {
        self.consumer.until(kind, None, name, |it| has(it, "Ready", "True", "AsExpected")).await
    }

    /// Creates an object and waits for its copy.
    pub async fn order(&self, name: &str, size: u32) -> Value {
        self.order_here(name, size).await;
        self.copy_is(name, |copy| copy["spec"]["size"] == size).await
    }

    pub async fn order_here(&self, name: &str, size: u32) -> Value {
        self.consumer.until(&crd_kind(), None, WIDGETS, is_established).await;
        self.consumer.apply(&widgets(), &widget(name, size)).await
    }

    pub async fn copy_is(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.provider.until(&widgets(), Some(TEAM), name, wanted).await
    }

    pub async fn source_is(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.consumer.until(&widgets(), Some(TEAM), name, wanted).await
    }

    /// Another object is placed after whatever happened before: the konnector has seen that.
    pub async fn probe(&self, name: &str) {
        self.order(name, 1).await;
    }

    /// Records from now on what the konnector sends to both sides.
    pub fn record(&self) -> [Recording; 2] {
        [self.consumer.plane().faults().record(), self.provider.plane().faults().record()]
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
