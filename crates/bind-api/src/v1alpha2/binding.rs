//! APIServiceBinding.

use carrick_kcp::condition::Condition;
use carrick_kcp::object::{kind, object};

use super::claim::PermissionClaim;
use super::common::SecretKeyReference;
use crate::kinds::API_SERVICE_BINDING;

kind! {
    /// An APIServiceBinding brings the APIs of the APIServiceExport of the same name into the consumer's cluster.
    ApiServiceBinding = API_SERVICE_BINDING {
        /// Where the provider is.
        spec: ApiServiceBindingSpec => "spec",
        /// What the konnector says about it.
        status: ApiServiceBindingStatus => "status",
    }
}

object! {
    /// Where the provider is.
    ApiServiceBindingSpec {
        /// The kubeconfig of the provider, with the contract namespace in its context. It cannot be changed.
        kubeconfig_secret_ref: SecretKeyReference => "kubeconfigSecretRef",
    }
}

object! {
    /// What the konnector says about a binding.
    ApiServiceBindingStatus {
        /// What the provider calls itself.
        provider_pretty_name: String => "providerPrettyName",
        /// The APIs that are bound.
        bound_schemas: Vec<BoundSchemaReference> => "boundSchemas",
        /// What the provider claims beside them.
        permission_claims: Vec<PermissionClaim> => "permissionClaims",
        /// Conditions.
        conditions: Vec<Condition> => "conditions",
    }
}

object! {
    /// A bound API.
    BoundSchemaReference {
        /// API group.
        group: String => "group",
        /// Plural name.
        resource: String => "resource",
    }
}

impl BoundSchemaReference {
    /// An API by group and plural name.
    pub fn new(group: impl Into<String>, resource: impl Into<String>) -> Self {
        Self { group: group.into(), resource: resource.into(), ..Self::default() }
    }
}
