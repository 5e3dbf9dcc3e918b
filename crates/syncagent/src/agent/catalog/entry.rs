//! What the catalog holds: every PublishedResource, with its compiled rules or with what is wrong with it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::definition::Definition;
use crate::api::PublishedResource;
use crate::rules::Rules;
use crate::rules::crd::Crd;

/// Everything that the agent is to publish at one moment.
#[derive(Debug, Default)]
pub struct Catalog {
    /// Usable entries, by name of the PublishedResource.
    pub entries: BTreeMap<String, CatalogEntry>,
    /// Every PublishedResource the selector matches, as it is now.
    pub resources: BTreeMap<String, Arc<PublishedResource>>,
    /// What is wrong, by name of the PublishedResource.
    pub problems: BTreeMap<String, Problem>,
    /// PublishedResources that another agent serves.
    pub refused: BTreeMap<String, Refused>,
    /// PublishedResources that another agent would like to serve too, with what is said about that.
    pub awaited: BTreeMap<String, String>,
    /// Resources in kcp that other agents keep in the same export, as `<plural>.<group>`.
    pub elsewhere: BTreeSet<String>,
    /// Names of other agents that work on the same export.
    pub others: BTreeSet<String>,
    /// Names of agents that are no more, and whose part this one has.
    pub former: BTreeSet<String>,
    /// What the installed PublishedResource CRD keeps of a status.
    pub kept: KeptStatus,
}

/// What the installed PublishedResource CRD keeps of a status; that of the original agent keeps nothing of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeptStatus {
    /// Conditions.
    pub conditions: bool,
    /// The number of objects.
    pub counts: bool,
    /// For which exports it is served.
    pub serving: bool,
}

impl Catalog {
    /// Names of PublishedResources without a usable entry.
    pub fn broken(&self) -> HashSet<String> {
        let problems = self.problems.iter().filter(|(_, problem)| !problem.is_pending());
        problems.map(|(name, _)| name).filter(|name| !self.entries.contains_key(*name)).cloned().collect()
    }
}

/// A PublishedResource that another agent serves.
#[derive(Debug, Clone)]
pub struct Refused {
    /// The PublishedResource.
    pub pr: Arc<PublishedResource>,
    /// Who serves it, and what can be done about it.
    pub why: String,
}

/// A usable PublishedResource.
#[derive(Debug, Clone)]
pub struct CatalogEntry {
    /// The PublishedResource, in its last valid generation.
    pub pr: Arc<PublishedResource>,
    /// The CRD on the service cluster, without its schemas.
    pub crd: Arc<Crd>,
    /// Where it can be read with its schemas.
    pub definition: Definition,
    /// Name of the APIResourceSchema.
    pub schema_name: String,
    /// Compiled rules for objects, or why there are none.
    pub rules: Result<Arc<Rules>, String>,
    /// Fields that rules name and objects cannot have, in words.
    pub doubts: Vec<String>,
    /// What consumers can write and no rule reads.
    pub ignored: Option<String>,
}

impl CatalogEntry {
    /// Whether consumers may see it: what was published once stays, but nothing is published for the first time without valid rules.
    pub fn is_publishable(&self, pr: &PublishedResource) -> bool {
        self.rules.is_ok() || !pr.status.resource_schema_name.is_empty()
    }
}

/// What is wrong with a PublishedResource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// One word for machines.
    pub reason: &'static str,
    /// What is wrong and how to fix it.
    pub message: String,
}

impl Problem {
    /// Nothing is known yet, so there is nothing to report either.
    pub(crate) fn is_pending(&self) -> bool {
        self.reason == "Pending"
    }
}
