//! Clusters of Cluster API.

use std::time::Duration;

use carrick_client::Client;
use kube::Api;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};

use super::from_objects::FromObjects;
use super::secrets::{decode, secrets};

/// Kubeconfigs in Secrets of their own are looked at again after this long: their credentials are renewed from time to time.
const REFRESH: Duration = Duration::from_mins(1);

impl FromObjects<DynamicObject> {
    /// Every `Cluster` of Cluster API whose control plane is initialized, by the kubeconfig in Secret `<name>-kubeconfig`.
    pub fn cluster_api(hub: impl Into<Client>) -> Self {
        let clusters = ApiResource::from_gvk(&GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta2", "Cluster"));
        Self::new_with(hub, &clusters, |cluster: DynamicObject, hub| async move {
            let name = cluster.metadata.name.unwrap_or_default();
            let namespace = cluster.metadata.namespace.unwrap_or_default();
            let secret = Api::<DynamicObject>::namespaced_with(hub, &namespace, &secrets());
            Ok(decode(&secret.get(&format!("{name}-kubeconfig")).await?, "value")?)
        })
        .ready(|cluster| cluster.data["status"]["initialization"]["controlPlaneInitialized"] == true)
        .refresh(REFRESH)
    }
}
