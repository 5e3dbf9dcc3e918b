//! What a permission claim is about.

use carrick_kcp::hash::{Claim as ClaimKey, claim_hash};
use serde_json::Value;

use super::object::text;
use crate::store::Kind;

/// The subject of a claim.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    /// API group, empty for core.
    pub group: String,
    /// Plural name.
    pub resource: String,
    /// Identity of the foreign export, empty for built-in kinds.
    pub identity: String,
}

impl Subject {
    /// The subject of a claim; both event APIs count as one.
    pub fn of(claim: &Value) -> Self {
        let field = |pointer: &str| text(claim, pointer);
        let (group, resource) = (field("/group"), field("/resource"));
        ClaimKey { group, resource, identity_hash: field("/identityHash") }.into()
    }

    /// The hash that goes into the label's value.
    pub fn hash(&self) -> String {
        claim_hash(ClaimKey { group: &self.group, resource: &self.resource, identity_hash: &self.identity })
    }

    /// Whether objects stored as `kind` are meant.
    pub fn covers(&self, kind: &Kind) -> bool {
        *kind.group == *self.group && *kind.resource == *self.resource && *kind.identity == *self.identity
    }
}

impl From<ClaimKey<'_>> for Subject {
    fn from(ClaimKey { group, resource, identity_hash }: ClaimKey<'_>) -> Self {
        let group = if resource == "events" && group == "events.k8s.io" { "" } else { group };
        Self { group: group.to_owned(), resource: resource.to_owned(), identity: identity_hash.to_owned() }
    }
}
