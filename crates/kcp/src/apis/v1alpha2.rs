//! `apis.kcp.io/v1alpha2`: APIExport and APIBinding as kcp stores them, with verbs and selectors in their claims.

mod binding;
mod claim;
mod export;

pub use super::{
    ApiExportStatus, BindingPhase, BindingReference, BoundApiResource, BoundApiResourceSchema, ClaimState,
    ExportReference, Identity, LocalPolicy, MaximalPermissionPolicy, SecretReference, VirtualWorkspace,
};
pub use binding::{ApiBinding, ApiBindingSpec, ApiBindingStatus};
pub use claim::{AcceptablePermissionClaim, PermissionClaim, PermissionClaimSelector, ScopedPermissionClaim};
pub use export::{ApiExport, ApiExportSpec, CrdStorage, ResourceSchema, ResourceSchemaStorage, VirtualStorage};
