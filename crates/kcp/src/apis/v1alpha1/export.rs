//! APIExport, v1alpha1.

use super::claim::PermissionClaim;
use crate::apis::{ApiExportStatus, Identity, MaximalPermissionPolicy};
use crate::kinds::API_EXPORT;
use crate::object::{kind, object};

kind! {
    /// An APIExport offers a set of APIs to other workspaces, which bind them with an APIBinding.
    ApiExport = API_EXPORT {
        /// What is offered.
        spec: ApiExportSpec => "spec",
        /// What kcp says about it.
        status: ApiExportStatus => "status",
    }
}

object! {
    /// What an APIExport offers.
    ApiExportSpec {
        /// Names of the APIResourceSchemas that consumers get.
        latest_resource_schemas: Vec<String> => "latestResourceSchemas",
        /// What the provider asks to see in consumers' workspaces.
        permission_claims: Vec<PermissionClaim> => "permissionClaims",
        /// Where the identity comes from.
        identity: Identity => "identity",
        /// An upper bound of what consumers may do.
        maximal_permission_policy: Option<MaximalPermissionPolicy> => "maximalPermissionPolicy",
    }
}
