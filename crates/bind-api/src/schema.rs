//! Schemas: a CRD of the provider becomes a BoundSchema, and that a CRD of the consumer.
//!
//! ```text
//!   CRD, APIResourceSchema ──from_crd, from_api_resource_schema──▶ BoundSchema ──crd──▶ CRD of the consumer
//!                     refresh: by policy ─────────────────────────▶    ▲                    │ plan: whose is it, what changes
//!                                                                      └─ consumer_status ◀─┘
//! ```

mod crd;
mod plan;
mod source;

use carrick_json::go;
use carrick_kcp::apis::v1alpha1::{ApiResourceVersion, ResourceScope};
use data_encoding::HEXLOWER;
use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest, Sha256};

pub use crd::crd;
pub use plan::{CrdPlan, CrdProblem, plan};
pub use source::{Refresh, from_api_resource_schema, from_crd, refresh};

use crate::conditions::{self, Condition, ConditionStatus, Severity};
use crate::v1alpha2::{BoundSchemaSpec, BoundSchemaStatus};

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// It is not what it should be.
    #[error("it is not a {what}: {problem}")]
    Shape {
        /// What it should be.
        what: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// No CRD can be made of a resource of the core group.
    #[error("{0} is in the core group, which CustomResourceDefinitions cannot extend")]
    CoreGroup(String),
    /// The name says something else than the content.
    #[error("it is called {name} and describes {content}")]
    OtherName {
        /// Its name.
        name: String,
        /// What its content stands for.
        content: String,
    },
    /// No version is served.
    #[error("no version of {0} is served; the provider must serve one")]
    NothingServed(String),
    /// There must be one storage version.
    #[error("{name} has {count} storage versions instead of one")]
    StorageVersions {
        /// Which schema.
        name: String,
        /// How many.
        count: usize,
    },
    /// A version has no schema.
    #[error("version {version} of {name} has no schema")]
    NoSchema {
        /// Which schema.
        name: String,
        /// Which version.
        version: String,
    },
    /// A version is there twice.
    #[error("version {version} of {name} is listed twice")]
    Duplicate {
        /// Which schema.
        name: String,
        /// Which version.
        version: String,
    },
}

/// What a konnector has to know of a schema to sync objects. If it changes, syncing starts anew.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SyncedApi {
    /// API group.
    pub group: String,
    /// The version in which both sides are read and written: the first one that is served.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Plural name.
    pub resource: String,
    /// Whether objects live in namespaces, as the consumer sees it.
    pub is_namespaced: bool,
    /// Whether there is a status to be carried back.
    pub has_status: bool,
}

impl SyncedApi {
    /// What a schema says about syncing.
    pub fn of(spec: &BoundSchemaSpec) -> Result<Self, SchemaError> {
        let name = || crate::names::bound_schema_name(&spec.group, &spec.names.plural);
        let version = first_served(spec).ok_or_else(|| SchemaError::NothingServed(name()))?;
        Ok(Self {
            group: spec.group.clone(),
            version: version.name.clone(),
            kind: spec.names.kind.clone(),
            resource: spec.names.plural.clone(),
            is_namespaced: spec.scope == ResourceScope::Namespaced,
            has_status: version.subresources.get("status").is_some_and(Value::is_object),
        })
    }
}

fn first_served(spec: &BoundSchemaSpec) -> Option<&ApiResourceVersion> {
    spec.versions.iter().find(|version| version.served)
}

/// SHA-256 over specs, one per line, as a backend keeps it in an annotation to see whether they have changed.
///
/// ```
/// use carrick_bind_api::schema::hash;
/// use carrick_bind_api::v1alpha2::BoundSchemaSpec;
///
/// let spec = BoundSchemaSpec::default();
/// assert_eq!(hash([&spec]).len(), 64);
/// assert_ne!(hash([&spec]), hash([&spec, &spec]));
/// ```
pub fn hash<'a>(specs: impl IntoIterator<Item = &'a BoundSchemaSpec>) -> String {
    let mut hash = Sha256::new();
    for spec in specs {
        // By way of a value, whose keys are sorted: the order in which a server sends fields means nothing.
        let value = serde_json::to_value(spec).unwrap_or_default();
        hash.update(go::to_line(&value).unwrap_or_default().as_bytes());
    }
    HEXLOWER.encode(&hash.finalize())
}

/// Takes over into the status of a BoundSchema what became of its CRD on the consumer.
pub fn consumer_status(status: &mut BoundSchemaStatus, crd: &Value, now: Timestamp) {
    let there = &crd["status"];
    if let Ok(names) = serde_json::from_value(there["acceptedNames"].clone()) {
        status.accepted_names = names;
    }
    status.stored_versions = serde_json::from_value(there["storedVersions"].clone()).unwrap_or_default();
    for found in there["conditions"].as_array().into_iter().flatten() {
        let Ok(found) = serde_json::from_value::<Condition>(found.clone()) else { continue };
        let mut condition = Condition::holds(found.type_);
        condition.status = found.status;
        condition.reason = found.reason;
        condition.message = found.message;
        if condition.status != ConditionStatus::True {
            condition.severity = Severity::Error;
        }
        conditions::set(&mut status.conditions, condition, now);
    }
    conditions::summarize(&mut status.conditions, now);
}

#[cfg(test)]
mod tests;
