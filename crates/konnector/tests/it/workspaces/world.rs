//! A kcp with a provider's workspace and consumers' workspaces, a plain cluster behind it, and a konnector between them.

use std::pin::pin;
use std::time::Duration;

use carrick_bind_api::kinds::{API_SERVICE_NAMESPACE, GROUP, VERSION};
use carrick_bind_api::roles::{self, Subject};
use carrick_bind_api::schema;
use carrick_bind_api::v1alpha2::{ApiServiceExport, ExportedResource, InformerScope, Isolation};
use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, DeleteOptions, Resource, Server};
use carrick_konnector::agent::{self, KonnectorConfig};
use carrick_plane::faults::Recording;
use carrick_plane::{Config, Mode, Plane, User};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::clusters::{BINDER, Provider, apply, crd, crd_kind, namespaces, secret, secrets};

/// The user that the konnector is in kcp.
pub const KONNECTOR: &str = "konnector";
/// The contract.
pub const CONTRACT: &str = "c-1";
/// The export, its slice, and the group of its APIs.
pub const EXPORT: &str = "wild.io";
const PATIENCE: Duration = Duration::from_mins(1);
const CALM: Duration = Duration::from_millis(400);

/// How consumers see widgets, how the provider has them, and what it claims.
#[derive(Clone, Debug)]
pub struct Shape {
    pub scope: &'static str,
    pub isolation: Isolation,
    pub claims: Value,
}

impl Shape {
    pub fn namespaced() -> Self {
        Self { scope: "Namespaced", isolation: Isolation::Prefixed, claims: json!([]) }
    }

    pub fn cluster(isolation: Isolation) -> Self {
        Self { scope: "Cluster", isolation, claims: json!([]) }
    }

    pub fn claiming(self, claims: Value) -> Self {
        Self { claims, ..self }
    }

    /// The scope of widgets on the provider.
    fn scope_there(&self) -> &'static str {
        if self.isolation == Isolation::Namespaced { "Namespaced" } else { self.scope }
    }
}

/// Everything of a test.
pub struct World {
    pub kcp: Plane,
    pub provider: Provider,
    pub shape: Shape,
    admin: Server,
    stop: CancellationToken,
    konnector: Option<JoinHandle<()>>,
    backend: JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
        self.backend.abort();
        if let Some(konnector) = &self.konnector {
            konnector.abort();
        }
    }
}

pub fn kind(group: &str, version: &str, kind: &str, plural: &str) -> Resource {
    Resource::cluster_wide(group, version, kind, plural)
}

pub fn api_bindings() -> Resource {
    kind("apis.kcp.io", "v1alpha2", "APIBinding", "apibindings")
}

pub fn api_exports() -> Resource {
    kind("apis.kcp.io", "v1alpha2", "APIExport", "apiexports")
}

pub fn api_schemas() -> Resource {
    kind("apis.kcp.io", "v1alpha1", "APIResourceSchema", "apiresourceschemas")
}

pub fn slices() -> Resource {
    kind("apis.kcp.io", "v1alpha1", "APIExportEndpointSlice", "apiexportendpointslices")
}

pub fn workspaces() -> Resource {
    kind("tenancy.kcp.io", "v1alpha1", "Workspace", "workspaces")
}

pub fn service_namespaces() -> Resource {
    Resource::namespaced(GROUP, VERSION, API_SERVICE_NAMESPACE.kind, API_SERVICE_NAMESPACE.plural)
}

/// Waits until something is so.
pub async fn until(what: &str, mut is: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "it never happened that {what}");
}

/// Assigns a namespace to whoever asks, as a backend does.
async fn assign(there: Client) {
    let options = WatchOptions { namespace: Some(CONTRACT.to_owned()), ..WatchOptions::default() };
    let mut events = pin!(watch(there.clone(), service_namespaces(), options));
    while let Some(event) = events.next().await {
        match event {
            Event::Listed(object) | Event::Applied(object) => {
                if object.value()["status"]["namespace"].is_string() {
                    continue;
                }
                let assigned = format!("{CONTRACT}-{}", object.name);
                // It may exist already, or the request may be gone again.
                let _ = there.create(&namespaces(), None, &json!({"metadata": {"name": assigned}})).await;
                let patch = json!({"status": {"namespace": assigned}});
                let _ = there.merge_patch_status(&service_namespaces(), Some(CONTRACT), &object.name, &patch).await;
            }
            Event::Deleted(object) => {
                let assigned = format!("{CONTRACT}-{}", object.name);
                let _ = there.delete(&namespaces(), None, &assigned, &DeleteOptions::default()).await;
            }
            _ => {}
        }
    }
}

fn subject() -> Subject {
    let text = str::to_owned;
    Subject {
        account: text("konnector"),
        namespace: text("kube-bind"),
        lease_namespace: text("kube-bind"),
        lease_name: text("kube-bind"),
    }
}

impl World {
    /// A konnector runs, and the export offers widgets.
    pub async fn new(shape: Shape) -> Self {
        Self::with_shards(shape, 1).await
    }

    pub async fn with_shards(shape: Shape, shards: usize) -> Self {
        Self::with_versions_apart(shape, &vec![0; shards]).await
    }

    /// The same with a shard for each number, whose versions are so far ahead.
    pub async fn with_versions_apart(shape: Shape, ahead: &[u64]) -> Self {
        let mut world = Self::at_rest(shape, ahead).await;
        world.start();
        world.bind().await;
        world
    }

    /// The same without a konnector.
    pub async fn at_rest(shape: Shape, ahead: &[u64]) -> Self {
        let shards = ahead.len();
        let mut config = Config::new(Mode::Kcp);
        config.shards = shards;
        config.shard_versions = ahead.to_vec();
        config.users = vec![User::new("token-of-konnector", KONNECTOR, &[])];
        let kcp = Plane::start(config).await.unwrap();
        let admin = Server::from_kubeconfig_yaml(&kcp.kubeconfig("kcp-admin", None).unwrap()).unwrap();
        let provider = Provider::start(CONTRACT).await;
        let backend = tokio::spawn(assign(provider.cluster.client.clone()));
        let world = Self { kcp, provider, shape, admin, stop: CancellationToken::new(), konnector: None, backend };
        world.workspace("prov", (shards > 1).then_some("root")).await;
        world.prepare().await;
        world
    }

    /// What administrators do in the provider's workspace and on the provider.
    async fn prepare(&self) {
        let home = self.at("prov");
        apply(
            &home,
            &api_exports(),
            &json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport",
            "metadata": {"name": EXPORT}, "spec": {}}),
        )
        .await;
        until("the slice is there", async || home.get(&slices(), None, EXPORT).await.unwrap().is_some()).await;
        let kubeconfig = self.provider.kubeconfig();
        apply(&home, &secrets(), &secret("kube-bind", "provider", &kubeconfig)).await;
        let mut all = roles::base(&subject());
        all.extend(agent::roles::of_cluster(&home, &subject(), Some(EXPORT)).await.unwrap());
        for mut role in all {
            if role["subjects"].is_array() {
                role["subjects"] =
                    json!([{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": KONNECTOR}]);
            }
            let (name, group) = (role["kind"].as_str().unwrap().to_owned(), "rbac.authorization.k8s.io");
            let make = if name.starts_with("Cluster") { Resource::cluster_wide } else { Resource::namespaced };
            apply(&home, &make(group, "v1", &name, &format!("{}s", name.to_lowercase())), &role).await;
        }
        // What a backend grants for claims.
        let (group, all) =
            ("rbac.authorization.k8s.io", ["get", "list", "watch", "create", "update", "patch", "delete"]);
        let there = &self.provider.cluster;
        there
            .apply(
                &kind(group, "v1", "ClusterRole", "clusterroles"),
                &json!({"apiVersion": format!("{group}/v1"),
            "kind": "ClusterRole", "metadata": {"name": "kube-binder-claims"},
            "rules": [{"apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": all}]}),
            )
            .await;
        there
            .apply(
                &kind(group, "v1", "ClusterRoleBinding", "clusterrolebindings"),
                &json!({"apiVersion": format!("{group}/v1"),
            "kind": "ClusterRoleBinding", "metadata": {"name": "kube-binder-claims"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "kube-binder-claims"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": BINDER}]}),
            )
            .await;
        self.offer(&self.widget_crd("intent")).await;
    }

    /// The CRD of widgets as the provider has it.
    pub fn widget_crd(&self, field: &str) -> Value {
        let mut crd = crd("widgets", "Widget");
        crd["spec"]["scope"] = json!(self.shape.scope_there());
        let spec = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        spec["properties"][field] = json!({"type": "string"});
        crd
    }

    /// The provider exports a CRD, as its backend does.
    pub async fn offer(&self, crd: &Value) {
        let cluster = &self.provider.cluster;
        cluster.apply(&crd_kind(), crd).await;
        let mut bound = schema::from_crd(crd, InformerScope::Cluster, &self.shape.isolation).unwrap();
        CONTRACT.clone_into(&mut bound.metadata.namespace);
        cluster.apply(&crate::clusters::schemas(), &serde_json::to_value(bound).unwrap()).await;
        let mut export = ApiServiceExport::new("widgets");
        CONTRACT.clone_into(&mut export.metadata.namespace);
        export.spec.resources = vec![ExportedResource::new("wild.io", "widgets", &["v1"])];
        export.spec.informer_scope = InformerScope::Cluster;
        export.spec.isolation = self.shape.isolation.clone();
        export.spec.permission_claims = serde_json::from_value(self.shape.claims.clone()).unwrap();
        cluster.apply(&crate::clusters::exports(), &serde_json::to_value(export).unwrap()).await;
    }

    /// An administrator's client of a workspace.
    pub fn at(&self, workspace: &str) -> Client {
        self.admin.at_path(&format!("/clusters/root:{workspace}"))
    }

    /// Creates a workspace, and returns its logical cluster.
    pub async fn workspace(&self, name: &str, shard: Option<&str>) -> String {
        let root = self.admin.at_path("/clusters/root");
        let mut object = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name},
            "spec": {"type": {"name": "universal", "path": "root"}}});
        if let Some(shard) = shard {
            object["spec"]["location"] = json!({"selector": {"matchLabels": {"name": shard}}});
        }
        root.create(&workspaces(), None, &object).await.unwrap();
        let found = async || root.get(&workspaces(), None, name).await.unwrap().unwrap();
        until("the workspace is ready", async || found().await["status"]["phase"] == "Ready").await;
        found().await["spec"]["cluster"].as_str().unwrap().to_owned()
    }

    /// A workspace with namespace `team` that binds the export and accepts its claims. Returns its logical cluster.
    pub async fn consumer(&self, name: &str, shard: Option<&str>) -> String {
        let cluster = self.workspace(name, shard).await;
        self.bind_export(name).await;
        let team = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}});
        self.at(name).create(&namespaces(), None, &team).await.unwrap();
        cluster
    }

    pub async fn bind_export(&self, name: &str) {
        let export = self.at("prov").get(&api_exports(), None, EXPORT).await.unwrap().unwrap();
        let mut claims = export["spec"]["permissionClaims"].clone();
        for claim in claims.as_array_mut().into_iter().flatten() {
            claim["state"] = json!("Accepted");
            claim["selector"] = json!({"matchAll": true});
        }
        let binding = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": "wild"},
            "spec": {"reference": {"export": {"path": "root:prov", "name": EXPORT}}, "permissionClaims": claims}});
        self.at(name).create(&api_bindings(), None, &binding).await.unwrap();
        until("the export is bound", async || {
            let binding = self.at(name).get(&api_bindings(), None, "wild").await.unwrap().unwrap();
            binding["status"]["phase"] == "Bound"
        })
        .await;
    }

    /// Starts a konnector.
    pub fn start(&mut self) {
        self.stop = CancellationToken::new();
        let server = Server::from_kubeconfig_yaml(&self.kcp.kubeconfig(KONNECTOR, Some("root:prov")).unwrap()).unwrap();
        let config = KonnectorConfig {
            server,
            lease: None,
            server_address: None,
            export: Some(EXPORT.to_owned()),
            polling: Duration::from_secs(15),
            namespace: None,
            core: agent::CoreConfig::default(),
            budget: agent::Budget::default(),
        };
        let stop = self.stop.clone();
        self.konnector = Some(tokio::spawn(async move { agent::run(config, stop).await.unwrap() }));
    }

    /// Ends the konnector without a word.
    pub async fn kill(&mut self) {
        if let Some(konnector) = self.konnector.take() {
            konnector.abort();
            let _ = konnector.await;
        }
        self.stop.cancel();
    }

    /// Binds the provider into the provider's workspace, and waits until the export offers widgets with all claims.
    pub async fn bind(&self) {
        until("the konnector has made its CRDs", async || self.ask().await).await;
        until("the export offers widgets", async || self.is_offered().await).await;
    }

    /// Creates the binding of the provider, if that is possible yet.
    pub async fn ask(&self) -> bool {
        let binding = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceBinding", "metadata": {"name": "widgets"},
            "spec": {"kubeconfigSecretRef": {"namespace": "kube-bind", "name": "provider", "key": "kubeconfig"}}});
        let created = self.at("prov").create(&crate::clusters::bindings(), None, &binding).await;
        created.is_ok() || created.is_err_and(|error| error.is_already_exists())
    }

    /// Whether the export offers widgets with all claims.
    pub async fn is_offered(&self) -> bool {
        let export = self.at("prov").get(&api_exports(), None, EXPORT).await.unwrap().unwrap();
        let count = |field: &str| export["spec"][field].as_array().map_or(0, Vec::len);
        count("resources") == 1 && count("permissionClaims") == 1 + self.shape.claims.as_array().unwrap().len()
    }

    /// Widgets of consumers, and of the provider.
    pub fn widgets(&self) -> [Resource; 2] {
        let of = |scope: &str| {
            let make = if scope == "Cluster" { Resource::cluster_wide } else { Resource::namespaced };
            make("wild.io", "v1", "Widget", "widgets")
        };
        [of(self.shape.scope), of(self.shape.scope_there())]
    }

    fn namespace(&self) -> Option<&'static str> {
        (self.shape.scope == "Namespaced").then_some("team")
    }

    /// A consumer creates a widget.
    pub async fn order(&self, workspace: &str, name: &str, intent: &str) -> Value {
        let widget = json!({"apiVersion": "wild.io/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"intent": intent}});
        self.at(workspace).create(&self.widgets()[0], self.namespace(), &widget).await.unwrap()
    }

    pub async fn source(&self, workspace: &str, name: &str) -> Option<Value> {
        // A workspace without the API, or that is gone, has none.
        self.at(workspace).get(&self.widgets()[0], self.namespace(), name).await.ok().flatten()
    }

    pub async fn change(&self, workspace: &str, name: &str, patch: &Value) {
        self.at(workspace).merge_patch(&self.widgets()[0], self.namespace(), name, patch).await.unwrap();
    }

    pub async fn cancel(&self, workspace: &str, name: &str) {
        let options = DeleteOptions::default();
        self.at(workspace).delete(&self.widgets()[0], self.namespace(), name, &options).await.unwrap();
    }

    /// All copies on the provider of widgets of a logical cluster.
    pub async fn copies(&self, cluster: &str) -> Vec<Value> {
        let options = carrick_client::ListOptions::default();
        let mut all = self.provider.cluster.client.list(&self.widgets()[1], None, &options).await.unwrap();
        all.retain(|copy| copy["metadata"]["annotations"]["kube-bind.io/consumer-cluster"] == cluster);
        all
    }

    /// The one copy of a widget of a logical cluster.
    pub async fn copy(&self, cluster: &str, name: &str) -> Option<Value> {
        let mut all = self.copies(cluster).await;
        all.retain(|copy| copy["metadata"]["annotations"]["kube-bind.io/consumer-name"] == name);
        assert!(all.len() <= 1, "{all:#?}");
        all.pop()
    }

    pub async fn until_copied(&self, cluster: &str, name: &str, intent: &str) -> Value {
        until(&format!("{name} of {cluster} is copied"), async || {
            self.copy(cluster, name).await.is_some_and(|copy| copy["spec"]["intent"] == intent)
        })
        .await;
        self.copy(cluster, name).await.unwrap()
    }

    /// The provider's operator says something about a copy.
    pub async fn tell(&self, copy: &Value, result: &str) {
        let (namespace, name) = (copy["metadata"]["namespace"].as_str(), copy["metadata"]["name"].as_str().unwrap());
        let status = json!({"status": {"result": result}});
        let client = &self.provider.cluster.client;
        client.merge_patch_status(&self.widgets()[1], namespace, name, &status).await.unwrap();
    }

    pub async fn until_told(&self, workspace: &str, name: &str, result: &str) {
        until(&format!("the status of {name} is in {workspace}"), async || {
            self.source(workspace, name).await.is_some_and(|it| it["status"]["result"] == result)
        })
        .await;
    }

    /// What is sent from now on.
    pub fn record(&self) -> [Recording; 2] {
        [self.kcp.faults().record(), self.provider.cluster.plane().faults().record()]
    }

    /// Waits until the konnector has not written for a while.
    pub async fn calm(&self) {
        loop {
            let recordings = self.record();
            tokio::time::sleep(CALM).await;
            if writes(&recordings).is_empty() {
                return;
            }
        }
    }
}

/// What the konnector has written.
pub fn writes(recordings: &[Recording; 2]) -> Vec<String> {
    let records = recordings.iter().flat_map(Recording::writes);
    let sent = records.filter(|record| [KONNECTOR, BINDER].contains(&record.ask.user.as_str()));
    sent.map(|record| format!("{} {}", record.ask.verb, record.ask.path)).collect()
}
