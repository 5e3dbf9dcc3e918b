//! Two planes in this process: a world in milliseconds.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::Context;
use carrick_client::Server;
use carrick_plane::auth::{KCP_ADMIN, KUBE_ADMIN};
use carrick_plane::{Config, Mode, Plane};
use tokio::net::TcpListener;

use super::kubeconfig::Access;
use super::{AGENT, Pace, User, World};
use crate::cable::Cable;

/// Planes give away the address of their cable, with their own port: so they must listen elsewhere on the same port.
/// All of 127.0.0.0/8 is the loopback interface of Linux; other systems have only one other address there.
const BEHIND_THE_CABLE: IpAddr =
    if cfg!(target_os = "linux") { IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)) } else { IpAddr::V6(Ipv6Addr::LOCALHOST) };

/// A plane that plays kcp and one that plays the service cluster, both in memory.
pub struct EmbeddedWorld {
    kcp: Wired,
    service: Wired,
}

impl EmbeddedWorld {
    /// Starts both planes on free loopback ports.
    pub async fn start() -> anyhow::Result<Self> {
        let kcp = Wired::start(Mode::Kcp, KCP_ADMIN, "/clusters/root").await?;
        let service = Wired::start(Mode::Kube, KUBE_ADMIN, "").await?;
        Ok(Self { kcp, service })
    }
}

/// A plane with its cable.
struct Wired {
    plane: Plane,
    cable: Cable,
    access: Access,
    /// The way around the cable, as administrator.
    direct: Server,
}

impl Wired {
    async fn start(mode: Mode, admin: &str, path: &str) -> anyhow::Result<Self> {
        let near = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let bind = SocketAddr::new(BEHIND_THE_CABLE, near.local_addr()?.port());
        let agent = uuid::Uuid::new_v4().to_string();
        let users = vec![carrick_plane::User::new(&agent, AGENT, &[])];
        let external_host = Some(near.local_addr()?.ip().to_string());
        let plane = Plane::start(Config { bind, external_host, users, ..Config::new(mode) }).await?;
        let access = Access {
            authority: data_encoding::BASE64.encode(plane.ca_pem().as_bytes()),
            admin: plane.token(admin).context("the plane has no administrator")?,
            agent,
        };
        let direct = access.kubeconfig(&format!("https://{bind}{path}"), User::Admin);
        let direct = Server::from_kubeconfig_yaml(&direct)?;
        Ok(Self { cable: Cable::lay(near, bind)?, plane, access, direct })
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

    fn pace(&self) -> Pace {
        Pace { patience: Duration::from_secs(10), glance: Duration::from_millis(5), rest: Duration::from_millis(500) }
    }
}
