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
mod repair;
pub(crate) mod report;
mod right;
pub(crate) mod wrap;

use std::process::ExitCode;
use std::time::Duration;

use crate::agent_flags::AgentFlags;
use crate::logs;
use crate::ui::{Output, colours, print, print_error, print_json, telling, waiting};
use checks::Severity;
use clap::ValueEnum;
use facts::Facts;
use report::Report;

/// Find what keeps an agent from working, and how to fix it.
///
/// Takes the agent's flags, asks both servers what the agent would ask, and writes nothing without --fix.
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
    /// Look again and again, and print what has changed, until stopped
    #[arg(long, conflicts_with = "fix")]
    watch: bool,
    /// How long to wait before looking again, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, requires = "watch")]
    interval: u64,
    /// Show the commands that fix what was found, and run them after a yes. Only commands that add something are run: never one
    /// that deletes, replaces or approves anything
    #[arg(long)]
    fix: bool,
    /// Run them without asking
    #[arg(long, requires = "fix")]
    yes: bool,
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
  carrick doctor
      the agent of the cluster that your kubeconfig leads to
  carrick doctor --from-deployment kcp-system/api-syncagent
      one of several agents there
  carrick doctor --kubeconfig service.kubeconfig \\
    --kcp-kubeconfig kcp.kubeconfig \\
    --apiexportendpointslice-ref example.com --namespace kcp-system
      an agent that runs elsewhere, or not yet
  carrick doctor --watch
      what changes while something is being repaired
  carrick doctor --fix
      show the commands that fix it, and run them after a yes
  carrick doctor --config agent.yaml
      with flags from a file: namespace: kcp-system, …
  carrick doctor -o json | jq '.findings[] | select(.severity == \"red\")'";

/// Where to read on, in the repository.
const MORE: &str = "More: docs/doctor.md about each check, docs/operations/troubleshooting.md by symptom.\n";

async fn examine(args: &Args) -> anyhow::Result<Facts> {
    telling("looking for the agent", async |doing| {
        let agent = args.agent.identify().await?;
        doing.now("asking both servers");
        anyhow::Ok(Box::pin(gather::gather(&agent, Duration::from_secs(args.timeout))).await)
    })
    .await
}

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
    // Whoever has to choose an agent chooses once.
    let args = match args.agent.resolved().await {
        Ok(agent) => Args { agent, ..args },
        Err(error) => return Ok(failed(&error)),
    };
    if args.watch {
        return watch(&args).await;
    }
    let mut report = match examine(&args).await {
        Ok(facts) => Report::new(&facts),
        Err(error) => return Ok(failed(&error)),
    };
    show(&args, &report)?;
    if args.fix && repair::offer(&report, args.yes)? {
        report = match examine(&args).await {
            Ok(facts) => Report::new(&facts),
            Err(error) => return Ok(failed(&error)),
        };
        show(&args, &report)?;
    }
    Ok(report.exit_code(args.fail_on == FailOn::Amber))
}

/// 1 would mean that the agent works.
fn failed(error: &anyhow::Error) -> ExitCode {
    print_error(&format!("error: {error:#}\n"));
    ExitCode::from(2)
}

fn show(args: &Args, report: &Report) -> anyhow::Result<()> {
    match args.output {
        Output::Text => {
            let more = if report.severity == Severity::Green { "" } else { MORE };
            print(&(report.text(colours()) + more));
        }
        Output::Json => print_json(report)?,
    }
    Ok(())
}

/// Prints a report whenever it differs from the one before. Ages of heartbeats always do, so only what needs attention counts.
async fn watch(args: &Args) -> anyhow::Result<ExitCode> {
    let mut last = None;
    loop {
        let now = match examine(args).await {
            Ok(facts) => {
                let report = Report::new(&facts);
                let attention = report.attention();
                if last.as_ref() != Some(&attention) {
                    show(args, &report)?;
                }
                attention
            }
            // Servers that are being repaired may not answer for a while.
            Err(error) => {
                let now = vec![format!("{error:#}")];
                if last.as_ref() != Some(&now) {
                    print_error(&format!("error: {error:#}\n"));
                }
                now
            }
        };
        last = Some(now);
        tokio::time::sleep(Duration::from_secs(args.interval)).await;
    }
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
