//! The tree of an order, for a terminal. Pure.

use std::fmt::Write as _;

use carrick_process::printable::one_line;
use carrick_syncagent::trace::{Node, Note, Severity};
use console::{Style, style};

/// The tree for people.
pub fn text(order: &Node, colours: bool) -> String {
    let mut text = String::new();
    draw(order, &mut text, ("", ""), colours);
    text
}

/// A note for a line. Others have written what objects say about themselves: none of it ends the line or paints anything.
fn line(note: &Note, colours: bool) -> String {
    let text = one_line(&note.text);
    if !colours {
        return text.into_owned();
    }
    let style = match note.severity {
        Severity::Plain => Style::new().dim(),
        Severity::Waiting => Style::new().yellow(),
        Severity::Problem => Style::new().red(),
    };
    style.force_styling(true).apply_to(text).to_string()
}

/// Draws a node after one beginning of a line, and everything below it after another.
fn draw(node: &Node, text: &mut String, (first, rest): (&str, &str), colours: bool) {
    let (object, place) = (one_line(&node.object), one_line(&node.place));
    let created = node.created.as_ref().map(|at| format!(", since {}", one_line(at))).unwrap_or_default();
    let shown = if colours { style(object).bold().force_styling(true).to_string() } else { object.into_owned() };
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{first}{shown}  {place}{created}");
    let below = if node.children.is_empty() { "   " } else { "│  " };
    for note in &node.notes {
        let _ = writeln!(text, "{rest}{below}{}", line(note, colours));
    }
    for (at, child) in node.children.iter().enumerate() {
        let (branch, beside) = if at + 1 == node.children.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        draw(child, text, (&format!("{rest}{branch}"), &format!("{rest}{beside}")), colours);
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
            let text = super::text(&order, colours);
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
        assert_eq!(super::text(&order, false), expected);
        assert_eq!(console::strip_ansi_codes(&super::text(&order, true)), expected);
    }
}
