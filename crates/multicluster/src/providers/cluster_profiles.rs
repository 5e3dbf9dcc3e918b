//! Clusters of the Cluster Inventory API.

mod access;
mod types;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::Client;
use futures::stream::BoxStream;
use kube::Api;
use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};

use super::from_objects::FromObjects;
use super::secrets::{kubeconfig, secrets};
use crate::event::FleetEvent;
use crate::provider::Provider;
use types::ClusterProfile;

pub use access::{AccessConfig, AccessConfigError};

/// Secrets are read again after this long.
const REFRESH: Duration = Duration::from_mins(1);

/// On a Secret with the kubeconfig of a cluster: whom it is for.
const CONSUMER: &str = "x-k8s.io/cluster-inventory-consumer";
/// On such a Secret: the name of the ClusterProfile.
const PROFILE: &str = "x-k8s.io/cluster-profile";
/// The keys of the kubeconfig in such a Secret: as multicluster-runtime reads it, and as the Cluster Inventory API's own library does.
const KEYS: [&str; 2] = ["Config", "config"];

/// Every ClusterProfile of the [Cluster Inventory API](https://multicluster.sigs.k8s.io/concepts/cluster-profile-api/)
/// (`multicluster.x-k8s.io/v1alpha1`) on a hub, as soon as its condition `ControlPlaneHealthy` is true. Clusters are called
/// `<namespace>/<name>`.
///
/// Credentials come in one of two ways:
/// - from credential plugins ([`ClusterProfiles::with_plugins`]): the profile says where the cluster is and which access providers know how to get
///   in, the program's own configuration which plugin to run for each of them. A profile can never name a program to run;
/// - from Secrets with kubeconfigs ([`ClusterProfiles::with_secrets`]), which the API's authors call deprecated.
///
/// A cluster that was healthy once stays in the fleet until its profile is deleted.
///
/// ```
/// # use carrick_multicluster::providers::{AccessConfig, ClusterProfiles};
/// # fn provider(hub: kube::Client) -> Result<ClusterProfiles, Box<dyn std::error::Error>> {
/// // Usually a file: `AccessConfig::from_file`.
/// let plugins = AccessConfig::from_json(
///     r#"{"providers": [{"name": "open-cluster-management", "execConfig": {
///         "apiVersion": "client.authentication.k8s.io/v1", "command": "cp-creds",
///         "args": ["--managed-serviceaccount=fleet"], "provideClusterInfo": true}}]}"#,
/// )?;
/// Ok(ClusterProfiles::with_plugins(hub, plugins).namespace("fleet"))
/// # }
/// ```
#[derive(Clone)]
pub struct ClusterProfiles {
    hub: Client,
    credentials: Credentials,
    namespace: Option<String>,
    labels: Option<String>,
}

#[derive(Clone)]
enum Credentials {
    Plugins(Arc<AccessConfig>),
    /// Secrets for this consumer.
    Secrets(Arc<str>),
}

impl ClusterProfiles {
    /// All profiles of a hub, with credentials from plugins.
    pub fn with_plugins(hub: impl Into<Client>, plugins: AccessConfig) -> Self {
        Self::new(hub.into(), Credentials::Plugins(Arc::new(plugins)))
    }

    /// All profiles of a hub, with kubeconfigs from Secrets in their namespaces: those with labels `x-k8s.io/cluster-inventory-consumer=<consumer>`
    /// and `x-k8s.io/cluster-profile=<name>`, under key `Config`. They are read every minute. Those that name programs, files or proxies are refused, as by
    /// [`KubeconfigSecrets`](super::KubeconfigSecrets).
    pub fn with_secrets(hub: impl Into<Client>, consumer: &str) -> Self {
        Self::new(hub.into(), Credentials::Secrets(consumer.into()))
    }

    fn new(hub: Client, credentials: Credentials) -> Self {
        Self { hub, credentials, namespace: None, labels: None }
    }

    /// Only profiles of this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only profiles with these labels, such as `x-k8s.io/cluster-manager=<name>`.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into());
        self
    }
}

impl fmt::Debug for ClusterProfiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterProfiles").field("hub", &self.hub).finish_non_exhaustive()
    }
}

impl Provider for ClusterProfiles {
    fn events(&self) -> BoxStream<'static, FleetEvent> {
        let gvk = GroupVersionKind::gvk("multicluster.x-k8s.io", "v1alpha1", "ClusterProfile");
        let credentials = self.credentials.clone();
        let kubeconfig = move |profile: DynamicObject, hub: kube::Client| {
            let credentials = credentials.clone();
            async move {
                match &credentials {
                    Credentials::Plugins(plugins) => Ok(plugins.kubeconfig(&ClusterProfile::read(&profile)?.status)?),
                    Credentials::Secrets(consumer) => from_secret(&profile, consumer, hub).await,
                }
            }
        };
        let mut profiles = FromObjects::new_with(self.hub.clone(), &ApiResource::from_gvk(&gvk), kubeconfig)
            .ready(|profile: &DynamicObject| ClusterProfile::read(profile).is_ok_and(|profile| profile.is_ready()));
        if matches!(self.credentials, Credentials::Secrets(_)) {
            profiles = profiles.refresh(REFRESH);
        }
        if let Some(namespace) = &self.namespace {
            profiles = profiles.namespace(namespace);
        }
        if let Some(labels) = &self.labels {
            profiles = profiles.labels(labels.clone());
        }
        profiles.events()
    }
}

async fn from_secret(
    profile: &DynamicObject,
    consumer: &str,
    hub: kube::Client,
) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let name = profile.metadata.name.as_deref().unwrap_or_default();
    let namespace = profile.metadata.namespace.as_deref().unwrap_or_default();
    let labels = format!("{CONSUMER}={consumer},{PROFILE}={name}");
    let in_namespace = Api::<DynamicObject>::namespaced_with(hub, namespace, &secrets());
    let found = in_namespace.list(&ListParams::default().labels(&labels)).await?.items;
    match &found[..] {
        [] => Err(format!("no Secret in namespace {namespace} has the labels {labels}").into()),
        [secret] => {
            let key = KEYS.iter().find(|key| secret.data["data"].get(key).is_some()).unwrap_or(&KEYS[0]);
            let shown = secret.metadata.name.as_deref().unwrap_or_default();
            kubeconfig(secret, key).map_err(|problem| format!("Secret {namespace}/{shown}: {problem}").into())
        }
        several => {
            let count = several.len();
            Err(format!("{count} Secrets in namespace {namespace} have the labels {labels}; keep one").into())
        }
    }
}
