//! The catalogue of a provider: APIServiceExportTemplate, Collection, and the Cluster that owns the rights to read it.

use carrick_kcp::apis::v1alpha1::ResourceScope;
use carrick_kcp::condition::Condition;
use carrick_kcp::object::{kind, object};

use super::claim::PermissionClaim;
use super::common::{ExportedNamespace, ExportedResource, SchemaUpdatePolicy};
use crate::kinds::{API_SERVICE_EXPORT_TEMPLATE, CLUSTER, COLLECTION};

kind! {
    /// An APIServiceExportTemplate is a set of APIs that consumers can order.
    ApiServiceExportTemplate = API_SERVICE_EXPORT_TEMPLATE {
        /// What is offered.
        spec: ApiServiceExportTemplateSpec => "spec",
        /// Nobody sets it today.
        status: ConditionsStatus => "status",
    }
}

object! {
    /// What is offered.
    ApiServiceExportTemplateSpec {
        /// Whether objects live in namespaces; for people only.
        scope: ResourceScope => "scope",
        /// What it is good for.
        description: String => "description",
        /// The APIs.
        resources: Vec<ExportedResource> => "resources" [always],
        /// What the provider claims beside them.
        permission_claims: Vec<PermissionClaim> => "permissionClaims",
        /// Consumer namespaces that the provider wants to be there.
        namespaces: Vec<ExportedNamespace> => "namespaces",
        /// Whether the schemas follow those of the provider; they do not unless said otherwise.
        schema_update_policy: SchemaUpdatePolicy => "schemaUpdatePolicy",
    }
}

kind! {
    /// A Collection groups templates.
    Collection = COLLECTION {
        /// Which ones.
        spec: CollectionSpec => "spec",
        /// Nobody sets it today.
        status: ConditionsStatus => "status",
    }
}

object! {
    /// A group of templates.
    CollectionSpec {
        /// What they have in common.
        description: String => "description",
        /// The templates.
        templates: Vec<TemplateName> => "templates" [always],
    }
}

object! {
    /// A template by name.
    TemplateName {
        /// Its name.
        name: String => "name",
    }
}

kind! {
    /// The Cluster `default` of a provider owns the rights of those who may log in.
    Cluster = CLUSTER {
        /// There is nothing to be said.
        spec: ClusterSpec => "spec",
        /// Whether they are in place.
        status: ConditionsStatus => "status",
    }
}

object! {
    /// There is nothing to be said.
    ClusterSpec {}
}

object! {
    /// A status with nothing but conditions.
    ConditionsStatus {
        /// Conditions.
        conditions: Vec<Condition> => "conditions",
    }
}
