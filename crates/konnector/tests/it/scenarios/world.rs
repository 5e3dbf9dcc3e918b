//! A consumer with a konnector, and what its administrator does.

use std::sync::Arc;
use std::time::Duration;

use carrick_bind_api::roles::{self, Subject};
use carrick_client::watch::{WatchOptions, watch};
use carrick_client::{Client, Resource, Server};
use carrick_konnector::agent::{self, KonnectorConfig};
use carrick_plane::faults::Recording;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::clusters::{BINDER, Cluster, KONNECTOR, Provider, apply, bindings, bundles, secret, secrets};

/// A consumer.
pub struct World {
    pub consumer: Arc<Cluster>,
    stop: CancellationToken,
    konnector: Option<JoinHandle<()>>,
    granting: Option<JoinHandle<()>>,
}

impl World {
    /// A consumer with a running konnector, which has the rights of `konnector roles` and no others.
    pub async fn start() -> Self {
        let mut world = Self::without_konnector().await;
        world.start_konnector().await;
        world
    }

    pub async fn without_konnector() -> Self {
        Self::on(Cluster::start(&[KONNECTOR]).await).await
    }

    /// Makes a consumer of a cluster.
    pub async fn on(consumer: Cluster) -> Self {
        let consumer = Arc::new(consumer);
        for role in roles::base(&subject()) {
            write_role(&consumer.client, &role).await;
        }
        Self { consumer, stop: CancellationToken::new(), konnector: None, granting: None }
    }

    pub fn config(&self) -> KonnectorConfig {
        let server = Server::from_kubeconfig_yaml(&self.consumer.kubeconfig(KONNECTOR)).unwrap();
        KonnectorConfig {
            server,
            lease: None,
            server_address: None,
            export: None,
            polling: Duration::from_secs(15),
            namespace: None,
            core: agent::CoreConfig::default(),
            budget: agent::Budget::default(),
        }
    }

    pub async fn start_konnector(&mut self) {
        self.stop = CancellationToken::new();
        let (config, stop) = (self.config(), self.stop.clone());
        self.konnector = Some(tokio::spawn(async move { agent::run(config, stop).await.unwrap() }));
        for kind in ["apiservicebindings.kube-bind.io", "apiservicebindingbundles.kube-bind.io"] {
            self.consumer
                .until(&crate::clusters::crd_kind(), None, kind, |crd| {
                    let mut conditions = crd["status"]["conditions"].as_array().into_iter().flatten();
                    conditions.any(|it| it["type"] == "Established" && it["status"] == "True")
                })
                .await;
        }
        if self.granting.is_none() {
            self.grant();
        }
    }

    /// Gives the konnector what it needs for each binding, from now on.
    pub fn grant(&mut self) {
        self.granting = Some(tokio::spawn(grant(self.consumer.client.clone())));
    }

    /// Gives the konnector nothing more.
    pub async fn stop_granting(&mut self) {
        if let Some(granting) = self.granting.take() {
            granting.abort();
            let _ = granting.await;
        }
    }

    /// Takes away what the konnector needs for a binding.
    pub async fn revoke(&mut self, binding: &str) {
        self.stop_granting().await;
        let group = "rbac.authorization.k8s.io";
        let roles = Resource::cluster_wide(group, "v1", "ClusterRole", "clusterroles");
        self.consumer.delete(&roles, None, &format!("{}-{binding}", roles::BASE)).await;
    }

    /// Ends the konnector without a word.
    pub async fn kill_konnector(&mut self) {
        if let Some(konnector) = self.konnector.take() {
            konnector.abort();
            let _ = konnector.await;
        }
        self.stop.cancel();
    }

    pub async fn stop_konnector(&mut self) {
        self.stop.cancel();
        if let Some(konnector) = self.konnector.take() {
            konnector.await.unwrap();
        }
    }

    /// Stores the kubeconfig of a provider in Secret `kube-bind/<name>`.
    pub async fn store(&self, name: &str, provider: &Provider) {
        self.consumer.apply(&secrets(), &secret("kube-bind", name, &provider.kubeconfig())).await;
    }

    /// Binds the export of this name through the Secret of that name.
    pub async fn bind(&self, export: &str, secret: &str) {
        self.consumer.apply(&bindings(), &object("APIServiceBinding", export, secret)).await;
    }

    /// Binds everything through a Secret.
    pub async fn bundle(&self, name: &str, secret: &str) {
        self.consumer.apply(&bundles(), &object("APIServiceBindingBundle", name, secret)).await;
    }

    /// Waits until a condition of a binding is as wanted: status and reason.
    pub async fn binding(&self, name: &str, type_: &str, status: &str, reason: &str) -> Value {
        self.consumer.until(&bindings(), None, name, |binding| has(binding, type_, status, reason)).await
    }

    /// Waits until a binding is ready.
    pub async fn ready(&self, name: &str) -> Value {
        let all = ["Ready", "SecretValid", "InformersSynced", "Heartbeating", "Connected", "SchemaInSync"];
        self.consumer.until(&bindings(), None, name, |it| all.iter().all(|type_| has(it, type_, "True", ""))).await
    }

    /// Records from now on what the konnector sends to both sides.
    pub fn record(&self, provider: &Provider) -> Recordings {
        Recordings([self.consumer.plane().faults().record(), provider.cluster.plane().faults().record()])
    }
}

/// What the konnector sends to both sides.
pub struct Recordings([Recording; 2]);

impl Recordings {
    /// Writes until now and for a second more.
    pub async fn silence(&self) -> Vec<String> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let writes = self.0.iter().flat_map(Recording::writes);
        let ours = writes.filter(|record| [KONNECTOR, BINDER].contains(&record.ask.user.as_str()));
        ours.map(|record| format!("{} {}", record.ask.verb, record.ask.path)).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(granting) = &self.granting {
            granting.abort();
        }
    }
}

pub fn object(kind: &str, name: &str, secret: &str) -> Value {
    json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": kind, "metadata": {"name": name},
        "spec": {"kubeconfigSecretRef": {"namespace": "kube-bind", "name": secret, "key": "kubeconfig"}}})
}

pub fn has(object: &Value, type_: &str, status: &str, reason: &str) -> bool {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions
        .any(|it| it["type"] == type_ && it["status"] == status && it["reason"].as_str().unwrap_or_default() == reason)
}

pub fn message(object: &Value, type_: &str) -> String {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let found = conditions.find(|it| it["type"] == type_);
    found.and_then(|it| it["message"].as_str()).unwrap_or_default().to_owned()
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

async fn write_role(client: &Client, role: &Value) {
    let kind = role["kind"].as_str().unwrap();
    let (group, plural) = ("rbac.authorization.k8s.io", format!("{}s", kind.to_lowercase()));
    let make = if kind.starts_with("Cluster") { Resource::cluster_wide } else { Resource::namespaced };
    apply(client, &make(group, "v1", kind, &plural), role).await;
}

/// An administrator who runs `konnector roles | kubectl apply -f -` whenever a binding changes.
async fn grant(client: Client) {
    let mut events = std::pin::pin!(watch(client.clone(), bindings(), WatchOptions::default()));
    while events.next().await.is_some() {
        for role in agent::roles::of_cluster(&client, &subject(), None).await.unwrap_or_default() {
            write_role(&client, &role).await;
        }
    }
}
