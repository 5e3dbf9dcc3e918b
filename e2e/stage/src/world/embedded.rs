//! Two planes in this process: a world in milliseconds.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::Context;
use carrick_client::Server;
use carrick_plane::{Config, Mode, Plane};
use carrick_plane::{KCP_ADMIN, KUBE_ADMIN};
use futures::FutureExt;
use futures::future::{BoxFuture, LocalBoxFuture};
use tokio::net::TcpListener;

use super::kubeconfig::Access;
use super::{AGENT, Pace, Side, Snapshot, User, World, ending_claims};
use crate::cable::Cable;
use crate::ports;

/// Planes give away the address of their cable, with their own port: so they must listen elsewhere on the same port.
/// All of 127.0.0.0/8 is the loopback interface of Linux; other systems have only one other address there.
const BEHIND_THE_CABLE: IpAddr =
    if cfg!(target_os = "linux") { IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)) } else { IpAddr::V6(Ipv6Addr::LOCALHOST) };

/// The name by which planes know an agent that is [`User::Admin`]. Scenarios themselves have another one, so that records tell who it was.
pub const ADMIN_AGENT: &str = "admin-agent";

/// How often a range of free ports is looked for.
const ATTEMPTS: usize = 20;

/// A plane that plays kcp and one that plays the service cluster, both in memory.
pub struct EmbeddedWorld {
    kcp: Wired,
    service: Wired,
}

impl EmbeddedWorld {
    /// Starts both planes on free loopback ports.
    pub async fn start() -> anyhow::Result<Self> {
        Self::with_shards(1).await
    }

    /// The same with a kcp of several shards. Only its front door has a cable that can be cut.
    pub async fn with_shards(shards: usize) -> anyhow::Result<Self> {
        Self::with_shards_apart(&vec![0; shards]).await
    }

    /// The same with shards whose versions are so far ahead, as those of shards with an etcd of their own are.
    pub async fn with_shards_apart(ahead: &[u64]) -> anyhow::Result<Self> {
        let kcp = Wired::start(Mode::Kcp, ahead).await?;
        let service = Wired::start(Mode::Kube, &[0]).await?;
        Ok(Self { kcp, service })
    }

    /// The plane that plays kcp.
    pub fn kcp_plane(&self) -> &Plane {
        &self.kcp.plane
    }

    /// The plane that plays the service cluster.
    pub fn service_plane(&self) -> &Plane {
        &self.service.plane
    }

    fn plane(&self, side: Side) -> &Plane {
        if side == Side::Kcp { self.kcp_plane() } else { self.service_plane() }
    }
}

/// A plane with its cable.
struct Wired {
    plane: Plane,
    cable: Cable,
    access: Access,
    /// The way around the cable, as administrator.
    direct: Server,
    /// What leads from the addresses that shards give away to the shards.
    _shard_cables: Vec<Cable>,
}

impl Wired {
    async fn start(mode: Mode, shards: &[u64]) -> anyhow::Result<Self> {
        // Shards take the ports behind that of the front door, and one of those may be taken.
        let mut last = None;
        for _ in 0..ATTEMPTS {
            match Self::try_start(mode, shards).await {
                Ok(started) => return Ok(started),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| anyhow::anyhow!("no attempt to start a plane")))
    }

    async fn try_start(mode: Mode, ahead: &[u64]) -> anyhow::Result<Self> {
        let shards = ahead.len();
        let shard_versions = if ahead.iter().all(|ahead| *ahead == 0) { Vec::new() } else { ahead.to_vec() };
        let (admin, group, path) = match mode {
            Mode::Kcp => (KCP_ADMIN, "system:kcp:admin", "/clusters/root"),
            Mode::Kube => (KUBE_ADMIN, "system:masters", ""),
        };
        // Nobody may get the port while the cable is cut.
        let port = ports::row(1 + u16::try_from(shards)?)?;
        let near = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let bind = SocketAddr::new(BEHIND_THE_CABLE, port);
        let [agent, admin_agent] = std::array::from_fn(|_| uuid::Uuid::new_v4().to_string());
        let users = vec![
            carrick_plane::User::new(&agent, AGENT, &[]),
            carrick_plane::User::new(&admin_agent, ADMIN_AGENT, &[group]),
        ];
        let external_host = Some(near.local_addr()?.ip().to_string());
        let mut shard_cables = Vec::new();
        for shard in (1..=shards).filter(|_| shards > 1) {
            let port = port.checked_add(u16::try_from(shard)?).context("no port left")?;
            let near = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
            shard_cables.push(Cable::lay(near, SocketAddr::new(BEHIND_THE_CABLE, port))?);
        }
        let plane =
            Plane::start(Config { bind, external_host, users, shards, shard_versions, ..Config::new(mode) }).await?;
        let authority = data_encoding::BASE64.encode(plane.ca_pem().as_bytes());
        let direct = Access {
            authority: authority.clone(),
            admin: plane.token(admin).context("the plane has no administrator")?,
            agent: agent.clone(),
        };
        let direct = direct.kubeconfig(&format!("https://{bind}{path}"), User::Admin);
        let direct = Server::from_kubeconfig_yaml(&direct)?;
        let access = Access { authority, admin: admin_agent, agent };
        Ok(Self { cable: Cable::lay(near, bind)?, plane, access, direct, _shard_cables: shard_cables })
    }
}

impl World for EmbeddedWorld {
    fn name(&self) -> &'static str {
        "embedded plane"
    }

    fn kcp(&self) -> &Server {
        &self.kcp.direct
    }

    fn service(&self) -> &Server {
        &self.service.direct
    }

    fn kcp_kubeconfig(&self, user: User, workspace: &str) -> String {
        self.kcp.access.kubeconfig(&format!("{}/clusters/{workspace}", self.kcp.plane.url()), user)
    }

    fn service_kubeconfig(&self, user: User) -> String {
        self.service.access.kubeconfig(self.service.plane.url(), user)
    }

    fn kcp_cable(&self) -> &Cable {
        &self.kcp.cable
    }

    fn service_cable(&self) -> &Cable {
        &self.service.cable
    }

    fn restart_kcp(&self) -> BoxFuture<'_, anyhow::Result<()>> {
        async {
            self.kcp.cable.cut().await?;
            self.kcp.cable.mend().await
        }
        .boxed()
    }

    fn snapshot(&self, side: Side) -> anyhow::Result<Snapshot> {
        Ok(Snapshot::Plane(self.plane(side).snapshot()))
    }

    fn restore<'a>(&'a self, side: Side, snapshot: &'a Snapshot) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        async move {
            let Snapshot::Plane(snapshot) = snapshot else { anyhow::bail!("not a snapshot of a plane") };
            Ok(self.plane(side).restore(snapshot).await?)
        }
        .boxed_local()
    }

    fn ending_soon(&self, token: &str, left: Duration) -> anyhow::Result<String> {
        Ok(self.kcp.plane.account_token(&ending_claims(token, i64::try_from(left.as_secs())?)?))
    }

    fn pace(&self) -> Pace {
        Pace {
            // Shorter than the minute after which much is reconciled again: what comes only then comes too late.
            patience: Duration::from_secs(45),
            glance: Duration::from_millis(5),
            // Longer than events wait for servers that are at their limit, and than a report of what fails.
            rest: Duration::from_millis(1500),
        }
    }
}
