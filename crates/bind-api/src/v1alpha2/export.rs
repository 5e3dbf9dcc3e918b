//! APIServiceExport.

use carrick_kcp::condition::Condition;
use carrick_kcp::object::{kind, object};

use super::claim::PermissionClaim;
use super::common::{ExportedResource, InformerScope, Isolation};
use crate::kinds::API_SERVICE_EXPORT;

kind! {
    /// An APIServiceExport gives one consumer the APIs that it lists.
    ApiServiceExport = API_SERVICE_EXPORT {
        /// What is exported. It cannot be changed.
        spec: ApiServiceExportSpec => "spec",
        /// What both sides say about it.
        status: ApiServiceExportStatus => "status",
    }
}

impl ApiServiceExport {
    /// How consumers are kept apart: `isolation`, or its old name in exports of older backends.
    pub fn isolation(&self) -> &Isolation {
        match &self.spec.isolation {
            Isolation::Unset => &self.spec.cluster_scoped_isolation,
            set => set,
        }
    }
}

object! {
    /// What is exported.
    ApiServiceExportSpec {
        /// The APIs.
        resources: Vec<ExportedResource> => "resources" [always],
        /// What the provider claims beside them.
        permission_claims: Vec<PermissionClaim> => "permissionClaims",
        /// What the konnector may watch.
        informer_scope: InformerScope => "informerScope",
        /// How consumers are kept apart.
        isolation: Isolation => "isolation",
        /// The old name of `isolation`.
        cluster_scoped_isolation: Isolation => "clusterScopedIsolation",
    }
}

object! {
    /// What both sides say about an export.
    ApiServiceExportStatus {
        /// Conditions.
        conditions: Vec<Condition> => "conditions",
    }
}
