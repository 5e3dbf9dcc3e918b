//! The findings, printed for people and for programs.

use std::fmt::Write as _;
use std::process::ExitCode;

use console::style;
use serde::Serialize;

use super::checks::{CHECKS, Finding, Severity};
use super::facts::Facts;
use super::wrap;

/// How wide a line may be.
const WIDTH: usize = 100;

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
        Self::of(CHECKS.iter().map(|check| (check.name, (check.run)(facts))))
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

    /// Lines for people.
    pub fn text(&self, colours: bool) -> String {
        let mut text = String::new();
        let mut check = "";
        for entry in &self.findings {
            if entry.check != check {
                let gap = if check.is_empty() { "" } else { "\n" };
                // Writing to a String cannot fail, here and below.
                let _ = writeln!(text, "{gap}{}", style(entry.check).bold().force_styling(colours));
                check = entry.check;
            }
            let Finding { severity, text: what, fix } = &entry.finding;
            let mark = match severity {
                Severity::Green => style("✓").green(),
                Severity::Amber => style("!").yellow().bold(),
                Severity::Red => style("✗").red().bold(),
            };
            for (at, line) in wrap::text(what, WIDTH - 4).iter().enumerate() {
                let lead =
                    if at == 0 { format!("  {}", mark.clone().force_styling(colours)) } else { "   ".to_owned() };
                let _ = writeln!(text, "{lead} {line}");
            }
            for line in fix.iter().flat_map(|line| wrap::command(line, WIDTH - 6)) {
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
        assert!(text.starts_with("Service cluster\n  ✗ cannot read it\n      pass a kubeconfig"), "{text}");
        assert!(text.contains("\nNot checked: ") && !text.contains('\u{1b}'), "{text}");
        assert!(report.text(true).contains('\u{1b}'));
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["severity"], "red");
        assert_eq!(json["findings"][0]["check"], "Service cluster");
        assert_eq!(json["findings"][0]["severity"], "red");
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
