//! Schemas: a CRD of the provider becomes a BoundSchema, and that a CRD of the consumer.
//!
//! ```text
//!   CRD, APIResourceSchema ──from_crd, from_api_resource_schema──▶ BoundSchema ──crd──▶ CRD of the consumer
//!                     refresh: by policy ─────────────────────────▶    ▲                    │ plan: whose is it, what changes
//!                                                                      └─ consumer_status ◀─┘
//! ```

mod crd;
mod error;
mod hash;
mod plan;
mod source;

use carrick_kcp::apis::v1alpha1::{ApiResourceVersion, ResourceScope};
use jiff::Timestamp;
use serde_json::Value;

pub use crd::crd;
pub use error::SchemaError;
pub use hash::hash;
pub use plan::{CrdPlan, CrdProblem, plan};
pub use source::{Refresh, from_api_resource_schema, from_crd, refresh};

use crate::conditions::{self, Condition, ConditionStatus, Severity};
use crate::v1alpha2::{BoundSchemaSpec, BoundSchemaStatus};

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
