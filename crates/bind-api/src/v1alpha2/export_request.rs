//! APIServiceExportRequest.

use carrick_kcp::condition::Condition;
use carrick_kcp::object::{kind, object};
use serde_json::Value;

use super::claim::PermissionClaim;
use super::common::{ExportedNamespace, ExportedResource, Phase, SchemaUpdatePolicy};
use crate::kinds::API_SERVICE_EXPORT_REQUEST;

kind! {
    /// An APIServiceExportRequest asks the provider for an APIServiceExport of the same name.
    ApiServiceExportRequest = API_SERVICE_EXPORT_REQUEST {
        /// What is asked for. It cannot be changed.
        spec: ApiServiceExportRequestSpec => "spec",
        /// How far it is.
        status: ApiServiceExportRequestStatus => "status",
    }
}

object! {
    /// What is asked for.
    ApiServiceExportRequestSpec {
        /// The APIs.
        resources: Vec<ExportedResource> => "resources" [always],
        /// What the provider claims beside them.
        permission_claims: Vec<PermissionClaim> => "permissionClaims",
        /// Consumer namespaces that the provider wants to be there.
        namespaces: Vec<ExportedNamespace> => "namespaces",
        /// Whether the schemas follow those of the provider; they do not unless said otherwise.
        schema_update_policy: SchemaUpdatePolicy => "schemaUpdatePolicy",
        /// Whatever the provider understands.
        parameters: Value => "parameters",
    }
}

object! {
    /// How far a request is.
    ApiServiceExportRequestStatus {
        /// How far it is.
        phase: Phase => "phase",
        /// Why it has failed for good.
        terminal_message: String => "terminalMessage",
        /// Conditions.
        conditions: Vec<Condition> => "conditions",
    }
}
