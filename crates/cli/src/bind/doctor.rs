//! `carrick bind doctor`: finds what keeps a konnector or a backend from working, and how to fix it.
//!
//! ```text
//!  gather   asks the consumer's cluster, the providers that its kubeconfigs lead to, and the provider's own cluster ──▶ Facts
//!  checks   pure: Facts ──▶ findings, each with its fix: consumer, contract, provider
//! ```

mod checks;
mod facts;
mod gather;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use crate::doctor::report::Report;
use crate::logs;
use crate::ui::{Output, colours, print, print_json, waiting};

/// Find what keeps a konnector or a backend from working, and how to fix it.
///
/// Looks from the consumer's side, from the provider's, or from both. From the consumer's side it goes where the konnector goes, with the kubeconfigs
/// that the konnector has. Writes nothing.
/// Exit code 0: everything works; 1: something needs attention; 2: something does not work.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
#[command(group = clap::ArgGroup::new("side").required(true).multiple(true).args(["kubeconfig", "provider_kubeconfig"]))]
pub struct Args {
    /// Kubeconfig of the consumer's cluster
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Kubeconfig of the provider's cluster or workspace, with the rights of its owner
    #[arg(long, value_name = "FILE")]
    provider_kubeconfig: Option<PathBuf>,
    /// How long to wait for each answer, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

const USAGE: &str = "\
carrick bind doctor --kubeconfig <FILE> [OPTIONS]
       carrick bind doctor --provider-kubeconfig <FILE> [OPTIONS]";

const EXAMPLES: &str = "\
Examples:
  carrick bind doctor --kubeconfig consumer.kubeconfig
  carrick bind doctor --provider-kubeconfig provider.kubeconfig
  carrick bind doctor --kubeconfig consumer.kubeconfig \\
    --provider-kubeconfig provider.kubeconfig -o json";

/// Prints what was found.
pub async fn run(args: Args, verbose: bool) -> anyhow::Result<ExitCode> {
    logs::init(logs::Quiet::Silent, verbose);
    let patience = Duration::from_secs(args.timeout);
    let gathering = Box::pin(gather::gather(args.kubeconfig, args.provider_kubeconfig, patience));
    let facts = waiting("asking consumer and provider", gathering).await;
    let report = Report::of(checks::all(&facts));
    match args.output {
        Output::Text => print(&report.text(colours())),
        Output::Json => print_json(&report)?,
    }
    Ok(report.exit_code(true))
}
