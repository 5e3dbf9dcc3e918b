//! The field that an agent works on: a world of its own, a stage with many workspaces, doors and sight.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrick_client::Server;
use carrick_e2e_stage::agent::config;
use carrick_e2e_stage::scratch::Scratch;
use carrick_e2e_stage::stage::{Stage, Workspace};
use carrick_e2e_stage::world::{EmbeddedWorld, RealWorld, User, World};
use carrick_syncagent::agent::AgentConfig;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::json;

use super::door::Door;
use super::process::Process;
use super::sight::Sight;

/// How many of the benchmark's own requests are in flight while it prepares something.
const IN_FLIGHT: usize = 16;
/// How many workspaces are made at once.
const WORKSPACES_AT_ONCE: usize = 8;
/// How long a published API may take to be served to everybody.
const PUBLISHED: Duration = Duration::from_mins(2);

/// Which servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Servers {
    /// Two planes in the benchmark's own process.
    Embedded,
    /// kcp, kube-apiserver and etcd.
    Real,
}

/// A field, ready for an agent.
pub struct Field {
    /// The stage.
    pub stage: Stage,
    /// Consumers.
    pub teams: Vec<Workspace>,
    /// The door to kcp.
    pub kcp: Door,
    /// The door to the service cluster.
    pub service: Door,
    folder: Scratch,
    arguments: Vec<String>,
}

impl Field {
    /// Starts fresh servers, makes workspaces and binds them.
    pub async fn prepare(servers: Servers, workspaces: usize) -> anyhow::Result<Self> {
        let world: Arc<dyn World> = match servers {
            Servers::Embedded => Arc::new(EmbeddedWorld::start().await?),
            Servers::Real => Arc::new(RealWorld::start(Path::new(&servers_folder()?)).await?),
        };
        let stage = Stage::set(world).await?;
        let teams = stream::iter(0..workspaces)
            .map(|i| {
                let stage = &stage;
                async move {
                    let team = stage.team(&format!("team-{i}")).await?;
                    stage.bind(&team).await?;
                    anyhow::Ok(team)
                }
            })
            .buffered(WORKSPACES_AT_ONCE)
            .try_collect()
            .await?;

        let world = &stage.world;
        let to_kcp = world.kcp_kubeconfig(User::Admin, &stage.provider.path);
        let to_service = world.service_kubeconfig(User::Admin);
        world.kcp_cable().cut().await?;
        world.service_cable().cut().await?;
        let kcp = Door::open(world.kcp_cable().near(), world.kcp().url(), &to_kcp).await?;
        let service = Door::open(world.service_cable().near(), world.service().url(), &to_service).await?;
        let folder = Scratch::new()?;
        let to_kcp = folder.write("kcp.kubeconfig", &kcp.kubeconfig(&to_kcp)?)?;
        let to_service = folder.write("service.kubeconfig", &service.kubeconfig(&to_service)?)?;
        let arguments = vec![
            format!("--kubeconfig={}", to_service.display()),
            format!("--kcp-kubeconfig={}", to_kcp.display()),
            format!("--namespace={}", stage.agent_namespace()),
            format!("--agent-name={}", stage.agent_name()),
            format!("--apiexportendpointslice-ref={}", stage.export_name()),
            format!("--published-resource-selector={}", stage.selector()),
            "--metrics-address=0".to_owned(),
        ];
        Ok(Self { stage, teams, kcp, service, folder, arguments })
    }

    /// Starts an agent.
    pub fn start(&self, program: &Path) -> anyhow::Result<Process> {
        let log = self.folder.path().join(format!("{}.log", uuid::Uuid::new_v4().simple()));
        Process::start(program, &self.arguments, log)
    }

    /// Lets an agent publish the API, and waits until it is served and used in every workspace.
    pub async fn publish(&self, program: &Path) -> anyhow::Result<Sight> {
        let mut agent = self.start(program)?;
        let first = self.stage.order(&self.stage.team_a, "first", json!({ "region": "eu", "size": 1 })).await;
        agent.check()?;
        first?;
        let sight = Sight::open(&self.stage);
        sight.wait("the first order is placed", PUBLISHED, |seen| (seen.placed() == 1).then_some(())).await?;
        agent.stop().await?;
        Ok(sight)
    }

    /// Orders one object of each name, in the workspaces in turn; returns when each was acknowledged.
    pub async fn order(&self, names: &[String], teams: &[Workspace], bytes: usize) -> anyhow::Result<Vec<Instant>> {
        let orders = names.iter().zip(teams.iter().cycle()).enumerate();
        stream::iter(orders)
            .map(|(i, (name, team))| async move {
                let mut spec = json!({ "region": "eu", "size": i });
                if bytes > 0 {
                    spec["owner"] = filling(i, bytes).into();
                }
                self.stage.order(team, name, spec).await?;
                anyhow::Ok(Instant::now())
            })
            .buffered(IN_FLIGHT)
            .try_collect()
            .await
    }

    /// Both doors.
    pub fn doors(&self) -> [&Door; 2] {
        [&self.kcp, &self.service]
    }

    /// The configuration of the agent, for whoever looks beside it.
    pub fn config(&self) -> anyhow::Result<AgentConfig> {
        let [kcp, service] = self.kubeconfigs()?;
        let (kcp, local) = (Server::from_kubeconfig_yaml(&kcp)?, Server::from_kubeconfig_yaml(&service)?);
        Ok(AgentConfig { kcp, local, ..config(&self.stage)? })
    }

    /// The arguments for the agent, for requests of one's own by the same way.
    pub fn kubeconfigs(&self) -> anyhow::Result<[String; 2]> {
        let world = &self.stage.world;
        Ok([
            self.kcp.kubeconfig(&world.kcp_kubeconfig(User::Admin, &self.stage.provider.path))?,
            self.service.kubeconfig(&world.service_kubeconfig(User::Admin))?,
        ])
    }
}

/// A text of so many bytes: words that all objects have in common, and as many that are this one's own.
fn filling(number: usize, bytes: usize) -> String {
    const COMMON: [&str; 8] = [
        "storageClass=",
        "replicas=",
        "passwordSecretRef=",
        "memory=",
        "schedule=",
        "hostname=",
        "database=",
        "retention=",
    ];
    let mut seed = number as u64 + 1;
    let mut text = String::with_capacity(bytes + 32);
    let mut turn = 0;
    while text.len() < bytes {
        let common = COMMON[turn % COMMON.len()];
        text.push_str(common);
        for _ in 0..common.len() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push(char::from(b'a' + (seed >> 60) as u8));
        }
        turn += 1;
    }
    text.truncate(bytes);
    text
}

/// The folder with the servers written in Go, which are built if need be.
pub fn servers_folder() -> anyhow::Result<String> {
    if let Ok(folder) = std::env::var("CARRICK_SERVERS") {
        return Ok(folder);
    }
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("../servers/build");
    let output = std::process::Command::new(build).stderr(std::process::Stdio::inherit()).output()?;
    anyhow::ensure!(output.status.success(), "the servers do not build");
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
