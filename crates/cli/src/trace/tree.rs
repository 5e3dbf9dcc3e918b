//! The tree of an order, for a terminal. Pure.

use std::fmt::Write as _;

use carrick_process::printable::one_line;
use carrick_syncagent::trace::{Node, Note, Severity};
use console::Style;

use crate::doctor::wrap;

/// How a tree is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// Whether it has colours.
    pub colours: bool,
    /// How wide lines may be; without it, each note is one line, for programs such as grep.
    pub width: Option<usize>,
}

/// The narrowest part of a line that words are put into, however deep it is in the tree.
const NARROWEST: usize = 30;

impl Look {
    /// A text in lines that fit behind the branches of the tree.
    fn lines(self, text: &str, branches: &str) -> Vec<String> {
        match self.width {
            None => vec![text.to_owned()],
            Some(width) => wrap::text(text, width.saturating_sub(branches.chars().count()).max(NARROWEST)),
        }
    }

    fn painted(self, style: &Style, text: &str) -> String {
        if self.colours { style.clone().force_styling(true).apply_to(text).to_string() } else { text.to_owned() }
    }
}

/// The tree for people.
pub fn text(order: &Node, look: Look) -> String {
    let mut text = String::new();
    draw(order, &mut text, ("", ""), look);
    text
}

fn style_of(note: &Note) -> Style {
    match note.severity {
        Severity::Plain => Style::new().dim(),
        Severity::Waiting => Style::new().yellow(),
        Severity::Problem => Style::new().red(),
    }
}

/// Draws a node after one beginning of a line, and everything below it after another. Others have written what objects say about themselves:
/// none of it ends a line or paints anything.
fn draw(node: &Node, text: &mut String, (first, rest): (&str, &str), look: Look) {
    let (object, place) = (one_line(&node.object), one_line(&node.place));
    let created = node.created.as_ref().map(|at| format!(", since {}", one_line(at))).unwrap_or_default();
    let below = format!("{rest}{}", if node.children.is_empty() { "   " } else { "│  " });
    let shown = look.painted(&Style::new().bold(), &object);
    let (about, used) = (format!("{place}{created}"), [first, &object, "  ", &place, &created]);
    let fits = look.width.is_none_or(|width| used.iter().map(|part| part.chars().count()).sum::<usize>() <= width);
    // Writing to a String cannot fail.
    if fits {
        let _ = writeln!(text, "{first}{shown}  {about}");
    } else {
        let _ = writeln!(text, "{first}{shown}");
        for line in look.lines(&about, &below) {
            let _ = writeln!(text, "{below}{line}");
        }
    }
    for note in &node.notes {
        for (at, line) in look.lines(&one_line(&note.text), &format!("{below}  ")).iter().enumerate() {
            let indent = if at == 0 { "" } else { "  " };
            let _ = writeln!(text, "{below}{indent}{}", look.painted(&style_of(note), line));
        }
    }
    for (at, child) in node.children.iter().enumerate() {
        let (branch, beside) = if at + 1 == node.children.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        draw(child, text, (&format!("{rest}{branch}"), &format!("{rest}{beside}")), look);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
            let text = super::text(&order, Look { colours, width: None });
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
        let status = json!({ "status": { "url": "u", "deep": {}, "conditions": [{ "type": "Ready", "status": "False", "lastTransitionTime": "2026-01-02T03:04:05.678901234Z", "message": "no disk" }] } });
        let mut copy = Node::of("Bucket", &object("c", status), "on the service cluster");
        let gone = json!({ "metadata": { "deletionTimestamp": "d", "finalizers": ["x/y"] } });
        copy.children.push(Node::of("Pod", &object("p", gone), "owned"));
        order.children.push(copy);
        order.children.push(Node::unknown("secrets", "related", "403"));
        assert!(order.has_problem());
        let expected = "\
Bucket ns/one  in workspace root:a, since t
├─ Bucket ns/c  on the service cluster, since t
│  │  Ready is False since 2026-01-02T03:04:05Z: no disk
│  │  status: url: u
│  └─ Bucket ns/p  owned, since t
│        is being deleted since d; held by x/y
└─ secrets  related
      cannot be read: 403
";
        let look = |colours, width| super::text(&order, Look { colours, width });
        assert_eq!(look(false, None), expected);
        assert_eq!(console::strip_ansi_codes(&look(true, Some(80))), expected);
        assert_eq!(look(false, Some(80)), expected);
    }

    #[test]
    fn a_tree_fits_the_terminal_and_stays_a_tree() {
        let long = "a_name_that_is_as_long_as_those_of_copies_are-with_a_hash_of_twenty_bytes";
        let status = json!({ "conditions": [{ "type": "Ready", "status": "True", "message": "one word and another ".repeat(9) }] });
        let object = json!({ "kind": "Bucket", "metadata": { "namespace": "ns", "name": long, "creationTimestamp": "t" }, "status": status });
        let mut order = Node::of("Bucket", &object, "in workspace root:orgs:acme:team-a");
        order.children.push(Node::of("Bucket", &object, "on the service cluster"));
        let text = super::text(&order, Look { colours: false, width: Some(80) });
        let widths: Vec<usize> = text.lines().map(|line| line.chars().count()).collect();
        assert!(widths.iter().all(|width| *width <= 80 + 8), "{text}");
        assert!(widths.iter().filter(|width| **width > 80).count() <= 2, "only names are longer than a line: {text}");
        let roots = text.lines().skip(1).take_while(|line| !line.starts_with('└'));
        assert!(roots.clone().count() > 2 && roots.clone().all(|line| line.starts_with("│  ")), "{text}");
    }
}
