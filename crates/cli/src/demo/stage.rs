//! What runs during the demo: two servers, the operator, the agent.

use std::time::Duration;

use carrick_client::{Client, Server};
use carrick_plane::{Mode, Plane};
use tokio::task::JoinHandle;

use super::manifests::{AGENT_NAMESPACE, AGENT_USER, EXPORT, PROVIDER_PATH};
use super::operator;
use crate::embedded::{self, AgentSetup, RunningAgent};
use crate::ui::{Done, Failed, Observed, Step, Ui};

/// The provider's user, administrator of the provider's workspace.
pub const PROVIDER: &str = "provider";
/// The name of the agent.
pub const AGENT: &str = "httpbin";
const PAUSE: Duration = Duration::from_millis(10);

/// A consumer.
#[derive(Debug, Clone)]
pub struct Team {
    /// Name of the team and of its user.
    pub name: &'static str,
    /// Its workspace.
    pub path: &'static str,
    /// A client in that workspace, with the rights of the team.
    pub client: Client,
}

/// Everything that runs.
#[derive(Debug)]
pub struct Stage {
    /// Where steps are printed.
    pub ui: Ui,
    /// kcp.
    pub kcp: Plane,
    /// The service cluster.
    pub service: Plane,
    /// kcp as its administrator.
    pub admin: Server,
    /// The provider's workspace as the provider.
    pub provider: Client,
    /// The service cluster as its administrator.
    pub cluster: Client,
    /// The consumers.
    pub teams: [Team; 2],
    operator: Option<JoinHandle<()>>,
    agent: Option<RunningAgent>,
}

impl Stage {
    /// Starts the servers.
    pub async fn open(ui: Ui) -> Result<Self, Failed> {
        let hint = "check whether programs may listen on 127.0.0.1";
        let step = Step::new("starting kcp", "an embedded kcp that answers on loopback").hint(hint);
        let (kcp, admin, provider, teams) = ui
            .step(step, async |_| {
                let plane = embedded::start(Mode::Kcp, &[AGENT_USER, PROVIDER, "team-a", "team-b"]).await?;
                let admin = Server::from_kubeconfig_yaml(&plane.kubeconfig("kcp-admin", None)?)?;
                admin.client().raw_get("/version").await?;
                let client = |user: &str, path: &str| -> anyhow::Result<Client> {
                    Ok(Server::from_kubeconfig_yaml(&plane.kubeconfig(user, Some(path))?)?.client())
                };
                let team = |name, path| anyhow::Ok(Team { name, path, client: client(name, path)? });
                let teams = [team("team-a", "root:orgs:acme:team-a")?, team("team-b", "root:orgs:acme:team-b")?];
                let provider = client(PROVIDER, PROVIDER_PATH)?;
                Ok(Done::new(format!("kcp answers at {}", plane.url())).with((plane, admin, provider, teams)))
            })
            .await?;
        let step = Step::new("starting the service cluster", "an embedded API server that answers on loopback");
        let (service, cluster) = ui
            .step(step.hint(hint), async |_| {
                let plane = embedded::start(Mode::Kube, &[AGENT_USER]).await?;
                let client = Server::from_kubeconfig_yaml(&plane.kubeconfig("admin", None)?)?.client();
                client.raw_get("/version").await?;
                Ok(Done::new(format!("the service cluster answers at {}", plane.url())).with((plane, client)))
            })
            .await?;
        Ok(Self { ui, kcp, service, admin, provider, cluster, teams, operator: None, agent: None })
    }

    /// Starts the provider's operator.
    pub fn run_operator(&mut self) {
        self.operator = Some(tokio::spawn(operator::run(self.cluster.clone())));
    }

    /// Starts the agent with credentials for only the provider's workspace and the service cluster.
    pub fn run_agent(&mut self) -> anyhow::Result<()> {
        let work = AgentSetup {
            local: Server::from_kubeconfig_yaml(&self.service.kubeconfig(AGENT_USER, None)?)?,
            kcp: Server::from_kubeconfig_yaml(&self.kcp.kubeconfig(AGENT_USER, Some(PROVIDER_PATH))?)?,
            namespace: AGENT_NAMESPACE.to_owned(),
            name: AGENT,
            export: EXPORT,
            selector: String::new(),
        };
        self.agent = Some(RunningAgent::start(work)?);
        Ok(())
    }

    /// Polls until `look` succeeds; the step's deadline ends it.
    pub async fn until<T>(&self, seen: &Observed, look: impl AsyncFn() -> anyhow::Result<T>) -> anyhow::Result<T> {
        loop {
            match look().await {
                Ok(found) => return Ok(found),
                Err(problem) => seen.note(format_args!("{problem:#}")),
            }
            if let Some(problem) = self.agent.as_ref().and_then(RunningAgent::problem) {
                anyhow::bail!("the agent ended: {problem}");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The agent, once it was started.
    pub fn agent(&self) -> Option<&RunningAgent> {
        self.agent.as_ref()
    }

    /// Stops the agent, the operator and the servers.
    pub async fn stop(self) -> Result<(), Failed> {
        let step = Step::new("stopping agent, operator and servers", "all of them end");
        self.ui
            .step(step, async |_| {
                if let Some(agent) = self.agent {
                    agent.stop().await?;
                }
                if let Some(operator) = self.operator {
                    operator.abort();
                }
                tokio::join!(self.kcp.stop(), self.service.stop());
                Ok(Done::new("agent, operator and servers have stopped"))
            })
            .await
    }
}
