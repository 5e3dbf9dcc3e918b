//! Two planes in this process: a world in milliseconds.

use std::time::Duration;

use carrick_client::Server;
use carrick_plane::auth::{KCP_ADMIN, KUBE_ADMIN};
use carrick_plane::{Config, Mode, Plane};

use super::{Pace, World};

/// A plane that plays kcp and one that plays the service cluster, both in memory.
pub struct EmbeddedWorld {
    kcp: Server,
    kcp_plane: Plane,
    service: Server,
    service_plane: Plane,
}

impl EmbeddedWorld {
    /// Starts both planes on free loopback ports.
    pub async fn start() -> anyhow::Result<Self> {
        let kcp_plane = Plane::start(Config::new(Mode::Kcp)).await?;
        let service_plane = Plane::start(Config::new(Mode::Kube)).await?;
        let kcp = Server::from_kubeconfig_yaml(&kcp_plane.kubeconfig(KCP_ADMIN, Some("root")))?;
        let service = Server::from_kubeconfig_yaml(&service_plane.kubeconfig(KUBE_ADMIN, None))?;
        Ok(Self { kcp, kcp_plane, service, service_plane })
    }
}

impl World for EmbeddedWorld {
    fn name(&self) -> &'static str {
        "embedded plane"
    }

    fn kcp(&self) -> &Server {
        &self.kcp
    }

    fn service(&self) -> &Server {
        &self.service
    }

    fn kcp_kubeconfig(&self, workspace: &str) -> String {
        self.kcp_plane.kubeconfig(KCP_ADMIN, Some(workspace))
    }

    fn service_kubeconfig(&self) -> String {
        self.service_plane.kubeconfig(KUBE_ADMIN, None)
    }

    fn pace(&self) -> Pace {
        Pace { patience: Duration::from_secs(10), glance: Duration::from_millis(5), rest: Duration::from_millis(500) }
    }
}
