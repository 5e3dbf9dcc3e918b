//! Kinds without a CRD: a CRD is built from the API server's discovery and OpenAPI documents.
//!
//! ```text
//!  discovery ─▶ Served ─┐
//!                       ├─▶ crd ─▶ Crd, treated like any other from here on
//!  OpenAPI ─▶ Models ───┘
//! ```
//!
//! The result must be exactly what the reference agent makes of the same server, because its hash is the name of the published schema. That
//! is why some of what
//! OpenAPI has (enumerations, defaults) is left out. Only what kcp would refuse differs.

mod convert;
mod known;
mod repair;

use std::collections::BTreeMap;

use serde_json::Value;
use thiserror::Error;

use super::crd::{Crd, CrdSpec, Names, Subresources, Validation, Version};
use super::projection::compare_versions;
use convert::Converter;

/// Why a kind without a CRD cannot be published.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum OpenApiError {
    /// OpenAPI has no model of the kind.
    #[error("no models for {0}: the API server that serves it publishes no OpenAPI schema for it")]
    NoModel(String),
    /// A model refers to one that does not exist.
    #[error("OpenAPI refers to the model {0}, which it does not have")]
    NoReference(String),
    /// A model contains itself, which schemas of custom resources cannot.
    #[error("recursive schema are not supported: {0}")]
    Recursive(String),
    /// An array without a schema for its items.
    #[error("OpenAPI does not describe the items of the list {0}")]
    NoItems(String),
}

/// A kind as discovery shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Served {
    /// API group, empty for core.
    pub group: String,
    /// Names of the kind; those for lists and one object are derived if empty.
    pub names: Names,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// The version the server prefers, which stands in for the stored one.
    pub preferred: String,
    /// All versions, and whether each has a status subresource.
    pub versions: BTreeMap<String, bool>,
}

/// OpenAPI models by name: `components.schemas` of a v3 document, or `definitions` of the v2 one.
#[derive(Debug, Clone, Default)]
pub struct Models(serde_json::Map<String, Value>);

impl Models {
    /// The models of a document of either version.
    pub fn of(mut document: Value) -> Self {
        let models = match document.pointer_mut("/components/schemas") {
            Some(schemas) => schemas.take(),
            None => document["definitions"].take(),
        };
        match models {
            Value::Object(models) => Self(models),
            _ => Self::default(),
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// The model of a kind, by its `x-kubernetes-group-version-kind`.
    fn of_kind(&self, group: &str, version: &str, kind: &str) -> Option<(&str, &Value)> {
        let is_meant = |mark: &Value| mark["group"] == group && mark["version"] == version && mark["kind"] == kind;
        self.0.iter().find_map(|(name, model)| {
            let marks = model["x-kubernetes-group-version-kind"].as_array()?;
            marks.iter().any(is_meant).then_some((name.as_str(), model))
        })
    }
}

/// A CRD for a kind that has none. `models` holds those of each version.
pub fn crd(served: &Served, models: &BTreeMap<String, Models>) -> Result<Crd, OpenApiError> {
    let Served { group, names, namespaced, preferred, versions } = served;
    let mut names = names.clone();
    if names.singular.is_empty() {
        names.singular = names.kind.to_lowercase();
    }
    if names.list_kind.is_empty() {
        names.list_kind = format!("{}List", names.kind);
    }
    let mut out = Vec::new();
    for (name, has_status) in versions {
        let missing = || OpenApiError::NoModel(format!("{group}/{name}, Kind={}", names.kind));
        let models = models.get(name).ok_or_else(missing)?;
        let (model_name, model) = models.of_kind(group, name, &names.kind).ok_or_else(missing)?;
        let mut schema = Converter::new(models, model_name).convert(model)?;
        repair::repair(&mut schema);
        out.push(Version {
            name: name.clone(),
            served: true,
            storage: name == preferred,
            schema: Some(Validation { open_api_v3_schema: Some(Box::new(schema)) }),
            subresources: Some(Subresources { status: has_status.then(BTreeMap::new), scale: None }),
            ..Version::default()
        });
    }
    out.sort_by(|a, b| compare_versions(&a.name, &b.name));
    let scope = if *namespaced { "Namespaced" } else { "Cluster" };
    Ok(Crd {
        name: format!("{}.{}", names.plural, if group.is_empty() { "core" } else { group }),
        generation: 0,
        approved: is_protected(group).then(|| APPROVAL.to_owned()),
        spec: CrdSpec { group: group.clone(), names, scope: scope.to_owned(), versions: out, ..CrdSpec::default() },
    })
}

/// The approval annotation for kinds that come with Kubernetes.
const APPROVAL: &str = "https://github.com/kcp-dev/kubernetes/pull/4";

/// Whether a group belongs to Kubernetes, so that its definitions need an approval.
pub fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

#[cfg(test)]
mod tests;
