//! What all stories need.

use std::time::Duration;

use anyhow::Context;
use carrick_bind_api::kinds::{self, Kind};
use carrick_bind_api::response::BindingResponse;
use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_bind_backend::agent::{BackendConfig, SchemaSource};
use carrick_bind_backend::backend;
use carrick_bind_backend::decide::terms::{Address, Logins, Terms};
use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, Resource, Server};
use carrick_kcp::apis::v1alpha1::{ApiBinding, ApiExport, ExportReference};
use carrick_kcp::kinds::API_RESOURCE_SCHEMA;
use carrick_konnector::agent::{Budget, CoreConfig, KonnectorConfig};
use carrick_plane::Plane;
use data_encoding::BASE64;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::ui::Observed;

const PAUSE: Duration = Duration::from_millis(10);
/// Group of the kind that is offered.
pub const GROUP: &str = "wild.io";
/// Where consumers have their objects.
pub const NAMESPACE: &str = "default";

/// What runs in the background, until the story ends.
#[derive(Default)]
pub struct Background {
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl Background {
    /// Starts a backend.
    pub fn backend(&mut self, config: BackendConfig) {
        let stop = self.stop.clone();
        self.tasks.push(tokio::spawn(async move {
            if let Err(error) = Box::pin(backend::run(config, None, stop)).await {
                tracing::error!(%error, "the backend has ended");
            }
        }));
    }

    /// Starts a konnector, for a cluster or for the workspaces of an APIExport.
    pub fn konnector(&mut self, server: Server, export: Option<&str>) {
        let (export, polling) = (export.map(str::to_owned), Duration::from_secs(15));
        let config = KonnectorConfig {
            server,
            lease: None,
            server_address: None,
            export,
            polling,
            namespace: None,
            core: CoreConfig::default(),
            budget: Budget::default(),
        };
        let stop = self.stop.clone();
        self.tasks.push(tokio::spawn(async move {
            if let Err(error) = Box::pin(carrick_konnector::agent::run(config, stop)).await {
                tracing::error!(%error, "the konnector has ended");
            }
        }));
    }

    /// Starts anything else, which ends with the story.
    pub fn task(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tasks.push(tokio::spawn(async move {
            stop.run_until_cancelled_owned(task).await;
        }));
    }

    /// Ends all of it.
    pub async fn end(mut self) {
        self.stop.cancel();
        for task in self.tasks.drain(..) {
            // Whoever panicked has said so.
            let _ = task.await;
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Looks until something is there; the step's deadline ends it.
pub async fn until<T>(seen: &Observed, look: impl AsyncFn() -> anyhow::Result<T>) -> anyhow::Result<T> {
    loop {
        match look().await {
            Ok(found) => return Ok(found),
            Err(problem) => seen.note(format_args!("{problem:#}")),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Looks until an object is as wanted.
pub async fn until_object(
    seen: &Observed,
    (client, resource, namespace, name): (&Client, &Resource, Option<&str>, &str),
    wanted: impl Fn(&Value) -> bool,
) -> anyhow::Result<Value> {
    until(seen, async || {
        let found = client.get(resource, namespace, name).await?;
        let found = found.with_context(|| format!("there is no {} {name}", resource.kind))?;
        anyhow::ensure!(wanted(&found), "{} {name} is {found}", resource.kind);
        Ok(found)
    })
    .await
}

/// Looks until an object is gone.
pub async fn until_gone(
    seen: &Observed,
    (client, resource, namespace, name): (&Client, &Resource, Option<&str>, &str),
) -> anyhow::Result<()> {
    until(seen, async || {
        let found = client.get(resource, namespace, name).await?;
        anyhow::ensure!(found.is_none(), "{} {name} is still there", resource.kind);
        Ok(())
    })
    .await
}

/// A kind of kube-bind.
pub fn of(kind: Kind) -> Resource {
    let make = if kinds::is_namespaced(kind) { Resource::namespaced } else { Resource::cluster_wide };
    make(kind.group, kind.version, kind.kind, kind.plural)
}

/// The kind that is offered.
pub fn widgets() -> Resource {
    Resource::namespaced(GROUP, "v1", "Widget", "widgets")
}

pub fn crds() -> Resource {
    Resource::cluster_wide("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
}

pub fn secrets() -> Resource {
    Resource::namespaced("", "v1", "Secret", "secrets")
}

pub fn namespaces() -> Resource {
    Resource::cluster_wide("", "v1", "Namespace", "namespaces")
}

/// What is the same in the CRD and in the schema of Widgets.
pub fn names() -> Value {
    json!({"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"})
}

/// The schema of Widgets.
pub fn schema() -> Value {
    let text = || json!({"type": "string"});
    json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": text()}},
        "status": {"type": "object", "properties": {"phase": text()}}}})
}

pub fn widget(name: &str, size: &str) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Widget", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"size": size}})
}

/// What a backend is told.
pub fn backend_config(plane: &Plane, server: Server, scope: InformerScope, isolation: Isolation) -> BackendConfig {
    BackendConfig {
        terms: Terms {
            namespace_prefix: "kube-bind-".to_owned(),
            pretty_name: "Demo".to_owned(),
            informer_scope: scope,
            isolation,
            address: Address {
                server: plane.url().to_owned(),
                authority: Some(plane.ca_pem().to_owned()),
                authority_given: true,
                server_name: None,
            },
            cluster_wide_claims: false,
            shared_namespaces: false,
            logins: Logins::default(),
            workspace: None,
            most_namespaces: carrick_bind_backend::decide::terms::MOST_NAMESPACES,
        },
        server,
        source: SchemaSource::Crds,
        slice: None,
        ignored_bindings: Vec::new(),
        lease: None,
        listen_address: None,
        namespace: NAMESPACE.to_owned(),
    }
}

/// Asks a backend for a contract, as a portal does: the contract's namespace, and the kubeconfig for the konnector.
pub async fn contract(seen: &Observed, provider: &Client, identity: &str) -> anyhow::Result<(String, String)> {
    let requests = of(kinds::BINDABLE_RESOURCES_REQUEST);
    let request = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "BindableResourcesRequest",
        "metadata": {"name": "demo", "namespace": NAMESPACE}, "spec": {"clusterIdentity": {"identity": identity}, "author": "demo"}});
    until(seen, async || Ok(provider.create(&requests, Some(NAMESPACE), &request).await?)).await?;
    let at = (provider, &requests, Some(NAMESPACE), "demo");
    let request = until_object(seen, at, |it| it["status"]["phase"] == "Succeeded").await?;
    let secret = request["status"]["kubeconfigSecretRef"]["name"].as_str().context("the request names no Secret")?;
    let secret = provider.get(&secrets(), Some(NAMESPACE), secret).await?.context("the answer is missing")?;
    let answer = secret["data"]["binding-response"].as_str().context("the Secret holds no answer")?;
    let answer = String::from_utf8(BASE64.decode(answer.as_bytes())?)?;
    let namespace = request["status"]["namespace"].as_str().context("the request names no namespace")?;
    Ok((namespace.to_owned(), BindingResponse::parse(&answer)?.kubeconfig_text()?))
}

/// Hands Widgets over, with these namespaces: the provider's part.
pub async fn hand_over(seen: &Observed, provider: &Client, contract: &str, namespaces: Value) -> anyhow::Result<()> {
    let requests = of(kinds::API_SERVICE_EXPORT_REQUEST);
    let request = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportRequest", "metadata": {"name": "widgets"},
        "spec": {"resources": [{"group": GROUP, "resource": "widgets", "versions": ["v1"]}], "namespaces": namespaces}});
    provider.create(&requests, Some(contract), &request).await?;
    let at = (provider, &requests, Some(contract), "widgets");
    until_object(seen, at, |it| it["status"]["phase"] == "Succeeded").await?;
    Ok(())
}

/// Binds all that a contract hands over: the consumer's part. `annotations` go to the bundle.
pub async fn bind_all(seen: &Observed, consumer: &Client, kubeconfig: &str, annotations: Value) -> anyhow::Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-bind"}});
    consumer.apply(&namespaces(), None, &namespace, "carrick").await?;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "provider"},
        "data": {"kubeconfig": BASE64.encode(kubeconfig.as_bytes())}});
    consumer.create(&secrets(), Some("kube-bind"), &secret).await?;
    let bundle = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceBindingBundle",
        "metadata": {"name": "all", "annotations": annotations},
        "spec": {"kubeconfigSecretRef": {"namespace": "kube-bind", "name": "provider", "key": "kubeconfig"}}});
    let bundles = of(kinds::API_SERVICE_BINDING_BUNDLE);
    // The konnector installs the kind when it starts.
    until(seen, async || Ok(consumer.create(&bundles, None, &bundle).await?)).await?;
    Ok(())
}

/// An account binds a vendor's Widgets and creates one, first.
pub async fn use_widgets(seen: &Observed, path: &str, vendor: &Client, account: &Client) -> anyhow::Result<()> {
    let name = format!("v1.widgets.{GROUP}");
    let schema = json!({"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema", "metadata": {"name": name},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names(), "versions": [{"name": "v1", "served": true,
            "storage": true, "subresources": {"status": {}}, "schema": schema()}]}});
    vendor.create(&API_RESOURCE_SCHEMA.into(), None, &schema).await?;
    let mut export = ApiExport::new("widgets");
    export.spec.latest_resource_schemas = vec![name];
    vendor.create_kcp(&export).await?;
    account.create_kcp(&ApiBinding::to_export("widgets", ExportReference::new(path, "widgets"))).await?;
    let first = widget("first", "small");
    until(seen, async || Ok(account.create(&widgets(), Some(NAMESPACE), &first).await?)).await?;
    Ok(())
}

/// The provider's operator: every Widget is ready at once.
pub async fn operate(client: Client) {
    let mut events = std::pin::pin!(watch(client.clone(), widgets(), WatchOptions::default()));
    while let Some(event) = events.next().await {
        let (Event::Listed(object) | Event::Applied(object)) = event else { continue };
        let value = object.value();
        let phase = format!("{} and ready", value["spec"]["size"].as_str().unwrap_or_default());
        if value["status"]["phase"] != phase.as_str() {
            let status = json!({"status": {"phase": phase}});
            if let Err(error) =
                client.merge_patch_status(&widgets(), Some(&object.namespace), &object.name, &status).await
            {
                tracing::warn!(%error, "the operator cannot write a status");
            }
        }
    }
}
