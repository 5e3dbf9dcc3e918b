//! `kube-bind.io/v1alpha2`: every kind as a type that loses nothing.
//!
//! ```text
//!  consumer                          provider
//!  APIServiceBindingBundle           APIServiceExportTemplate, Collection, Cluster      the catalogue
//!     │ one per export               BindableResourcesRequest                           asks for a contract
//!     ▼                              contract namespace:
//!  APIServiceBinding  ◀── name ──▶     APIServiceExportRequest ──▶ APIServiceExport ──▶ BoundSchema
//!     │                                APIServiceNamespace                              one per consumer namespace
//!     ▼                                ClusterBinding                                   heartbeat, credentials
//!    CRD
//! ```

mod bindable_resources_request;
mod binding;
mod bound_schema;
mod bundle;
mod claim;
mod cluster_binding;
mod common;
mod export;
mod export_request;
mod namespace;
mod template;

pub use bindable_resources_request::{
    BindableResourcesRequest, BindableResourcesRequestSpec, BindableResourcesRequestStatus, ClusterIdentity,
    TemplateReference,
};
pub use binding::{ApiServiceBinding, ApiServiceBindingSpec, ApiServiceBindingStatus, BoundSchemaReference};
pub use bound_schema::{BoundSchema, BoundSchemaSpec, BoundSchemaStatus};
pub use bundle::{ApiServiceBindingBundle, ApiServiceBindingBundleSpec, ApiServiceBindingBundleStatus};
pub use claim::{JsonPaths, NamedResource, PermissionClaim, Reference, Selector};
pub use cluster_binding::{ClusterBinding, ClusterBindingSpec, ClusterBindingStatus};
pub use common::{
    ExportedNamespace, ExportedResource, InformerScope, Isolation, LocalSecretKeyReference, Phase, SchemaUpdatePolicy,
    SecretKeyReference, SecretReference,
};
pub use export::{ApiServiceExport, ApiServiceExportSpec, ApiServiceExportStatus};
pub use export_request::{ApiServiceExportRequest, ApiServiceExportRequestSpec, ApiServiceExportRequestStatus};
pub use namespace::{ApiServiceNamespace, ApiServiceNamespaceSpec, ApiServiceNamespaceStatus};
pub use template::{
    ApiServiceExportTemplate, ApiServiceExportTemplateSpec, Cluster, ClusterSpec, Collection, CollectionSpec,
    ConditionsStatus, TemplateName,
};
