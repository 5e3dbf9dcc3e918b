//! A world: a kcp and a service cluster to play scenarios on.
//!
//! ```text
//!   scenario ──────────────────────────────────────────▶ kcp, service cluster
//!   agent ───▶ Cable, which a scenario can cut ──────────▲
//! ```
//!
//! kcp publishes its own address in endpoint slices. It is told that of the cable, so that all that an agent sends to kcp goes through it.

mod embedded;
mod kubeconfig;
pub(crate) mod real;
pub(crate) mod servers;

use std::time::Duration;

use carrick_client::Server;
use futures::future::BoxFuture;

use crate::cable::Cable;

pub use embedded::{ADMIN_AGENT, EmbeddedWorld};
pub use real::RealWorld;

/// The user [`User::Agent`] by name.
pub const AGENT: &str = "api-syncagent";

/// A kcp and a service cluster. Everything else is common code over `carrick_client`.
pub trait World: Send + Sync {
    /// What kind of world it is.
    fn name(&self) -> &'static str;
    /// kcp as its administrator, at the workspace `root`.
    fn kcp(&self) -> &Server;
    /// The service cluster as its administrator.
    fn service(&self) -> &Server;
    /// A kubeconfig for one workspace of kcp, by way of the cable.
    fn kcp_kubeconfig(&self, user: User, workspace: &str) -> String;
    /// A kubeconfig for the service cluster, by way of the cable.
    fn service_kubeconfig(&self, user: User) -> String;
    /// The cable between agents and kcp. It belongs to all scenarios of the world: only one that plays alone may cut it.
    fn kcp_cable(&self) -> &Cable;
    /// The cable between agents and the service cluster; for it the same is true.
    fn service_cable(&self) -> &Cable;
    /// Ends kcp without a warning and starts it again; it may take a while until it answers. A plane only loses its connections. Only a
    /// scenario that plays alone may do so.
    fn restart_kcp(&self) -> BoxFuture<'_, anyhow::Result<()>>;
    /// How long things may take here.
    fn pace(&self) -> Pace;
}

/// Who an agent is to both servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum User {
    /// An administrator, who may do everything.
    #[default]
    Admin,
    /// A user without any rights but those that a scenario gives to [`AGENT`].
    Agent,
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
