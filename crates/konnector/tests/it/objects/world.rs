//! A consumer, a provider, a backend that assigns namespaces, and a konnector between them.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use carrick_bind_api::carrick_kcp::apis::v1alpha1::ResourceScope;
use carrick_bind_api::claims::Claim;
use carrick_bind_api::existing::Existing;
use carrick_bind_api::kinds::{API_SERVICE_NAMESPACE, GROUP, VERSION};
use carrick_bind_api::mapping::KeyMapping;
use carrick_bind_api::schema::SyncedApi;
use carrick_bind_api::v1alpha2::{ApiServiceExport, InformerScope, Isolation, PermissionClaim};
use carrick_bind_api::{crds, names};
use carrick_client::watch::{Event, WatchOptions, watch as follow};
use carrick_client::{Client, Resource, Server};
use carrick_konnector::agent::Budget;
use carrick_konnector::agent::objects::{BindingReport, ContractSync, SyncMode, SyncReport, Wanted, WantedBinding};
use carrick_konnector::decide::binding::{BoundApi, Sync};
use carrick_plane::faults::{Match, Recording};
use carrick_plane::{Config, Mode, Plane, User};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The contract of the konnector.
pub const CONTRACT: &str = "c-1";
/// The name of the one binding, and of its export.
pub const BINDING: &str = "widgets";
/// The user that the konnector is.
pub const KONNECTOR: &str = "konnector";
/// How long something may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long nothing must happen.
const CALM: Duration = Duration::from_millis(300);

/// How consumers see widgets, and how they are kept apart.
#[derive(Clone, Debug)]
pub struct Shape {
    pub scope: ResourceScope,
    pub isolation: Isolation,
    pub informers: InformerScope,
}

impl Shape {
    pub fn namespaced(informers: InformerScope) -> Self {
        Self { scope: ResourceScope::Namespaced, isolation: Isolation::Prefixed, informers }
    }

    pub fn cluster(isolation: Isolation) -> Self {
        Self { scope: ResourceScope::Cluster, isolation, informers: InformerScope::Cluster }
    }

    fn mapping(&self) -> KeyMapping {
        KeyMapping::new(&self.scope, &self.isolation, CONTRACT).unwrap()
    }
}

/// Everything of a test.
pub struct World {
    pub consumer: Plane,
    pub provider: Plane,
    /// The administrators' clients.
    pub here: Client,
    pub there: Client,
    pub shape: Shape,
    pub wanted: watch::Sender<Arc<Wanted>>,
    /// What becomes of widgets that the provider had before.
    pub existing: Existing,
    pub konnector: Option<Running>,
    backend: Option<JoinHandle<()>>,
}

/// A konnector that runs.
pub struct Running {
    task: JoinHandle<()>,
    told: watch::Receiver<Arc<SyncReport>>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.kill();
        if let Some(backend) = self.backend.take() {
            backend.abort();
        }
    }
}

async fn plane() -> (Plane, Client) {
    let mut config = Config::new(Mode::Kube);
    config.users = vec![User::new("konnector-token", KONNECTOR, &["system:masters"])];
    let plane = Plane::start(config).await.unwrap();
    let client = client(&plane, "admin");
    (plane, client)
}

fn client(plane: &Plane, user: &str) -> Client {
    Server::from_kubeconfig_yaml(&plane.kubeconfig(user, None).unwrap()).unwrap().client()
}

fn widget_crd(scope: &str) -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": open, "status": open}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.io"},
        "spec": {"group": "example.io", "scope": scope, "names": {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}]}})
}

pub fn namespaces() -> Resource {
    Resource::cluster_wide("", "v1", "Namespace", "namespaces")
}

pub fn secrets() -> Resource {
    Resource::namespaced("", "v1", "Secret", "secrets")
}

pub fn service_namespaces() -> Resource {
    Resource::namespaced(GROUP, VERSION, API_SERVICE_NAMESPACE.kind, API_SERVICE_NAMESPACE.plural)
}

async fn install(client: &Client, crd: &Value) {
    let crds =
        Resource::cluster_wide("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions");
    client.create(&crds, None, crd).await.unwrap();
    let name = crd["metadata"]["name"].as_str().unwrap();
    until("the CRD is established", async || {
        let crd = client.get(&crds, None, name).await.unwrap().unwrap();
        let conditions = crd["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|it| it["type"] == "Established" && it["status"] == "True")
    })
    .await;
}

/// Waits until something is so.
pub async fn until(what: &str, mut is: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "it never happened that {what}");
}

/// Assigns a namespace to whoever asks, as a backend does.
async fn assign(there: Client) {
    let options = WatchOptions { namespace: Some(CONTRACT.to_owned()), ..WatchOptions::default() };
    let mut events = pin!(follow(there.clone(), service_namespaces(), options));
    while let Some(event) = events.next().await {
        match event {
            Event::Listed(object) | Event::Applied(object) => {
                let assigned = format!("{CONTRACT}-{}", object.name);
                if object.value()["status"]["namespace"].is_string() {
                    continue;
                }
                // It may exist already, or the request may be gone again.
                let _ = there.create(&namespaces(), None, &json!({"metadata": {"name": assigned}})).await;
                let patch = json!({"status": {"namespace": assigned}});
                let _ = there.merge_patch_status(&service_namespaces(), Some(CONTRACT), &object.name, &patch).await;
            }
            Event::Deleted(object) => {
                let assigned = format!("{CONTRACT}-{}", object.name);
                let _ = there.delete(&namespaces(), None, &assigned, &carrick_client::DeleteOptions::default()).await;
            }
            _ => {}
        }
    }
}

impl World {
    /// Two clusters that know widgets, with a konnector between them.
    pub async fn new(shape: Shape) -> Self {
        let mut world = Self::at_rest(shape).await;
        world.start();
        world
    }

    /// The same without a konnector.
    pub async fn at_rest(shape: Shape) -> Self {
        let ((consumer, here), (provider, there)) = tokio::join!(plane(), plane());
        let is_namespaced = shape.mapping().is_namespaced_on_provider();
        install(&here, &widget_crd(&shape.scope.to_string())).await;
        install(&there, &widget_crd(if is_namespaced { "Namespaced" } else { "Cluster" })).await;
        install(&there, &crds::of(API_SERVICE_NAMESPACE).unwrap()).await;
        there.create(&namespaces(), None, &json!({"metadata": {"name": CONTRACT}})).await.unwrap();
        here.create(&namespaces(), None, &json!({"metadata": {"name": "team"}})).await.unwrap();
        let backend = Some(tokio::spawn(assign(there.clone())));
        let mut world = Self {
            consumer,
            provider,
            here,
            there,
            shape,
            existing: Existing::Leave,
            wanted: watch::Sender::new(Arc::default()),
            konnector: None,
            backend,
        };
        world.want(SyncMode::Keep, &[]);
        world
    }

    /// The provider's schema of widgets knows sizes and phases only.
    pub async fn narrow(&self) {
        let crds = Resource::cluster_wide(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
        );
        let mut crd = self.there.get(&crds, None, "widgets.example.io").await.unwrap().unwrap();
        let known = |field: &str, kind: &str| json!({"type": "object", "properties": {field: {"type": kind}}});
        let properties = json!({"spec": known("size", "integer"), "status": known("phase", "string")});
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = properties;
        self.there.replace(&crds, None, &crd).await.unwrap();
        let probe = |name: &str| json!({"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"x": 1}});
        until("the schema is in use", async || {
            let probed = self.there.create(&self.widgets()[1], Some(CONTRACT), &probe("probe")).await.unwrap();
            let options = carrick_client::DeleteOptions::default();
            self.there.delete(&self.widgets()[1], Some(CONTRACT), "probe", &options).await.unwrap();
            probed["spec"].get("x").is_none()
        })
        .await;
    }

    /// Ends the backend: nobody assigns namespaces any more.
    pub fn without_backend(mut self) -> Self {
        if let Some(backend) = self.backend.take() {
            backend.abort();
        }
        self
    }

    pub fn with_backend(&mut self) {
        self.backend = Some(tokio::spawn(assign(self.there.clone())));
    }

    /// What the binding wants.
    pub fn want(&mut self, mode: SyncMode, claims: &[Value]) {
        let bindings = BTreeMap::from([(BINDING.to_owned(), self.binding(mode, claims))]);
        self.wanted.send_replace(Arc::new(Wanted { bindings, ..Wanted::default() }));
    }

    /// A binding of widgets with claims.
    pub fn binding(&self, mode: SyncMode, claims: &[Value]) -> WantedBinding {
        let export = json!({"metadata": {"name": BINDING}, "spec": {"isolation": self.shape.isolation,
            "resources": [{"group": "example.io", "resource": "widgets", "versions": ["v1"]}]}});
        let export: ApiServiceExport = serde_json::from_value(export).unwrap();
        let compile = |claim: &Value| {
            let claim: PermissionClaim = serde_json::from_value(claim.clone()).unwrap();
            Claim::compile(&claim, &export).unwrap()
        };
        let api = SyncedApi {
            group: "example.io".to_owned(),
            version: "v1".to_owned(),
            kind: "Widget".to_owned(),
            resource: "widgets".to_owned(),
            is_namespaced: self.shape.scope == ResourceScope::Namespaced,
            has_status: true,
        };
        WantedBinding {
            export_uid: "export-uid".to_owned(),
            isolation: self.shape.isolation.clone(),
            informer_scope: self.shape.informers.clone(),
            sync: Sync {
                apis: vec![BoundApi { api, mapping: self.shape.mapping() }],
                claims: claims.iter().map(compile).collect(),
            },
            mode,
            existing: self.existing,
        }
    }

    /// Starts a konnector.
    pub fn start(&mut self) {
        let (told, listen) = watch::channel(Arc::default());
        let sync = ContractSync {
            consumers: client(&self.consumer, KONNECTOR).into(),
            provider: client(&self.provider, KONNECTOR),
            contract: CONTRACT.to_owned(),
            metrics: Arc::new(()),
            budget: Budget::default(),
        };
        let task = tokio::spawn(sync.run(self.wanted.subscribe(), told, CancellationToken::new()));
        self.konnector = Some(Running { task, told: listen });
    }

    /// Kills the konnector.
    pub fn kill(&mut self) {
        if let Some(konnector) = self.konnector.take() {
            konnector.task.abort();
        }
    }

    /// What the binding is told.
    pub fn told(&self) -> Option<BindingReport> {
        self.konnector.as_ref()?.told.borrow().bindings.get(BINDING).cloned()
    }

    /// Waits until the binding is told something.
    pub async fn until_told(&self, what: &str, is: impl Fn(&BindingReport) -> bool) {
        let mut told = self.konnector.as_ref().unwrap().told.clone();
        let seen = told.wait_for(|told| told.bindings.get(BINDING).is_some_and(&is));
        let seen = tokio::time::timeout(PATIENCE, seen).await.map(|seen| seen.is_ok());
        assert!(seen == Ok(true), "nobody was told that {what}, but {:?}", self.told());
    }

    /// The kind of widgets here and there.
    pub fn widgets(&self) -> [Resource; 2] {
        let kind = Resource::namespaced("example.io", "v1", "Widget", "widgets");
        let scoped = |namespaced| Resource { namespaced, ..kind.clone() };
        [
            scoped(self.shape.scope == ResourceScope::Namespaced),
            scoped(self.shape.mapping().is_namespaced_on_provider()),
        ]
    }

    /// The namespace of a widget here, and namespace and name of its copy.
    pub fn places(&self, name: &str) -> (Option<&'static str>, Option<&'static str>, String) {
        match (&self.shape.scope, &self.shape.isolation) {
            (ResourceScope::Namespaced, _) => (Some("team"), Some("c-1-team"), name.to_owned()),
            (_, Isolation::Prefixed) => (None, None, format!("{CONTRACT}-{name}")),
            (_, Isolation::Namespaced) => (None, Some(CONTRACT), name.to_owned()),
            _ => (None, None, name.to_owned()),
        }
    }

    /// Creates a widget here.
    pub async fn order(&self, name: &str, spec: &Value) {
        let (namespace, ..) = self.places(name);
        let widget = json!({"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec});
        self.here.create(&self.widgets()[0], namespace, &widget).await.unwrap();
    }

    /// Patches a widget here.
    pub async fn change(&self, name: &str, patch: &Value) {
        self.here.merge_patch(&self.widgets()[0], self.places(name).0, name, patch).await.unwrap();
    }

    /// A widget here.
    pub async fn source(&self, name: &str) -> Option<Value> {
        self.here.get(&self.widgets()[0], self.places(name).0, name).await.unwrap()
    }

    /// What is in the place of its copy.
    pub async fn copy(&self, name: &str) -> Option<Value> {
        let (_, namespace, name) = self.places(name);
        self.there.get(&self.widgets()[1], namespace, &name).await.unwrap()
    }

    /// Deletes a widget here.
    pub async fn cancel(&self, name: &str) {
        let options = carrick_client::DeleteOptions::default();
        self.here.delete(&self.widgets()[0], self.places(name).0, name, &options).await.unwrap();
    }

    /// Waits until a copy has a spec.
    pub async fn until_copied(&self, name: &str, spec: &Value) {
        until(&format!("{name} is copied"), async || self.copy(name).await.is_some_and(|copy| copy["spec"] == *spec))
            .await;
    }

    /// Waits until nobody has a widget.
    pub async fn until_gone(&self, name: &str) {
        until(&format!("{name} is gone"), async || self.source(name).await.is_none()).await;
    }

    /// A Secret here.
    pub async fn secret_here(&self, name: &str) -> Option<Value> {
        self.here.get(&secrets(), Some("team"), name).await.unwrap()
    }

    /// A Secret there.
    pub async fn secret_there(&self, name: &str) -> Option<Value> {
        self.there.get(&secrets(), Some("c-1-team"), name).await.unwrap()
    }

    /// What the konnector sends from now on.
    pub fn record(&self) -> [Recording; 2] {
        [self.consumer.faults().record(), self.provider.faults().record()]
    }

    /// Waits until the konnector has not written for a while; it may still try to read.
    pub async fn calm_writes(&self) {
        loop {
            let recordings = self.record();
            tokio::time::sleep(CALM).await;
            if writes(&recordings).is_empty() {
                return;
            }
        }
    }

    /// Waits until the konnector rests.
    pub async fn calm(&self) {
        loop {
            let recordings = self.record();
            tokio::time::sleep(CALM).await;
            if requests(&recordings).is_empty() {
                return;
            }
        }
    }
}

/// What the konnector has sent, other than watches.
pub fn requests(recordings: &[Recording; 2]) -> Vec<String> {
    let records = recordings.iter().flat_map(Recording::records);
    let sent = records.filter(|record| record.ask.user == KONNECTOR && record.ask.verb != "watch");
    sent.map(|record| format!("{} {}", record.ask.verb, record.ask.path)).collect()
}

/// What the konnector has written.
pub fn writes(recordings: &[Recording; 2]) -> Vec<String> {
    let records = recordings.iter().flat_map(Recording::writes);
    let sent = records.filter(|record| record.ask.user == KONNECTOR);
    sent.map(|record| format!("{} {}", record.ask.verb, record.ask.path)).collect()
}

/// Writes of the konnector.
pub fn konnectors_writes() -> Match {
    Match::writes().user(KONNECTOR)
}

/// A Secret with labels.
pub fn secret(name: &str, data: &Value, labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": name, "labels": labels}, "data": data})
}

/// The owner label.
pub fn owner(object: &Value) -> Option<&str> {
    object["metadata"]["labels"][names::OWNER_LABEL].as_str()
}
