//! An API that somebody else has defined, published for a kind of the service cluster. Pure.
//!
//! ```text
//!  spec.implements.versions ──▶ publish  the definition in kcp, with these versions and no others
//!  spec.implements.spec     ──▶ Mapping  order ──▶ copy, from an empty spec
//!  spec.implements.status   ──▶ Mapping  copy ──▶ status of the order, from an empty one
//!                               proof    the same, tried on orders that the versions allow
//!                               force    which steps are at work, and which wait for an approval
//!  APIResourceSchema        ──▶ origin   what its owner has written, and whether it is still the same
//! ```

pub mod force;
mod mapping;
pub mod origin;
pub mod proof;

use thiserror::Error;

use super::crd::{Crd, CrdSpec, Names, Subresources, Version};
use super::mutation::MutationError;
use crate::api::{Implements, PublishedResource};

pub use mapping::Mapping;

/// Why an API cannot be implemented.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ImplementsError {
    /// Another field says how the kind looks in kcp.
    #[error(
        "spec.{0} cannot be used together with spec.implements, which says how the kind looks in kcp; remove one of the two"
    )]
    Beside(&'static str),
    /// The resource has no group.
    #[error(
        "spec.implements.resource: {0:?} is no resource; write it as <plural>.<group>, such as certificates.example.com"
    )]
    Resource(String),
    /// There is no kind.
    #[error("spec.implements.kind: the kind of {0} is missing; add it as its owner writes it")]
    Kind(String),
    /// There are no versions.
    #[error("spec.implements.versions: there are none; add those that the owner of {0} serves, with their schemas")]
    NoVersions(String),
    /// A version cannot be published.
    #[error("spec.implements.versions: {name}: {problem}")]
    Version {
        /// Its name.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A step writes what steps cannot write.
    #[error("{at}: {path} cannot be written here; write to {allowed}")]
    Target {
        /// Field of the PublishedResource.
        at: String,
        /// The path.
        path: String,
        /// What can be written.
        allowed: &'static str,
    },
    /// A step is not valid.
    #[error(transparent)]
    Step(#[from] MutationError),
}

/// The definition in kcp: that of the API's owner, whatever the local one is like.
pub fn publish(pr: &PublishedResource, implements: &Implements, local: &Crd) -> Result<Crd, ImplementsError> {
    let beside = [("projection", pr.spec.projection.is_some()), ("conversion", pr.spec.conversion.is_some())];
    if let Some((field, _)) = beside.into_iter().find(|(_, given)| *given) {
        return Err(ImplementsError::Beside(field));
    }
    let resource = &implements.resource;
    let named = resource.split_once('.').filter(|(plural, group)| !plural.is_empty() && !group.is_empty());
    let (plural, group) = named.ok_or_else(|| ImplementsError::Resource(resource.clone()))?;
    if implements.kind.is_empty() {
        return Err(ImplementsError::Kind(resource.clone()));
    }
    let singular = if implements.singular.is_empty() { &implements.kind.to_lowercase() } else { &implements.singular };
    let names = Names {
        plural: plural.to_owned(),
        singular: singular.clone(),
        short_names: implements.short_names.clone(),
        kind: implements.kind.clone(),
        list_kind: format!("{}List", implements.kind),
        categories: implements.categories.clone(),
    };
    let scope = if implements.scope.is_empty() { "Namespaced" } else { &implements.scope };
    let versions = versions(implements)?;
    let spec = CrdSpec { group: group.to_owned(), names, scope: scope.to_owned(), versions, ..CrdSpec::default() };
    Ok(Crd { name: resource.clone(), generation: local.generation, approved: local.approved.clone(), spec })
}

/// The versions, with a status subresource each: `status` is the only way back.
fn versions(implements: &Implements) -> Result<Vec<Version>, ImplementsError> {
    let mut versions: Vec<Version> = Vec::new();
    for entry in &implements.versions {
        let wrong = |problem: &str| {
            let (name, problem) = (entry.name().to_owned(), problem.to_owned());
            ImplementsError::Version { name, problem }
        };
        let mut version: Version =
            serde_json::from_value(entry.0.clone()).map_err(|error| wrong(&error.to_string()))?;
        if version.name.is_empty() {
            return Err(wrong("it has no name; add it"));
        }
        if version.schema.as_ref().is_none_or(|schema| schema.open_api_v3_schema.is_none()) {
            return Err(wrong("schema.openAPIV3Schema is missing; add it as the owner of the API has written it"));
        }
        if versions.iter().any(|known| known.name == version.name) {
            return Err(wrong("it is there twice; remove one of the two"));
        }
        if version.storage && versions.iter().any(|known| known.storage) {
            return Err(wrong("several versions with storage: true; choose one"));
        }
        version.served = entry.0["served"] != false;
        version.subresources.get_or_insert_with(Subresources::default).status.get_or_insert_default();
        versions.push(version);
    }
    if versions.is_empty() {
        return Err(ImplementsError::NoVersions(implements.resource.clone()));
    }
    Ok(versions)
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)] // cases read best as plain literals
pub(crate) mod tests;
