//! PublishedResource: what to publish and by which rules.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Mutation, RelatedResource};

/// A provider's order to publish one kind of the service cluster in kcp.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PublishedResource {
    /// The part of the metadata that matters here.
    pub metadata: Meta,
    /// What to publish and how.
    pub spec: PublishedResourceSpec,
    /// What the agent says about it.
    pub status: PublishedResourceStatus,
}

/// Object metadata, as far as rules and controllers look at it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    /// Name.
    pub name: String,
    /// Unique id.
    pub uid: String,
    /// Generation of the spec.
    pub generation: i64,
    /// Version of the stored object.
    pub resource_version: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Set while the object is being deleted.
    pub deletion_timestamp: Option<String>,
}

/// `spec` of a PublishedResource.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PublishedResourceSpec {
    /// The kind on the service cluster.
    pub resource: SourceResource,
    /// Which consumers' objects take part.
    pub filter: Option<Filter>,
    /// How copies are named.
    pub naming: Option<Naming>,
    /// Whether workspace paths are fetched and made known to templates and copies.
    pub enable_workspace_paths: bool,
    /// How the kind looks in kcp.
    pub projection: Option<Projection>,
    /// Changes on the way down (spec) and up (status).
    pub mutation: Option<Mutation>,
    /// Objects that travel with the primary.
    pub related: Vec<RelatedResource>,
    /// Whether objects are synchronised at all.
    pub synchronization: Option<Synchronization>,
}

/// The published kind on the service cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceResource {
    /// API group, empty for core.
    pub api_group: String,
    /// Kind.
    pub kind: String,
    /// Versions to publish; empty means all.
    pub versions: Vec<String>,
    /// Deprecated form of `versions` with one entry.
    pub version: String,
}

/// Which consumers' objects take part.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Filter {
    /// Selector on the labels of the namespace in kcp.
    pub namespace: Option<LabelSelector>,
    /// Selector on the labels of the object in kcp.
    pub resource: Option<LabelSelector>,
}

/// A Kubernetes label selector.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels that must be equal.
    pub match_labels: BTreeMap<String, String>,
    /// Set-based requirements.
    pub match_expressions: Vec<SelectorRequirement>,
}

/// One set-based requirement of a label selector.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SelectorRequirement {
    /// Label key.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// Values for `In` and `NotIn`.
    pub values: Vec<String>,
}

/// How copies are named on the service cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Naming {
    /// Template or placeholder pattern for the name.
    pub name: String,
    /// Template or placeholder pattern for the namespace.
    pub namespace: String,
}

/// How the kind looks in kcp.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Projection {
    /// New API group.
    pub group: String,
    /// New names of versions.
    pub versions: BTreeMap<String, String>,
    /// Deprecated: new name of the one version.
    pub version: String,
    /// New scope, `Cluster` or `Namespaced`.
    pub scope: String,
    /// New kind.
    pub kind: String,
    /// New plural.
    pub plural: String,
    /// New short names; absent keeps the old ones.
    pub short_names: Option<Vec<String>>,
    /// New categories; absent keeps the old ones.
    pub categories: Option<Vec<String>>,
}

/// Whether objects are synchronised.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Synchronization {
    /// False publishes the schema only.
    pub enabled: bool,
}

/// `status` of a PublishedResource.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PublishedResourceStatus {
    /// Name of the APIResourceSchema that represents this PublishedResource.
    pub resource_schema_name: String,
    /// Conditions, kept as they are.
    pub conditions: Vec<Value>,
}

impl PublishedResource {
    /// Whether objects of this kind are synchronised.
    pub fn is_synchronized(&self) -> bool {
        self.spec.synchronization.as_ref().is_none_or(|s| s.enabled)
    }
}
