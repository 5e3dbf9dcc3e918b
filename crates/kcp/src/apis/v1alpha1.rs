//! `apis.kcp.io/v1alpha1`: what all releases of kcp serve, and what the sync agent reads and writes.

mod binding;
mod claim;
mod export;
mod schema;
mod slice;

pub use super::{
    ApiExportStatus, BindingPhase, BindingReference, BoundApiResource, BoundApiResourceSchema, ClaimState,
    ExportReference, Identity, LocalPolicy, MaximalPermissionPolicy, SecretReference, VirtualWorkspace,
};
pub use binding::{ApiBinding, ApiBindingSpec, ApiBindingStatus};
pub use claim::{AcceptablePermissionClaim, PermissionClaim, ResourceSelector};
pub use export::{ApiExport, ApiExportSpec};
pub use schema::{
    ApiResourceSchema, ApiResourceSchemaSpec, ApiResourceVersion, Conversion, ResourceNames, ResourceScope,
};
pub use slice::{ApiExportEndpoint, ApiExportEndpointSlice, ApiExportEndpointSliceSpec, ApiExportEndpointSliceStatus};
