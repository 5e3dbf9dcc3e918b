//! APIBindings as a filter sees them.

use kube::core::ObjectMeta;
use serde::Deserialize;

/// An APIBinding of kcp, of any version: what providers need to know of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ApiBinding {
    /// Name, labels, annotations.
    pub metadata: ObjectMeta,
    /// What it binds.
    pub spec: ApiBindingSpec,
    /// What became of it.
    pub status: ApiBindingStatus,
}

/// What an APIBinding binds.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiBindingSpec {
    /// The export.
    pub reference: BindingReference,
    /// Claims of the export, accepted or not, as they are.
    pub permission_claims: Vec<serde_json::Value>,
}

/// Where an APIBinding leads.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct BindingReference {
    /// The export.
    pub export: ExportReference,
}

/// An APIExport by path and name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ExportReference {
    /// Path of its workspace; empty for the binding's own.
    pub path: String,
    /// Name.
    pub name: String,
}

/// What became of an APIBinding.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiBindingStatus {
    /// Logical cluster of the export.
    pub api_export_cluster_name: String,
    /// `Binding` or `Bound`.
    pub phase: String,
    /// What is served through it, as it is.
    pub bound_resources: Vec<serde_json::Value>,
    /// Conditions.
    pub conditions: Vec<BindingCondition>,
}

/// A condition of an APIBinding.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct BindingCondition {
    /// Which one.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// In one word.
    pub reason: String,
    /// In a sentence.
    pub message: String,
}

impl ApiBinding {
    /// Whether the binding is ready. One that is being deleted may still say so.
    pub fn is_ready(&self) -> bool {
        self.status.conditions.iter().any(|condition| condition.r#type == "Ready" && condition.status == "True")
    }
}
