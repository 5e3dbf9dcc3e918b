//! `carrick diff`: what a changed CRD does to those who use it.

mod documents;
mod release;

use std::process::ExitCode;

use carrick_process::printable::one_line;
use carrick_schema::evolution::{Class, Definition, Report, Trial, diff};
use carrick_syncagent::evolve::Evolution;
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::agent_flags::AgentFlags;
use crate::logs;
use crate::ui::{print, print_error, print_json, telling};

/// Judge what a changed CRD does to those who use it.
///
/// Compares CRDs or APIResourceSchemas from two files (- for standard input), or what an APIExport lists with what follows from the CRDs of today,
/// or files of a git repository with its last release.
/// Every change is compatible, tightening or breaking, with an example where one can be made; the validator of carrick plane has checked it.
/// Exit code 0: compatible; 3: tightening; 4: breaking; 1: an error.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The definitions before and after; with --against-release the files and folders to compare, by default the current folder
    #[arg(value_name = "OLD NEW")]
    files: Vec<String>,
    /// Compare with what the files were at the last release: the highest version among the tags of git that come before this commit, or a tag or
    /// commit of your choice, written --against-release=v1.2.0
    #[arg(long, value_name = "TAG", num_args = 0..=1, require_equals = true, default_missing_value = "", conflicts_with_all = ["live", "published_resource"])]
    against_release: Option<String>,
    #[command(flatten)]
    agent: AgentFlags,
    /// Only these PublishedResources, instead of files
    #[arg(long, value_name = "NAME", conflicts_with = "files")]
    published_resource: Vec<String>,
    /// Try the new schemas on the objects of all consumers, too
    #[arg(long, conflicts_with = "files")]
    live: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// For pull requests.
    Markdown,
}

const EXAMPLES: &str = "\
Examples:
  carrick diff old.yaml new.yaml
  git show main:crds.yaml | carrick diff - crds.yaml -o markdown
  carrick diff --against-release config/crd
      what has changed since the last tag such as v1.2.0
  carrick diff --live
      what consumers would get if the CRDs of today were exported, and which of
      their objects would be refused; the agent is found by its Deployment";

/// What was compared, and what came out.
pub struct Compared {
    /// What it is about, if there are several.
    pub about: String,
    /// The changes.
    pub report: Report,
    /// What they would do to existing objects.
    pub trial: Option<Trial>,
}

/// Prints the changes.
pub async fn run(args: Args, verbose: bool) -> anyhow::Result<ExitCode> {
    logs::init(logs::Quiet::Silent, verbose);
    let mut base = None;
    let compared = match (args.files.as_slice(), &args.against_release) {
        (paths, Some(tag)) => {
            let (name, old, new) = release::read(tag, paths)?;
            // Standard output is for the answer.
            print_error(&format!("# compared with {name}\n"));
            base = Some(name);
            judged(old, new)
        }
        ([old, new], None) => files(old, new)?,
        ([], None) => exported(&args).await?,
        _ => anyhow::bail!(
            "two files are compared, OLD and NEW; with --against-release, files and folders with what they were"
        ),
    };
    match args.output {
        Output::Text => print(&text(&compared)),
        Output::Markdown => print(&markdown(&compared)),
        Output::Json => {
            let mut all = value(&compared)?;
            if let Some(base) = base {
                all["release"] = json!(base);
            }
            print_json(&all)?;
        }
    }
    Ok(exit_code(&compared))
}

fn files(old: &str, new: &str) -> anyhow::Result<Vec<Compared>> {
    anyhow::ensure!(old != "-" || new != "-", "standard input (-) can be only one of the two");
    Ok(judged(documents::read(old)?, documents::read(new)?))
}

/// Every definition before, with the one after.
fn judged(old: Vec<Definition>, new: Vec<Definition>) -> Vec<Compared> {
    let one = |pair: documents::Pair| match pair {
        documents::Pair::Both(old, new) => Compared { about: old.resource(), report: diff(&old, &new), trial: None },
        documents::Pair::Gone(old) => Compared { about: old.resource(), report: gone(&old), trial: None },
    };
    documents::pairs(old, new).into_iter().map(one).collect()
}

/// What is there no longer.
fn gone(old: &Definition) -> Report {
    let reason = format!("{} goes away", old.kind);
    let change =
        carrick_schema::evolution::Change { path: old.resource(), class: Class::Breaking, reason, example: None };
    vec![change].into()
}

async fn exported(args: &Args) -> anyhow::Result<Vec<Compared>> {
    let agent = args.agent.identify_export().await?;
    let config = agent.options.clone().into_config()?;
    telling("reading what is exported", async |doing| {
        let evolution = Evolution::connect(&config).await?;
        let all = args.published_resource.is_empty();
        let names = if all { evolution.names().await? } else { args.published_resource.clone() };
        let (mut compared, number) = (Vec::new(), names.len());
        for (done, name) in names.into_iter().enumerate() {
            doing.now(format_args!("comparing {name}, {} of {number}", done + 1));
            let evolved = match evolution.of(&name).await {
                Err(carrick_syncagent::evolve::EvolveError::NotExported(_)) if all => continue,
                evolved => evolved?,
            };
            let trial = if args.live { Some(evolution.trial(&evolved).await?) } else { None };
            compared.push(Compared { about: name, report: evolved.report()?, trial });
        }
        Ok(compared)
    })
    .await
}

/// The worst of all. An object that would be refused or changed is at least a tightening.
fn class(compared: &[Compared]) -> Class {
    let living = |one: &Compared| match &one.trial {
        Some(trial) if !trial.harmed.is_empty() => Class::Tightening,
        _ => Class::Compatible,
    };
    compared.iter().map(|one| one.report.class.max(living(one))).max().unwrap_or_default()
}

fn exit_code(compared: &[Compared]) -> ExitCode {
    ExitCode::from(match class(compared) {
        Class::Compatible => 0,
        Class::Tightening => 3,
        Class::Breaking => 4,
    })
}

/// Lines for people.
pub fn text(compared: &[Compared]) -> String {
    let parts = compared.iter().map(|one| {
        let head = if compared.len() > 1 { format!("{}\n", one.about) } else { String::new() };
        let tail = one.trial.as_ref().map(|trial| format!("{}\n", tried(trial)));
        format!("{head}{}{}", one.report.text(), tail.unwrap_or_default())
    });
    parts.collect::<Vec<_>>().join("\n")
}

/// What became of consumers' objects, in one line whatever they have written into them.
fn tried(trial: &Trial) -> String {
    one_line(&trial.sentence(usize::MAX)).into_owned()
}

fn markdown(compared: &[Compared]) -> String {
    let parts = compared.iter().map(|one| {
        let head = if compared.len() > 1 { format!("### {}\n\n", one.about) } else { String::new() };
        let tail = one.trial.as_ref().map(|trial| format!("\n{}\n", tried(trial)));
        format!("{head}{}{}", one.report.markdown(), tail.unwrap_or_default())
    });
    parts.collect::<Vec<_>>().join("\n")
}

/// The overall class beside all changes. With several kinds, every change names its own.
pub fn value(compared: &[Compared]) -> anyhow::Result<Value> {
    let mut changes = Vec::new();
    let mut trials = Vec::new();
    for one in compared {
        for change in &one.report.changes {
            let mut change = serde_json::to_value(change)?;
            if compared.len() > 1 {
                change["about"] = json!(one.about);
            }
            changes.push(change);
        }
        if let Some(trial) = &one.trial {
            let mut trial = serde_json::to_value(trial)?;
            trial["about"] = json!(one.about);
            trials.push(trial);
        }
    }
    let mut all = json!({ "class": class(compared), "changes": changes });
    if !trials.is_empty() {
        all["live"] = json!(trials);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use carrick_schema::evolution::Harmed;

    use super::*;

    #[test]
    fn objects_of_consumers_forge_no_line() {
        let forged = || "x\n\u{1b}[32mcompatible\u{1b}[2J".to_owned();
        let harmed = Harmed { place: forged(), object: forged(), reason: forged() };
        let trial = Trial { objects: 1, harmed: vec![harmed] };
        let compared = [Compared { about: "a".to_owned(), report: Vec::new().into(), trial: Some(trial) }];
        let nothing = [Compared { about: "a".to_owned(), report: Vec::new().into(), trial: None }];
        for (shown, without) in [(text(&compared), text(&nothing)), (markdown(&compared), markdown(&nothing))] {
            let tail = shown.strip_prefix(&without).unwrap().trim();
            assert!(tail.lines().count() == 1 && !tail.contains('\u{1b}'), "{shown:?}");
        }
    }
}
