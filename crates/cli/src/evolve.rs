//! `carrick approve` and `carrick rollback`: which schema of a kind its consumers get.

use std::process::ExitCode;

use carrick_syncagent::evolve::{Evolution, Evolved};
use serde_json::json;

use crate::agent_flags::AgentFlags;
use crate::diff::{Compared, text, value};
use crate::logs;
use crate::ui::{Output, confirmed, print, print_error, print_json, waiting};

/// Export a schema that is held back, after showing what it changes.
///
/// Shows what consumers would get and which of their objects would be refused or changed, asks, and then annotates the PublishedResource with the
/// name of the schema. If the CRD changes again, its new schema is held back again.
#[derive(Debug, clap::Args)]
#[command(after_help = APPROVE)]
pub struct ApproveArgs {
    /// The PublishedResource
    #[arg(value_name = "PUBLISHED_RESOURCE")]
    name: String,
    #[command(flatten)]
    agent: AgentFlags,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// Export the earlier schema again, after showing what that changes.
///
/// The schema that follows from the CRD of today is held back until somebody approves it. If the PublishedResource exports every schema, its
/// schemaUpdates becomes Manual.
#[derive(Debug, clap::Args)]
#[command(after_help = ROLLBACK)]
pub struct RollbackArgs {
    /// The PublishedResource
    #[arg(value_name = "PUBLISHED_RESOURCE")]
    name: String,
    /// The APIResourceSchema to go back to, if not the one that was made before the exported one
    #[arg(long, value_name = "SCHEMA")]
    to: Option<String>,
    #[command(flatten)]
    agent: AgentFlags,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

const APPROVE: &str = "\
Examples:
  carrick approve buckets
      shows what changes, and asks; the agent is found by its Deployment
  carrick approve buckets --yes -o json … | jq .class";

const ROLLBACK: &str = "\
Examples:
  carrick rollback buckets
      shows what changes, and asks; the agent is found by its Deployment
  carrick rollback buckets --to v1a2b3c4.buckets.example.com --yes …";

/// Approves the schema that is held back.
pub async fn approve(args: ApproveArgs, verbose: bool) -> anyhow::Result<ExitCode> {
    logs::init(logs::Quiet::Silent, verbose);
    let agent = args.agent.identify_export().await?;
    let config = agent.options.clone().into_config()?;
    let (evolution, step) = waiting(
        "trying the schema on what consumers have",
        Box::pin(async {
            let evolution = Evolution::connect(&config).await?;
            let evolved = evolution.of(&args.name).await?;
            let step = Step::new(&evolution, evolved).await?;
            anyhow::Ok((evolution, step))
        }),
    )
    .await?;
    if !step.is_taken(args.output, args.yes)? {
        anyhow::bail!("{} is not approved", step.evolved.computed);
    }
    if !step.is_done() {
        waiting("approving", evolution.approve(&step.evolved)).await?;
    }
    step.tell(args.output, |after| format!("{after} is approved; a running agent exports it within moments."))?;
    Ok(ExitCode::SUCCESS)
}

/// Goes back to the schema before.
pub async fn roll_back(args: RollbackArgs, verbose: bool) -> anyhow::Result<ExitCode> {
    logs::init(logs::Quiet::Silent, verbose);
    let agent = args.agent.identify_export().await?;
    let config = agent.options.clone().into_config()?;
    let (evolution, evolved, step) = waiting(
        "trying the schema on what consumers have",
        Box::pin(async {
            let evolution = Evolution::connect(&config).await?;
            let evolved = evolution.of(&args.name).await?;
            let back = evolution.earlier(&evolved, args.to.as_deref()).await?;
            let step = Step::new(&evolution, back).await?;
            anyhow::Ok((evolution, evolved, step))
        }),
    )
    .await?;
    if !step.is_taken(args.output, args.yes)? {
        anyhow::bail!("{} stays exported", evolved.exported);
    }
    if !step.is_done() {
        waiting("going back", evolution.roll_back(&evolved, &step.evolved.computed)).await?;
    }
    let manual = if evolved.is_gated() {
        String::new()
    } else {
        format!("schemaUpdates of PublishedResource {} is Manual now, so that the CRD does not undo this.\n", args.name)
    };
    let kept =
        "Copies keep what orders have in fields that it does not know, until their consumers change these orders.";
    step.tell(args.output, |after| format!("{manual}A running agent exports {after} within moments. {kept}"))?;
    Ok(ExitCode::SUCCESS)
}

/// A step from the exported schema to another one, and what it does to consumers.
struct Step {
    evolved: Evolved,
    compared: Vec<Compared>,
}

impl Step {
    /// Compares the two schemas, and tries the other one on consumers' objects.
    async fn new(evolution: &Evolution, evolved: Evolved) -> anyhow::Result<Self> {
        let compared = if evolved.exported == evolved.computed {
            Vec::new()
        } else {
            let trial = Some(evolution.trial(&evolved).await?);
            vec![Compared { about: evolved.name.clone(), report: evolved.report()?, trial }]
        };
        Ok(Self { evolved, compared })
    }

    /// Whether that schema is exported already.
    fn is_done(&self) -> bool {
        self.compared.is_empty()
    }

    /// Shows what changes, and asks.
    fn is_taken(&self, output: Output, yes: bool) -> anyhow::Result<bool> {
        match output {
            Output::Text => print(&text(&self.compared)),
            // Whoever is asked has to know what about; standard output is for the answer.
            Output::Json if !yes => print_error(&text(&self.compared)),
            Output::Json => {}
        }
        let question = format!("Export {} instead of {}?", self.evolved.computed, self.evolved.exported);
        Ok(self.is_done() || yes || confirmed(&question)?)
    }

    /// Says what was done.
    fn tell(&self, output: Output, done: impl Fn(&str) -> String) -> anyhow::Result<()> {
        let (before, after) = (&self.evolved.exported, &self.evolved.computed);
        match output {
            Output::Text if self.is_done() => print(&format!("{after} is exported already.\n")),
            Output::Text => print(&format!("{}\n", done(after))),
            Output::Json => {
                let mut told = value(&self.compared)?;
                told["publishedResource"] = json!(self.evolved.name);
                told["before"] = json!(before);
                told["after"] = json!(after);
                print_json(&told)?;
            }
        }
        Ok(())
    }
}
