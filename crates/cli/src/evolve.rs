//! `carrick approve` and `carrick rollback`: which schema of a kind its consumers get.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use carrick_syncagent::evolve::{Evolution, Evolved};

use crate::agent_flags::OptionalAgentFlags;
use crate::diff::{Compared, text};
use crate::logs;

/// Export a schema that is held back, after showing what it changes.
///
/// Shows what consumers would get and which of their objects would be refused or changed, asks, and then annotates the PublishedResource with the
/// name of the schema. If the CRD changes again, its new schema is held back again.
#[derive(Debug, clap::Args)]
pub struct ApproveArgs {
    /// The PublishedResource
    #[arg(value_name = "PUBLISHED_RESOURCE")]
    name: String,
    #[command(flatten)]
    agent: OptionalAgentFlags,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// Export the schema that was exported before, after showing what that changes.
///
/// The schema that follows from the CRD of today is held back until somebody approves it. If the PublishedResource exports every schema, its
/// schemaUpdates becomes Manual.
#[derive(Debug, clap::Args)]
pub struct RollbackArgs {
    /// The PublishedResource
    #[arg(value_name = "PUBLISHED_RESOURCE")]
    name: String,
    /// The APIResourceSchema to go back to, if not the one that was made before the exported one
    #[arg(long, value_name = "SCHEMA")]
    to: Option<String>,
    #[command(flatten)]
    agent: OptionalAgentFlags,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// Approves the schema that is held back.
pub async fn approve(args: ApproveArgs, verbose: bool) -> anyhow::Result<ExitCode> {
    logs::init(logs::Quiet::Silent, verbose);
    let evolution = Evolution::connect(&args.agent.options()?.into_config()?).await?;
    let evolved = evolution.of(&args.name).await?;
    if evolved.exported == evolved.computed {
        println!("{} is exported already.", evolved.exported);
        return Ok(ExitCode::SUCCESS);
    }
    show(&evolution, &evolved).await?;
    if !args.yes && !confirmed(&format!("Export {} instead of {}?", evolved.computed, evolved.exported))? {
        anyhow::bail!("{} is not approved", evolved.computed);
    }
    evolution.approve(&evolved).await?;
    println!("{} is approved; a running agent exports it within moments.", evolved.computed);
    Ok(ExitCode::SUCCESS)
}

/// Goes back to the schema before.
pub async fn roll_back(args: RollbackArgs, verbose: bool) -> anyhow::Result<ExitCode> {
    logs::init(logs::Quiet::Silent, verbose);
    let evolution = Evolution::connect(&args.agent.options()?.into_config()?).await?;
    let evolved = evolution.of(&args.name).await?;
    let back = evolution.earlier(&evolved, args.to.as_deref()).await?;
    let target = back.computed.clone();
    if target == evolved.exported {
        println!("{target} is exported already.");
        return Ok(ExitCode::SUCCESS);
    }
    show(&evolution, &back).await?;
    if !args.yes && !confirmed(&format!("Export {target} instead of {}?", evolved.exported))? {
        anyhow::bail!("{} stays exported", evolved.exported);
    }
    evolution.roll_back(&evolved, &target).await?;
    if !evolved.is_gated() {
        println!("schemaUpdates of PublishedResource {} is Manual now, so that the CRD does not undo this.", args.name);
    }
    println!("A running agent exports {target} within moments.");
    Ok(ExitCode::SUCCESS)
}

async fn show(evolution: &Evolution, evolved: &Evolved) -> anyhow::Result<()> {
    let trial = Some(evolution.trial(evolved).await?);
    let compared = Compared { about: evolved.name.clone(), report: evolved.report()?, trial };
    // If the reader has closed the pipe, there is nobody to print for.
    let _ = std::io::stdout().lock().write_all(text(&[compared]).as_bytes());
    Ok(())
}

fn confirmed(question: &str) -> anyhow::Result<bool> {
    anyhow::ensure!(std::io::stdin().is_terminal(), "nobody can be asked here; say --yes to go on");
    eprint!("{question} [y/N] ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
