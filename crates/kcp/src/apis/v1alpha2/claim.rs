//! Permission claims, v1alpha2: verbs, and objects by their labels.

use std::collections::BTreeMap;

use crate::apis::ClaimState;
use crate::hash::Claim;
use crate::meta::LabelSelectorRequirement;
use crate::object::object;

object! {
    /// What the provider of an APIExport asks to see and do in consumers' workspaces.
    PermissionClaim {
        /// API group, empty for core.
        group: String => "group" [always],
        /// Plural resource name.
        resource: String => "resource",
        /// Identity of the foreign export that owns the resource; empty for built-in ones.
        identity_hash: String => "identityHash" [always],
        /// What the provider wants to do; `*` for everything.
        verbs: Vec<String> => "verbs",
        /// The selector of bindings that kcp makes by itself.
        default_selector: Option<PermissionClaimSelector> => "defaultSelector",
    }
}

impl PermissionClaim {
    /// A claim on a resource with these verbs.
    pub fn new(group: impl Into<String>, resource: impl Into<String>, verbs: &[&str]) -> Self {
        Self { group: group.into(), resource: resource.into(), verbs: owned(verbs), ..Self::default() }
    }

    /// What makes two claims the same claim.
    pub fn key(&self) -> Claim<'_> {
        Claim { group: &self.group, resource: &self.resource, identity_hash: &self.identity_hash }
    }

    /// Whether the claim is about a verb.
    pub fn allows(&self, verb: &str) -> bool {
        allows(&self.verbs, verb)
    }
}

object! {
    /// A claim and what the consumer has decided about it.
    AcceptablePermissionClaim {
        /// API group, empty for core.
        group: String => "group" [always],
        /// Plural resource name.
        resource: String => "resource",
        /// Identity of the foreign export that owns the resource; empty for built-in ones.
        identity_hash: String => "identityHash" [always],
        /// What the provider may do; `*` for everything.
        verbs: Vec<String> => "verbs",
        /// The objects that are meant; it cannot be changed.
        selector: PermissionClaimSelector => "selector" [always],
        /// The decision.
        state: ClaimState => "state",
    }
}

impl AcceptablePermissionClaim {
    /// Accepts what an export claims: all its verbs, on the objects that it selects by default.
    pub fn accept(claim: &PermissionClaim) -> Self {
        Self {
            group: claim.group.clone(),
            resource: claim.resource.clone(),
            identity_hash: claim.identity_hash.clone(),
            verbs: claim.verbs.clone(),
            selector: claim.default_selector.clone().unwrap_or_else(PermissionClaimSelector::all),
            state: ClaimState::Accepted,
            ..Self::default()
        }
    }

    /// What makes two claims the same claim.
    pub fn key(&self) -> Claim<'_> {
        Claim { group: &self.group, resource: &self.resource, identity_hash: &self.identity_hash }
    }

    /// Whether the consumer has accepted it.
    pub fn is_accepted(&self) -> bool {
        self.state == ClaimState::Accepted
    }

    /// Whether the claim is about a verb.
    pub fn allows(&self, verb: &str) -> bool {
        allows(&self.verbs, verb)
    }

    /// The claim without the decision, as it is applied.
    pub fn scoped(&self) -> ScopedPermissionClaim {
        let Self { group, resource, identity_hash, verbs, selector, state: _, rest } = self.clone();
        ScopedPermissionClaim { group, resource, identity_hash, verbs, selector, rest }
    }
}

object! {
    /// A claim in force.
    ScopedPermissionClaim {
        /// API group, empty for core.
        group: String => "group" [always],
        /// Plural resource name.
        resource: String => "resource",
        /// Identity of the foreign export that owns the resource; empty for built-in ones.
        identity_hash: String => "identityHash" [always],
        /// What the provider may do; `*` for everything.
        verbs: Vec<String> => "verbs",
        /// The objects that are meant.
        selector: PermissionClaimSelector => "selector",
    }
}

impl ScopedPermissionClaim {
    /// What makes two claims the same claim.
    pub fn key(&self) -> Claim<'_> {
        Claim { group: &self.group, resource: &self.resource, identity_hash: &self.identity_hash }
    }
}

object! {
    /// The objects that a claim is about. Either all or some by their labels; an empty selector is not valid and selects nothing.
    PermissionClaimSelector {
        /// Whether all objects are meant.
        match_all: bool => "matchAll",
        /// Labels that must be there with these values.
        match_labels: BTreeMap<String, String> => "matchLabels",
        /// Conditions on labels, all of which must hold.
        match_expressions: Vec<LabelSelectorRequirement> => "matchExpressions",
    }
}

impl PermissionClaimSelector {
    /// All objects.
    pub fn all() -> Self {
        Self { match_all: true, ..Self::default() }
    }
}

fn allows(verbs: &[String], verb: &str) -> bool {
    verbs.iter().any(|granted| granted == "*" || granted == verb)
}

fn owned(verbs: &[&str]) -> Vec<String> {
    verbs.iter().map(|verb| (*verb).to_owned()).collect()
}
