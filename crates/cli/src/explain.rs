//! `carrick explain`: what the agent would do right now, and why.

mod paint;

use std::process::ExitCode;
use std::time::Duration;

use carrick_syncagent::agent::explain::{Question, explain};

use crate::agent_flags::AgentFlags;
use crate::logs;
use crate::ui::{Output, colours, print, print_json, telling};

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

const EXAMPLES: &str = "\
Examples:
  carrick explain
      everything: schemas, the APIExport, every object
  carrick explain buckets --workspace root:orgs:acme --object default/my-bucket
      why has this object of a consumer not arrived?
  carrick explain --from-deployment kcp-system/api-syncagent
      one of several agents on the cluster
  carrick explain --kubeconfig service.kubeconfig \\
    --kcp-kubeconfig kcp.kubeconfig \\
    --apiexportendpointslice-ref example.com --namespace kcp-system
      an agent that runs elsewhere, or not yet";

/// Prints the report.
pub async fn run(args: Args, verbose: bool) -> anyhow::Result<ExitCode> {
    logs::init(logs::Quiet::Silent, verbose);
    let flags = args.agent.resolved().await?;
    let report = telling("looking for the agent", async |doing| {
        let agent = flags.identify().await?;
        let config = agent.options.clone().into_config()?;
        let question = Question {
            as_keeper: !agent.is_named,
            published_resource: args.published_resource,
            workspace: args.workspace,
            object: args.object,
            patience: Duration::from_secs(args.timeout),
        };
        doing.now("reading both clusters");
        anyhow::Ok(explain(config, &question).await?)
    });
    let report = report.await?;
    match args.output {
        Output::Text if colours() => print(&paint::paint(&report.to_string())),
        Output::Text => print(&report.to_string()),
        Output::Json => print_json(&report)?,
    }
    Ok(if report.incomplete.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
