//! `carrick doctor`: finds what keeps an agent from working, and how to fix it.
//!
//! ```text
//!  gather   asks both servers once ──▶ Facts
//!  needs    pure: which rights an agent needs for what it publishes
//!  checks   pure: a table of small functions, Facts ──▶ Findings
//!  report   lines for people, JSON for programs, an exit code
//! ```

pub(crate) mod checks;
pub(crate) mod facts;
mod gather;
mod needs;
pub(crate) mod report;
mod right;
mod wrap;

use std::process::ExitCode;
use std::time::Duration;

use crate::agent_flags::AgentFlags;
use crate::logs;
use crate::ui::{Output, colours, print, print_json, telling};
use report::Report;

/// Find what keeps an agent from working, and how to fix it.
///
/// Takes the agent's flags, asks both servers what the agent would ask, and writes nothing.
/// Exit code 0: everything works; 1: something needs attention; 2: something does not work.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    agent: AgentFlags,
    /// How long to wait for each server, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

const EXAMPLES: &str = "\
Examples:
  carrick doctor --kubeconfig service.kubeconfig --kcp-kubeconfig kcp.kubeconfig \\
    --apiexportendpointslice-ref example.com --namespace kcp-system
  carrick doctor --from-deployment kcp-system/api-syncagent
      with the flags and the kubeconfig of an agent that runs in the cluster
  carrick doctor --config agent.yaml
      with flags from a file: namespace: kcp-system, kcp-kubeconfig: kcp.kubeconfig, …
  carrick doctor … -o json | jq '.findings[] | select(.severity == \"red\")'";

/// Prints what was found.
pub async fn run(args: Args, verbose: bool) -> anyhow::Result<ExitCode> {
    logs::init(logs::Quiet::Silent, verbose);
    let facts = telling("looking for the agent", async |doing| {
        let agent = args.agent.identify().await?;
        doing.now("asking both servers");
        anyhow::Ok(Box::pin(gather::gather(&agent, Duration::from_secs(args.timeout))).await)
    });
    let report = Report::new(&facts.await?);
    match args.output {
        Output::Text => print(&report.text(colours())),
        Output::Json => print_json(&report)?,
    }
    Ok(report.exit_code())
}
