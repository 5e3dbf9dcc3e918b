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
use crate::ui::{Output, colours, print, print_json, telling, waiting};
use checks::Severity;
use clap::ValueEnum;
use report::Report;

/// Find what keeps an agent from working, and how to fix it.
///
/// Takes the agent's flags, asks both servers what the agent would ask, and writes nothing.
/// Exit code 0: everything works; 1: something needs attention; 2: something does not work. With --fail-on red, what only needs attention
/// ends with 0 as well.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    agent: AgentFlags,
    /// How long to wait for each server, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,
    /// Which findings make the exit code other than 0
    #[arg(long, value_enum, default_value_t = FailOn::Amber)]
    fail_on: FailOn,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// What needs attention, and what does not work.
    Amber,
    /// Only what does not work.
    Red,
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

/// Where to read on, in the repository.
const MORE: &str = "More: docs/doctor.md about each check, docs/operations/troubleshooting.md by symptom.\n";

/// Prints what another command has to say about an agent; fails only if something does not work.
pub async fn report_on(flags: &AgentFlags) -> anyhow::Result<ExitCode> {
    let agent = flags.identify().await?;
    let gathering = Box::pin(gather::gather(&agent, Duration::from_secs(10)));
    let report = Report::new(&waiting("asking both servers", gathering).await);
    print(&report.text(colours()));
    Ok(report.exit_code(false))
}

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
        Output::Text => {
            let more = if report.severity == Severity::Green { "" } else { MORE };
            print(&(report.text(colours()) + more));
        }
        Output::Json => print_json(&report)?,
    }
    Ok(report.exit_code(args.fail_on == FailOn::Amber))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn pages_to_read_on_exist() {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let pages: Vec<&str> =
            MORE.split([' ', ',']).filter(|word| word.trim().strip_suffix(".md").is_some()).collect();
        assert_eq!(pages.len(), 2);
        for page in pages {
            assert!(repository.join(page).is_file(), "there is no {page}");
        }
    }
}
