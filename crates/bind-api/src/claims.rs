//! Permission claims: which objects beside the exported ones a provider and its consumer share.
//!
//! ```text
//!   PermissionClaim + APIServiceExport ──compile once──▶ Claim
//!                                                          │ watches()
//!   objects that name others ──▶ NamedObjects ──────────┐  │
//!   object of the consumer ─────────────────────────────┼──▼──▶ selected by labels, by name, by reference, or not at all
//!   object of the provider ──▶ its key on the consumer ─┘                                    │
//!                                                         both sides ──▶ verdict: who copies, who deletes, who is told
//! ```
//!
//! The three parts of a selector are alternatives. The selector alone decides: a label that names an owner selects nothing. A part that makes no
//! sense selects nothing either and is told by [`Claim::problems`]; the other parts stand.

mod accepted;
mod barred;
mod claimable;
pub(crate) mod labels;
mod named_object;
mod named_objects;
mod reference;
mod verdict;

use std::collections::BTreeMap;

use carrick_go::labels as go;
use serde_json::Value;

use accepted::shown;

pub use accepted::{Accepted, described, mark};
pub use barred::{Barred, Guarded};
pub use claimable::{CLAIMABLE, Claimable};
pub use labels::LabelSelectorError;
pub use named_object::NamedObject;
pub use named_objects::NamedObjects;
pub use reference::{CompiledReference, ReferenceError};
pub use verdict::{ClaimConflict, Side, Verdict, verdict};

use crate::mapping::{ObjectKey, ServiceNamespaces};
use crate::v1alpha2::{ApiServiceExport, PermissionClaim};

/// Why a claim, or a part of it, is not followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// The resource is none that can be claimed.
    #[error("{0} cannot be claimed; claims are for {list}", list = claimable::list())]
    NotClaimable(String),
    /// The selector has no parts, so it selects nothing.
    #[error("its selector is empty and selects nothing; give it a labelSelector, namedResources or references")]
    Empty,
    /// The label selector makes no sense.
    #[error("its labelSelector is not followed: {0}")]
    Labels(#[from] LabelSelectorError),
    /// A named resource has no name.
    #[error("an entry of its namedResources has no name")]
    Nameless,
    /// A reference makes no sense.
    #[error("its reference to {resource} is not followed: {problem}")]
    Reference {
        /// The resource that it looks at.
        resource: String,
        /// What is wrong with it.
        problem: ReferenceError,
    },
}

/// Why an object is claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SelectedBy {
    /// By its labels.
    Labels,
    /// By its name.
    Name,
    /// By an object that names it.
    Reference,
}

/// A claim that is ready to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    api: Claimable,
    labels: Option<go::Selector>,
    /// Namespaces by name; an empty list of namespaces is any.
    named: BTreeMap<String, Vec<String>>,
    references: Vec<CompiledReference>,
    problems: Vec<ClaimError>,
}

impl Claim {
    /// Compiles a claim of an export.
    pub fn compile(claim: &PermissionClaim, export: &ApiServiceExport) -> Result<Self, ClaimError> {
        let Some(api) = claimable::find(&claim.group, &claim.resource) else {
            return Err(ClaimError::NotClaimable(shown(&claim.group, &claim.resource)));
        };
        let selector = &claim.selector;
        let mut problems = Vec::new();
        let labels = selector
            .label_selector
            .as_ref()
            .and_then(|selector| labels::compile(selector).map_err(|problem| problems.push(problem.into())).ok());
        let mut named: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for entry in &selector.named_resources {
            if entry.name.is_empty() {
                problems.push(ClaimError::Nameless);
                continue;
            }
            named.entry(entry.name.clone()).or_default().push(entry.namespace.clone());
        }
        for namespaces in named.values_mut() {
            // Any namespace includes all others.
            if namespaces.iter().any(String::is_empty) {
                namespaces.clear();
            }
            namespaces.sort_unstable();
            namespaces.dedup();
        }
        let mut references = Vec::new();
        for reference in &selector.references {
            match CompiledReference::compile(reference, export) {
                Ok(reference) => references.push(reference),
                Err(problem) => problems
                    .push(ClaimError::Reference { resource: shown(&reference.group, &reference.resource), problem }),
            }
        }
        let parts = (&selector.label_selector, &selector.named_resources, &selector.references);
        if parts.0.is_none() && parts.1.is_empty() && parts.2.is_empty() {
            problems.push(ClaimError::Empty);
        }
        Ok(Self { api, labels, named, references, problems })
    }

    /// The API of the claimed objects.
    pub fn api(&self) -> Claimable {
        self.api
    }

    /// The parts that are not followed, and why.
    pub fn problems(&self) -> &[ClaimError] {
        &self.problems
    }

    /// The references, each with the resource that has to be watched for it.
    pub fn references(&self) -> &[CompiledReference] {
        &self.references
    }

    /// Whether an object of the consumer is claimed, given what others name.
    pub fn selects(&self, object: &Value, named: &NamedObjects) -> Option<SelectedBy> {
        self.selects_as(&key_of(object)?, object, named)
    }

    /// Whether an object of the provider is claimed, and which object of the consumer it stands for. None in a namespace that mirrors none.
    pub fn selects_on_provider(
        &self,
        object: &Value,
        namespaces: &ServiceNamespaces,
        named: &NamedObjects,
    ) -> Option<(ObjectKey, SelectedBy)> {
        let there = key_of(object)?;
        let key = ObjectKey::namespaced(namespaces.mirrored_by(there.namespace.as_deref()?)?, there.name);
        let selected = self.selects_as(&key, object, named)?;
        Some((key, selected))
    }

    /// Whether an object is claimed that has this key on the consumer. Its labels are those of the side where it is the source: the copy's prove
    /// nothing.
    pub fn selects_as(&self, key: &ObjectKey, object: &Value, named: &NamedObjects) -> Option<SelectedBy> {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let by_labels = self.labels.as_ref().is_some_and(|selector| {
            let labels = &object["metadata"]["labels"];
            selector.matches(|key| labels.get(key).and_then(Value::as_str))
        });
        if by_labels {
            return Some(SelectedBy::Labels);
        }
        let by_name = self.named.get(&key.name);
        if by_name.is_some_and(|namespaces| namespaces.is_empty() || namespaces.iter().any(|one| one == namespace)) {
            return Some(SelectedBy::Name);
        }
        named.contains(key).then_some(SelectedBy::Reference)
    }
}

/// Namespace and name of an object.
fn key_of(object: &Value) -> Option<ObjectKey> {
    let text = |field: &str| object["metadata"][field].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    Some(ObjectKey { namespace: text("namespace"), name: text("name")? })
}

#[cfg(test)]
mod tests;
