//! Related resources: objects that travel with a primary.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{LabelSelector, Mutation, SelectorRequirement};

/// One kind of objects that travels with the primary.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RelatedResource {
    /// Unique name within the PublishedResource.
    pub identifier: String,
    /// Side that holds the truth.
    pub origin: Origin,
    /// API group on the origin side.
    pub group: String,
    /// API version on the origin side.
    pub version: String,
    /// Plural resource name on the origin side.
    pub resource: String,
    /// Deprecated: `ConfigMap` or `Secret`.
    pub kind: String,
    /// Identity of the foreign export that owns the resource in kcp.
    pub identity_hash: String,
    /// Whether copies are deleted with the primary.
    pub cleanup: bool,
    /// How the resource is called on the destination side.
    pub projection: Option<RelatedProjection>,
    /// Which objects.
    pub object: Selection,
    /// Changes on the way.
    pub mutation: Option<Mutation>,
    /// How a change of a related object finds its primary.
    pub watch: Option<Watch>,
    /// Whether the status travels from origin to destination.
    pub sync_status: bool,
}

/// Side that holds the truth of a related object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The service cluster; objects travel up.
    #[default]
    Service,
    /// The consumer's workspace; objects travel down.
    Kcp,
}

/// Names of the related resource on the destination side.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RelatedProjection {
    /// API group.
    pub group: Option<String>,
    /// API version.
    pub version: Option<String>,
    /// Plural resource name.
    pub resource: Option<String>,
}

/// How names (or namespaces) of related objects are found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Selection {
    /// By labels.
    pub selector: Option<SelectionSelector>,
    /// By a path in the primary.
    pub reference: Option<Reference>,
    /// By a template.
    pub template: Option<TemplateExpression>,
    /// The same three ways for the namespace; absent means the primary's.
    pub namespace: Option<Box<Selection>>,
}

/// A path in the primary, with an optional rewrite.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reference {
    /// Path of the value.
    pub path: String,
    /// Rewrite of the value.
    pub regex: Option<RegexRule>,
}

/// A search pattern and its replacement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RegexRule {
    /// Pattern; empty yields the replacement as it is.
    pub pattern: String,
    /// Replacement, with `$1` and `${name}`.
    pub replacement: String,
}

/// A Go template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TemplateExpression {
    /// The template.
    pub template: String,
}

/// Labels of related objects on the origin side and the names they get on the destination side.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SelectionSelector {
    /// Labels that must be equal; keys and values may be templates.
    pub match_labels: BTreeMap<String, String>,
    /// Set-based requirements.
    pub match_expressions: Vec<SelectorRequirement>,
    /// How a name on the origin side becomes one on the destination side.
    pub rewrite: Rewrite,
}

/// How a name on the origin side becomes one on the destination side.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rewrite {
    /// By search and replace.
    pub regex: Option<RegexRule>,
    /// By a template.
    pub template: Option<TemplateExpression>,
}

/// How a change of a related object finds its primary.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Watch {
    /// By owner reference.
    pub by_owner: Option<serde_json::Map<String, serde_json::Value>>,
    /// By the primaries' labels.
    pub by_selector: Option<LabelSelector>,
}
