//! The checks: small pure functions over the facts.

mod agents;
mod broker;
mod consumers;
mod export;
mod imports;
mod leftovers;
mod naming;
mod published;
mod reported;
mod rights;
pub(crate) mod servers;
mod token;

use carrick_process::printable::one_line;
use serde::Serialize;

use super::facts::{Facts, Tool};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Works as it should.
    Green,
    /// Works, or will, but needs attention.
    Amber,
    /// Does not work.
    Red,
}

/// What a check has found out about one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What kind of finding it is: a word that stays the same from version to version, and the heading that explains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'static str>,
    /// How bad it is.
    pub severity: Severity,
    /// What was found.
    pub text: String,
    /// Commands to type, or text to write, to fix it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fix: Vec<String>,
    /// Whether `--fix` may run the commands: they add something, and take nothing away.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub runs: bool,
}

impl Finding {
    pub(crate) fn green(text: impl Into<String>) -> Self {
        let text = one_line(&text.into()).into_owned();
        Self { id: None, severity: Severity::Green, text, fix: Vec::new(), runs: false }
    }

    /// With the word for this kind of finding.
    pub(crate) fn id(self, id: &'static str) -> Self {
        Self { id: Some(id), ..self }
    }

    /// With commands that may be run as they are, unless somebody else has to run them.
    pub(crate) fn runs(self) -> Self {
        let ours = !self.fix.is_empty()
            && !self.fix.iter().any(|line| line.starts_with('#') || line.contains('<') && !line.contains("<<"));
        Self { runs: ours, ..self }
    }

    pub(crate) fn amber(text: impl Into<String>) -> Self {
        Self { severity: Severity::Amber, ..Self::green(text) }
    }

    pub(crate) fn red(text: impl Into<String>) -> Self {
        Self { severity: Severity::Red, ..Self::green(text) }
    }

    /// A command for kubectl, with a note on who must run it.
    fn by(self, tool: &Tool, line: &str) -> Self {
        let noted = tool.note.as_ref().is_none_or(|note| self.fix.contains(note));
        let told = if noted { self } else { self.fix(tool.note.clone().unwrap_or_default()) };
        told.fix(format!("{} {line}", tool.kubectl))
    }

    pub(crate) fn fixes(self, lines: Vec<String>) -> Self {
        lines.into_iter().fold(self, Self::fix)
    }

    /// Adds a line.
    pub(crate) fn fix(mut self, line: impl Into<String>) -> Self {
        self.fix.extend(line.into().lines().map(|line| one_line(line).into_owned()));
        self
    }
}

/// One check. It returns nothing if the facts it needs could not be gathered.
pub struct Check {
    /// What it is about.
    pub name: &'static str,
    /// Judges the facts.
    pub run: fn(&Facts) -> Vec<Finding>,
}

/// All checks, in the order in which things must work.
pub const CHECKS: [Check; 17] = [
    Check { name: "Service cluster", run: servers::service },
    Check { name: "kcp", run: servers::kcp },
    Check { name: "Clocks", run: servers::clocks },
    Check { name: "Token for kcp", run: token::token },
    Check { name: "Installation", run: published::installation },
    Check { name: "Endpoint slice", run: export::slice },
    Check { name: "Export", run: export::export },
    Check { name: "Endpoints", run: export::endpoints },
    Check { name: "Rights on the service cluster", run: rights::service },
    Check { name: "Rights in kcp", run: rights::kcp },
    Check { name: "Published resources", run: published::published },
    Check { name: "Names of copies", run: naming::naming },
    Check { name: "Consumers", run: consumers::consumers },
    Check { name: "Broker", run: broker::broker },
    Check { name: "Agents", run: agents::agents },
    Check { name: "Leftovers in the export", run: leftovers::export },
    Check { name: "Copies", run: leftovers::copies },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_finding_forges_a_line() {
        let forged = "\u{1b}[32mall is well\u{202e}\nGREEN everything";
        let found = Finding::red(forged).fix(format!("kubectl get {forged}"));
        let lines = [vec![found.text], found.fix].concat();
        // A fix may have several lines, each of which is a command of its own.
        assert_eq!(lines.len(), 3);
        for line in lines {
            assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}'), "{line:?}");
        }
    }
}
