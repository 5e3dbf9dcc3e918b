//! Clients written in Go, as most controllers are, against the embedded plane: `e2e/goclients`.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, ensure};
use carrick_plane::Plane;
use carrick_plane::faults::{Effect, Match, Rule, Turn};
use libtest_mimic::Trial;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

use crate::harness;
use crate::scratch::Scratch;
use crate::world::{EmbeddedWorld, User, World};

/// Where the programs are; `e2e/real` sets it.
const PROGRAMS: &str = "CARRICK_GOCLIENTS";

/// How long a program may take.
const PATIENCE: Duration = Duration::from_mins(4);

/// One trial for each program and each kind of plane.
pub fn trials() -> Vec<Trial> {
    let Some(folder) = std::env::var_os(PROGRAMS).map(PathBuf::from) else { return Vec::new() };
    let mut trials = Vec::new();
    for program in ["informer", "typed"] {
        for kcp in [false, true] {
            let path = folder.join(program);
            let place = if kcp { "kcp" } else { "a_service_cluster" };
            trials.push(Trial::test(format!("goclients::{program}_is_content_with_{place}"), move || {
                harness::verdict(harness::runtime()?.block_on(run(&path, kcp)))
            }));
        }
    }
    trials
}

async fn run(program: &Path, kcp: bool) -> anyhow::Result<()> {
    let world = EmbeddedWorld::start().await?;
    let (plane, kubeconfig) = if kcp {
        (world.kcp_plane(), world.kcp_kubeconfig(User::Admin, "root"))
    } else {
        (world.service_plane(), world.service_kubeconfig(User::Admin))
    };
    let home = Scratch::new()?;
    home.write("config", &kubeconfig)?;
    let mut child = Command::new(program)
        .env("KUBECONFIG", home.path().join("config"))
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
                expire(plane);
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
