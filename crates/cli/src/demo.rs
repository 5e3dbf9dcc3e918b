//! `carrick demo`: one service delivered to two consumers, from order to clean-up, in this process.
//!
//! ```text
//!  consumers                 kcp (embedded)               agent              service cluster (embedded)
//!  team-a, team-b  ──order──▶ HttpBin default/demo  ──▶  carrick_syncagent ──▶ HttpBin + operator + endpoint
//!                  ◀──URL, Secret──────────────────────────────────────────── status, Secret
//!
//!  stage      what runs: two servers, operator, agent     steps      what must happen, in order
//!  operator   the provider's part, with endpoint          manifests  the YAML files, to be copied
//!  keep       leaves everything running for kubectl       fetch      HTTP GET
//!  broker     another one: an order of a platform's API, behind a broker
//! ```

mod broker;
mod endpoint;
pub mod fetch;
mod keep;
pub mod manifests;
mod operator;
mod stage;
mod steps;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use crate::kubeconfig;
use crate::logs::{self, Quiet};
use crate::ui::{Failed, Ui};
use stage::Stage;

/// See one service delivered to two consumers, in a few seconds.
///
/// Starts an embedded kcp and an embedded Kubernetes API server, an operator that serves HttpBins, and the sync agent;
/// then orders, uses, changes and deletes as a consumer would. Each line is printed only after it has been observed.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Stop before the deletion and leave everything running until Ctrl-C, to look at with kubectl.
    #[arg(long)]
    keep: bool,
    /// Show an order of a platform's API instead, with two providers behind a broker, and a move from one to the other.
    #[arg(long, conflicts_with = "keep")]
    broker: bool,
    /// Folder for the kubeconfigs of --keep [default: a temporary one]
    #[arg(long, value_name = "FOLDER", requires = "keep")]
    data_dir: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  carrick demo                            exit code 0 if every step succeeded
  carrick demo --verbose                  with all logs on stderr
  carrick demo --keep                     leaves it running, to use with kubectl
  carrick demo --broker                   behind a broker of Platform Mesh
  carrick demo --keep --data-dir ./demo   with the kubeconfigs in ./demo";

/// Runs the demo; the exit code says whether every step was observed.
pub async fn run(args: Args, verbose: bool) -> anyhow::Result<ExitCode> {
    logs::init(Quiet::Silent, verbose);
    // Fail now rather than when everything is running.
    if let Some(folder) = &args.data_dir {
        kubeconfig::folder(folder)?;
    }
    let ui = Ui::new(verbose);
    let played = if args.broker { broker::play(&ui).await } else { play(&ui, &args).await };
    match played {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(Failed) => Ok(ExitCode::FAILURE),
    }
}

async fn play(ui: &Ui, args: &Args) -> Result<(), Failed> {
    let started = Instant::now();
    ui.line("carrick demo: a provider offers HttpBins, two teams order one each");

    ui.heading("Two API servers in this process");
    let mut stage = Stage::open(ui.clone()).await?;
    stage.make_workspaces().await?;

    ui.heading("The provider offers a service");
    stage.install_operator().await?;
    stage.create_export().await?;
    stage.publish().await?;
    stage.start_agent().await?;

    ui.heading("Two teams order one each");
    stage.bind().await?;
    stage.order().await?;
    let copies = stage.see_copies().await?;
    let urls = stage.see_urls().await?;
    stage.fetch(&urls).await?;
    let logins = stage.see_secrets(&copies).await?;
    stage.log_in(&urls, &logins).await?;

    if args.keep {
        return keep::hold(stage, args.data_dir.as_deref(), &urls).await;
    }

    ui.heading("team-a changes its mind");
    stage.change_region(&urls).await?;

    ui.heading("Both teams clean up");
    let [copy_a, copy_b] = &copies;
    stage.delete_first(copy_a, &urls).await?;
    stage.delete_second(copy_b, &urls).await?;
    stage.stop().await?;

    summary(ui, started);
    Ok(())
}

fn summary(ui: &Ui, started: Instant) {
    ui.heading(&format!("Done in {:.1} s. What just happened:", started.elapsed().as_secs_f64()));
    ui.line("  The provider wrote a CRD, an operator and one PublishedResource; the agent turned it into a kcp API.");
    ui.line("  Two teams ordered with plain objects in their own workspaces and got a URL and a Secret there.");
    ui.line("  A change travelled down, status travelled up, and a deletion left nothing behind on either side.");
    ui.heading("Next:");
    // If cargo started the program, it is most likely not on the path.
    let carrick = if std::env::var_os("CARGO").is_some() { "cargo run --release --" } else { "carrick" };
    ui.command(&format!("{carrick} demo --keep               # leave it running and look at it with kubectl"));
    ui.command(&format!("{carrick} plane --data-dir ./plane  # a kcp and a service cluster of your own"));
    ui.command(&format!("{carrick} --help"));
}
