//! `carrick drift`: what others have changed of copies, field by field.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use carrick_process::printable::one_line;
use carrick_syncagent::agent::explain::{Explained, Question, Report, explain};
use carrick_syncagent::decide::{DriftState, ExplainedDrift, ExplainedField};
use serde::Serialize;

use crate::agent_flags::AgentFlags;
use crate::logs;
use crate::ui::{Output, print, print_json, telling};

/// Show which fields of copies somebody else has changed, and who.
///
/// Looks at every order of which spec.drift asks for that, as an agent with the same flags would. Nothing is written. Exit code 1: something
/// was asked for that does not exist, or not everything could be read.
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
    /// Show what was ordered and what is there instead, unless it may be secret
    #[arg(long)]
    diff: bool,
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
  carrick drift
      every field that somebody else has changed, and who
  carrick drift buckets --diff
      with what was ordered and what is there
  carrick drift -o json
      the same for programs";

/// Drift of one order.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Drifted<'a> {
    published_resource: &'a str,
    cluster: &'a str,
    workspace: Option<&'a str>,
    object: &'a str,
    copies: &'a [ExplainedDrift],
}

/// Prints what was found.
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
        Output::Text => print(&text(&report, args.diff)),
        Output::Json => print_json(&drifted(&report).collect::<Vec<_>>())?,
    }
    Ok(if report.incomplete.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn drift_of(object: &Explained) -> Option<&Vec<ExplainedDrift>> {
    object.plan.as_ref()?.drift.as_ref()
}

fn drifted(report: &Report) -> impl Iterator<Item = Drifted<'_>> {
    report.published_resources.iter().flat_map(|published| {
        published.objects.iter().filter_map(|object| {
            let copies = drift_of(object).filter(|copies| !copies.is_empty())?;
            Some(Drifted {
                published_resource: &published.name,
                cluster: &object.cluster,
                workspace: object.workspace.as_deref(),
                object: &object.object,
                copies,
            })
        })
    })
}

/// The report for people. Writing to a String cannot fail.
fn text(report: &Report, diff: bool) -> String {
    let mut out = String::new();
    let mut copies = 0;
    for order in drifted(report) {
        let place = order.workspace.unwrap_or(order.cluster);
        for copy in order.copies {
            copies += 1;
            let _ = writeln!(out, "{} {}: {}", one_line(place), one_line(order.object), one_line(&copy.copy));
            copy.fields.iter().for_each(|field| write_field(&mut out, field, diff));
        }
    }
    match copies {
        0 => out.push_str("No drift.\n"),
        1 => out.push_str("1 copy has drifted.\n"),
        count => drop(writeln!(out, "{count} copies have drifted.")),
    }
    for published in &report.published_resources {
        let ignored = published.objects.iter().filter(|object| object.plan.is_some() && drift_of(object).is_none());
        if ignored.count() > 0 {
            let name = one_line(&published.name);
            let _ = writeln!(
                out,
                "Not looked for: PublishedResource {name}. To look for it, set its spec.drift.policy: Report"
            );
        }
    }
    if let Some(problem) = &report.incomplete {
        let _ = writeln!(out, "Incomplete: {}", one_line(problem));
    }
    out
}

fn write_field(out: &mut String, field: &ExplainedField, diff: bool) {
    let by = field.manager.as_ref().map(|manager| format!(", changed by {}", one_line(manager))).unwrap_or_default();
    let state = match field.state {
        DriftState::Reported => "",
        DriftState::Reverting => ", is being set back",
        DriftState::Contested => ", contested: set back too often and left alone for now",
    };
    let _ = writeln!(out, "  {}{by}{state}", one_line(&field.path));
    if diff && (field.ordered.is_some() || field.found.is_some()) {
        for (sign, value) in [('-', &field.ordered), ('+', &field.found)] {
            let _ = writeln!(out, "    {sign} {}", value.as_deref().map_or_else(|| "(nothing)".into(), one_line));
        }
    }
}

#[cfg(test)]
mod tests {
    use carrick_syncagent::agent::explain::Published;
    use carrick_syncagent::decide::Explanation;

    use super::*;

    fn object(name: &str, drift: Option<Vec<ExplainedDrift>>) -> Explained {
        let (why, none) = ("in line".to_owned(), Vec::new);
        let plan = Explanation { why, steps: none(), problems: none(), waits: none(), changed: none(), drift };
        Explained {
            cluster: "c1".to_owned(),
            workspace: Some("root:team".to_owned()),
            consumer: None,
            object: format!("default/{name}"),
            error: None,
            plan: Some(plan),
        }
    }

    fn report(objects: Vec<Explained>) -> Report {
        let published = Published {
            name: "buckets".to_owned(),
            problem: None,
            doubts: Vec::new(),
            schema: None,
            schema_exists: true,
            idle: None,
            unexplained: None,
            reported: Vec::new(),
            objects,
        };
        Report {
            agent: "a".to_owned(),
            export: "e".to_owned(),
            export_changes: Vec::new(),
            published_resources: vec![published],
            incomplete: None,
        }
    }

    #[test]
    fn drift_is_shown_field_by_field_with_who_changed_it() {
        let field = |path: &str, manager: Option<&str>, state| ExplainedField {
            path: path.to_owned(),
            manager: manager.map(str::to_owned),
            state,
            ordered: Some("1".to_owned()),
            found: None,
        };
        let fields = vec![
            field("spec.size", Some("kubectl\n-edit"), DriftState::Reported),
            field("spec.tier", None, DriftState::Contested),
        ];
        let copy = ExplainedDrift { copy: "service Bucket ns/a".to_owned(), fields };
        let report = report(vec![object("a", Some(vec![copy])), object("b", Some(Vec::new()))]);
        assert_eq!(
            text(&report, true),
            "root:team default/a: service Bucket ns/a\n  spec.size, changed by kubectl\\n-edit\n    - 1\n    + (nothing)\n  spec.tier, contested: set back too often and left alone for now\n    - 1\n    + (nothing)\n1 copy has drifted.\n"
        );
        assert!(!text(&report, false).contains("- 1"));
        let json = serde_json::to_value(drifted(&report).collect::<Vec<_>>()).unwrap();
        assert_eq!(json[0]["copies"][0]["fields"][1]["state"], "contested");
        assert_eq!(
            (json[0]["publishedResource"].as_str(), json[0]["object"].as_str()),
            (Some("buckets"), Some("default/a"))
        );
    }

    #[test]
    fn whoever_ignores_drift_is_told_how_to_see_it() {
        assert_eq!(text(&report(vec![object("a", Some(Vec::new()))]), true), "No drift.\n");
        let ignored = text(&report(vec![object("a", None)]), true);
        assert!(ignored.contains("Not looked for: PublishedResource buckets."), "{ignored}");
    }
}
