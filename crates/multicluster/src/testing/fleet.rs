//! A fleet in memory.

use std::sync::Arc;
use std::time::Duration;

use carrick_client::Client;
use futures::stream::BoxStream;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::endpoint::FakeEndpoint;
use crate::controller::Context;
use crate::endpoint::{ClusterKey, Endpoint};
use crate::error::ClusterError;
use crate::event::FleetEvent;
use crate::fleet::Fleet;
use crate::name::{EmptyName, EndpointId};
use crate::provider::Provider;
use crate::providers::Static;
use crate::queue::Reason;

/// What the endpoint of the fleet is called.
const ENDPOINT: &str = "fake";
/// How long a cluster may take to appear in a fleet in memory.
const PATIENCE: Duration = Duration::from_secs(10);

/// A provider of clusters that share one [`FakeEndpoint`]. Cloning shares it. See [the module](super) for an example.
#[derive(Clone, Debug)]
pub struct FakeFleet {
    endpoint: FakeEndpoint,
    client: Client,
    clusters: Static,
}

impl FakeFleet {
    /// A fleet of these clusters. Must be called inside a tokio runtime.
    pub fn new<'a>(clusters: impl IntoIterator<Item = &'a str>) -> Result<Self, EmptyName> {
        let endpoint = FakeEndpoint::new();
        let client = Client::from(endpoint.client());
        let fleet = Self { endpoint, client, clusters: Static::new() };
        fleet.clusters.insert_endpoint(Endpoint::new(ENDPOINT, fleet.client.clone(), ClusterKey::KCP));
        for cluster in clusters {
            fleet.insert(cluster)?;
        }
        Ok(fleet)
    }

    /// Adds a cluster. One of that name is engaged again.
    pub fn insert(&self, cluster: &str) -> Result<(), EmptyName> {
        let client = self.client.below(&format!("/clusters/{cluster}"));
        self.clusters.engage(cluster, &EndpointId::new(ENDPOINT), client)
    }

    /// Takes a cluster out of the fleet; its objects stay on the server. Returns whether it was part of the fleet.
    pub fn remove(&self, cluster: &str) -> bool {
        self.clusters.remove(cluster)
    }

    /// The server of all clusters.
    pub fn endpoint(&self) -> &FakeEndpoint {
        &self.endpoint
    }

    /// Creates or replaces an object in a cluster.
    pub fn put<K>(&self, cluster: &str, object: &K) -> Result<(), serde_json::Error>
    where
        K: Resource<DynamicType = ()> + Serialize,
    {
        let value = serde_json::to_value(object)?;
        let namespace = object.namespace().unwrap_or_default();
        self.endpoint.put(&K::plural(&()), cluster, &namespace, &object.name_any(), &value);
        Ok(())
    }

    /// An object of a cluster as it is now; `None` if there is none, or if it cannot be read as its kind.
    pub fn get<K>(&self, cluster: &str, namespace: Option<&str>, name: &str) -> Option<K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let object = self.endpoint.get(&K::plural(&()), cluster, namespace.unwrap_or_default(), name)?;
        serde_json::from_value(object).ok()
    }

    /// Removes an object of a cluster at once, whatever its finalizers say. Returns whether there was one.
    pub fn delete<K>(&self, cluster: &str, namespace: Option<&str>, name: &str) -> bool
    where
        K: Resource<DynamicType = ()>,
    {
        self.endpoint.delete(&K::plural(&()), cluster, namespace.unwrap_or_default(), name)
    }
}

impl FakeFleet {
    /// What a reconciler gets besides its object, to call it directly in a unit test.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use carrick_multicluster::{Action, Context};
    /// # use carrick_multicluster::testing::FakeFleet;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # async fn reconcile(_: Arc<ConfigMap>, _: Context<()>) -> Result<Action, kube::Error> { Ok(Action::await_change()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let fleet = FakeFleet::new(["a"])?;
    /// let context = fleet.context("a", Arc::new(())).await?;
    /// assert_eq!(reconcile(Arc::new(ConfigMap::default()), context).await?, Action::AwaitChange);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn context<C>(&self, cluster: &str, data: Arc<C>) -> Result<Context<C>, ClusterError> {
        let fleet = Fleet::from(self.clone());
        let cluster = fleet.wait_cluster(cluster, PATIENCE).await?;
        let (since, stop) = (Instant::now(), CancellationToken::new());
        Ok(Context { cluster, fleet, attempt: 0, reason: Reason::Changed, since, stop, data })
    }
}

impl Provider for FakeFleet {
    fn events(&self) -> BoxStream<'static, FleetEvent> {
        self.clusters.events()
    }
}
