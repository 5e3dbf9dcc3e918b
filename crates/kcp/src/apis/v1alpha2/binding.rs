//! APIBinding, v1alpha2.

use super::claim::{AcceptablePermissionClaim, PermissionClaim, ScopedPermissionClaim};
use crate::apis::{BindingPhase, BindingReference, BoundApiResource, ExportReference};
use crate::condition::{self, Condition, READY};
use crate::kinds::API_BINDING_V2;
use crate::object::{kind, object};

kind! {
    /// An APIBinding binds the APIs of an APIExport in its workspace.
    ApiBinding = API_BINDING_V2 {
        /// What is bound.
        spec: ApiBindingSpec => "spec",
        /// What kcp says about it.
        status: ApiBindingStatus => "status",
    }
}

impl ApiBinding {
    /// A binding of this name to an export.
    pub fn to_export(name: impl Into<String>, export: ExportReference) -> Self {
        let mut binding = Self::new(name);
        binding.spec.reference.export = export;
        binding
    }

    /// Whether the binding is ready. One that is being deleted may still say so.
    pub fn is_ready(&self) -> bool {
        condition::is_true(&self.status.conditions, READY)
    }
}

object! {
    /// What an APIBinding binds, and which claims the consumer accepts.
    ApiBindingSpec {
        /// The export.
        reference: BindingReference => "reference",
        /// The decision on each claim of the provider.
        permission_claims: Vec<AcceptablePermissionClaim> => "permissionClaims",
    }
}

object! {
    /// What kcp says about an APIBinding.
    ApiBindingStatus {
        /// Name of the logical cluster that holds the export.
        api_export_cluster_name: String => "apiExportClusterName",
        /// How far it is.
        phase: BindingPhase => "phase",
        /// The APIs that it serves.
        bound_resources: Vec<BoundApiResource> => "boundResources",
        /// The claims of the export as last seen.
        export_permission_claims: Vec<PermissionClaim> => "exportPermissionClaims",
        /// The claims in force.
        applied_permission_claims: Vec<ScopedPermissionClaim> => "appliedPermissionClaims",
        /// Conditions.
        conditions: Vec<Condition> => "conditions",
    }
}
