//! One change by itself: the old schema with nothing but that change, so that an example shows what the change does and nothing else.

use serde_json::Value;

use crate::evolution::node::{self, Node};
use crate::evolution::step::Step;

/// The part of a node that a change is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it.
    Whole,
    /// These keywords.
    Keys(&'static [&'static str]),
}

/// The node at a path.
pub(super) fn at<'a>(schema: &'a Value, steps: &[Step]) -> Option<Node<'a>> {
    steps.iter().try_fold(Node::Borrowed(schema), step_down)
}

/// The node that a step from another one leads to.
pub(super) fn step_down<'a>(here: Node<'a>, step: &Step) -> Option<Node<'a>> {
    match step {
        Step::Field(name) => node::down(here, |here| node::child(here, name)),
        Step::Item => node::down(here, |here| Some(node::item(here))),
        Step::Value => node::down(here, node::rest),
    }
}

/// The old schema with one change.
pub(super) fn isolated(old: &Value, new: &Value, place: &[Step], part: Part) -> Option<Value> {
    let wanted = at(new, place);
    let mut schema = old.clone();
    change(&mut schema, place, part, wanted.as_deref())?;
    Some(schema)
}

fn change(here: &mut Value, steps: &[Step], part: Part, wanted: Option<&Value>) -> Option<()> {
    let Some((step, rest)) = steps.split_first() else {
        match (part, wanted) {
            (Part::Whole, Some(wanted)) => here.clone_from(wanted),
            (Part::Whole, None) => return None,
            (Part::Keys(keys), wanted) => {
                let map = here.as_object_mut()?;
                for key in keys {
                    match wanted.and_then(|wanted| wanted.get(*key)) {
                        Some(value) => drop(map.insert((*key).to_owned(), value.clone())),
                        None => drop(map.remove(*key)),
                    }
                }
            }
        }
        return Some(());
    };
    let known = match step {
        Step::Field(name) => {
            if rest.is_empty() && part == Part::Whole && wanted.is_none() {
                here["properties"].as_object_mut()?.remove(name)?;
                if let Some(required) = here.get_mut("required").and_then(Value::as_array_mut) {
                    required.retain(|known| known != name);
                }
                return Some(());
            }
            if here["properties"].get(name).is_none() {
                let made = node::rest(here).map(Node::into_owned).or_else(|| rest.is_empty().then(Value::default))?;
                if !here["properties"].is_object() {
                    here["properties"] = serde_json::json!({});
                }
                here["properties"][name.as_str()] = made;
            }
            &mut here["properties"][name.as_str()]
        }
        Step::Item => {
            if !here["items"].is_object() || node::keeps_unknown(here) {
                let made = node::item(here).into_owned();
                here["items"] = made;
            }
            &mut here["items"]
        }
        Step::Value => {
            if rest.is_empty() && wanted.is_none() {
                here.as_object_mut()?.remove("additionalProperties")?;
                return Some(());
            }
            if !here["additionalProperties"].is_object() {
                let made = node::rest(here)?.into_owned();
                here["additionalProperties"] = made;
            }
            &mut here["additionalProperties"]
        }
    };
    change(known, rest, part, wanted)
}
