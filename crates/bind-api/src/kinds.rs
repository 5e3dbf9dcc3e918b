//! Group, version, kind and plural of kube-bind's kinds, and where their objects live. Those of v2 are in [`crate::core`].

pub use carrick_kcp::kinds::{KcpObject as ApiObject, Kind};

use crate::core::kinds as v2;

/// The group of all kinds.
pub const GROUP: &str = "kube-bind.io";
/// The version that this crate reads and writes.
pub const VERSION: &str = "v1alpha2";

const fn kind(kind: &'static str, plural: &'static str) -> Kind {
    Kind::new(GROUP, VERSION, kind, plural)
}

/// APIServiceBinding, on the consumer.
pub const API_SERVICE_BINDING: Kind = kind("APIServiceBinding", "apiservicebindings");
/// APIServiceBindingBundle, on the consumer.
pub const API_SERVICE_BINDING_BUNDLE: Kind = kind("APIServiceBindingBundle", "apiservicebindingbundles");
/// APIServiceExportRequest, in a contract namespace.
pub const API_SERVICE_EXPORT_REQUEST: Kind = kind("APIServiceExportRequest", "apiserviceexportrequests");
/// APIServiceExport, in a contract namespace.
pub const API_SERVICE_EXPORT: Kind = kind("APIServiceExport", "apiserviceexports");
/// BoundSchema, in a contract namespace.
pub const BOUND_SCHEMA: Kind = kind("BoundSchema", "boundschemas");
/// APIServiceNamespace, in a contract namespace.
pub const API_SERVICE_NAMESPACE: Kind = kind("APIServiceNamespace", "apiservicenamespaces");
/// ClusterBinding, in a contract namespace.
pub const CLUSTER_BINDING: Kind = kind("ClusterBinding", "clusterbindings");
/// BindableResourcesRequest, in a namespace of the provider.
pub const BINDABLE_RESOURCES_REQUEST: Kind = kind("BindableResourcesRequest", "bindableresourcesrequests");
/// APIServiceExportTemplate, on the provider.
pub const API_SERVICE_EXPORT_TEMPLATE: Kind = kind("APIServiceExportTemplate", "apiserviceexporttemplates");
/// Collection, on the provider.
pub const COLLECTION: Kind = kind("Collection", "collections");
/// Cluster, on the provider.
pub const CLUSTER: Kind = kind("Cluster", "clusters");

/// Every kind.
pub const ALL: [Kind; 11] = [
    API_SERVICE_BINDING,
    API_SERVICE_BINDING_BUNDLE,
    API_SERVICE_EXPORT_REQUEST,
    API_SERVICE_EXPORT,
    BOUND_SCHEMA,
    API_SERVICE_NAMESPACE,
    CLUSTER_BINDING,
    BINDABLE_RESOURCES_REQUEST,
    API_SERVICE_EXPORT_TEMPLATE,
    COLLECTION,
    CLUSTER,
];

/// Whether objects of a kind live in namespaces.
pub fn is_namespaced(kind: Kind) -> bool {
    if kind.group == v2::GROUP {
        return kind == v2::BINDING;
    }
    ![API_SERVICE_BINDING, API_SERVICE_BINDING_BUNDLE, API_SERVICE_EXPORT_TEMPLATE, COLLECTION, CLUSTER].contains(&kind)
}
