//! `carrick top`: what an agent is doing, in a terminal.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use console::{Term, style};
use serde_json::Value;

use crate::demo::fetch;
use crate::{logs, signals};

/// How many workspaces are listed.
const LISTED: usize = 10;

/// Show what an agent is doing, refreshed regularly.
///
/// Reads the dashboard of an agent that was started with --dashboard-address. It is read-only.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Where the agent serves its dashboard
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8086")]
    address: String,
    /// Seconds between two refreshes
    #[arg(long, value_name = "SECONDS", default_value_t = 2)]
    every: u64,
    /// Print once and exit, which is also what happens when standard output is not a terminal
    #[arg(long)]
    once: bool,
}

const EXAMPLES: &str = "\
Examples:
  api-syncagent … --dashboard-address :8086
  carrick top
  kubectl -n kcp-system port-forward deployment/api-syncagent 8086 & carrick top";

/// Refreshes until stopped.
pub async fn run(args: Args, verbose: bool) -> anyhow::Result<ExitCode> {
    logs::init(logs::Quiet::Silent, verbose);
    let out = Term::stdout();
    let once = args.once || !out.is_term();
    loop {
        let url = format!("http://{}/state.json", args.address);
        let look = fetch::get(&url, None).await.and_then(|(status, state)| {
            ensure!(status == 200 && state["agent"].is_object(), "{url} answers {status}, but is not a dashboard");
            Ok(state)
        });
        let look = look.context("start the agent with --dashboard-address, and pass that address with --address");
        if once {
            // If the reader has closed the pipe, there is nobody to print for.
            let _ = out.write_str(&text(&look?, false));
            return Ok(ExitCode::SUCCESS);
        }
        let shown = look.map_or_else(|error| format!("{error:#}\n"), |state| text(&state, console::colors_enabled()));
        let _ = out.clear_screen();
        let _ = out.write_str(&shown);
        tokio::select! {
            told = signals::stop() => { told?; return Ok(ExitCode::SUCCESS) }
            () = tokio::time::sleep(Duration::from_secs(args.every.max(1))) => {}
        }
    }
}

/// What is wrong with a PublishedResource, as the dashboard reports it. Pure.
pub fn trouble(pr: &Value) -> Option<&str> {
    let wrong = pr["conditions"].as_array().into_iter().flatten().find(|condition| condition["status"] == "False");
    pr["problem"].as_str().or(pr["failing"].as_str()).or(wrong.and_then(|condition| condition["message"].as_str()))
}

/// One screen. Pure.
fn text(state: &Value, colours: bool) -> String {
    let (agent, now) = (&state["agent"], &state["now"]);
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    let ready = agent["ready"] == true;
    let badge = match (ready, agent["leading"] == false) {
        (false, _) => style("not ready").red().bold(),
        (true, true) => style("stands by").green(),
        (true, false) => style("works").green().bold(),
    };
    let mut text = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        text,
        "{}  {}  APIExport {} in {}  up {} s  version {}",
        style(word(&agent["name"])).bold().force_styling(colours),
        badge.force_styling(colours),
        word(&agent["export"]),
        word(&agent["workspace"]),
        agent["uptimeSeconds"],
        word(&agent["version"]),
    );
    let _ = writeln!(
        text,
        "longest wait {:.1} s  waiting {:.0}  steps {:.0}  errors {:.0}",
        number(&now["lagSeconds"]),
        number(&now["queued"]),
        number(&now["steps"]),
        number(&now["errors"]),
    );
    let list = |key: &str| state[key].as_array().cloned().unwrap_or_default();
    for problem in list("problems") {
        let _ = writeln!(text, "{}", style(format!("! {}", word(&problem))).red().force_styling(colours));
    }
    let published = list("publishedResources");
    let width = published.iter().map(|pr| word(&pr["name"]).len()).max().unwrap_or(0).max("PUBLISHED RESOURCE".len());
    let _ = writeln!(text, "\n{:width$}  {:>8}  {:>8}  STATE", "PUBLISHED RESOURCE", "OBJECTS", "COPIES");
    for pr in published {
        let verdict = match trouble(&pr) {
            Some(trouble) => style(trouble.to_owned()).yellow(),
            None => style(word(&pr["schema"])).green(),
        };
        let _ = writeln!(
            text,
            "{:width$}  {:>8.0}  {:>8.0}  {}",
            word(&pr["name"]),
            number(&pr["sources"]),
            number(&pr["copies"]),
            verdict.force_styling(colours)
        );
    }
    let mut workspaces = list("workspaces");
    workspaces.sort_by_key(|workspace| std::cmp::Reverse(workspace["objects"].as_u64()));
    let _ = writeln!(text, "\n{:width$}  {:>8}", "WORKSPACE", "OBJECTS");
    for workspace in workspaces.iter().take(LISTED) {
        let _ = writeln!(text, "{:width$}  {:>8}", word(&workspace["cluster"]), workspace["objects"]);
    }
    if workspaces.len() > LISTED {
        let _ = writeln!(text, "and {} more", workspaces.len() - LISTED);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_screen_shows_state_problems_and_counts() {
        let state = json!({
            "agent": { "name": "a", "version": "1", "export": "e", "workspace": "root:p", "leading": null, "ready": false, "uptimeSeconds": 3 },
            "problems": ["connection to kcp: refused"],
            "now": { "lagSeconds": 1.25, "queued": 2.0, "steps": 3.0, "errors": 4.0 },
            "publishedResources": [
                { "name": "buckets", "schema": "v1.buckets.e", "conditions": [], "sources": 5.0, "copies": 4.0 },
                { "name": "broken", "problem": "no such kind", "conditions": [], "sources": 0.0, "copies": 0.0 },
            ],
            "workspaces": [{ "cluster": "few", "objects": 1 }, { "cluster": "many", "objects": 9 }],
        });
        let text = text(&state, false);
        for line in [
            "a  not ready  APIExport e in root:p  up 3 s  version 1",
            "longest wait 1.2 s  waiting 2  steps 3  errors 4",
            "! connection to kcp: refused",
            "buckets                    5         4  v1.buckets.e",
            "broken                     0         0  no such kind",
        ] {
            assert!(text.lines().any(|got| got == line), "{line:?} is not in\n{text}");
        }
        assert!(text.find("many").unwrap() < text.find("few").unwrap(), "{text}");
    }
}
