//! Permission claims, v1alpha1: all objects of a resource, or some by name.

use crate::apis::ClaimState;
use crate::hash::Claim;
use crate::object::object;

object! {
    /// What the provider of an APIExport asks to see in consumers' workspaces.
    PermissionClaim {
        /// API group, empty for core.
        group: String => "group",
        /// Plural resource name.
        resource: String => "resource",
        /// Whether all objects are claimed.
        all: bool => "all",
        /// The objects that are claimed, if it is not all of them.
        resource_selector: Vec<ResourceSelector> => "resourceSelector",
        /// Identity of the foreign export that owns the resource; empty for built-in ones.
        identity_hash: String => "identityHash",
    }
}

impl PermissionClaim {
    /// A claim on all objects of a resource.
    pub fn all(group: impl Into<String>, resource: impl Into<String>, identity_hash: impl Into<String>) -> Self {
        Self {
            group: group.into(),
            resource: resource.into(),
            all: true,
            identity_hash: identity_hash.into(),
            ..Self::default()
        }
    }

    /// What makes two claims the same claim.
    pub fn key(&self) -> Claim<'_> {
        Claim { group: &self.group, resource: &self.resource, identity_hash: &self.identity_hash }
    }

    /// The claim with a consumer's decision, for an APIBinding.
    pub fn decided(self, state: ClaimState) -> AcceptablePermissionClaim {
        let Self { group, resource, all, resource_selector, identity_hash, rest } = self;
        AcceptablePermissionClaim { group, resource, all, resource_selector, identity_hash, state, rest }
    }
}

object! {
    /// A claim and what the consumer has decided about it.
    AcceptablePermissionClaim {
        /// API group, empty for core.
        group: String => "group",
        /// Plural resource name.
        resource: String => "resource",
        /// Whether all objects are meant.
        all: bool => "all",
        /// The objects that are meant, if it is not all of them.
        resource_selector: Vec<ResourceSelector> => "resourceSelector",
        /// Identity of the foreign export that owns the resource; empty for built-in ones.
        identity_hash: String => "identityHash",
        /// The decision.
        state: ClaimState => "state",
    }
}

impl AcceptablePermissionClaim {
    /// What makes two claims the same claim.
    pub fn key(&self) -> Claim<'_> {
        Claim { group: &self.group, resource: &self.resource, identity_hash: &self.identity_hash }
    }

    /// Whether the consumer has accepted it.
    pub fn is_accepted(&self) -> bool {
        self.state == ClaimState::Accepted
    }
}

object! {
    /// Objects that are claimed by name, by namespace or by both.
    ResourceSelector {
        /// Name; empty for any.
        name: String => "name",
        /// Namespace; empty for any.
        namespace: String => "namespace",
    }
}
