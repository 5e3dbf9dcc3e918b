//! The findings, printed for people and for programs.

use std::fmt::Write as _;
use std::process::ExitCode;

use console::style;
use serde::Serialize;

use super::checks::servers::swapped;
use super::checks::{CHECKS, Check, Finding, Severity};
use super::facts::Facts;
use super::wrap;

/// How wide a line may be.
const WIDTH: usize = 100;
/// The narrowest terminal for which lines are broken.
const NARROWEST: usize = 40;

/// All findings.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The worst of all.
    pub severity: Severity,
    findings: Vec<ReportedFinding>,
    /// Checks that could not run.
    skipped: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
struct ReportedFinding {
    check: &'static str,
    #[serde(flatten)]
    finding: Finding,
}

impl Report {
    /// Runs all checks.
    pub fn new(facts: &Facts) -> Self {
        // On servers that are taken for each other, every fix would spoil something.
        let swapped = swapped(facts);
        let run = |check: &Check| match &swapped {
            Some(found) if check.name == CHECKS[0].name => vec![found.clone()],
            Some(_) => Vec::new(),
            None => (check.run)(facts),
        };
        Self::of(CHECKS.iter().map(|check| (check.name, run(check))))
    }

    /// What checks have found, by their names.
    pub fn of(checks: impl IntoIterator<Item = (&'static str, Vec<Finding>)>) -> Self {
        let (mut findings, mut skipped) = (Vec::new(), Vec::new());
        for (check, found) in checks {
            if found.is_empty() {
                skipped.push(check);
            }
            findings.extend(found.into_iter().map(|finding| ReportedFinding { check, finding }));
        }
        let severity = findings.iter().map(|entry| entry.finding.severity).max().unwrap_or(Severity::Green);
        Self { severity, findings, skipped }
    }

    /// 0, 1 or 2, from green to red; 0 instead of 1 if amber does not count.
    pub fn exit_code(&self, counts_amber: bool) -> ExitCode {
        ExitCode::from(match self.severity {
            Severity::Amber if counts_amber => 1,
            Severity::Green | Severity::Amber => 0,
            Severity::Red => 2,
        })
    }

    /// What is not green, without the times in it.
    pub fn attention(&self) -> Vec<String> {
        let all = self.findings.iter().map(|entry| &entry.finding).filter(|it| it.severity != Severity::Green);
        all.map(|it| it.text.chars().filter(|letter| !letter.is_ascii_digit()).collect()).collect()
    }

    /// Findings whose commands may be run: what was found, and the commands.
    pub fn repairs(&self) -> impl Iterator<Item = (&str, &[String])> {
        let all = self.findings.iter().map(|entry| &entry.finding);
        all.filter(|finding| finding.runs).map(|finding| (finding.text.as_str(), finding.fix.as_slice()))
    }

    /// Lines for people, as wide as their terminal, up to a width that can be read.
    pub fn text(&self, colours: bool) -> String {
        let columns = console::Term::stdout().size_checked().map_or(WIDTH, |(_, columns)| usize::from(columns));
        self.text_within(colours, columns.clamp(NARROWEST, WIDTH))
    }

    fn text_within(&self, colours: bool, width: usize) -> String {
        let mut text = String::new();
        let mut check = "";
        for entry in &self.findings {
            if entry.check != check {
                let gap = if check.is_empty() { "" } else { "\n" };
                // Writing to a String cannot fail, here and below.
                let _ = writeln!(text, "{gap}{}", style(entry.check).bold().force_styling(colours));
                check = entry.check;
            }
            let Finding { id, severity, text: what, fix, .. } = &entry.finding;
            let what = id.map_or_else(|| what.clone(), |id| format!("{what} [{id}]"));
            let mark = match severity {
                Severity::Green => style("✓").green(),
                Severity::Amber => style("!").yellow().bold(),
                Severity::Red => style("✗").red().bold(),
            };
            for (at, line) in wrap::text(&what, width - 4).iter().enumerate() {
                let lead =
                    if at == 0 { format!("  {}", mark.clone().force_styling(colours)) } else { "   ".to_owned() };
                let _ = writeln!(text, "{lead} {line}");
            }
            for line in fix.iter().flat_map(|line| wrap::command(line, width - 6)) {
                let _ = writeln!(text, "      {}", style(line).cyan().force_styling(colours));
            }
        }
        let count = |severity| self.findings.iter().filter(|entry| entry.finding.severity == severity).count();
        let [green, amber, red] = [Severity::Green, Severity::Amber, Severity::Red].map(count);
        let _ = writeln!(text, "\n{green} green, {amber} amber, {red} red.");
        if !self.skipped.is_empty() && red > 0 {
            let _ = writeln!(text, "Not checked: {}. Fix what is red and run again.", self.skipped.join(", "));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_say_nothing_about_facts_that_were_not_gathered() {
        let mut facts = Facts::default();
        facts.service.unusable = Some("cannot read it".to_owned());
        let report = Report::new(&facts);
        assert_eq!(report.severity, Severity::Red);
        let text = report.text(false);
        assert!(
            text.starts_with("Service cluster\n  ✗ cannot read it [kubeconfig-unusable]\n      pass a kubeconfig"),
            "{text}"
        );
        assert!(text.contains("\nNot checked: ") && !text.contains('\u{1b}'), "{text}");
        assert!(report.text(true).contains('\u{1b}'));
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["severity"], "red");
        assert_eq!(json["findings"][0]["check"], "Service cluster");
        assert_eq!(json["findings"][0]["severity"], "red");
    }
    #[test]
    fn every_finding_has_an_id_and_every_id_a_heading() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let page = std::fs::read_to_string(root.join("../../docs/doctor.md")).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for file in std::fs::read_dir(root.join("src/doctor/checks")).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            let made = code.matches("Finding::red(").count() + code.matches("Finding::amber(").count();
            let ids: Vec<&str> = code.split(".id(\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
            assert!(ids.len() >= made, "{}: {made} findings, {} ids", path.display(), ids.len());
            seen.extend(ids.into_iter().map(str::to_owned));
        }
        assert!(seen.len() > 40, "{seen:?}");
        let headings: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("### ")).collect();
        for id in &seen {
            assert!(headings.contains(&id.as_str()), "docs/doctor.md has no heading ### {id}");
        }
        for heading in headings {
            assert!(seen.contains(heading), "docs/doctor.md explains {heading}, which is no finding any more");
        }
    }

    #[test]
    fn only_commands_that_add_something_and_are_ours_to_run_are_run() {
        let mine = Finding::red("a").fix("kubectl create namespace x").runs();
        let theirs = Finding::red("b").fix("# with a kubeconfig of an administrator:").fix("kubectl create x").runs();
        let open = Finding::red("c").fix("kubectl create --user=<the agent's user>").runs();
        let shown = Finding::red("d").fix("kubectl delete x");
        let report = Report::of([("check", vec![mine, theirs, open, shown])]);
        let commands: Vec<_> = report.repairs().collect();
        assert_eq!(commands, [("a", ["kubectl create namespace x".to_owned()].as_slice())]);
    }

    #[test]
    fn reports_fit_the_terminal() {
        let finding = Finding::red("a word and another one, ".repeat(20))
            .fix("kubectl --kubeconfig service.kubeconfig create clusterrole x --verb=get --resource=things --dry-run=client")
            .fix("a remark that is longer than one line of a terminal with eighty columns, and is broken between words");
        let report = Report::of([("check", vec![finding])]);
        for width in [80, 100] {
            let text = report.text_within(false, width);
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width) && widest > Some(width - 20), "{width}:\n{text}");
        }
    }

    #[test]
    fn amber_fails_only_if_it_counts() {
        for (finding, counted, uncounted) in
            [(Finding::green("a"), 0, 0), (Finding::amber("a"), 1, 0), (Finding::red("a"), 2, 2)]
        {
            let report = Report::of([("check", vec![finding])]);
            let codes = [report.exit_code(true), report.exit_code(false)];
            assert_eq!(codes, [ExitCode::from(counted), ExitCode::from(uncounted)]);
        }
    }
}
