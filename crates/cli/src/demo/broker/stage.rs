//! What runs: kcp, a service cluster with operator and agent for each provider, and the broker.

use std::time::Duration;

use carrick_client::{Client, ListOptions, Server};
use carrick_plane::{Mode, Plane};
use data_encoding::BASE64;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::manifests::{EXPORT, signing_requests};
use super::small::{Assignment, Broker, Candidate};
use crate::demo::manifests::{AGENT_NAMESPACE, secrets};
use crate::embedded::{self, AgentSetup, RunningAgent};
use crate::ui::{Done, Failed, Observed, Step, Ui};

/// The consumer's workspace.
pub const TEAM_PATH: &str = "root:orgs:acme:team-a";
const PAUSE: Duration = Duration::from_millis(10);
const OPERATOR: Duration = Duration::from_millis(50);

/// A provider of the platform's API.
pub struct Provider {
    /// Its name, and that of its agent.
    pub name: &'static str,
    /// Its workspace.
    pub path: &'static str,
    /// The end of names that it takes.
    pub suffix: &'static str,
    /// Its workspace, as administrator.
    pub workspace: Client,
    /// Its service cluster, as administrator.
    pub cluster: Client,
    plane: Plane,
    operator: Option<JoinHandle<()>>,
    agent: Option<RunningAgent>,
}

/// Everything that runs.
pub struct Stage {
    /// Where steps are printed.
    pub ui: Ui,
    /// kcp as its administrator.
    pub admin: Server,
    /// The consumer's workspace.
    pub team: Client,
    /// The providers.
    pub providers: [Provider; 2],
    kcp: Plane,
    broker: Option<(JoinHandle<()>, watch::Receiver<Assignment>)>,
}

impl Stage {
    /// Starts the servers.
    pub async fn open(ui: Ui) -> Result<Self, Failed> {
        let step =
            Step::new("starting the servers", "an embedded kcp and two embedded API servers that answer on loopback");
        let hint = "check whether programs may listen on 127.0.0.1";
        let (kcp, admin, providers) = ui
            .step(step.hint(hint), async |_| {
                let kcp = embedded::start(Mode::Kcp, &[]).await?;
                let admin = Server::from_kubeconfig_yaml(&kcp.kubeconfig("kcp-admin", None)?)?;
                admin.client().raw_get("/version").await?;
                let providers = [
                    provider(&kcp, "internal-ca", "root:providers:internal-ca", ".corp.example").await?,
                    provider(&kcp, "public-ca", "root:providers:public-ca", ".shop.example").await?,
                ];
                let lines = providers.iter().map(|it| format!("{}: {}", it.name, it.plane.url())).collect::<Vec<_>>();
                let text = format!("kcp answers at {}, and a service cluster for each provider", kcp.url());
                Ok(Done::new(text).details(lines).with((kcp, admin, providers)))
            })
            .await?;
        let team = admin.at_path(&format!("/clusters/{TEAM_PATH}"));
        Ok(Self { ui, admin, team, providers, kcp, broker: None })
    }

    /// Starts operator and agent of a provider.
    pub fn run_provider(&mut self, number: usize) -> anyhow::Result<()> {
        let provider = &mut self.providers[number];
        provider.operator = Some(tokio::spawn(operate(provider.cluster.clone(), provider.name)));
        provider.agent = Some(RunningAgent::start(AgentSetup {
            local: Server::from_kubeconfig_yaml(&provider.plane.kubeconfig("admin", None)?)?,
            kcp: Server::from_kubeconfig_yaml(&self.kcp.kubeconfig("kcp-admin", Some(provider.path))?)?,
            namespace: AGENT_NAMESPACE.to_owned(),
            name: provider.name,
            export: EXPORT,
            selector: String::new(),
        })?);
        Ok(())
    }

    /// Starts the broker.
    pub fn run_broker(&mut self) {
        let providers = [0, 1].map(|at| Candidate { name: self.providers[at].name, path: self.providers[at].path });
        let broker = Broker { kcp: self.admin.clone(), team: self.team.clone(), providers };
        let (progress, assignment) = watch::channel(Assignment::default());
        self.broker = Some((tokio::spawn(broker.run(progress)), assignment));
    }

    /// Who serves the order.
    pub fn assignment(&self) -> Assignment {
        self.broker.as_ref().map(|(_, assignment)| assignment.borrow().clone()).unwrap_or_default()
    }

    /// Polls until `look` succeeds; the step's deadline ends it.
    pub async fn until<T>(&self, seen: &Observed, look: impl AsyncFn() -> anyhow::Result<T>) -> anyhow::Result<T> {
        loop {
            match look().await {
                Ok(found) => return Ok(found),
                Err(problem) => seen.note(format_args!("{problem:#}")),
            }
            let mut agents = self.providers.iter().filter_map(|it| it.agent.as_ref());
            if let Some(problem) = agents.find_map(RunningAgent::problem) {
                anyhow::bail!("an agent ended: {problem}");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Stops everything.
    pub async fn stop(self) -> Result<(), Failed> {
        let step = Step::new("stopping broker, agents, operators and servers", "all of them end");
        self.ui
            .step(step, async |_| {
                if let Some((broker, _)) = self.broker {
                    broker.abort();
                }
                for provider in self.providers {
                    if let Some(agent) = provider.agent {
                        agent.stop().await?;
                    }
                    if let Some(operator) = provider.operator {
                        operator.abort();
                    }
                    provider.plane.stop().await;
                }
                self.kcp.stop().await;
                Ok(Done::new("broker, agents, operators and servers have stopped"))
            })
            .await
    }
}

/// Starts the service cluster of a provider.
async fn provider(
    kcp: &Plane,
    name: &'static str,
    path: &'static str,
    suffix: &'static str,
) -> anyhow::Result<Provider> {
    let plane = embedded::start(Mode::Kube, &[]).await?;
    let cluster = Server::from_kubeconfig_yaml(&plane.kubeconfig("admin", None)?)?.client();
    cluster.raw_get("/version").await?;
    let workspace = Server::from_kubeconfig_yaml(&kcp.kubeconfig("kcp-admin", Some(path))?)?.client();
    Ok(Provider { name, path, suffix, workspace, cluster, plane, operator: None, agent: None })
}

/// A provider's operator: it knows nothing about kcp, and signs what is requested in its cluster.
async fn operate(cluster: Client, signer: &'static str) {
    loop {
        if let Err(error) = sign_all(&cluster, signer).await {
            tracing::debug!(%error, "the operator tries again");
        }
        tokio::time::sleep(OPERATOR).await;
    }
}

async fn sign_all(cluster: &Client, signer: &str) -> anyhow::Result<()> {
    for request in cluster.list(&signing_requests(), None, &ListOptions::default()).await? {
        let (metadata, spec) = (&request["metadata"], &request["spec"]);
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (text(&metadata["namespace"]), text(&metadata["name"]));
        if request["status"]["signed"] == true || metadata["deletionTimestamp"].is_string() {
            continue;
        }
        let signed = BASE64.encode(format!("{} signed by {signer}", text(&spec["commonName"])).as_bytes());
        let owner = json!({ "apiVersion": request["apiVersion"], "kind": request["kind"], "name": name, "uid": metadata["uid"] });
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "data": { "tls.crt": signed },
            "metadata": { "namespace": namespace, "name": spec["secretName"], "ownerReferences": [owner] },
        });
        match cluster.create(&secrets(), Some(&namespace), &secret).await {
            Err(error) if !error.is_already_exists() => return Err(error.into()),
            _ => {}
        }
        let status = json!({ "status": { "signed": true } });
        cluster.merge_patch_status(&signing_requests(), Some(&namespace), &name, &status).await?;
    }
    Ok(())
}
