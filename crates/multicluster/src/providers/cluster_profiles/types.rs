//! ClusterProfile, as far as a provider reads it.

use kube::config::Cluster as KubeconfigCluster;
use kube::core::DynamicObject;
use serde::Deserialize;

/// A ClusterProfile.
#[derive(Clone, Debug, Default)]
pub(super) struct ClusterProfile {
    pub(super) status: ClusterProfileStatus,
    is_deleting: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ClusterProfileStatus {
    conditions: Vec<ProfileCondition>,
    access_providers: Vec<AccessProvider>,
    /// What `accessProviders` were called at first.
    credential_providers: Vec<AccessProvider>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ProfileCondition {
    r#type: String,
    status: String,
}

/// Somebody who knows how to get into a cluster, and where it is: the same fields as a cluster of a kubeconfig.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AccessProvider {
    pub(super) name: String,
    pub(super) cluster: KubeconfigCluster,
}

impl ClusterProfile {
    pub(super) fn read(object: &DynamicObject) -> Result<Self, serde_json::Error> {
        let status = object.data.get("status").filter(|status| !status.is_null());
        let status = status.map(ClusterProfileStatus::deserialize).transpose()?.unwrap_or_default();
        Ok(Self { status, is_deleting: object.metadata.deletion_timestamp.is_some() })
    }

    /// Whether the control plane is healthy, and nobody has deleted the profile.
    pub(super) fn is_ready(&self) -> bool {
        let is_healthy = |it: &ProfileCondition| it.r#type == "ControlPlaneHealthy" && it.status == "True";
        !self.is_deleting && self.status.conditions.iter().any(is_healthy)
    }
}

impl ClusterProfileStatus {
    /// The access provider of a name. Both fields may list it; the newer one counts.
    pub(super) fn access_provider(&self, name: &str) -> Option<&AccessProvider> {
        self.access_providers.iter().chain(&self.credential_providers).find(|provider| provider.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn profiles_are_ready_while_their_control_plane_is_healthy() {
        let read = |deleted: bool, status: &str| {
            let metadata = if deleted { json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}) } else { json!({}) };
            let conditions =
                json!([{"type": "Joined", "status": "True"}, {"type": "ControlPlaneHealthy", "status": status}]);
            let object = json!({"metadata": metadata, "status": {"conditions": conditions}});
            ClusterProfile::read(&serde_json::from_value(object).unwrap()).unwrap()
        };
        assert!(read(false, "True").is_ready());
        assert!(!read(false, "Unknown").is_ready() && !read(true, "True").is_ready());
        let empty: DynamicObject = serde_json::from_value(json!({"metadata": {"name": "p"}})).unwrap();
        assert!(!ClusterProfile::read(&empty).unwrap().is_ready());
    }
}
