//! `Cluster` of Cluster API, as far as a provider reads it.

use kube::core::{DynamicObject, ObjectMeta};
use serde::Deserialize;

/// A `Cluster` of Cluster API, in version `v1beta1` or `v1beta2`; only the fields that show how far it is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ClusterApiCluster {
    /// Name, namespace, labels.
    pub metadata: ObjectMeta,
    /// What was ordered.
    pub spec: ClusterApiSpec,
    /// What there is.
    pub status: ClusterApiStatus,
}

/// What was ordered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ClusterApiSpec {
    /// Whether nobody reconciles the cluster for the time being.
    pub paused: bool,
}

/// How far a cluster is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ClusterApiStatus {
    /// `Pending`, `Provisioning`, `Provisioned`, `Deleting`, `Failed` or `Unknown`.
    pub phase: String,
    /// How far its first start is (`v1beta2`).
    pub initialization: ClusterApiInitialization,
    /// Conditions, of which `ControlPlaneInitialized` counts in `v1beta1`.
    pub conditions: Vec<ClusterApiCondition>,
}

/// How far the first start of a cluster is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ClusterApiInitialization {
    /// Whether its machines, networks and load balancers are there.
    pub infrastructure_provisioned: bool,
    /// Whether its API server has answered once.
    pub control_plane_initialized: bool,
}

/// A condition of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ClusterApiCondition {
    /// Which condition.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
}

impl ClusterApiCluster {
    /// Reads an object.
    pub(super) fn read(object: &DynamicObject) -> Result<Self, serde_json::Error> {
        let part = |name: &str| object.data.get(name).filter(|part| !part.is_null());
        let spec = part("spec").map(ClusterApiSpec::deserialize).transpose()?.unwrap_or_default();
        let status = part("status").map(ClusterApiStatus::deserialize).transpose()?.unwrap_or_default();
        Ok(Self { metadata: object.metadata.clone(), spec, status })
    }

    /// Whether the cluster is in phase `Provisioned`, its control plane is initialized, and nobody has deleted it.
    pub fn is_ready(&self) -> bool {
        self.metadata.deletion_timestamp.is_none()
            && self.status.phase == "Provisioned"
            && (self.status.initialization.control_plane_initialized || self.condition("ControlPlaneInitialized"))
    }

    /// Whether a condition is `True`.
    pub fn condition(&self, r#type: &str) -> bool {
        self.status.conditions.iter().any(|condition| condition.r#type == r#type && condition.status == "True")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn is_ready(mut metadata: Value, status: &Value) -> bool {
        metadata["name"] = json!("c");
        let object = json!({"metadata": metadata, "status": status});
        ClusterApiCluster::read(&serde_json::from_value(object).unwrap()).unwrap().is_ready()
    }

    #[test]
    fn clusters_are_ready_when_they_are_provisioned_and_have_a_control_plane() {
        let initialized = json!({"controlPlaneInitialized": true});
        let condition = |status: &str| json!([{"type": "ControlPlaneInitialized", "status": status}]);
        let cases = [
            (json!({}), json!({"phase": "Provisioned", "initialization": initialized}), true),
            (json!({}), json!({"phase": "Provisioned", "conditions": condition("True")}), true),
            (json!({}), json!({"phase": "Provisioned", "conditions": condition("False")}), false),
            (json!({}), json!({"phase": "Provisioned"}), false),
            (json!({}), json!({"phase": "Provisioning", "initialization": initialized}), false),
            (json!({}), Value::Null, false),
            (
                json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}),
                json!({"phase": "Provisioned", "initialization": initialized}),
                false,
            ),
        ];
        for (metadata, status, wanted) in cases {
            assert_eq!(is_ready(metadata.clone(), &status), wanted, "{metadata} {status}");
        }
    }
}
