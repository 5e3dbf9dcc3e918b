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
pub mod real;
pub mod servers;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use carrick_client::Server;
use futures::future::{BoxFuture, LocalBoxFuture};

use crate::cable::Cable;
use crate::scratch::Scratch;

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
    /// What a server holds now, as a backup of its etcd does.
    fn snapshot(&self, side: Side) -> anyhow::Result<Snapshot>;
    /// Makes a server go back in time, as one that was stopped, restored from a backup and started again; waits until it answers. Only a
    /// scenario that plays alone may do so.
    fn restore<'a>(&'a self, side: Side, snapshot: &'a Snapshot) -> LocalBoxFuture<'a, anyhow::Result<()>>;
    /// A token of a ServiceAccount in kcp that says the same as another one, but was issued long ago, and is accepted only for that much longer.
    fn ending_soon(&self, token: &str, left: Duration) -> anyhow::Result<String>;
    /// How long things may take here.
    fn pace(&self) -> Pace;
}

/// One of the two servers of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one that consumers work in.
    Kcp,
    /// The service cluster.
    Service,
}

/// A moment to which a server can go back.
pub enum Snapshot {
    /// Of a plane.
    Plane(carrick_plane::Snapshot),
    /// The files of an etcd.
    Files(Scratch),
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

/// The claims of a token of that kind, whose time is over in so many seconds, more than half of it being over already.
fn ending_claims(token: &str, seconds: i64) -> anyhow::Result<serde_json::Value> {
    let payload = token.split('.').nth(1).context("the token has no claims")?;
    let mut claims: serde_json::Value =
        serde_json::from_slice(&data_encoding::BASE64URL_NOPAD.decode(payload.as_bytes())?)?;
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())?;
    for (name, value) in [("iat", now - 3600), ("nbf", now - 3600), ("exp", now + seconds)] {
        claims[name] = value.into();
    }
    Ok(claims)
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
