//! The kinds for `kube::Api`: `kube_core::Object` with specs and statuses of this crate.
//!
//! ```
//! use carrick_kcp::kinds::API_EXPORT;
//! use carrick_kcp::kube::{ApiExport, ApiResource};
//!
//! let kind = ApiResource::from(API_EXPORT);
//! let export = ApiExport::new("example.io", &kind, Default::default());
//! assert_eq!(export.types.unwrap().api_version, "apis.kcp.io/v1alpha1");
//! // let exports: kube::Api<ApiExport> = kube::Api::all_with(client, &kind);
//! ```

pub use kube_core::ApiResource;
use kube_core::Object;

use crate::apis::{ApiExportStatus, v1alpha1, v1alpha2};
use crate::core::v1alpha1 as core;
use crate::kinds::Kind;
use crate::tenancy::v1alpha1 as tenancy;
use crate::topology::v1alpha1 as topology;

/// APIExport, v1alpha1.
pub type ApiExport = Object<v1alpha1::ApiExportSpec, ApiExportStatus>;
/// APIExport, v1alpha2.
pub type ApiExportV2 = Object<v1alpha2::ApiExportSpec, ApiExportStatus>;
/// APIBinding, v1alpha1.
pub type ApiBinding = Object<v1alpha1::ApiBindingSpec, v1alpha1::ApiBindingStatus>;
/// APIBinding, v1alpha2.
pub type ApiBindingV2 = Object<v1alpha2::ApiBindingSpec, v1alpha2::ApiBindingStatus>;
/// APIResourceSchema; it has no status.
pub type ApiResourceSchema = Object<v1alpha1::ApiResourceSchemaSpec, kube_core::NotUsed>;
/// APIExportEndpointSlice.
pub type ApiExportEndpointSlice = Object<v1alpha1::ApiExportEndpointSliceSpec, v1alpha1::ApiExportEndpointSliceStatus>;
/// LogicalCluster.
pub type LogicalCluster = Object<core::LogicalClusterSpec, core::LogicalClusterStatus>;
/// Workspace.
pub type Workspace = Object<tenancy::WorkspaceSpec, tenancy::WorkspaceStatus>;
/// WorkspaceType.
pub type WorkspaceType = Object<tenancy::WorkspaceTypeSpec, tenancy::WorkspaceTypeStatus>;
/// Partition; it has no status.
pub type Partition = Object<topology::PartitionSpec, kube_core::NotUsed>;

impl From<Kind> for ApiResource {
    fn from(kind: Kind) -> Self {
        Self {
            group: kind.group.to_owned(),
            version: kind.version.to_owned(),
            api_version: kind.api_version(),
            kind: kind.kind.to_owned(),
            plural: kind.plural.to_owned(),
        }
    }
}
