//! Where in a schema something is.

use std::fmt::Write as _;

/// One step from a node of a schema to a node below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// A field of an object.
    Field(String),
    /// The items of a list.
    Item,
    /// The values of a map.
    Value,
}

/// A path for people: `v1.spec.ports[].name`, `v1.spec.labels[*]`.
pub(crate) fn shown(version: &str, steps: &[Step]) -> String {
    let mut text = version.to_owned();
    for step in steps {
        // Writing to a String cannot fail.
        let _ = match step {
            Step::Field(name) => write!(text, ".{name}"),
            Step::Item => write!(text, "[]"),
            Step::Value => write!(text, "[*]"),
        };
    }
    text
}

/// A path with one more step.
pub(crate) fn below(steps: &[Step], step: Step) -> Vec<Step> {
    [steps, &[step]].concat()
}
