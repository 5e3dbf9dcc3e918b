//! `carrick bind`: kube-bind, seen from both ends.
//!
//! ```text
//!  demo ─┬─ provider   a plain cluster offers its service to workspaces of kcp
//!        ├─ consumer   a workload cluster shows what its account in kcp has
//!        ├─ v2         a workload cluster uses its account in kcp with nothing in between
//!        └─ parts      what all need: contracts, a backend, a konnector
//!  doctor               what keeps a konnector or a backend from working
//! ```

mod consumer;
mod doctor;
mod parts;
mod provider;
mod v2;

use std::process::ExitCode;
use std::time::Instant;

use clap::Subcommand;

use crate::logs::{self, Quiet};
use crate::ui::{Failed, Ui};

/// Join clusters by kube-bind.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(DemoArgs),
    Doctor(doctor::Args),
}

/// See both ways in which kube-bind joins clusters and kcp, in a few seconds.
///
/// Everything runs in this process: embedded servers, the backend, the konnector. Each line is printed only after it has been observed.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
struct DemoArgs {
    /// Only the first story: a plain cluster offers its service to workspaces of kcp
    #[arg(long, conflicts_with = "consumer")]
    provider: bool,
    /// Only the second story: a workload cluster shows what its account in kcp has
    #[arg(long)]
    consumer: bool,
    /// kube-bind v2 instead of 0.8: a workload cluster uses what its account in kcp has, without a backend
    #[arg(long, conflicts_with_all = ["provider", "consumer"])]
    v2: bool,
}

const EXAMPLES: &str = "\
Examples:
  carrick bind demo                both stories; exit code 0 if all went well
  carrick bind demo --provider     a cluster offers its service to workspaces
  carrick bind demo --consumer     a cluster shows what its account in kcp has
  carrick bind demo --v2           kube-bind v2, with nothing in between
  carrick bind demo --verbose      with all logs on stderr";

/// Runs a command; the exit code says whether all of it was observed.
pub async fn run(args: Args, verbose: bool) -> anyhow::Result<ExitCode> {
    let args = match args.command {
        Command::Demo(args) => args,
        Command::Doctor(args) => return doctor::run(args, verbose).await,
    };
    logs::init(Quiet::Silent, verbose);
    let ui = Ui::new(verbose);
    match demo(&ui, &args).await {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(Failed) => Ok(ExitCode::FAILURE),
    }
}

async fn demo(ui: &Ui, args: &DemoArgs) -> Result<(), Failed> {
    let started = Instant::now();
    if args.v2 {
        ui.line("carrick bind demo: a workload cluster uses the Widgets of its account in kcp, by kube-bind v2");
        Box::pin(v2::play(ui)).await?;
        ui.heading(&format!("Done in {:.1} s.", started.elapsed().as_secs_f64()));
        return Ok(());
    }
    if !args.consumer {
        ui.line("carrick bind demo: a plain cluster offers Widgets, two teams in kcp use them");
        Box::pin(provider::play(ui)).await?;
    }
    if !args.provider {
        ui.line("\ncarrick bind demo: a workload cluster shows the Widgets of its account in kcp");
        Box::pin(consumer::play(ui)).await?;
    }
    ui.heading(&format!("Done in {:.1} s.", started.elapsed().as_secs_f64()));
    Ok(())
}
