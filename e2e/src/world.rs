//! A world: a kcp and a service cluster to play scenarios on.

mod embedded;
mod real;
mod servers;

use std::time::Duration;

use carrick_client::Server;

pub use embedded::EmbeddedWorld;
pub use real::RealWorld;

/// A kcp and a service cluster. Everything else is common code over `carrick_client`.
pub trait World: Send + Sync {
    /// What kind of world it is.
    fn name(&self) -> &'static str;
    /// kcp as its administrator, at the workspace `root`.
    fn kcp(&self) -> &Server;
    /// The service cluster as its administrator.
    fn service(&self) -> &Server;
    /// A kubeconfig for kcp's administrator at one workspace.
    fn kcp_kubeconfig(&self, workspace: &str) -> String;
    /// A kubeconfig for the service cluster's administrator.
    fn service_kubeconfig(&self) -> String;
    /// How long things may take here.
    fn pace(&self) -> Pace;
}

/// How fast a world is.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// How long to wait for anything before giving up.
    pub patience: Duration,
    /// How long to wait between two looks.
    pub glance: Duration,
    /// For how long nothing may change before a world counts as being at rest.
    pub rest: Duration,
}
