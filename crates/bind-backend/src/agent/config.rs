//! What a backend is told when it starts.

use std::time::Duration;

use carrick_client::Server;

use super::session::SchemaSource;
use crate::decide::terms::Terms;

/// What a backend is told when it starts.
#[derive(Clone)]
pub struct BackendConfig {
    /// The provider's cluster, or in kcp the workspace of the APIExport.
    pub server: Server,
    /// What holds for every consumer. In kcp the address is that of the server without a workspace.
    pub terms: Terms,
    /// Where schemas come from.
    pub source: SchemaSource,
    /// The APIExportEndpointSlice whose workspaces are served, in kcp.
    pub slice: Option<String>,
    /// Prefixes of bindings and exports that are not offered, in kcp.
    pub ignored_bindings: Vec<String>,
    /// The Lease without which nothing is written; none if it is alone.
    pub lease: Option<LeaseConfig>,
    /// Where `/healthz` and `/readyz` are served; nowhere if it is left out.
    pub listen_address: Option<String>,
    /// The backend's own namespace.
    pub namespace: String,
}

/// The Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseConfig {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// The name of this process in it; a random one if it is left out.
    pub identity: Option<String>,
    /// How long it lives without renewal; 15 seconds if it is left out.
    pub duration: Option<Duration>,
}
