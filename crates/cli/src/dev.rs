//! `carrick dev`: a provider's inner loop. It applies files and shows the result.
//!
//! ```text
//!  files ─▶ sources ─▶ ledger ─▶ applier ─┬─▶ service cluster ─▶ agent ─▶ kcp ◀─ consumer's workspace ◀─┐
//!           (settled)  (what is  (apply,  └──────────────────────────┬──────── --object files ──────────┘
//!                       to do)    remove)                            ▼
//!                                            dashboard ─▶ board ─▶ screen
//!
//!  stage      what runs                      documents  objects in a text
//!  rivals     other agents on a cluster that existed before
//!  refusal    why a server refuses an object
//! ```

mod applier;
mod board;
mod documents;
mod ledger;
mod refusal;
mod rivals;
mod screen;
mod session;
mod sources;
mod stage;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

use crate::logs::{self, Quiet};
use crate::ui::Ui;
use crate::{kubeconfig, signals};
use ledger::Ledger;
use session::Session;
use sources::{Side, Sources, WatchedPath};
use stage::Stage;

/// Develop an API: publish, order, sync it whenever its files change.
///
/// Starts a kcp and a service cluster in this process, and an agent between them; applies your files; binds a consumer to what you offer
/// and accepts all claims; shows what is synced. Files are watched: edit one and it is applied again, delete one and its
/// objects are deleted. A broken file changes nothing until it is fixed. Ctrl-C leaves nothing behind.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
#[command(group(clap::ArgGroup::new("what").required(true).multiple(true).args(["crd", "published_resource"])))]
pub struct Args {
    /// Files or folders with CRDs, and whatever else your service needs, for the service cluster
    #[arg(long, value_name = "FILE", num_args = 1..)]
    crd: Vec<PathBuf>,
    /// Files or folders with PublishedResources, for the service cluster; without any, every CRD is published as it is
    #[arg(long, value_name = "FILE", num_args = 1..)]
    published_resource: Vec<PathBuf>,
    /// Files or folders with objects that the consumer orders, for the consumer's workspace
    #[arg(long, value_name = "FILE", num_args = 1..)]
    object: Vec<PathBuf>,
    /// Use this cluster as the service cluster, for instance one where your operator runs; everything that was applied there is removed at
    /// the end
    #[arg(long, value_name = "FILE")]
    service_kubeconfig: Option<PathBuf>,
    /// Start even if another agent on that cluster would serve your PublishedResources, too
    #[arg(long, requires = "service_kubeconfig")]
    beside_other_agents: bool,
    /// Folder for the kubeconfigs [default: a temporary one]
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  carrick dev --crd crd.yaml
      offered as it is
  carrick dev --crd crd.yaml --published-resource pr.yaml --object sample.yaml
      by rules of yours, and with a first order
  carrick dev --crd config/crd/bases --published-resource publish
      folders: all *.yaml, *.yml, *.json in them
  carrick dev --crd crd.yaml --service-kubeconfig ~/.kube/config
      on a cluster of yours
  carrick dev --crd crd.yaml --data-dir ./dev
      with the kubeconfigs in ./dev

Kubeconfigs:
  consumer.kubeconfig   the consumer's workspace root:consumer, as its owner
  service.kubeconfig    the service cluster (not with --service-kubeconfig)
  provider.kubeconfig   the provider's workspace root:provider, as its owner
  kcp-admin.kubeconfig  all of kcp";

/// Runs until stopped.
pub async fn run(args: Args, verbose: bool) -> anyhow::Result<ExitCode> {
    logs::init(Quiet::Silent, verbose);
    let ui = Ui::new(verbose);
    let sources = Sources::new(args.roots())?;
    let folder = Folder::new(args.data_dir.as_deref())?;
    let mut stop = std::pin::pin!(stop_requested());
    let stage = tokio::select! {
        stage = Stage::open(args.service_kubeconfig.as_deref(), args.beside_other_agents) => stage?,
        stopped = &mut stop => return stopped.map(|()| ExitCode::SUCCESS),
    };
    folder.fill(&stage)?;
    let ledger = if args.published_resource.is_empty() { Ledger::offering_all() } else { Ledger::default() };
    let mut session = Session::new(stage, sources, ledger, ui.clone());
    let ended = tokio::select! {
        ended = session.run(folder.path(), args.service_kubeconfig.as_deref()) => ended.map(|never| match never {}),
        stopped = &mut stop => stopped,
    };
    // A second request to stop means: do not wait for servers.
    let closed = tokio::select! {
        closed = session.close() => closed,
        stopped = stop_requested() => stopped.and_then(|()| anyhow::bail!("stopped while cleaning up; check the service cluster")),
    };
    drop(folder);
    ended?;
    closed?;
    ui.line("Nothing is left behind.");
    Ok(ExitCode::SUCCESS)
}

/// Returns on Ctrl-C, on SIGTERM, and when the terminal is closed.
async fn stop_requested() -> anyhow::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut hangup = signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?;
        tokio::select! {
            stopped = signals::stop() => stopped,
            _ = hangup.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    signals::stop().await
}

impl Args {
    fn roots(&self) -> Vec<WatchedPath> {
        let lists =
            [(&self.crd, Side::Service), (&self.published_resource, Side::Service), (&self.object, Side::Consumer)];
        let all = lists.into_iter().flat_map(|(paths, side)| paths.iter().map(move |path| (path, side)));
        all.map(|(path, side)| WatchedPath { path: path.clone(), side }).collect()
    }
}

/// The folder with the kubeconfigs. Dropping it removes the files that were written, and the folder too if we created it.
struct Folder {
    path: PathBuf,
    made: bool,
}

impl Folder {
    const FILES: [&str; 4] = ["consumer", "provider", "service", "kcp-admin"];

    fn new(wanted: Option<&Path>) -> anyhow::Result<Self> {
        let temporary = std::env::temp_dir().join(format!("carrick-dev-{}", std::process::id()));
        let wanted = wanted.unwrap_or(&temporary);
        let made = !wanted.exists();
        Ok(Self { path: kubeconfig::folder(wanted)?, made })
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.kubeconfig"))
    }

    fn fill(&self, stage: &Stage) -> anyhow::Result<()> {
        let (consumer, provider) = (stage::CONSUMER, stage::PROVIDER);
        kubeconfig::write(&self.file("consumer"), &stage.kcp.kubeconfig(consumer.1, Some(consumer.0))?)?;
        kubeconfig::write(&self.file("provider"), &stage.kcp.kubeconfig(provider.1, Some(provider.0))?)?;
        kubeconfig::write(&self.file("kcp-admin"), &stage.kcp.kubeconfig("kcp-admin", None)?)?;
        if let stage::Cluster::Embedded(plane) = &stage.cluster {
            kubeconfig::write(&self.file("service"), &plane.kubeconfig("admin", None)?)?;
        }
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        for name in Self::FILES {
            // A file that is already gone is fine, and a leftover only holds tokens of servers that no longer run.
            let _ = std::fs::remove_file(self.file(name));
        }
        if self.made {
            // Fails if the folder holds somebody else's files, which must stay.
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}
