//! APIExport, v1alpha2.

use serde_json::Value;

use super::claim::PermissionClaim;
use crate::apis::{ApiExportStatus, Identity, MaximalPermissionPolicy, split_schema_name};
use crate::kinds::API_EXPORT_V2;
use crate::object::{kind, object};

kind! {
    /// An APIExport offers a set of APIs to other workspaces, which bind them with an APIBinding.
    ApiExport = API_EXPORT_V2 {
        /// What is offered.
        spec: ApiExportSpec => "spec",
        /// What kcp says about it.
        status: ApiExportStatus => "status",
    }
}

object! {
    /// What an APIExport offers.
    ApiExportSpec {
        /// The exported resources and the schema of each.
        resources: Vec<ResourceSchema> => "resources",
        /// What the provider asks to see and do in consumers' workspaces.
        permission_claims: Vec<PermissionClaim> => "permissionClaims",
        /// Where the identity comes from.
        identity: Identity => "identity",
        /// An upper bound of what consumers may do.
        maximal_permission_policy: Option<MaximalPermissionPolicy> => "maximalPermissionPolicy",
    }
}

object! {
    /// An exported resource.
    ResourceSchema {
        /// Plural resource name.
        name: String => "name",
        /// API group, empty for core.
        group: String => "group" [always],
        /// Name of the APIResourceSchema.
        schema: String => "schema",
        /// Where objects are kept.
        storage: ResourceSchemaStorage => "storage",
    }
}

impl ResourceSchema {
    /// The resource that the name of an APIResourceSchema stands for, kept as ordinary custom resources.
    pub fn of(schema: &str) -> Self {
        let (_, resource, group) = split_schema_name(schema).unwrap_or_default();
        Self {
            name: resource.to_owned(),
            group: if group == "core" { String::new() } else { group.to_owned() },
            schema: schema.to_owned(),
            storage: ResourceSchemaStorage { crd: Some(CrdStorage::default()), ..ResourceSchemaStorage::default() },
            ..Self::default()
        }
    }
}

object! {
    /// Where the objects of an exported resource are kept.
    ResourceSchemaStorage {
        /// As ordinary custom resources.
        crd: Option<CrdStorage> => "crd",
        /// By somebody else, who serves them through a virtual workspace.
        virtual_: Option<VirtualStorage> => "virtual",
    }
}

object! {
    /// Ordinary custom resources; there is nothing to be set.
    CrdStorage {}
}

object! {
    /// Objects that are served through a virtual workspace.
    VirtualStorage {
        /// The object that knows the URLs.
        reference: Value => "reference",
        /// Identity of the export that owns the objects.
        identity_hash: String => "identityHash",
    }
}
