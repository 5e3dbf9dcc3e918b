//! What has changed, for people and for programs.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use crate::evolution::class::Class;

/// One change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// Where, such as `v1.spec.ports[].name`, `names.plural` or `scope`.
    pub path: String,
    /// How much it harms.
    pub class: Class,
    /// What has changed, and what that does.
    pub reason: String,
    /// An object that was valid, and is refused or stored differently now. It was checked by the validator; where none could be made, there
    /// is none.
    pub example: Option<Value>,
}

impl Change {
    /// A change without an example.
    pub(crate) fn new(path: impl Into<String>, class: Class, reason: impl Into<String>) -> Self {
        Self { path: path.into(), class, reason: reason.into(), example: None }
    }
}

/// All changes between two definitions of a kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// The worst of all.
    pub class: Class,
    /// All of them, the worst first.
    pub changes: Vec<Change>,
}

/// Whether an object could show what a change does; for names and subresources none can.
fn is_about_objects(path: &str) -> bool {
    let mut parts = path.split('.');
    let (first, second) = (parts.next().unwrap_or_default(), parts.next());
    !matches!(first, "names" | "group" | "scope" | "conversion")
        && !matches!(second, None | Some("subresources" | "columns" | "selectableFields"))
}

impl From<Vec<Change>> for Report {
    fn from(mut changes: Vec<Change>) -> Self {
        changes.sort_by_key(|change| std::cmp::Reverse(change.class));
        Self { class: changes.first().map(|change| change.class).unwrap_or_default(), changes }
    }
}

impl Report {
    /// The changes that are not compatible, in a sentence of at most that many bytes.
    pub fn summary(&self, limit: usize) -> String {
        let harmful = self.changes.iter().filter(|change| change.class > Class::Compatible);
        let harmful: Vec<String> =
            harmful.map(|change| format!("{}: {} ({})", change.path, change.reason, change.class)).collect();
        if harmful.is_empty() {
            return "no harmful change".to_owned();
        }
        let mut text = String::new();
        for (index, one) in harmful.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            if index > 0 && text.len() + one.len() > limit {
                let _ = write!(text, "{separator}and {} more", harmful.len() - index);
                break;
            }
            let _ = write!(text, "{separator}{one}");
        }
        text
    }

    /// Lines for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for change in &self.changes {
            // Writing to a String cannot fail, here and below.
            let _ = writeln!(text, "{:<10}  {}: {}", change.class, change.path, change.reason);
            match &change.example {
                Some(example) => {
                    let _ = writeln!(text, "            for example {example}");
                }
                None if change.class > Class::Compatible && is_about_objects(&change.path) => {
                    text.push_str("            no example could be made\n");
                }
                None => {}
            }
        }
        let _ = writeln!(text, "{}", self.verdict());
        text
    }

    /// The same as a table that can be put into a pull request.
    pub fn markdown(&self) -> String {
        let mut text = format!("**{}**\n", self.verdict());
        if self.changes.is_empty() {
            return text;
        }
        text.push_str("\n| class | path | change | example |\n| --- | --- | --- | --- |\n");
        for change in &self.changes {
            let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
            let example = change.example.as_ref().map(|example| format!("`{}`", cell(&example.to_string())));
            let (path, reason) = (cell(&change.path), cell(&change.reason));
            let _ = writeln!(text, "| {} | `{path}` | {reason} | {} |", change.class, example.unwrap_or_default());
        }
        text
    }

    fn verdict(&self) -> String {
        let count = |class| self.changes.iter().filter(|change| change.class == class).count();
        if self.changes.is_empty() {
            return "compatible: nothing has changed".to_owned();
        }
        let [breaking, tightening, compatible] =
            [Class::Breaking, Class::Tightening, Class::Compatible].map(|class| (count(class), class));
        let counts = [breaking, tightening, compatible];
        let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, class)| format!("{count} {class}"));
        format!("{}: {}", self.class, counts.collect::<Vec<_>>().join(", "))
    }
}
