//! `tenancy.kcp.io/v1alpha1`.

mod workspace;
mod workspace_type;

pub use crate::apis::VirtualWorkspace;
pub use crate::core::v1alpha1::LogicalClusterPhase;
pub use workspace::{Mount, ObjectReference, Workspace, WorkspaceLocation, WorkspaceSpec, WorkspaceStatus};
pub use workspace_type::{
    ApiExportReference, BindingLifecycle, WorkspaceType, WorkspaceTypeExtension, WorkspaceTypeReference,
    WorkspaceTypeSelector, WorkspaceTypeSpec, WorkspaceTypeStatus,
};
