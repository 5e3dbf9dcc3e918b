//! What is measured: a plane in a process of its own, or real servers.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use carrick_e2e_stage::ports;
use carrick_e2e_stage::scratch::Scratch;
use carrick_e2e_stage::world::real;
use carrick_e2e_stage::world::servers::Process;
use carrick_plane::{Config, Mode, Plane, User};
use clap::Parser;
use serde_json::{Value, json};

use super::client::{Ask, Client};
use crate::{field, process};

/// Whoever has it may do everything on a plane that is measured.
const TOKEN: &str = "bench";
/// How long a server that answers may take to have the namespace `default`.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often the start of a plane is measured.
const STARTS: usize = 11;

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A plane that plays a service cluster.
    Plane,
    /// The same, which keeps its objects in a file.
    PlaneInFile,
    /// kube-apiserver and etcd.
    Kube,
    /// A plane that plays kcp.
    PlaneAsKcp,
    /// kcp with its own etcd.
    Kcp,
}

impl Kind {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 5] = [Self::Plane, Self::PlaneInFile, Self::Kube, Self::PlaneAsKcp, Self::Kcp];

    /// What it is called in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plane => "plane",
            Self::PlaneInFile => "plane with a file",
            Self::Kube => "kube-apiserver, etcd",
            Self::PlaneAsKcp => "plane as kcp",
            Self::Kcp => "kcp",
        }
    }

    /// Whether it needs the servers written in Go.
    pub fn is_real(self) -> bool {
        matches!(self, Self::Kube | Self::Kcp)
    }

    /// Whether it has workspaces.
    pub fn is_kcp(self) -> bool {
        matches!(self, Self::PlaneAsKcp | Self::Kcp)
    }
}

/// A running server; ended when dropped.
pub struct Contestant {
    url: String,
    authority: Vec<u8>,
    token: String,
    processes: Processes,
    // Removed after its server has ended.
    _folder: Scratch,
}

enum Processes {
    Plane(Child),
    Real(Vec<Process>),
}

impl Contestant {
    /// Starts a server and waits until it is ready.
    pub async fn start(kind: Kind) -> anyhow::Result<Self> {
        Self::start_with(kind, &std::env::current_exe()?).await
    }

    /// The same; a plane is that of another build of this program.
    pub async fn start_with(kind: Kind, program: &Path) -> anyhow::Result<Self> {
        let folder = Scratch::new()?;
        let contestant = if kind.is_real() { real(kind, folder).await? } else { plane(kind, folder, program)? };
        let (client, begin) = (contestant.client()?, Instant::now());
        // kcp makes it a moment after it is ready.
        while let Err(error) = client.send(Ask::get("/api/v1/namespaces/default")).await {
            ensure!(begin.elapsed() < PATIENCE, "{error}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(contestant)
    }

    /// Another connection to it.
    pub fn client(&self) -> anyhow::Result<Client> {
        Client::new(&self.url, &self.authority, &self.token)
    }

    /// A connection to the server itself instead of its workspace `root`.
    pub fn bare_client(&self) -> anyhow::Result<Client> {
        let base = self.url.split_once("/clusters/").map_or(self.url.as_str(), |(base, _)| base);
        Client::new(base, &self.authority, &self.token)
    }

    /// Resident memory of all its processes at its highest, in bytes.
    pub fn highest_memory(&self) -> anyhow::Result<u64> {
        self.ids()?.into_iter().map(|id| Ok(process::memory(id)?.1)).sum()
    }

    /// Resident memory of all its processes in bytes.
    pub fn memory(&self) -> anyhow::Result<u64> {
        self.ids()?.into_iter().map(|id| Ok(process::memory(id)?.0)).sum()
    }

    /// Processor time of all its processes so far.
    pub fn processor_time(&self) -> anyhow::Result<Duration> {
        self.ids()?.into_iter().map(process::processor_time).sum()
    }

    fn ids(&self) -> anyhow::Result<Vec<u32>> {
        match &self.processes {
            Processes::Plane(child) => Ok(vec![child.id()]),
            Processes::Real(processes) => processes.iter().map(Process::id).collect(),
        }
    }
}

impl Drop for Contestant {
    fn drop(&mut self) {
        if let Processes::Plane(child) = &mut self.processes {
            // Its input ends with this process in any case, and the plane with its input.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// How long a start takes (of planes: the median of several), and how much memory an empty server has.
pub async fn starts(kind: Kind) -> anyhow::Result<(Duration, u64)> {
    let mut all = Vec::new();
    for _ in 0..if kind.is_real() { 1 } else { STARTS } {
        let begin = Instant::now();
        let contestant = Contestant::start(kind).await?;
        all.push((begin.elapsed(), contestant.memory()?));
    }
    all.sort_unstable();
    Ok(all[all.len() / 2])
}

async fn real(kind: Kind, folder: Scratch) -> anyhow::Result<Contestant> {
    let binaries = field::servers_folder()?;
    let [port, etcd] = ports::free()?;
    let started = if kind == Kind::Kcp {
        real::kcp::start(Path::new(&binaries), &folder, port, &format!("https://127.0.0.1:{port}")).await?
    } else {
        real::kube::start(Path::new(&binaries), &folder, port, etcd).await?
    };
    Ok(Contestant {
        url: started.url,
        authority: data_encoding::BASE64.decode(started.access.authority.as_bytes())?,
        token: started.access.admin,
        processes: Processes::Real(started.processes),
        _folder: folder,
    })
}

fn plane(kind: Kind, folder: Scratch, program: &Path) -> anyhow::Result<Contestant> {
    let mut command = Command::new(program);
    command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped());
    if kind == Kind::PlaneAsKcp {
        command.arg("--kcp");
    }
    if kind == Kind::PlaneInFile {
        command.arg("--data-dir").arg(folder.path().join("data"));
    }
    let mut child = command.spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
    let about: Value = serde_json::from_str(&line).context("the plane did not start")?;
    let text = |key: &str| about[key].as_str().unwrap_or_default().to_owned();
    Ok(Contestant {
        url: text("url"),
        authority: text("authority").into_bytes(),
        token: TOKEN.to_owned(),
        processes: Processes::Plane(child),
        _folder: folder,
    })
}

/// A plane until standard input ends.
#[derive(Debug, Parser)]
pub struct Serve {
    /// It plays kcp.
    #[arg(long)]
    kcp: bool,
    /// Where it keeps its objects.
    #[arg(long)]
    data_dir: Option<PathBuf>,
}

/// The process of a plane: says where it is and stays until its input ends.
pub async fn serve(args: Serve) -> anyhow::Result<()> {
    let mut config = Config::new(if args.kcp { Mode::Kcp } else { Mode::Kube });
    config.users = vec![User::new(TOKEN, "bench", &["system:masters"])];
    config.data_dir = args.data_dir;
    let plane = Plane::start(config).await?;
    let root = if args.kcp { "/clusters/root" } else { "" };
    println!("{}", json!({ "url": format!("{}{root}", plane.url()), "authority": plane.ca_pem() }));
    std::io::stdout().flush()?;
    tokio::task::spawn_blocking(|| std::io::stdin().lines().count()).await?;
    Ok(())
}
