//! Servers and an agent in this process, for commands that run a whole platform.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::Context;
use carrick_client::Server;
use carrick_plane::{Config, Mode, Plane, User};
use carrick_syncagent::agent::{self, AgentConfig, Timing};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Starts a server in memory, on a free port, with users.
pub async fn start(mode: Mode, users: &[&str]) -> anyhow::Result<Plane> {
    let users = users.iter().map(|name| User::new(&uuid::Uuid::new_v4().simple().to_string(), name, &[])).collect();
    Ok(Plane::start(Config { users, ..Config::new(mode) }).await?)
}

/// What an agent needs to start.
#[derive(Debug)]
pub struct AgentSetup {
    /// The service cluster.
    pub local: Server,
    /// kcp, at the provider's workspace.
    pub kcp: Server,
    /// Namespace of the agent.
    pub namespace: String,
    /// Name of the agent.
    pub name: &'static str,
    /// The export, and its slice.
    pub export: &'static str,
    /// Label selector for the PublishedResources it serves; empty for all.
    pub selector: String,
}

/// A running agent.
#[derive(Debug)]
pub struct RunningAgent {
    stop: CancellationToken,
    task: JoinHandle<()>,
    /// Why it exited, if that was unexpected.
    problem: watch::Receiver<Option<String>>,
    dashboard: String,
}

impl RunningAgent {
    /// Starts it.
    pub fn start(work: AgentSetup) -> anyhow::Result<Self> {
        // The port was free a moment ago, and is unlikely to be taken in between.
        let dashboard = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        let dashboard = dashboard.context("cannot listen on 127.0.0.1")?.to_string();
        let config = AgentConfig {
            local: work.local,
            kcp: work.kcp,
            namespace: work.namespace,
            agent_name: work.name.to_owned(),
            slice: work.export.into(),
            selector: work.selector,
            take_over: false,
            adoption: carrick_syncagent::rules::Adoption::default(),
            after_restore: carrick_syncagent::rules::AfterRestore::default(),
            reserved_namespaces: Vec::new(),
            budget: carrick_syncagent::rules::access::Budget::default(),
            staging_root: None,
            apply: false,
            disabled: std::collections::BTreeSet::new(),
            leader_election: false,
            metrics_address: None,
            health_address: None,
            dashboard_address: Some(dashboard.clone()),
            dashboard_audience: None,
            conversion: None,
            renew_token: None,
            exit_on_startup_error: true,
            timing: Timing::default(),
        };
        let stop = CancellationToken::new();
        let (sender, problem) = watch::channel(None);
        let told = stop.clone();
        let task = tokio::spawn(async move {
            if let Err(error) = Box::pin(agent::run(config, told)).await {
                sender.send_replace(Some(error.to_string()));
            }
        });
        Ok(Self { stop, task, problem, dashboard: format!("http://{dashboard}") })
    }

    /// Address of its dashboard.
    pub fn dashboard(&self) -> &str {
        &self.dashboard
    }

    /// Why it has exited, if that was unexpected.
    pub fn problem(&self) -> Option<String> {
        self.problem.borrow().clone()
    }

    /// Waits until it exits unexpectedly, and says why.
    pub async fn ended(&self) -> String {
        match self.problem.clone().wait_for(Option::is_some).await {
            Ok(problem) => problem.clone().unwrap_or_default(),
            // It was stopped on purpose.
            Err(_) => std::future::pending().await,
        }
    }

    /// Stops it and waits until it has exited.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.task.await.context("the agent")?;
        match self.problem.borrow().as_ref() {
            Some(problem) => anyhow::bail!("the agent ended: {problem}"),
            None => Ok(()),
        }
    }
}
