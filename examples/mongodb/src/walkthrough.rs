//! The story, step by step; each step waits until it is seen.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use carrick_kcp::url;
use carrick_multicluster::Fleet;
use carrick_multicluster::providers::kcp::ApiExport;
use carrick_plane::{Config as PlaneConfig, Mode, Plane};
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::{Client, Config, ResourceExt};
use serde_json::{Value, json};

use crate::api::{self, MongoDBCommunity};
use crate::operator;
use crate::sim::Sim;
use crate::sync::{CLUSTER, Cleanup, Placement, Settings};

const PROVIDER: &str = "root:mongodb";
const CONSUMERS: [&str; 2] = ["root:consumer-a", "root:consumer-b"];
const NAMESPACE: &str = "mongodb";
const LIMIT: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(20);

/// A kcp and a service cluster.
pub struct Servers {
    kcp: Config,
    target: Client,
    /// Kept, because they end when dropped.
    _planes: Vec<Plane>,
}

impl Servers {
    /// Two planes in this process.
    pub async fn embedded() -> anyhow::Result<Self> {
        let kcp = Plane::start(PlaneConfig::new(Mode::Kcp)).await?;
        let target = Plane::start(PlaneConfig::new(Mode::Kube)).await?;
        let kubeconfig = |text: String| Kubeconfig::from_yaml(&text);
        let servers = Self::given(
            kubeconfig(kcp.kubeconfig("kcp-admin", Some("root"))?)?,
            kubeconfig(target.kubeconfig("admin", None)?)?,
        );
        Ok(Self { _planes: vec![kcp, target], ..servers.await? })
    }

    /// Servers that run already.
    pub async fn given(kcp: Kubeconfig, target: Kubeconfig) -> anyhow::Result<Self> {
        let options = KubeConfigOptions::default();
        let kcp = Config::from_custom_kubeconfig(kcp, &options).await.context("cannot use the kubeconfig of kcp")?;
        let target = Config::from_custom_kubeconfig(target, &options)
            .await
            .context("cannot use the kubeconfig of the target")?;
        Ok(Self { kcp, target: Client::try_from(target)?, _planes: Vec::new() })
    }

    /// How to reach one workspace.
    fn config(&self, path: &str) -> anyhow::Result<Config> {
        let mut config = self.kcp.clone();
        config.cluster_url = url::retarget(&config.cluster_url.to_string(), path)?.parse()?;
        Ok(config)
    }

    /// A client of one workspace.
    fn workspace(&self, path: &str) -> anyhow::Result<Client> {
        Ok(Client::try_from(self.config(path)?)?)
    }
}

/// Plays the story from the first workspace to the last clean-up.
pub async fn play(servers: &Servers) -> anyhow::Result<()> {
    let story = Story { began: Instant::now() };
    for path in [PROVIDER].iter().chain(&CONSUMERS) {
        make_workspace(servers, path).await?;
    }
    story.tell("workspaces root:mongodb, root:consumer-a and root:consumer-b are ready");

    let provider = servers.workspace(PROVIDER)?;
    let schema = manifest(include_str!("../manifests/apiresourceschema.yaml"))?;
    apply(&provider, &schema).await?;
    apply(&provider, &manifest(include_str!("../manifests/apiexport.yaml"))?).await?;
    let slices = dynamic(&provider, "apis.kcp.io", "v1alpha1", "APIExportEndpointSlice");
    until("the endpoint slice of the export", async || Ok(slices.get_opt("mongodb").await?.is_some())).await?;
    let crd = serde_json::to_value(api::crd(&schema)?)?;
    apply(&servers.target, &crd).await?;
    let copies = Api::<MongoDBCommunity>::all(servers.target.clone());
    until("the service cluster serves the kind", async || Ok(copies.list(&ListParams::default()).await.is_ok()))
        .await?;
    story.tell("root:mongodb exports the API; the service cluster has the CRD");

    let fleet = Fleet::builder(ApiExport::from_config(servers.config(PROVIDER)?, "mongodb")?).build();
    let settings =
        Settings { target: servers.target.clone(), placement: Placement::PerWorkspace, cleanup: Cleanup::Finalizer };
    let running = {
        let fleet = fleet.clone();
        tokio::spawn(async move { operator::run(&fleet, settings).await })
    };
    let sim = tokio::spawn(Sim::new(servers.target.clone(), Duration::from_millis(200)).run());

    let mut consumers = Vec::new();
    for path in CONSUMERS {
        let client = servers.workspace(path)?;
        apply(&client, &manifest(include_str!("../manifests/apibinding.yaml"))?).await?;
        consumers.push((path, client));
    }
    for (path, client) in &consumers {
        let bindings = dynamic(client, "apis.kcp.io", "v1alpha2", "APIBinding");
        let bound = async || Ok(bindings.get("mongodb").await?.data["status"]["phase"] == "Bound");
        until(&format!("{path} is bound"), bound).await?;
    }
    until("the operator sees both workspaces", async || Ok(fleet.clusters().len() == 2)).await?;
    story.tell("both consumers are bound, and the operator sees them");

    let order = manifest(include_str!("../manifests/sample.yaml"))?;
    for (_, client) in &consumers {
        apply(client, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})).await?;
        let databases = Api::<MongoDBCommunity>::namespaced(client.clone(), NAMESPACE);
        databases.create(&PostParams::default(), &serde_json::from_value(order.clone())?).await?;
    }
    for (path, client) in &consumers {
        runs(path, client, "6.0.5").await?;
    }
    let found = copies.list(&ListParams::default().labels(CLUSTER)).await?;
    let places: Vec<_> = found.iter().map(|copy| copy.namespace().unwrap_or_default()).collect();
    if places.len() != 2 || places[0] == places[1] {
        bail!("two copies in different namespaces were expected, found: {places:?}");
    }
    story.tell("example-mongodb runs for both, in namespaces of their own:");
    for place in &places {
        println!("           {place}/example-mongodb");
    }

    let (path, client) = &consumers[0];
    let databases = Api::<MongoDBCommunity>::namespaced(client.clone(), NAMESPACE);
    let change = json!({"spec": {"version": "7.0.12"}});
    databases.patch("example-mongodb", &PatchParams::default(), &Patch::Merge(change)).await?;
    runs(path, client, "7.0.12").await?;
    runs(consumers[1].0, &consumers[1].1, "6.0.5").await?;
    story.tell("consumer-a runs 7.0.12 now, consumer-b still 6.0.5");

    for (_, client) in &consumers {
        let databases = Api::<MongoDBCommunity>::namespaced(client.clone(), NAMESPACE);
        databases.delete("example-mongodb", &DeleteParams::default()).await?;
    }
    for (path, client) in &consumers {
        let databases = Api::<MongoDBCommunity>::all(client.clone());
        until(&format!("no database is left in {path}"), async || nothing_left(&databases).await).await?;
    }
    until("no copy is left", async || nothing_left(&copies).await).await?;
    let children = Api::<StatefulSet>::all(servers.target.clone());
    until("no child is left", async || nothing_left(&children).await).await?;
    story.tell("both are deleted, and nothing is left on either side");

    for (_, client) in &consumers {
        dynamic(client, "apis.kcp.io", "v1alpha2", "APIBinding").delete("mongodb", &DeleteParams::default()).await?;
    }
    until("the operator has let both workspaces go", async || Ok(fleet.clusters().is_empty())).await?;
    story.tell("the consumers have left");
    sim.abort();
    running.abort();
    Ok(())
}

struct Story {
    began: Instant,
}

impl Story {
    fn tell(&self, text: &str) {
        println!("{:>7.2} s  {text}", self.began.elapsed().as_secs_f64());
    }
}

/// Waits until a workspace reports a running database of a version.
async fn runs(path: &str, client: &Client, version: &str) -> anyhow::Result<()> {
    let databases = Api::<MongoDBCommunity>::namespaced(client.clone(), NAMESPACE);
    let running = async || {
        let status = databases.get("example-mongodb").await?.status.unwrap_or_default();
        Ok(status.phase == "Running" && status.version.as_deref() == Some(version))
    };
    until(&format!("{path} reports a running database of version {version}"), running).await
}

async fn nothing_left<K>(api: &Api<K>) -> anyhow::Result<bool>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    Ok(api.list(&ListParams::default()).await?.items.is_empty())
}

/// Waits until something holds.
async fn until(what: &str, holds: impl AsyncFn() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let waiting = async {
        loop {
            match holds().await {
                Ok(true) => return Ok(()),
                Ok(false) => tokio::time::sleep(PAUSE).await,
                Err(error) => return Err(error),
            }
        }
    };
    match tokio::time::timeout(LIMIT, waiting).await {
        Ok(result) => result.with_context(|| format!("while waiting until {what}")),
        Err(_) => bail!("it did not happen within {} s that {what}; run again with --verbose", LIMIT.as_secs()),
    }
}

async fn make_workspace(servers: &Servers, path: &str) -> anyhow::Result<()> {
    let (parent, name) = path.rsplit_once(':').context("the path of a workspace has a parent")?;
    let parent = servers.workspace(parent)?;
    let workspace = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name}});
    apply(&parent, &workspace).await?;
    let workspaces = dynamic(&parent, "tenancy.kcp.io", "v1alpha1", "Workspace");
    let ready = async || Ok(workspaces.get(name).await?.data["status"]["phase"] == "Ready");
    until(&format!("workspace {path} is ready"), ready).await
}

fn manifest(text: &str) -> anyhow::Result<Value> {
    serde_saphyr::from_str(text).context("a manifest of this example is not YAML")
}

fn dynamic(client: &Client, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind)))
}

/// Creates an object, or makes it what the manifest says.
async fn apply(client: &Client, object: &Value) -> anyhow::Result<()> {
    let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
    let (api_version, kind, name) =
        (text(&object["apiVersion"]), text(&object["kind"]), text(&object["metadata"]["name"]));
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let api = dynamic(client, group, version, &kind);
    let applied = api.patch(&name, &PatchParams::apply("walkthrough").force(), &Patch::Apply(object)).await;
    applied.map(|_| ()).with_context(|| format!("cannot apply {kind} {name}"))
}
