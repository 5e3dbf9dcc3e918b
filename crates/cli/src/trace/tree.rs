//! The tree of an order. Pure.

use std::fmt::Write as _;

use carrick_process::printable::one_line;
use console::{Style, style};
use serde::Serialize;
use serde_json::Value;

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
    severity: Severity,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    Plain,
    Waiting,
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

    /// For a line. Others have written what objects say about themselves: none of it ends the line or paints anything.
    fn line(&self, colours: bool) -> String {
        let text = one_line(&self.text);
        if !colours {
            return text.into_owned();
        }
        let style = match self.severity {
            Severity::Plain => Style::new().dim(),
            Severity::Waiting => Style::new().yellow(),
            Severity::Problem => Style::new().red(),
        };
        style.force_styling(true).apply_to(text).to_string()
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

    /// The tree for people.
    pub fn text(&self, colours: bool) -> String {
        let mut text = String::new();
        self.draw(&mut text, ("", ""), colours);
        text
    }

    /// Draws itself after one beginning of a line, and everything below it after another.
    fn draw(&self, text: &mut String, (first, rest): (&str, &str), colours: bool) {
        let (object, place) = (one_line(&self.object), one_line(&self.place));
        let created = self.created.as_ref().map(|at| format!(", since {}", one_line(at))).unwrap_or_default();
        let shown = if colours { style(object).bold().force_styling(true).to_string() } else { object.into_owned() };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{first}{shown}  {place}{created}");
        let below = if self.children.is_empty() { "   " } else { "│  " };
        for note in &self.notes {
            let _ = writeln!(text, "{rest}{below}{}", note.line(colours));
        }
        for (at, child) in self.children.iter().enumerate() {
            let (branch, beside) =
                if at + 1 == self.children.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            child.draw(text, (&format!("{rest}{branch}"), &format!("{rest}{beside}")), colours);
        }
    }
}

/// What an object says about itself: that it is being deleted and by whom it is held, its conditions, the first fields of its status.
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
        let since = condition["lastTransitionTime"].as_str().map(|at| format!(" since {at}")).unwrap_or_default();
        let message = if message.is_empty() { String::new() } else { format!(": {message}") };
        let line = format!("{kind} is {status}{since}{message}");
        // Whether False is good or bad news only the operator knows.
        notes.push(if status == "True" { Note::plain(&line) } else { Note::waiting(&line) });
    }
    let fields = object["status"].as_object().into_iter().flatten().filter_map(|(name, value)| {
        let shown = match value {
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
    fn nothing_that_others_have_written_forges_a_line_or_paints_one() {
        let forged = "bad\n└─ Bucket ns/all  is \u{1b}[32mwell\u{1b}[0m\u{1b}[2J";
        let condition = json!({ "type": forged, "status": forged, "lastTransitionTime": forged, "message": forged });
        let object = json!({
            "kind": forged,
            "metadata": {
                "namespace": forged, "name": forged, "creationTimestamp": forged, "deletionTimestamp": forged,
                "finalizers": [forged],
            },
            "status": { "url": forged, "conditions": [condition] },
        });
        let mut order = Node::of("Bucket", &object, forged);
        order.children.push(Node::unknown("secrets", forged, forged));
        for colours in [false, true] {
            let text = order.text(colours);
            assert_eq!(text.lines().count(), 6, "{text}");
            assert!(!text.contains("\u{1b}[32m") && !text.contains("\u{1b}[2J"), "{text:?}");
        }
    }

    #[test]
    fn a_tree_shows_who_made_what_and_what_is_wrong() {
        let object = |name: &str, more: Value| {
            let mut object =
                json!({ "kind": "Bucket", "metadata": { "namespace": "ns", "name": name, "creationTimestamp": "t" } });
            carrick_json::merge::apply(&mut object, &more);
            object
        };
        let mut order = Node::of("Bucket", &object("one", json!({})), "in workspace root:a");
        let status = json!({ "status": { "url": "u", "deep": {}, "conditions": [{ "type": "Ready", "status": "False", "message": "no disk" }] } });
        let mut copy = Node::of("Bucket", &object("c", status), "on the service cluster");
        let gone = json!({ "metadata": { "deletionTimestamp": "d", "finalizers": ["x/y"] } });
        copy.children.push(Node::of("Pod", &object("p", gone), "owned"));
        order.children.push(copy);
        order.children.push(Node::unknown("secrets", "related", "403"));
        assert!(order.has_problem());
        let expected = "\
Bucket ns/one  in workspace root:a, since t
├─ Bucket ns/c  on the service cluster, since t
│  │  Ready is False: no disk
│  │  status: url: u
│  └─ Bucket ns/p  owned, since t
│        is being deleted since d; held by x/y
└─ secrets  related
      cannot be read: 403
";
        assert_eq!(order.text(false), expected);
        assert_eq!(console::strip_ansi_codes(&order.text(true)), expected);
    }
}
