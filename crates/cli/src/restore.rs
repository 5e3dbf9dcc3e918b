//! `carrick restore`: orders that went back in time with a restored server, and what lets them go on.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use carrick_process::printable::one_line;
use carrick_syncagent::agent::restore::{Accepted, Chosen, Look, Restored, accept, status};
use clap::Subcommand;

use crate::agent_flags::AgentFlags;
use crate::logs;
use crate::ui::{Output, confirmed, print, print_error, print_json, telling};

/// Show and free what is held since a server was restored.
///
/// Orders that are older than what was carried out, or that had been deleted, are held: their copies stay as they are, and none is made.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Status(StatusArgs),
    Accept(AcceptArgs),
}

/// List every order concerned, with what each side has and a command.
///
/// Reads both clusters as an agent with the same flags would, whether one runs or not. Nothing is written. Exit code 1: not everything
/// could be read.
#[derive(Debug, clap::Args)]
#[command(after_help = STATUS)]
struct StatusArgs {
    /// Only this PublishedResource
    #[arg(value_name = "PUBLISHED_RESOURCE")]
    published_resource: Option<String>,
    #[command(flatten)]
    agent: AgentFlags,
    /// How long to wait for the servers, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    timeout: u64,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// Go on with orders as they are in kcp.
///
/// Shows what is held, asks, and annotates the chosen orders with syncagent.kcp.io/after-restore: Follow. A running agent carries them out
/// as they are in kcp, and removes the annotation. To keep what the service cluster has instead, let the consumer apply the newest
/// version of the order again, or delete it.
#[derive(Debug, clap::Args)]
#[command(after_help = ACCEPT)]
struct AcceptArgs {
    /// Only this PublishedResource
    #[arg(value_name = "PUBLISHED_RESOURCE")]
    published_resource: Option<String>,
    /// Only orders in this workspace: a path such as root:orgs:acme, or the name of its logical cluster
    #[arg(long, value_name = "WORKSPACE", required_unless_present = "all")]
    workspace: Option<String>,
    /// Only this order: namespace/name, or name for kinds without namespaces
    #[arg(long, value_name = "OBJECT", requires = "workspace")]
    object: Option<String>,
    /// All orders that are held
    #[arg(long, conflicts_with_all = ["workspace", "object"])]
    all: bool,
    #[command(flatten)]
    agent: AgentFlags,
    /// How long to wait for the servers, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    timeout: u64,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

const STATUS: &str = "\
Examples:
  carrick restore status
  carrick restore status --from-deployment kcp-system/api-syncagent
  carrick restore status -o json | jq '.orders[] | .command'";

const ACCEPT: &str = "\
Examples:
  carrick restore accept --workspace root:orgs:acme --object default/my-bucket
  carrick restore accept --workspace root:orgs:acme
  carrick restore accept --all --yes";

/// Shows what is held, or lets it go on.
pub async fn run(args: Args, verbose: bool) -> anyhow::Result<ExitCode> {
    logs::init(logs::Quiet::Silent, verbose);
    match args.command {
        Command::Status(args) => show(args).await,
        Command::Accept(args) => let_go(args).await,
    }
}

async fn show(args: StatusArgs) -> anyhow::Result<ExitCode> {
    let found = find(&args.agent.resolved().await?, args.published_resource, args.timeout).await?;
    match args.output {
        Output::Text => print(&found.to_string()),
        Output::Json => print_json(&found)?,
    }
    Ok(if found.incomplete.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn find(agent: &AgentFlags, published_resource: Option<String>, timeout: u64) -> anyhow::Result<Restored> {
    telling("looking for the agent", async |doing| {
        let agent = agent.identify().await?;
        let config = agent.options.clone().into_config()?;
        let patience = Duration::from_secs(timeout);
        doing.now("reading both clusters");
        anyhow::Ok(status(config, &Look { published_resource, as_keeper: !agent.is_named, patience }).await?)
    })
    .await
}

async fn let_go(args: AcceptArgs) -> anyhow::Result<ExitCode> {
    let chosen = match (args.workspace, args.object) {
        (None, _) => Chosen::All,
        (Some(workspace), None) => Chosen::Workspace(workspace),
        (Some(workspace), Some(object)) => Chosen::Order { workspace, object },
    };
    let flags = args.agent.resolved().await?;
    let mut found = find(&flags, args.published_resource.clone(), args.timeout).await?;
    found.orders.retain(|order| order.finding.can_be_accepted() && chosen.is_meant(order));
    anyhow::ensure!(!found.orders.is_empty(), "no such order is held; see carrick restore status");
    if !args.yes {
        // Standard output is for the answer.
        match args.output {
            Output::Text => print(&found.to_string()),
            Output::Json => print_error(&found.to_string()),
        }
        let orders = if found.orders.len() == 1 {
            "this order".to_owned()
        } else {
            format!("these {} orders", found.orders.len())
        };
        if !confirmed(&format!("Go on with {orders} as kcp has them?"))? {
            anyhow::bail!("nothing was changed");
        }
    }
    let accepted = telling("looking for the agent", async |doing| {
        let agent = flags.identify().await?;
        let config = agent.options.clone().into_config()?;
        let patience = Duration::from_secs(args.timeout);
        doing.now("letting orders go on");
        let look = Look { published_resource: args.published_resource, as_keeper: !agent.is_named, patience };
        anyhow::Ok(accept(config, &look, &chosen).await?)
    })
    .await?;
    match args.output {
        Output::Text => print(&text(&accepted)),
        Output::Json => print_json(&accepted)?,
    }
    let whole = accepted.failed.is_empty() && accepted.incomplete.is_none();
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What was let go on, in words.
fn text(accepted: &Accepted) -> String {
    let orders = match accepted.let_go {
        1 => "1 order goes on as kcp has it".to_owned(),
        count => format!("{count} orders go on as kcp has them"),
    };
    let mut text = format!("{orders}, as soon as an agent runs.\n");
    for failed in &accepted.failed {
        let _ = writeln!(text, "not let go: {}", one_line(failed));
    }
    if let Some(problem) = &accepted.incomplete {
        let _ = writeln!(text, "Incomplete: {}", one_line(problem));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_or_problem_forges_a_line() {
        let forged = "c|default/x: \u{1b}[2J\n3 orders go on";
        let accepted = Accepted { let_go: 1, failed: vec![forged.into()], incomplete: Some(forged.into()) };
        let text = text(&accepted);
        assert!(text.lines().count() == 3 && !text.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn what_was_not_let_go_is_named() {
        let accepted = Accepted { let_go: 1, failed: vec!["c|default/x: conflict".into()], incomplete: None };
        assert_eq!(
            text(&accepted),
            "1 order goes on as kcp has it, as soon as an agent runs.\nnot let go: c|default/x: conflict\n"
        );
        assert!(text(&Accepted { let_go: 3, failed: Vec::new(), incomplete: None }).starts_with("3 orders go on"));
    }
}
