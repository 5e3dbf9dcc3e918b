//! Clusters of Cluster API.

mod types;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::Client;
use futures::stream::BoxStream;
use kube::Api;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};

use super::from_objects::FromObjects;
use super::secrets::{self, secrets};
use crate::event::FleetEvent;
use crate::provider::Provider;

pub use types::{ClusterApiCluster, ClusterApiCondition, ClusterApiInitialization, ClusterApiSpec, ClusterApiStatus};

/// Secrets are read again after this long: Cluster API renews the certificates in them from time to time.
const REFRESH: Duration = Duration::from_mins(1);

/// The key of the kubeconfig in a Secret of Cluster API.
const KEY: &str = "value";

type ReadyFn = Arc<dyn Fn(&ClusterApiCluster) -> bool + Send + Sync>;

/// Every `Cluster` of [Cluster API](https://cluster-api.sigs.k8s.io) on a management cluster, as soon as it is ready. Clusters are called
/// `<namespace>/<name>`.
///
/// Ready are clusters in phase `Provisioned` whose control plane is initialized: see [`ClusterApiCluster::is_ready`]. Their kubeconfigs are in
/// the Secrets `<name>-kubeconfig` that Cluster API writes; these are read every minute, because their certificates are renewed.
/// A cluster that was ready once stays in the fleet until its object is deleted. Kubeconfigs that name programs, files or proxies are refused, as by
/// [`KubeconfigSecrets`](super::KubeconfigSecrets).
///
/// ```
/// # use carrick_multicluster::providers::ClusterApi;
/// # fn provider(management: kube::Client) -> ClusterApi {
/// ClusterApi::new(management).labels("environment=production").ready(|cluster| cluster.is_ready() && !cluster.spec.paused)
/// # }
/// ```
#[derive(Clone)]
pub struct ClusterApi {
    management: Client,
    version: String,
    namespace: Option<String>,
    labels: Option<String>,
    ready: ReadyFn,
}

impl ClusterApi {
    /// All clusters of a management cluster that serves `cluster.x-k8s.io/v1beta2`: Cluster API 1.11 or newer.
    pub fn new(management: impl Into<Client>) -> Self {
        Self {
            management: management.into(),
            version: "v1beta2".to_owned(),
            namespace: None,
            labels: None,
            ready: Arc::new(ClusterApiCluster::is_ready),
        }
    }

    /// Another version of the API: `v1beta1` for Cluster API up to 1.10.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Only clusters of this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only clusters with these labels.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into());
        self
    }

    /// Which clusters are ready, instead of [`ClusterApiCluster::is_ready`].
    #[must_use]
    pub fn ready(mut self, ready: impl Fn(&ClusterApiCluster) -> bool + Send + Sync + 'static) -> Self {
        self.ready = Arc::new(ready);
        self
    }
}

impl fmt::Debug for ClusterApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterApi")
            .field("management", &self.management)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl Provider for ClusterApi {
    fn events(&self) -> BoxStream<'static, FleetEvent> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("cluster.x-k8s.io", &self.version, "Cluster"));
        let ready = self.ready.clone();
        let mut clusters = FromObjects::new_with(self.management.clone(), &kind, kubeconfig)
            // One that cannot be read is not ready yet: it may be of a version to come.
            .ready(move |cluster: &DynamicObject| ClusterApiCluster::read(cluster).is_ok_and(|cluster| ready(&cluster)))
            .refresh(REFRESH);
        if let Some(namespace) = &self.namespace {
            clusters = clusters.namespace(namespace);
        }
        if let Some(labels) = &self.labels {
            clusters = clusters.labels(labels.clone());
        }
        clusters.events()
    }
}

async fn kubeconfig(
    cluster: DynamicObject,
    management: kube::Client,
) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let name = format!("{}-kubeconfig", cluster.metadata.name.unwrap_or_default());
    let namespace = cluster.metadata.namespace.unwrap_or_default();
    let in_namespace = Api::<DynamicObject>::namespaced_with(management, &namespace, &secrets());
    let secret = in_namespace.get_opt(&name).await?;
    let secret = secret.ok_or_else(|| format!("Secret {namespace}/{name} does not exist yet"))?;
    secrets::kubeconfig(&secret, KEY).map_err(|problem| format!("Secret {namespace}/{name}: {problem}").into())
}
