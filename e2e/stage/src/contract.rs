//! A contract: one cluster that consumes APIs of another one by kube-bind, set up as a kube-bind backend leaves it.
//!
//! ```text
//!  provider   CRDs of kube-bind, namespace of the contract with ClusterBinding, credentials, BoundSchema, APIServiceExport
//!  consumer   Secret kube-bind/provider with those credentials, APIServiceBinding
//! ```

use anyhow::Context;
use carrick_bind_api::crds;
use carrick_bind_api::kinds::{
    API_SERVICE_BINDING, API_SERVICE_EXPORT, BOUND_SCHEMA, CLUSTER_BINDING, Kind, is_namespaced,
};
use carrick_bind_api::schema;
use carrick_bind_api::v1alpha2::{ApiServiceExport, ExportedResource, InformerScope, Isolation};
use carrick_client::{Client, Resource};
use serde_json::{Value, json};

use crate::kinds;
use crate::stage::{condition, eventually};
use crate::world::World;

/// Namespace of the contract on the provider.
pub const CONTRACT: &str = "contract";
/// Namespace of the konnector on the consumer.
pub const KONNECTOR: &str = "kube-bind";
/// Name of the export, and so of the binding.
pub const EXPORT: &str = "sheriffs";
/// The field manager of what is set up here.
const MANAGER: &str = "backend";

/// Both sides of a contract, as their administrators see them.
pub struct Contract<'a> {
    /// Where they are.
    pub world: &'a dyn World,
    /// The consumer.
    pub consumer: Client,
    /// The provider.
    pub provider: Client,
    /// How consumers get to the provider, in JSON.
    pub kubeconfig: String,
    /// API group of what is exported.
    pub group: String,
}

/// A kind of kube-bind as the client wants it.
pub fn kind(kind: Kind) -> Resource {
    let make = if is_namespaced(kind) { Resource::namespaced } else { Resource::cluster_wide };
    make(kind.group, kind.version, kind.kind, kind.plural)
}

/// Creates an object or replaces its content, and makes the namespace that it is in.
pub async fn apply(client: &Client, resource: &Resource, object: &Value) -> anyhow::Result<Value> {
    let namespace = object["metadata"]["namespace"].as_str();
    if let Some(name) = namespace {
        let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        client.apply_as(&kinds::namespaces(), None, &object, MANAGER).await?;
    }
    Ok(client.apply_as(resource, namespace, object, MANAGER).await?)
}

impl Contract<'_> {
    /// What is exported: cluster-scoped, so that no namespaces have to be agreed on.
    pub fn sheriffs(&self) -> Resource {
        Resource::cluster_wide(&self.group, "v1", "Sheriff", "sheriffs")
    }

    /// Sets up the provider.
    pub async fn offer(&self) -> anyhow::Result<()> {
        for crd in crds::provider() {
            self.install(&self.provider, &crd).await?;
        }
        let crd = self.crd();
        self.install(&self.provider, &crd).await?;
        let binding = json!({
            "apiVersion": CLUSTER_BINDING.api_version(), "kind": CLUSTER_BINDING.kind,
            "metadata": { "name": "cluster", "namespace": CONTRACT, "annotations": { "backend.kube-bind.io/identity": "consumer" } },
            "spec": { "kubeconfigSecretRef": { "name": "kubeconfig", "key": "kubeconfig" }, "providerPrettyName": "Wild West" },
        });
        apply(&self.provider, &kind(CLUSTER_BINDING), &binding).await?;
        apply(&self.provider, &kinds::secrets(), &self.secret(CONTRACT, "kubeconfig")).await?;
        let mut schema = schema::from_crd(&crd, InformerScope::Cluster, &Isolation::Prefixed)?;
        CONTRACT.clone_into(&mut schema.metadata.namespace);
        apply(&self.provider, &kind(BOUND_SCHEMA), &serde_json::to_value(schema)?).await?;
        let mut export = ApiServiceExport::new(EXPORT);
        CONTRACT.clone_into(&mut export.metadata.namespace);
        export.spec.resources = vec![ExportedResource::new(&self.group, "sheriffs", &["v1"])];
        export.spec.informer_scope = InformerScope::Cluster;
        export.spec.isolation = Isolation::Prefixed;
        apply(&self.provider, &kind(API_SERVICE_EXPORT), &serde_json::to_value(export)?).await?;
        Ok(())
    }

    /// Binds the export on the consumer, where a konnector runs, and waits until it is ready.
    pub async fn bind(&self) -> anyhow::Result<Value> {
        apply(&self.consumer, &kinds::secrets(), &self.secret(KONNECTOR, "provider")).await?;
        let bindings = kind(API_SERVICE_BINDING);
        let binding = json!({
            "apiVersion": API_SERVICE_BINDING.api_version(), "kind": API_SERVICE_BINDING.kind,
            "metadata": { "name": EXPORT },
            "spec": { "kubeconfigSecretRef": { "namespace": KONNECTOR, "name": "provider", "key": "kubeconfig" } },
        });
        // The konnector installs the kind.
        self.eventually("bindings are served", async || apply(&self.consumer, &bindings, &binding).await).await?;
        self.is("the binding is ready", (&self.consumer, &bindings, None, EXPORT), |it| {
            condition(it, "Ready")["status"] == "True" && condition(it, "InformersSynced")["status"] == "True"
        })
        .await
    }

    /// Creates an object on the consumer.
    pub async fn order(&self, name: &str, intent: &str) -> anyhow::Result<Value> {
        let object = json!({
            "apiVersion": format!("{}/v1", self.group), "kind": "Sheriff",
            "metadata": { "name": name }, "spec": { "intent": intent },
        });
        Ok(self.consumer.create(&self.sheriffs(), None, &object).await?)
    }

    /// Where the copy of an object is.
    pub fn copy_name(name: &str) -> String {
        format!("{CONTRACT}-{name}")
    }

    /// Waits until an object exists and is as it should be.
    pub async fn is(
        &self,
        what: &str,
        (client, resource, namespace, name): (&Client, &Resource, Option<&str>, &str),
        good: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Value> {
        self.eventually(what, async || {
            let object = client.get(resource, namespace, name).await?;
            let object = object.with_context(|| format!("{resource} {name} does not exist"))?;
            anyhow::ensure!(good(&object), "it is {}", crate::stage::shown(&object));
            Ok(object)
        })
        .await
    }

    /// Waits until an object is gone.
    pub async fn gone(&self, what: &str, client: &Client, resource: &Resource, name: &str) -> anyhow::Result<()> {
        self.eventually(what, async || match client.get(resource, None, name).await {
            Ok(Some(left)) => anyhow::bail!("it is {}", crate::stage::shown(&left)),
            Err(error) if !error.is_not_found() => Err(error.into()),
            _ => Ok(()),
        })
        .await
    }

    /// Looks until the look succeeds.
    pub async fn eventually<T>(&self, what: &str, look: impl AsyncFnMut() -> anyhow::Result<T>) -> anyhow::Result<T> {
        eventually(self.world, what, look).await
    }

    /// The credentials of the contract as a Secret.
    pub fn secret(&self, namespace: &str, name: &str) -> Value {
        let data = data_encoding::BASE64.encode(self.kubeconfig.as_bytes());
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": namespace },
            "data": { "kubeconfig": data },
        })
    }

    /// Installs a CRD and waits until it is served.
    pub async fn install(&self, client: &Client, crd: &Value) -> anyhow::Result<()> {
        apply(client, &kinds::crds(), crd).await?;
        let name = crd["metadata"]["name"].as_str().unwrap_or_default();
        let at = (client, &kinds::crds(), None, name);
        self.is(&format!("{name} is served"), at, |it| condition(it, "Established")["status"] == "True").await?;
        Ok(())
    }

    /// The CRD of what is exported.
    pub fn crd(&self) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("sheriffs.{}", self.group), "labels": { "kube-bind.io/exported": "true" } },
            "spec": {
                "group": self.group, "scope": "Cluster",
                "names": { "plural": "sheriffs", "singular": "sheriff", "kind": "Sheriff", "listKind": "SheriffList" },
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                    "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                        "spec": { "type": "object", "properties": { "intent": { "type": "string" } } },
                        "status": { "type": "object", "properties": { "result": { "type": "string" } } },
                    } } },
                }],
            },
        })
    }
}

/// A kubeconfig in JSON with the namespace of the contract in its context.
pub fn with_contract(kubeconfig: &str) -> anyhow::Result<String> {
    let mut config: Value = serde_json::from_str(kubeconfig)?;
    config["contexts"][0]["context"]["namespace"] = CONTRACT.into();
    Ok(config.to_string())
}
