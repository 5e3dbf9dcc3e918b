//! The released binaries, built, and `api-syncagent` run as a process.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use tokio::process::{Child, Command};
use tokio::sync::OnceCell;

use crate::scratch::Scratch;
use crate::stage::Stage;
use crate::world::User;

/// How long an agent may take to end after SIGTERM: as long as Kubernetes gives it.
const GRACE: Duration = Duration::from_secs(30);

/// Who the agent is to kcp, and where it begins there.
pub struct Launch<'a> {
    /// The user.
    pub user: User,
    /// The workspace of its slice, by path or by name of the logical cluster.
    pub workspace: &'a str,
    /// The slice.
    pub slice: &'a str,
}

/// The binary, and what it is started with for one stage.
pub struct Binary {
    path: PathBuf,
    folder: Arc<Scratch>,
    arguments: Vec<String>,
}

impl Binary {
    /// Builds the binary, unless it is up to date, and writes the kubeconfigs of an administrator for a stage.
    pub async fn build(stage: &Stage) -> anyhow::Result<Self> {
        let launch = Launch { user: User::Admin, workspace: &stage.provider.path, slice: stage.export_name() };
        let mut binary = Self::with(stage, &launch).await?;
        binary.arguments.push(format!("--namespace={}", stage.agent_namespace()));
        Ok(binary)
    }

    /// What the reference agent's own tests start, which is the same but for the namespace, and what they say beyond that.
    pub async fn as_in_the_reference_tests(stage: &Stage, launch: &Launch<'_>) -> anyhow::Result<Self> {
        let mut binary = Self::with(stage, launch).await?;
        let more = ["--namespace=kube-system", "--enable-leader-election=false", "--health-address=0"];
        binary.arguments.extend(more.map(str::to_owned));
        Ok(binary)
    }

    async fn with(stage: &Stage, launch: &Launch<'_>) -> anyhow::Result<Self> {
        let path = agent().await?;
        let folder = Arc::new(Scratch::new()?);
        let service = folder.write("service.kubeconfig", &stage.world.service_kubeconfig(User::Admin))?;
        let kcp = folder.write("kcp.kubeconfig", &stage.world.kcp_kubeconfig(launch.user, launch.workspace))?;
        let arguments = vec![
            format!("--kubeconfig={}", service.display()),
            format!("--kcp-kubeconfig={}", kcp.display()),
            format!("--agent-name={}", stage.agent_name()),
            format!("--apiexportendpointslice-ref={}", launch.slice),
            format!("--published-resource-selector={}", stage.selector()),
            "--log-debug".to_owned(),
            "--log-format=Console".to_owned(),
        ];
        Ok(Self { path, folder, arguments })
    }

    /// The same with another argument.
    #[must_use]
    pub fn and(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// Starts a process.
    pub fn start(&self) -> anyhow::Result<Running> {
        self.start_with_metrics("0")
    }

    /// Starts a process that tells its metrics at an address.
    pub fn start_with_metrics(&self, address: &str) -> anyhow::Result<Running> {
        let log = self.folder.path().join(format!("{}.log", uuid::Uuid::new_v4().simple()));
        let child = Command::new(&self.path)
            .args(&self.arguments)
            .arg(format!("--metrics-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", self.path.display()))?;
        Ok(Running { child, log, _folder: Arc::clone(&self.folder) })
    }
}

/// A running process; killed when dropped.
pub struct Running {
    child: Child,
    log: PathBuf,
    // It reads its kubeconfigs now and then.
    _folder: Arc<Scratch>,
}

impl Running {
    /// Ends it with SIGKILL.
    pub async fn kill(mut self) -> anyhow::Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Asks it to end with SIGTERM and waits for exit code 0.
    pub async fn terminate(mut self) -> anyhow::Result<()> {
        let id = self.child.id().with_context(|| format!("the agent has ended by itself: {}", self.log()))?;
        let sent = Command::new("kill").args(["-TERM", &id.to_string()]).status().await?;
        ensure!(sent.success(), "cannot send SIGTERM: {sent}");
        match tokio::time::timeout(GRACE, self.child.wait()).await {
            Ok(status) => {
                let status = status?;
                ensure!(status.code() == Some(0), "the agent ended with {status}: {}", self.log());
                Ok(())
            }
            Err(_) => bail!("the agent did not end within {} s: {}", GRACE.as_secs(), self.log()),
        }
    }

    /// What it has said so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

/// Where the agent's binary is. The first who asks builds it.
pub async fn agent() -> anyhow::Result<PathBuf> {
    static BUILT: OnceCell<PathBuf> = OnceCell::const_new();
    Ok(BUILT.get_or_try_init(|| build("api-syncagent")).await?.clone())
}

/// Where the command line's binary is. The first who asks builds it.
pub async fn carrick() -> anyhow::Result<PathBuf> {
    static BUILT: OnceCell<PathBuf> = OnceCell::const_new();
    Ok(BUILT.get_or_try_init(|| build("carrick")).await?.clone())
}

/// Where the binaries for kube-bind are. The first who asks builds them.
pub async fn kube_bind() -> anyhow::Result<Vec<PathBuf>> {
    static BUILT: OnceCell<Vec<PathBuf>> = OnceCell::const_new();
    let all = async || {
        let mut programs = Vec::new();
        for program in ["kube-bind-backend", "konnector", "kubectl-bind"] {
            programs.push(build(program).await?);
        }
        Ok::<_, anyhow::Error>(programs)
    };
    Ok(BUILT.get_or_try_init(all).await?.clone())
}

/// Builds a binary next to this test, in the same profile. A test run that built all packages has built it already.
async fn build(program: &str) -> anyhow::Result<PathBuf> {
    // <target>/<profile>/deps/<this test>
    let test = std::env::current_exe()?;
    let profile = test.ancestors().nth(2).context("the test does not lie in a target folder")?;
    let target = profile.parent().context("the test does not lie in a target folder")?;
    let name = match profile.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // What cargo told this test is not for another cargo: build scripts would run again because of it, now and at the next start of the test.
    let told = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(told)) {
        command.env_remove(name);
    }
    let output = command
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        // Together with a small test, because features of dev-dependencies count only then: so all crates have the features that `cargo test` has
        // built them with, and nothing is built twice.
        .args(["build", "--workspace", "--bin", program, "--test", "objects", "--profile", name, "--target-dir"])
        .arg(target)
        .stdin(Stdio::null())
        .output()
        .await
        .context("cannot run cargo")?;
    ensure!(output.status.success(), "{program} does not build: {}", String::from_utf8_lossy(&output.stderr));
    Ok(profile.join(program))
}

/// Where a program of others is: what `CARRICK_<PROGRAM>` names, or else the first in the path.
pub fn find(name: &str) -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(format!("CARRICK_{}", name.to_uppercase())) {
        return Some(path.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}
