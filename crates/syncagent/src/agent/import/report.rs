//! What became of objects, in words.

use std::fmt;

use carrick_process::printable::one_line;

use super::{ImportOutcome, ImportedObject, Imports};

/// How many fields of one object are shown.
const SHOWN: usize = 10;

impl ImportOutcome {
    /// One word or two for the table.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ready => "can be imported",
            Self::Resumes => "goes on",
            Self::Imported => "imported",
            Self::Waits => "waits for the agent",
            Self::Already => "imported before",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::UndoLink => "link goes",
            Self::UndoOrder => "order goes",
            Self::Undone => "taken back",
            Self::NotImported => "not imported",
        }
    }
}

impl ImportedObject {
    fn columns(&self) -> [String; 4] {
        let text = |text: Option<&String>| text.map_or_else(|| "-".to_owned(), |text| one_line(text).into_owned());
        let workspace = self.workspace.as_ref().or(self.cluster.as_ref());
        let object = one_line(&self.object).into_owned();
        [object, text(workspace), text(self.order.as_ref()), self.outcome.word().to_owned()]
    }

    /// What is said below its line.
    fn details(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.reason.iter().map(|reason| one_line(reason).into_owned()).collect();
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        for change in self.changes.iter().take(SHOWN) {
            let line = match (&change.from, &change.to) {
                (None, None) => change.path.clone(),
                (from, to) => format!("{}: {} would become {}", change.path, value(from), value(to)),
            };
            lines.push(one_line(&line).into_owned());
        }
        if let Some(more) = self.changes.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            lines.push(format!("… and {more} more"));
        }
        lines
    }
}

impl fmt::Display for Imports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["OBJECT", "WORKSPACE", "ORDER", "WHAT BECOMES OF IT"].map(str::to_owned);
        let rows: Vec<[String; 4]> = self.objects.iter().map(ImportedObject::columns).collect();
        let width = |at: usize| rows.iter().chain([&head]).map(|row| row[at].chars().count()).max().unwrap_or_default();
        let widths = [width(0), width(1), width(2)];
        let mut line = |row: &[String; 4]| {
            let [a, b, c] = widths;
            writeln!(f, "{:a$}  {:b$}  {:c$}  {}", row[0], row[1], row[2], row[3])
        };
        line(&head)?;
        let mut below = Vec::new();
        for (row, object) in rows.iter().zip(&self.objects) {
            line(row)?;
            let details = object.details();
            if !details.is_empty() {
                below.push((&row[0], details));
            }
        }
        for (object, details) in below {
            writeln!(f, "\n{object}:")?;
            details.iter().try_for_each(|detail| writeln!(f, "  {detail}"))?;
        }
        writeln!(f, "\n{}.", self.summary())?;
        if let Some(problem) = &self.incomplete {
            writeln!(f, "Incomplete: {}", one_line(problem))?;
        }
        Ok(())
    }
}

impl Imports {
    /// How many objects have each outcome.
    fn summary(&self) -> String {
        let all = [
            ImportOutcome::Ready,
            ImportOutcome::Resumes,
            ImportOutcome::Imported,
            ImportOutcome::Waits,
            ImportOutcome::Already,
            ImportOutcome::UndoLink,
            ImportOutcome::UndoOrder,
            ImportOutcome::Undone,
            ImportOutcome::NotImported,
            ImportOutcome::Refused,
            ImportOutcome::Failed,
        ];
        let counted = all.into_iter().map(|outcome| (self.count(outcome), outcome)).filter(|(count, _)| *count > 0);
        let parts: Vec<String> = counted.map(|(count, outcome)| format!("{count} {}", outcome.word())).collect();
        if parts.is_empty() { "No such object".to_owned() } else { parts.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::import::FieldChange;

    fn object(name: &str, outcome: ImportOutcome) -> ImportedObject {
        ImportedObject {
            object: name.to_owned(),
            workspace: Some("root:team".to_owned()),
            cluster: None,
            order: Some("default/db".to_owned()),
            outcome,
            reason: None,
            changes: Vec::new(),
        }
    }

    fn imports(objects: Vec<ImportedObject>) -> Imports {
        Imports { agent: "a".into(), published_resource: "buckets".into(), objects, incomplete: None }
    }

    #[test]
    fn each_object_has_a_line_and_its_reasons_stand_below() {
        let mut refused = object("prod/long-name", ImportOutcome::Refused);
        refused.reason = Some("the order would change it".to_owned());
        let change = |path: &str, from: Option<&str>| FieldChange {
            path: path.to_owned(),
            from: from.map(str::to_owned),
            to: from.map(|_| "2".to_owned()),
        };
        refused.changes = vec![change("spec.size", Some("1")), change("spec.secret", None)];
        let text = imports(vec![object("prod/a", ImportOutcome::Ready), refused]).to_string();
        let wanted = "\
OBJECT          WORKSPACE  ORDER       WHAT BECOMES OF IT
prod/a          root:team  default/db  can be imported
prod/long-name  root:team  default/db  refused

prod/long-name:
  the order would change it
  spec.size: 1 would become 2
  spec.secret

1 can be imported, 1 refused.
";
        assert_eq!(text, wanted);
        assert!(imports(Vec::new()).to_string().ends_with("No such object.\n"));
    }

    #[test]
    fn nothing_that_others_have_written_forges_a_line() {
        let forged = "x\nall is \u{1b}[32mwell";
        let mut one = object(forged, ImportOutcome::Failed);
        (one.workspace, one.order, one.reason) = (Some(forged.into()), Some(forged.into()), Some(forged.into()));
        one.changes = vec![FieldChange { path: forged.into(), from: Some(forged.into()), to: None }];
        let text = imports(vec![one]).to_string();
        assert!(!text.contains('\u{1b}') && !text.lines().any(|line| line.starts_with("all is")), "{text:?}");
    }
}
