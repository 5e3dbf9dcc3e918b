//! kcp, started as scripts start it: the real one, or `carrick plane --as-kcp` in its place.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use carrick_client::{ListOptions, Server};
use carrick_e2e_stage::scratch::Scratch;
use carrick_e2e_stage::{binary, harness, kinds, ports};
use carrick_kcp::kinds::WORKSPACE;
use libtest_mimic::Trial;
use tokio::process::{Child, Command};

const SERVERS: &str = "CARRICK_SERVERS";
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../likekcp/start");
const GOLDEN: &str = include_str!("../../../likekcp/start.golden");

/// Real kcp needs about half a minute.
const START: Duration = Duration::from_mins(4);

/// Who plays kcp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Player {
    /// kcp itself.
    Real,
    /// A plane.
    Plane,
}

impl Player {
    /// All of them.
    pub(crate) const ALL: [Self; 2] = [Self::Plane, Self::Real];

    /// For names of tests.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Real => "real_kcp",
            Self::Plane => "a_plane_started_like_kcp",
        }
    }

    /// The words that `start` and its flags follow.
    pub(crate) async fn command(self) -> anyhow::Result<Vec<String>> {
        let path = |path: PathBuf| path.into_os_string().into_string().ok().context("a path is not text");
        match self {
            Self::Real => {
                let folder = std::env::var_os(SERVERS).context("there are no real servers")?;
                Ok(vec![path(Path::new(&folder).join("kcp"))?])
            }
            Self::Plane => Ok(vec![path(binary::carrick().await?)?, "plane".to_owned(), "--as-kcp".to_owned()]),
        }
    }

    /// Writes a program named `kcp` into a folder.
    pub(crate) async fn install(self, folder: &Path) -> anyhow::Result<PathBuf> {
        use std::os::unix::fs::PermissionsExt;
        let words: Vec<String> = self.command().await?.iter().map(|word| format!("'{word}'")).collect();
        let path = folder.join("kcp");
        std::fs::write(&path, format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" ")))?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
        Ok(path)
    }
}

/// kcp's own clients, and the script that compares how both are started.
pub(super) fn trials(programs: &Path) -> Vec<Trial> {
    let mut trials = Vec::new();
    for player in Player::ALL {
        let program = programs.join("workspaces");
        trials.push(harness::trial(format!("goclients::workspaces_is_content_with_{}", player.name()), move || {
            harness::verdict(harness::runtime()?.block_on(workspaces(&program, player)))
        }));
    }
    // The plane is compared with the same record by the tests of the command line.
    trials.push(harness::trial("likekcp::a_script_finds_what_is_recorded_of_real_kcp", || {
        harness::verdict(harness::runtime()?.block_on(script()))
    }));
    trials
}

async fn workspaces(program: &Path, player: Player) -> anyhow::Result<()> {
    let kcp = Kcp::start(player).await?;
    super::run(program, &[], &kcp.kubeconfig, None).await
}

async fn script() -> anyhow::Result<()> {
    if binary::find("kubectl").is_none() {
        println!("skipped: there is no kubectl");
        return Ok(());
    }
    let folder = Scratch::new()?;
    let ports: [u16; 3] = ports::free()?;
    let output = Command::new(SCRIPT)
        .arg(folder.path().join("work"))
        .args(ports.map(|port| port.to_string()))
        .args(Player::Real.command().await?)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    let (told, complaints) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if std::env::var_os("CARRICK_RECORD").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/../likekcp/start.golden"), told.as_bytes())?;
        return Ok(());
    }
    ensure!(output.status.success() && told == GOLDEN, "it said:\n{told}\n{complaints}");
    Ok(())
}

/// A running kcp; killed when dropped.
struct Kcp {
    kubeconfig: String,
    _child: Child,
    _folder: Scratch,
}

impl Kcp {
    async fn start(player: Player) -> anyhow::Result<Self> {
        let folder = Scratch::new()?;
        let [port, client, peer]: [u16; 3] = ports::free()?;
        let words = player.command().await?;
        let log = std::fs::File::create(folder.path().join("log"))?;
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .args(["start", "--bind-address=127.0.0.1", "--root-directory"])
            .arg(folder.path().join("root"))
            .arg(format!("--secure-port={port}"))
            .arg(format!("--embedded-etcd-client-port={client}"))
            .arg(format!("--embedded-etcd-peer-port={peer}"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", words[0]))?;
        let deadline = Instant::now() + START;
        loop {
            match Self::ready(folder.path()).await {
                Ok(kubeconfig) => return Ok(Self { kubeconfig, _child: child, _folder: folder }),
                Err(problem) if Instant::now() > deadline => return Err(problem.context("kcp is not ready")),
                Err(_) => {}
            }
            if let Some(status) = child.try_wait()? {
                let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
                bail!("kcp ended with {status}: {}", log.lines().last().unwrap_or_default());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// The kubeconfig, once workspaces are served.
    async fn ready(folder: &Path) -> anyhow::Result<String> {
        let text = std::fs::read_to_string(folder.join("root/admin.kubeconfig"))?;
        let server = Server::from_kubeconfig_yaml(&text)?;
        server.client().list(&kinds::kcp(&WORKSPACE), None, &ListOptions::default()).await?;
        Ok(text)
    }
}
