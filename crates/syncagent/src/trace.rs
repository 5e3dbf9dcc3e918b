//! The way of one order as a tree: the consumer's object, its copy, what was made of that, and what came along. Pure.
//!
//! `carrick trace` draws it in a terminal, and the dashboard on its page.

use serde::Serialize;
use serde_json::Value;

use crate::decide::compare::is_discreet;

/// How many fields of a status are shown.
const FIELDS: usize = 5;
/// The longest text of a field that is shown.
const LONGEST: usize = 60;

/// One object on the way.
#[derive(Debug, Serialize)]
pub struct Node {
    /// Kind, namespace and name.
    pub object: String,
    /// Where it is.
    pub place: String,
    /// When it was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// What there is to know.
    pub notes: Vec<Note>,
    /// What was made of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Node>,
}

/// Something to know about an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// How good or bad that is.
    pub severity: Severity,
    /// What it is.
    pub text: String,
}

/// How good or bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// As it should be.
    Plain,
    /// Not yet as it should be.
    Waiting,
    /// Wrong.
    Problem,
}

impl Note {
    /// As it should be.
    pub fn plain(text: &str) -> Self {
        Self { severity: Severity::Plain, text: text.to_owned() }
    }

    /// Not yet as it should be.
    pub fn waiting(text: &str) -> Self {
        Self { severity: Severity::Waiting, text: text.to_owned() }
    }

    /// Wrong.
    pub fn problem(text: &str) -> Self {
        Self { severity: Severity::Problem, text: text.to_owned() }
    }
}

impl Node {
    /// From an object of a server.
    pub fn of(kind: &str, object: &Value, place: &str) -> Self {
        let text = |key: &str| object["metadata"][key].as_str().filter(|text| !text.is_empty());
        let kind = object["kind"].as_str().unwrap_or(kind);
        let namespace = text("namespace").map(|namespace| format!("{namespace}/")).unwrap_or_default();
        Self {
            object: format!("{kind} {namespace}{}", text("name").unwrap_or("?")),
            place: place.to_owned(),
            created: text("creationTimestamp").map(str::to_owned),
            notes: notes(object),
            children: Vec::new(),
        }
    }

    /// Something that could not be read.
    pub fn unknown(kind: &str, place: &str, problem: &str) -> Self {
        Self {
            object: kind.to_owned(),
            place: place.to_owned(),
            created: None,
            notes: vec![Note::problem(&format!("cannot be read: {problem}"))],
            children: Vec::new(),
        }
    }

    /// Whether anything in the tree is wrong.
    pub fn has_problem(&self) -> bool {
        self.notes.iter().any(|note| note.severity == Severity::Problem) || self.children.iter().any(Self::has_problem)
    }
}

/// A time without fractions of a second, which some operators write and nobody needs.
fn seconds(at: &str) -> String {
    match at.split_once('.') {
        Some((whole, fraction)) if fraction.trim_end_matches('Z').bytes().all(|digit| digit.is_ascii_digit()) => {
            format!("{whole}Z")
        }
        _ => at.to_owned(),
    }
}

/// What an object says about itself: that it is being deleted and by whom it is held, its conditions, the first fields of its status without those
/// that nobody should see.
fn notes(object: &Value) -> Vec<Note> {
    let mut notes = Vec::new();
    if let Some(since) = object["metadata"]["deletionTimestamp"].as_str() {
        let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let held: Vec<&str> = finalizers.collect();
        let held = if held.is_empty() { String::new() } else { format!("; held by {}", held.join(", ")) };
        notes.push(Note::waiting(&format!("is being deleted since {since}{held}")));
    }
    for condition in object["status"]["conditions"].as_array().into_iter().flatten() {
        let text = |key: &str| condition[key].as_str().unwrap_or_default();
        let (kind, status, message) = (text("type"), text("status"), text("message"));
        let since =
            condition["lastTransitionTime"].as_str().map(|at| format!(" since {}", seconds(at))).unwrap_or_default();
        let message = if message.is_empty() { String::new() } else { format!(": {message}") };
        let line = format!("{kind} is {status}{since}{message}");
        // Whether False is good or bad news only the operator knows.
        notes.push(if status == "True" { Note::plain(&line) } else { Note::waiting(&line) });
    }
    let fields = object["status"].as_object().into_iter().flatten().filter_map(|(name, value)| {
        let shown = match value {
            Value::String(_) | Value::Number(_) if is_discreet(name) => "(not shown)".to_owned(),
            Value::String(text) if text.chars().count() <= LONGEST => text.clone(),
            Value::Bool(_) | Value::Number(_) => value.to_string(),
            _ => return None,
        };
        Some(format!("{name}: {shown}"))
    });
    let fields: Vec<String> = fields.take(FIELDS).collect();
    if !fields.is_empty() {
        notes.push(Note::plain(&format!("status: {}", fields.join(", "))));
    }
    notes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_field_that_nobody_should_see_is_in_a_tree() {
        let status = json!({ "adminPassword": "hunter2", "url": "u", "accessToken": 7, "tokensLeft": 3, "size": 4 });
        let object = json!({ "kind": "Bucket", "metadata": { "name": "a" }, "status": status });
        let notes = Node::of("Bucket", &object, "here").notes;
        let wanted = "status: accessToken: (not shown), adminPassword: (not shown), size: 4, tokensLeft: 3, url: u";
        assert_eq!(notes, [Note::plain(wanted)]);
    }
}
