//! The way of one order as a tree, from what the agent knows: for the dashboard.

use std::sync::Arc;

use carrick_client::Object;
use serde_json::Value;

use super::progress::{OrderProgress, Orders};
use crate::agent::objects::copies;
use crate::rules::Rules;
use crate::rules::metadata::SourceKey;
use crate::trace::{Node, Note};

impl Orders {
    /// The order, its copies and what came along; nothing if there is no such order. What the operator has made of a copy is not read for it: the agent
    /// needs no right to that, and who looks at the dashboard has none by that.
    pub fn trace(&self, key: &SourceKey) -> Option<Node> {
        let source = self.sources.get(&key.cluster, &key.namespace, &key.name)?;
        let rules = self.rules.borrow().clone();
        let progress = self.progress(key, &source);
        let workspace = progress.workspace.as_deref().unwrap_or(&progress.cluster);
        let mut order = shown(&rules, &rules.remote.kind, &source.value(), &format!("in workspace {workspace}"));
        order.notes.extend(stopped(&progress));
        let copies = copies::of(&self.copies, key, &rules.remote.resource());
        order.children.extend(copies.iter().map(|copy| made(&rules, copy, &progress)));
        if copies.is_empty() {
            order.notes.push(Note::problem("it has no copy"));
        }
        if !progress.has_status {
            order.notes.push(Note::waiting("no status has come back"));
        }
        let related = |object: &str, place: &str, notes: Vec<Note>| Node {
            object: object.to_owned(),
            place: place.to_owned(),
            created: None,
            notes,
            children: Vec::new(),
        };
        let shown = progress.related.iter().map(|object| {
            let overwritten = progress.overwritten.iter().filter(|it| it.is_shown_as(object));
            let notes = overwritten.map(|it| Note::waiting(&it.changed)).collect();
            related(object, "in the consumer's workspace, related", notes)
        });
        // What travels the other way is shown only where there is something to say about it.
        let hidden =
            progress.overwritten.iter().filter(|it| !progress.related.iter().any(|object| it.is_shown_as(object)));
        let hidden = hidden.map(|it| related(&it.copy, "related", vec![Note::waiting(&it.changed)]));
        order.children.extend(shown.chain(hidden));
        Some(order)
    }
}

/// A copy, with what is not as ordered.
fn made(rules: &Rules, copy: &Arc<Object>, progress: &OrderProgress) -> Node {
    let mut node = shown(rules, &rules.local.kind, &copy.value(), "on the service cluster");
    if !progress.changed.is_empty() {
        let fields = progress.changed.join(", ");
        node.notes.push(Note::waiting(&format!(
            "not as ordered: {fields}; what others change here stays until the order changes the same fields"
        )));
    }
    let workspace = progress.workspace.as_deref().unwrap_or(&progress.cluster);
    node.notes.push(Note::plain(&format!(
        "what the operator made of it, with your own rights: carrick trace {} --workspace {workspace} --published-resource {}",
        progress.object, rules.name
    )));
    node
}

/// An object with what it says about itself, unless that is confidential.
fn shown(rules: &Rules, kind: &str, object: &Value, place: &str) -> Node {
    let mut node = Node::of(kind, object, place);
    if rules.is_confidential(&rules.local) || rules.is_confidential(&rules.remote) {
        node.notes.clear();
    }
    node
}

fn stopped(progress: &OrderProgress) -> Option<Note> {
    let stopped = progress.stopped.as_ref()?;
    let since = if stopped.since.is_empty() { String::new() } else { format!(" since {}", stopped.since) };
    Some(Note::problem(&format!("{}{since}: {}", stopped.reason, stopped.message)))
}
