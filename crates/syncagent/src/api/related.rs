//! Related resources: objects that travel with a primary.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::schema::{Described, described, object};
use super::{Drift, LabelSelector, Mutation, SelectorRequirement};

described! {
    /// One kind of objects that travels with the primary.
    with rules(&[
        (
            "must specify either kind (deprecated) or group, version, resource",
            "has(self.kind) != (has(self.version) || has(self.resource))",
        ),
        ("resource and version must be configured together or not at all", "has(self.resource) == has(self.version)"),
        (
            "configuring a group also requires a version and resource",
            "!has(self.group) || (has(self.version) && has(self.resource))",
        ),
        (
            "identity hashes can only be used with GVRs",
            "!has(self.identityHash) || (has(self.group) && has(self.version) && has(self.resource))",
        ),
        (
            "watch must be configured when origin is service and syncStatus is true",
            "!(self.origin == \"service\" && has(self.syncStatus) && self.syncStatus) || has(self.watch)",
        ),
        (
            "watch must be configured when cleanupPolicy is MatchOrigin and origin is service",
            "!(has(self.cleanupPolicy) && self.cleanupPolicy == \"MatchOrigin\" && self.origin == \"service\") || has(self.watch)",
        ),
        (
            "cleanup:true conflicts with cleanupPolicy: Orphan",
            "!(has(self.cleanup) && self.cleanup && has(self.cleanupPolicy) && self.cleanupPolicy == \"Orphan\")",
        ),
    ]);
    pub struct RelatedResource {
        /// Unique name within this PublishedResource. If copies are cleaned up, it becomes a label value.
        @required
        pub identifier: String,
        /// Side on which the original is.
        @required
        pub origin: Origin,
        /// API group on the origin side.
        pub group: String,
        /// API version on the origin side.
        pub version: String,
        /// Plural resource name on the origin side.
        pub resource: String,
        /// Deprecated: use version and resource. Short for core/v1 configmaps or secrets.
        pub kind: String = json!({ "enum": ["ConfigMap", "Secret"] }),
        /// Identity of the foreign export that owns the resource in kcp.
        pub identity_hash: String,
        /// Deprecated: use cleanupPolicy, which takes precedence. True means OnPrimaryDeletion.
        pub cleanup: bool,
        /// When copies are deleted: never (Orphan), with the primary (OnPrimaryDeletion), or with the primary and as soon as their original
        /// is gone or no longer selected (MatchOrigin). Originals are never deleted.
        pub cleanup_policy: Option<CleanupPolicy>,
        /// Name of the resource on the destination side.
        pub projection: Option<RelatedProjection>,
        /// Which objects are related.
        @required
        pub object: Selection,
        /// Changes to the related objects on their way.
        pub mutation: Option<Mutation>,
        /// How a change of a related object finds its primary.
        pub watch: Option<Watch>,
        /// Whether an order is not reported as Available before an object of this entry is in the consumer's workspace.
        pub required: bool,
        /// Also copy the status from origin to destination.
        pub sync_status: bool,
        /// What of the service cluster this entry reaches for an order: what belongs to its copy (Owned), what is in the namespace of its
        /// copy (Namespace), or whatever is selected (Any, the default). To a copy belongs what has an owner reference to it or a label with
        /// its UID, and what is in its namespace under a name that the provider alone determines.
        pub access: Option<Access>,
        /// Types of Secrets that are credentials of a cluster (kubernetes.io/service-account-token, bootstrap.kubernetes.io/token) and
        /// travel nevertheless.
        pub secret_types: Vec<String>,
        /// What happens to fields of the copies that somebody else changes, if the origin is kcp. Absent means that they stay until the
        /// original changes the same fields.
        pub drift: Option<Drift>,
    }

    /// Names of the related resource on the destination side.
    pub struct RelatedProjection {
        /// API group.
        pub group: Option<String>,
        /// API version.
        pub version: Option<String>,
        /// Plural resource name.
        pub resource: Option<String>,
    }

    /// How names (or namespaces) of related objects are found.
    pub struct Selection {
        /// Labels of the related objects on the origin side.
        pub selector: Option<SelectionSelector>,
        /// A path in the primary object.
        pub reference: Option<Reference>,
        /// A template, rendered once for each side.
        pub template: Option<TemplateExpression>,
        /// Namespace of the objects. Absent means that of the primary.
        pub namespace: Option<Box<Selection>>,
    }

    /// A path in the primary, with an optional rewrite.
    pub struct Reference {
        /// Path in the primary object.
        @required
        pub path: String,
        /// Rewrite of the value.
        pub regex: Option<RegexRule>,
    }

    /// A search pattern and its replacement.
    pub struct RegexRule {
        /// Pattern in RE2 syntax; empty yields the replacement as it is.
        pub pattern: String,
        /// Replacement, with $1 and ${name}.
        pub replacement: String,
    }

    /// A Go template.
    pub struct TemplateExpression {
        /// Go template.
        @required
        pub template: String,
    }

    /// Labels of related objects on the origin side and the names they get on the destination side.
    with json!({ "x-kubernetes-map-type": "atomic" });
    pub struct SelectionSelector {
        /// Labels that must be equal. Keys and values may be templates.
        pub match_labels: BTreeMap<String, String>,
        /// Set-based requirements.
        pub match_expressions: Vec<SelectorRequirement> = json!({ "x-kubernetes-list-type": "atomic" }),
        /// How a name on the origin side becomes one on the destination side.
        @required
        pub rewrite: Rewrite,
    }

    /// How a name on the origin side becomes one on the destination side.
    pub struct Rewrite {
        /// By search and replace.
        pub regex: Option<RegexRule>,
        /// By a template.
        pub template: Option<TemplateExpression>,
    }

    /// How a change of a related object finds its primary.
    with rules(&[("exactly one of byOwner or bySelector must be set", "has(self.byOwner) != has(self.bySelector)")]);
    pub struct Watch {
        /// By owner reference.
        pub by_owner: Option<Map<String, Value>>,
        /// By the labels of the primaries.
        pub by_selector: Option<LabelSelector>,
    }
}

/// The side on which the original of a related object is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The service cluster; objects are copied up.
    #[default]
    Service,
    /// The consumer's workspace; objects are copied down.
    Kcp,
}

/// When copies of related objects are deleted. Originals never are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CleanupPolicy {
    /// Not at all.
    #[default]
    Orphan,
    /// Together with the primary.
    OnPrimaryDeletion,
    /// Together with the primary, and as soon as their original is gone.
    MatchOrigin,
}

/// What of the service cluster an entry reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// What belongs to the copy.
    Owned,
    /// What is in the namespace of the copy.
    Namespace,
    /// Whatever is selected.
    Any,
}

impl Described for Access {
    fn schema() -> Value {
        json!({ "type": "string", "enum": ["Owned", "Namespace", "Any"] })
    }
}

impl Described for CleanupPolicy {
    fn schema() -> Value {
        json!({ "type": "string", "enum": ["Orphan", "OnPrimaryDeletion", "MatchOrigin"] })
    }
}

impl RelatedResource {
    /// The effective policy: `cleanupPolicy` if it is set, otherwise the one that `cleanup` implies.
    pub fn effective_policy(&self) -> CleanupPolicy {
        match (self.cleanup_policy, self.cleanup) {
            (Some(policy), _) => policy,
            (None, true) => CleanupPolicy::OnPrimaryDeletion,
            (None, false) => CleanupPolicy::Orphan,
        }
    }
}

impl Described for Origin {
    fn schema() -> Value {
        json!({ "type": "string", "enum": ["service", "kcp"] })
    }
}

/// A namespace is selected like a name, but has no namespace itself.
impl Described for Box<Selection> {
    fn schema() -> Value {
        let mut fields = Selection::fields();
        fields.retain(|field| field.name != "namespace");
        object(&fields, "", None)
    }
}

/// Validation rules, each a message and a CEL expression.
fn rules(rules: &[(&str, &str)]) -> Value {
    let rules: Vec<Value> = rules.iter().map(|(message, rule)| json!({ "rule": rule, "message": message })).collect();
    json!({ "x-kubernetes-validations": rules })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_wins_over_the_older_field() {
        use CleanupPolicy::{MatchOrigin, OnPrimaryDeletion, Orphan};
        for (entry, policy) in [
            (json!({}), Orphan),
            (json!({"cleanup": false}), Orphan),
            (json!({"cleanup": true}), OnPrimaryDeletion),
            (json!({"cleanupPolicy": "Orphan"}), Orphan),
            (json!({"cleanupPolicy": "OnPrimaryDeletion"}), OnPrimaryDeletion),
            (json!({"cleanupPolicy": "MatchOrigin"}), MatchOrigin),
            (json!({"cleanup": true, "cleanupPolicy": "MatchOrigin"}), MatchOrigin),
            (json!({"cleanup": true, "cleanupPolicy": "OnPrimaryDeletion"}), OnPrimaryDeletion),
            (json!({"cleanup": false, "cleanupPolicy": "OnPrimaryDeletion"}), OnPrimaryDeletion),
        ] {
            let related: RelatedResource = serde_json::from_value(entry.clone()).unwrap();
            assert_eq!(related.effective_policy(), policy, "{entry}");
        }
        assert!(serde_json::from_value::<RelatedResource>(json!({"cleanupPolicy": ""})).is_err());
    }
}
