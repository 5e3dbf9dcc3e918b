//! BoundSchema.

use carrick_kcp::apis::v1alpha1::{ApiResourceVersion, Conversion, ResourceNames, ResourceScope};
use carrick_kcp::condition::Condition;
use carrick_kcp::object::{kind, object};

use super::common::InformerScope;
use crate::kinds::BOUND_SCHEMA;

kind! {
    /// A BoundSchema is the CRD that a consumer gets, and what became of it there.
    BoundSchema = BOUND_SCHEMA {
        /// What the API looks like.
        spec: BoundSchemaSpec => "spec",
        /// What became of it on the consumer.
        status: BoundSchemaStatus => "status",
    }
}

object! {
    /// What an API looks like to consumers.
    BoundSchemaSpec {
        /// What the konnector may watch.
        informer_scope: InformerScope => "informerScope",
        /// API group, empty for core.
        group: String => "group" [always],
        /// How the resource is called.
        names: ResourceNames => "names",
        /// Whether objects live in namespaces, as consumers see it.
        scope: ResourceScope => "scope",
        /// The versions; exactly one is the storage version. A schema may be wrapped as in a CRD or bare as in kcp's APIResourceSchema.
        versions: Vec<ApiResourceVersion> => "versions",
        /// How objects move between versions.
        conversion: Option<Conversion> => "conversion",
    }
}

object! {
    /// What became of the CRD on the consumer.
    BoundSchemaStatus {
        /// The names it got.
        accepted_names: ResourceNames => "acceptedNames",
        /// The versions in which objects were ever stored.
        stored_versions: Vec<String> => "storedVersions",
        /// Conditions.
        conditions: Vec<Condition> => "conditions",
    }
}
