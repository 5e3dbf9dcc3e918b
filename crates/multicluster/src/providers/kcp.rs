//! Providers of the workspaces of kcp.

mod apiexport;
mod binding;
mod endpoints;
mod engagement;
mod workspaces;

pub use apiexport::ApiExport;
pub use binding::{ApiBinding, ApiBindingSpec, ApiBindingStatus, BindingCondition, BindingReference, ExportReference};
pub use endpoints::EndpointObject;
pub use engagement::Stage;
pub use workspaces::{HookError, InitializingWorkspaces, TerminatingWorkspaces, remove_initializer, remove_terminator};
