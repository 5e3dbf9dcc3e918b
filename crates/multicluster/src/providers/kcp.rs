//! Providers of the workspaces of kcp.

mod apiexport;
mod endpoints;
mod engagement;
mod workspaces;

pub use apiexport::ApiExport;
pub use carrick_kcp::apis::v1alpha2::ApiBinding;
pub use endpoints::EndpointObject;
pub use engagement::Stage;
pub use workspaces::{HookError, InitializingWorkspaces, TerminatingWorkspaces, remove_initializer, remove_terminator};
