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
pub(crate) mod kinds;
pub mod lease;
pub mod names;
pub mod related;
pub mod roles;
pub mod schema;
pub mod synthesize;

pub use binding::{
    ApiName, Binding, BindingSpec, BindingStatus, BoundApi, ClusterBinding, ConflictPolicy, ConnectionReference,
    Direction, RelatedResource, RelatedSelector,
};
pub use connection::{
    Connection, ConnectionSpec, ConnectionStatus, ExportedApi, PullPolicy, SchemaPolicy, SchemaSource, UpdatePolicy,
};
pub use kinds::{ALL, BINDING, CLUSTER_BINDING, CONNECTION, GROUP, VERSION};

#[cfg(test)]
mod tests;
