//! kube-bind v2 (`core.kbind.io`), beside 0.8: Connections to providers without any component of kube-bind, and bindings of their APIs.
//!
//! ```text
//!  connection, binding   the three kinds          crds      their CustomResourceDefinitions
//!  names       labels, annotations, finalizers    conditions   types, reasons, texts
//!  identity    who a cluster is                   lease     the heartbeat on the provider, in both spellings
//!  synthesize  discovery and OpenAPI of the provider ──▶ CRDs
//!  related     which Secrets and ConfigMaps an entry of a binding selects
//!  roles       what the konnector needs on its own cluster
//!  schema      CRD of the provider ──▶ CRD of the consumer, its hash, and whose CRD one is
//! ```

mod binding;
pub mod conditions;
mod connection;
pub mod crds;
pub mod identity;
pub mod lease;
pub mod names;
pub mod related;
pub mod roles;
pub mod schema;
pub mod synthesize;

use crate::kinds::Kind;

pub use binding::{
    ApiName, Binding, BindingSpec, BindingStatus, BoundApi, ClusterBinding, ConflictPolicy, ConnectionReference,
    Direction, RelatedResource, RelatedSelector,
};
pub use connection::{
    Connection, ConnectionSpec, ConnectionStatus, ExportedApi, PullPolicy, SchemaPolicy, SchemaSource, UpdatePolicy,
};

/// The group of all kinds of v2.
pub const GROUP: &str = "core.kbind.io";
/// The version that this crate reads and writes.
pub const VERSION: &str = "v1alpha1";

/// Connection, on the consumer: the link to one provider.
pub const CONNECTION: Kind = Kind::new(GROUP, VERSION, "Connection", "connections");
/// ClusterBinding, on the consumer: which APIs of a provider the whole cluster uses.
pub const CLUSTER_BINDING: Kind = Kind::new(GROUP, VERSION, "ClusterBinding", "clusterbindings");
/// Binding, in a namespace of the consumer: which APIs of a provider that namespace uses.
pub const BINDING: Kind = Kind::new(GROUP, VERSION, "Binding", "bindings");

/// Every kind.
pub const ALL: [Kind; 3] = [CONNECTION, CLUSTER_BINDING, BINDING];

#[cfg(test)]
mod tests;
