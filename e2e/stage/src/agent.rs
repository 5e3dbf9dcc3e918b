//! The agent, run in this process.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use carrick_client::{Overrides, Server};
use carrick_syncagent::agent::connect::SliceRef;
use carrick_syncagent::agent::conversion::ConversionServer;
use carrick_syncagent::agent::platform_mesh::consumer::StagingRoot;
use carrick_syncagent::agent::{self, AgentConfig, Timing};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::stage::Stage;
use crate::world::User;
use crate::{logbook, ports};

/// How long an agent may take to end: as long as Kubernetes gives it.
const GRACE: Duration = Duration::from_secs(30);

/// What may differ from one agent to another.
#[derive(Debug, Clone, Copy, Default)]
#[allow(clippy::struct_excessive_bools)] // one for each flag
pub struct Setup {
    /// Who it is to both servers.
    pub user: User,
    /// Whether it works only while it holds the lease of its name.
    pub leader_election: bool,
    /// Whether it can be asked how it is.
    pub probes: bool,
    /// Whether its dashboard listens on all addresses, where people have to log in.
    pub exposed: bool,
    /// For whom tokens of its dashboard must be.
    pub dashboard_audience: Option<&'static str>,
    /// Whether it is told the name of the export instead of that of a slice.
    pub by_export: bool,
    /// Name of its slice, if that is not the one kcp makes for the export.
    pub slice: Option<&'static str>,
    /// How often it looks at things that no watch reports.
    pub timing: Timing,
    /// Its name, if it is not that of the stage.
    pub name: Option<&'static str>,
    /// Which PublishedResources of the stage it is for, by the end of their label; those without an end if it is not said.
    pub share: Option<&'static str>,
    /// Whether it takes over what another one keeps.
    pub take_over: bool,
    /// What it does with objects in the place of copies.
    pub adoption: carrick_syncagent::rules::Adoption,
    /// What it does with orders that have gone back in time.
    pub after_restore: carrick_syncagent::rules::AfterRestore,
    /// What one workspace may take of it.
    pub budget: carrick_syncagent::rules::access::Budget,
    /// Whether it writes copies by server-side apply.
    pub apply: bool,
}

/// The configuration of the stage's agent, for whoever looks beside it.
pub fn config(stage: &Stage) -> anyhow::Result<AgentConfig> {
    Ok(AgentConfig {
        local: Server::from_kubeconfig_yaml(&stage.world.service_kubeconfig(User::default()))?,
        kcp: Server::from_kubeconfig_yaml(&stage.world.kcp_kubeconfig(User::default(), &stage.provider.path))?,
        namespace: stage.agent_namespace(),
        agent_name: stage.agent_name(),
        slice: stage.export_name().into(),
        selector: stage.selector(),
        take_over: false,
        adoption: carrick_syncagent::rules::Adoption::default(),
        after_restore: carrick_syncagent::rules::AfterRestore::default(),
        apply: false,
        reserved_namespaces: Vec::new(),
        budget: carrick_syncagent::rules::access::Budget::default(),
        staging_root: None,
        disabled: BTreeSet::new(),
        leader_election: false,
        metrics_address: None,
        health_address: None,
        dashboard_address: None,
        dashboard_audience: None,
        conversion: None,
        renew_token: None,
        exit_on_startup_error: true,
        timing: Timing::default(),
    })
}

/// What some agents have and others do not.
#[derive(Default)]
struct Ways {
    /// File with the way to the service cluster.
    service: Option<PathBuf>,
    /// File with the way to kcp.
    kcp: Option<PathBuf>,
    /// The Secret whose token it renews.
    renewed: Option<String>,
    /// Its conversion webhook.
    conversion: Option<ConversionServer>,
    /// Where a broker has its staging workspaces.
    staging_root: Option<StagingRoot>,
}

/// A running agent. It has a runtime and connections of its own, so that a crash leaves nothing of it behind.
pub struct Agent {
    runtime: Option<Runtime>,
    task: JoinHandle<Result<(), anyhow::Error>>,
    stop: CancellationToken,
    thread: String,
    probes: Option<SocketAddr>,
    metrics: Option<SocketAddr>,
    dashboard: Option<SocketAddr>,
}

impl Agent {
    /// Starts an agent for a stage.
    pub fn start(stage: &Stage, setup: Setup) -> anyhow::Result<Self> {
        Self::start_at(stage, &setup, Ways::default())
    }

    /// Starts an agent for a stage that serves the conversion webhook.
    pub fn start_converting(stage: &Stage, setup: Setup, server: ConversionServer) -> anyhow::Result<Self> {
        Self::start_at(stage, &setup, Ways { conversion: Some(server), ..Ways::default() })
    }

    /// Starts an agent for a stage that knows where a broker has its staging workspaces.
    pub fn start_behind(stage: &Stage, setup: Setup, staging_root: StagingRoot) -> anyhow::Result<Self> {
        Self::start_at(stage, &setup, Ways { staging_root: Some(staging_root), ..Ways::default() })
    }

    /// Starts an agent for a stage that reads how to get to the service cluster from a file.
    pub fn start_with(stage: &Stage, setup: Setup, service: &Path) -> anyhow::Result<Self> {
        Self::start_at(stage, &setup, Ways { service: Some(service.to_owned()), ..Ways::default() })
    }

    /// Starts an agent for a stage that reads how to get to both servers from files, and renews the token for kcp in a Secret.
    pub fn start_renewing(
        stage: &Stage,
        setup: Setup,
        (service, kcp): (&Path, &Path),
        secret: &str,
    ) -> anyhow::Result<Self> {
        let (service, kcp) = (Some(service.to_owned()), Some(kcp.to_owned()));
        Self::start_at(stage, &setup, Ways { service, kcp, renewed: Some(secret.to_owned()), ..Ways::default() })
    }

    fn start_at(stage: &Stage, setup: &Setup, ways: Ways) -> anyhow::Result<Self> {
        let setup = *setup;
        let local = stage.world.service_kubeconfig(setup.user);
        let kcp = stage.world.kcp_kubeconfig(setup.user, &stage.provider.path);
        let namespace = stage.agent_namespace();
        let agent_name = setup.name.map_or_else(|| stage.agent_name(), |name| format!("{name}-{}", stage.id));
        let selector = stage.selector() + setup.share.unwrap_or_default();
        let slice = match setup.slice {
            Some(slice) => slice.into(),
            None if setup.by_export => SliceRef::OfExport(stage.export_name().to_owned()),
            None => stage.export_name().into(),
        };
        // The stage's name, and what tells its agents apart.
        let thread = format!("{agent_name}-{}", &uuid::Uuid::new_v4().simple().to_string()[..4]);
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name(&thread)
            .thread_stack_size(carrick_json::STACK)
            .enable_all()
            .build()?;
        let [probes, metrics, dashboard] = if setup.probes {
            ports::free::<3>()?.map(|port| Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port))))
        } else {
            [None; 3]
        };
        let stop = CancellationToken::new();
        let told = stop.clone();
        let task = runtime.spawn(async move {
            let server = |file: Option<PathBuf>, text: &str| match file {
                Some(file) => Server::from_kubeconfig(&file, &Overrides::default()),
                None => Server::from_kubeconfig_yaml(text),
            };
            let config = AgentConfig {
                local: server(ways.service, &local)?,
                kcp: server(ways.kcp, &kcp)?,
                namespace,
                agent_name,
                slice,
                selector,
                take_over: setup.take_over,
                adoption: setup.adoption,
                after_restore: setup.after_restore,
                apply: setup.apply,
                reserved_namespaces: Vec::new(),
                budget: setup.budget,
                staging_root: ways.staging_root,
                disabled: BTreeSet::new(),
                leader_election: setup.leader_election,
                metrics_address: metrics.map(|address| address.to_string()),
                health_address: probes.map(|address| address.to_string()),
                dashboard_address: dashboard.map(|address| {
                    if setup.exposed { format!("0.0.0.0:{}", address.port()) } else { address.to_string() }
                }),
                dashboard_audience: setup.dashboard_audience.map(str::to_owned),
                conversion: ways.conversion,
                renew_token: ways.renewed,
                exit_on_startup_error: false,
                timing: setup.timing,
            };
            Ok(agent::run(config, told).await?)
        });
        Ok(Self { runtime: Some(runtime), task, stop, thread, probes, metrics, dashboard })
    }

    /// What it has said so far, one line each.
    pub fn log(&self) -> Vec<String> {
        logbook::lines(&self.thread)
    }

    /// What it answers when asked whether it is ready, status line included.
    pub async fn ready(&self) -> anyhow::Result<String> {
        page(self.probes.context("this agent has no probes")?, "/readyz").await
    }

    /// What it tells about itself in numbers, status line included.
    pub async fn metrics(&self) -> anyhow::Result<String> {
        page(self.metrics.context("this agent has no metrics")?, "/metrics").await
    }

    /// A page of its dashboard, status line included.
    pub async fn dashboard(&self, path: &str) -> anyhow::Result<String> {
        page(self.dashboard_address()?, path).await
    }

    /// The answer of its dashboard to a whole request, status line included.
    pub async fn ask_dashboard(&self, request: &str) -> anyhow::Result<String> {
        ask(self.dashboard_address()?, request).await
    }

    /// Where its dashboard is.
    pub fn dashboard_address(&self) -> anyhow::Result<SocketAddr> {
        self.dashboard.context("this agent has no dashboard")
    }

    /// Whether it has neither ended nor failed.
    pub fn is_running(&self) -> bool {
        !self.task.is_finished()
    }

    /// Asks it to end and waits until it has, which must be in time and without an error.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.stop.cancel();
        let ended = tokio::time::timeout(GRACE, &mut self.task).await;
        let in_time = || format!("the agent did not end within {} s", GRACE.as_secs());
        ended.with_context(in_time)??.context("the agent ended with an error")
    }

    /// Ends it at once, wherever it is.
    pub fn crash(self) {
        drop(self);
    }

    /// Ends it at once, wherever it is, and waits until nothing of it is left.
    pub async fn kill(mut self) -> anyhow::Result<()> {
        if let Some(runtime) = self.runtime.take() {
            tokio::task::spawn_blocking(move || runtime.shutdown_timeout(Duration::from_secs(10))).await?;
        }
        Ok(())
    }
}

/// A page that an agent serves, status line included.
async fn page(address: SocketAddr, path: &str) -> anyhow::Result<String> {
    ask(address, &format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")).await
}

async fn ask(address: SocketAddr, request: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

impl Drop for Agent {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
