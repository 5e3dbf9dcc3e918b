//! Programs written in Go, as most controllers are, against the embedded plane: `e2e/goclients`.
//!
//! ```text
//!   programs   ours, with client-go, controller-runtime and kcp's clients
//!   suites     tests of others, taken from the modules they are published in
//!   likekcp    a kcp started as scripts start it, real or a plane
//! ```

mod likekcp;
mod suites;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, ensure};
use carrick_e2e_stage::harness;
use carrick_e2e_stage::scratch::Scratch;
use carrick_e2e_stage::world::{EmbeddedWorld, User, World};
use carrick_plane::Plane;
use carrick_plane::faults::{Effect, Match, Rule, Turn};
use libtest_mimic::Trial;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

/// Where the programs are; `e2e/real` sets it.
const PROGRAMS: &str = "CARRICK_GOCLIENTS";

/// How long a program may take.
const PATIENCE: Duration = Duration::from_mins(4);

/// What `clients` can play.
const PARTS: [&str; 9] =
    ["apply", "discovery", "dynamic", "impersonate", "leader", "manager", "mapper", "typed", "webhooks"];

/// Where a program plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The workspace `root`.
    Kcp,
    /// The service cluster.
    Service,
}

impl Place {
    const ALL: [Self; 2] = [Self::Service, Self::Kcp];

    fn name(self) -> &'static str {
        match self {
            Self::Kcp => "kcp",
            Self::Service => "a_service_cluster",
        }
    }

    fn kubeconfig(self, world: &dyn World) -> String {
        match self {
            Self::Kcp => world.kcp_kubeconfig(User::Admin, "root"),
            Self::Service => world.service_kubeconfig(User::Admin),
        }
    }
}

fn programs() -> Option<PathBuf> {
    std::env::var_os(PROGRAMS).map(PathBuf::from)
}

/// One trial for each program and each kind of plane, and for each suite.
pub fn trials() -> Vec<Trial> {
    let Some(folder) = programs() else { return Vec::new() };
    let mut trials = Vec::new();
    for place in Place::ALL {
        for program in ["informer", "typed"] {
            let path = folder.join(program);
            trials.push(harness::trial(format!("goclients::{program}_is_content_with_{}", place.name()), move || {
                harness::verdict(harness::runtime()?.block_on(on_a_plane(&path, &[], place)))
            }));
        }
        for part in PARTS {
            let path = folder.join("clients");
            trials.push(harness::trial(format!("goclients::{part}_is_content_with_{}", place.name()), move || {
                harness::verdict(harness::runtime()?.block_on(on_a_plane(&path, &[part], place)))
            }));
        }
    }
    trials.extend(likekcp::trials(&folder));
    // They take long to build, so `e2e/goclients/build` leaves them out unless they are asked for.
    if std::env::var_os("CARRICK_SUITES").is_some() {
        trials.extend(suites::trials(&folder));
    }
    trials
}

/// What is played on real servers too: a name, and what to do there.
pub fn on_real_servers() -> Vec<(String, &'static str, Place)> {
    if programs().is_none() {
        return Vec::new();
    }
    let names = PARTS.into_iter().flat_map(|part| Place::ALL.map(|place| (part, place)));
    names
        .map(|(part, place)| (format!("goclients::{part}_is_content_with_real_{}", place.name()), part, place))
        .collect()
}

/// Plays a part in a world.
pub async fn play(world: &dyn World, part: &str, place: Place) -> anyhow::Result<()> {
    let program = programs().context("the Go clients are not built")?.join("clients");
    run(&program, &[part], &place.kubeconfig(world), None).await
}

async fn on_a_plane(program: &Path, arguments: &[&str], place: Place) -> anyhow::Result<()> {
    let world = EmbeddedWorld::start().await?;
    let plane = match place {
        Place::Kcp => world.kcp_plane(),
        Place::Service => world.service_plane(),
    };
    run(program, arguments, &place.kubeconfig(&world), Some(plane)).await
}

/// Runs a program until it says that it is done; when it is ready, watches on the plane expire.
async fn run(program: &Path, arguments: &[&str], kubeconfig: &str, plane: Option<&Plane>) -> anyhow::Result<()> {
    let home = Scratch::new()?;
    home.write("config", kubeconfig)?;
    let mut command = Command::new(program);
    command.args(arguments).env("KUBECONFIG", home.path().join("config"));
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let mut input = child.stdin.take().context("no input")?;
    let mut output = BufReader::new(child.stdout.take().context("no output")?).lines();
    let mut said = String::new();
    let talk = async {
        while let Some(line) = output.next_line().await? {
            println!("  {line}");
            if line == "ready" {
                if let Some(plane) = plane {
                    expire(plane);
                }
                input.write_all(b"expired\n").await?;
            }
            said = line;
        }
        anyhow::Ok(child.wait().await?)
    };
    let status = tokio::time::timeout(PATIENCE, talk).await.context("it did not end")??;
    ensure!(status.success() && said == "done", "it ended with {status} and said {said:?}");
    Ok(())
}

/// All watches break off, and the next one of config maps finds that its revision is gone.
fn expire(plane: &Plane) {
    let watches = Match::any().verbs(&["watch"]).resource("", "configmaps");
    plane.faults().add(Rule::new(watches.clone(), Effect::ExpireWatch(0)).on(Turn::First(1)));
    plane.faults().cut_watches(&watches);
}

/// `PATH` with a folder in front.
fn path_with(folder: &Path) -> anyhow::Result<OsString> {
    let old = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::join_paths(std::iter::once(folder.to_owned()).chain(std::env::split_paths(&old)))?)
}
