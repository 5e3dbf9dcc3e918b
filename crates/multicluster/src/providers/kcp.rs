//! Providers of the workspaces of kcp.

mod apiexport;

pub use apiexport::ApiExport;
