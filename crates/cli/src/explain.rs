//! `carrick explain`: what the agent would do right now, and why.

mod paint;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use carrick_syncagent::agent::explain::{Question, explain};
use clap::ValueEnum;

use crate::agent_flags::AgentFlags;
use crate::logs;
use crate::ui::{colours, waiting};

/// Show what the agent would do right now and why, without doing it.
///
/// Reads both clusters as an agent with the same flags would, decides as it would, and prints the steps. Nothing is written.
/// Exit code 1: something was asked for that does not exist, or not everything could be read.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Only this PublishedResource
    #[arg(value_name = "PUBLISHED_RESOURCE")]
    published_resource: Option<String>,
    /// Only this object of a consumer: namespace/name, or name for kinds without namespaces
    #[arg(long, value_name = "OBJECT")]
    object: Option<String>,
    /// Only objects in this workspace: a path such as root:orgs:acme, or the name of its logical cluster
    #[arg(long, value_name = "WORKSPACE")]
    workspace: Option<String>,
    #[command(flatten)]
    agent: AgentFlags,
    /// How long to wait for the servers, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    timeout: u64,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

const EXAMPLES: &str = "\
Examples:
  carrick explain --kubeconfig service.kubeconfig --kcp-kubeconfig kcp.kubeconfig \\
    --apiexportendpointslice-ref example.com --namespace kcp-system
      everything: schemas, the APIExport, every object
  carrick explain --from-deployment kcp-system/api-syncagent
      the same, with the flags and the kubeconfig of an agent that runs in the cluster
  carrick explain buckets --workspace root:orgs:acme --object default/my-bucket --kcp-kubeconfig …
      why has this object of a consumer not arrived?";

/// Prints the report.
pub async fn run(args: Args, verbose: bool) -> anyhow::Result<ExitCode> {
    logs::init(logs::Quiet::Silent, verbose);
    let agent = args.agent.identify().await?;
    let config = agent.options.clone().into_config()?;
    let question = Question {
        as_keeper: !agent.is_named,
        published_resource: args.published_resource,
        workspace: args.workspace,
        object: args.object,
        patience: Duration::from_secs(args.timeout),
    };
    let report = waiting("reading both clusters", explain(config, &question)).await?;
    let coloured = colours();
    let mut out = std::io::stdout().lock();
    // If the reader has closed the pipe, there is nobody to print for.
    let _ = match args.output {
        Output::Text if coloured => write!(out, "{}", paint::paint(&report.to_string())),
        Output::Text => write!(out, "{report}"),
        Output::Json => writeln!(out, "{}", serde_json::to_string_pretty(&report)?),
    };
    Ok(if report.incomplete.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
