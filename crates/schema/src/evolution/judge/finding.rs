//! A change in a schema, not yet with an example.

use serde_json::Value;

use super::isolate::Part;
use crate::evolution::class::Class;
use crate::evolution::step::Step;

/// A change in a schema, and where to look for an example.
#[derive(Debug)]
pub(super) struct Finding {
    /// Where it is.
    pub(super) at: Vec<Step>,
    /// How much it harms.
    pub(super) class: Class,
    /// What has changed.
    pub(super) reason: String,
    /// The node of the old schema for which a value is to be found.
    pub(super) seek: Vec<Step>,
    /// Values for that node that promise well.
    pub(super) values: Vec<Value>,
    /// What has changed, and where: the node itself, or the one above.
    pub(super) change: (Vec<Step>, Part),
}

impl Finding {
    /// A change at a node, with an example at the same node.
    pub(super) fn new(at: &[Step], class: Class, reason: impl Into<String>) -> Self {
        Self {
            at: at.to_vec(),
            class,
            reason: reason.into(),
            seek: at.to_vec(),
            values: Vec::new(),
            change: (at.to_vec(), Part::Whole),
        }
    }

    /// The same, with values that promise well.
    pub(super) fn with(mut self, values: impl IntoIterator<Item = Value>) -> Self {
        self.values.extend(values);
        self
    }

    /// The same, with an example to be made at the node above.
    pub(super) fn above(mut self) -> Self {
        self.seek.pop();
        self
    }

    /// The same, about some keywords only.
    pub(super) fn of(mut self, keys: &'static [&'static str]) -> Self {
        self.change.1 = Part::Keys(keys);
        self
    }

    /// The same, about keywords of the node above.
    pub(super) fn of_parent(mut self, keys: &'static [&'static str]) -> Self {
        self.change.0.pop();
        self.of(keys)
    }
}
