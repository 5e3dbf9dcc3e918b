//! `carrick release`: a name that no agent bears any more holds nobody.

use std::process::ExitCode;

use carrick_syncagent::release::{Agents, Releaser};

use crate::agent_flags::AgentFlags;
use crate::logs;
use crate::ui::{Output, confirmed, print, print_json, waiting};

/// Let go what is held under the name of an agent that is no more.
///
/// Orders and their related objects are held under the name of the agent that serves them, and their copies bear it. After an agent was renamed, or
/// replaced by one of another name, whoever serves the APIExport has its part. Mostly agents note that themselves when they take over; this command does
/// it for names they cannot know, such as those an order is held by for ever. Without a name, shows who serves the APIExport and who did.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Name of the agent that is no more
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Take it back: there is such an agent
    #[arg(long, requires = "name")]
    undo: bool,
    #[command(flatten)]
    agent: AgentFlags,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

const EXAMPLES: &str = "\
Examples:
  carrick release
      who serves the export, and who did; nothing is changed
  carrick release old-agent --yes
  carrick release old-agent --undo";

/// Shows who serves an export, and notes who does not any more.
pub async fn run(args: Args, verbose: bool) -> anyhow::Result<ExitCode> {
    logs::init(logs::Quiet::Silent, verbose);
    let agent = args.agent.identify_export().await?;
    let config = agent.options.clone().into_config()?;
    let (releaser, agents) = waiting("asking who serves the export", async {
        let releaser = Releaser::connect(&config).await?;
        let agents = releaser.agents().await?;
        anyhow::Ok((releaser, agents))
    })
    .await?;
    let agents = match &args.name {
        Some(name) => {
            let question = format!("Is there no agent {name} any more, so that others may let go what it held?");
            if !args.undo && !args.yes && !confirmed(&question)? {
                anyhow::bail!("nothing held by {name} is let go");
            }
            releaser.note(name, !args.undo).await?
        }
        None => agents,
    };
    match args.output {
        Output::Json => print_json(&agents)?,
        Output::Text => print(&text(&agents)),
    }
    Ok(ExitCode::SUCCESS)
}

fn text(agents: &Agents) -> String {
    let list = |names: &std::collections::BTreeSet<String>| {
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
        }
    };
    format!(
        "APIExport {}\n  agents that serve it:        {}\n  agents that are no more:     {}\n",
        agents.export,
        list(&agents.serving),
        list(&agents.former)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_is_named() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let agents = Agents { export: "e".to_owned(), serving: names(&["new"]), former: names(&["old", "older"]) };
        let wanted = "APIExport e\n  agents that serve it:        new\n  agents that are no more:     old, older\n";
        assert_eq!(text(&agents), wanted);
        assert!(text(&Agents::default()).contains("none"));
    }
}
