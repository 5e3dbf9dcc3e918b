//! One change of a conversion.

use std::sync::Arc;

use carrick_json::path;
use carrick_template::Template;
use serde_json::Value;

use crate::api;
use crate::rules::mutation::{MutationError, MutationStep};

#[derive(Debug)]
pub(super) struct ConversionStep {
    at: String,
    when: Option<Arc<carrick_cel::Mutation>>,
    action: Action,
}

#[derive(Debug)]
enum Action {
    Move { from: String, to: String },
    Change(MutationStep),
}

impl ConversionStep {
    /// Compiles the step found at the given field of a PublishedResource.
    pub(super) fn compile(at: &str, step: &api::ConversionStep) -> Result<Self, MutationError> {
        let set = [
            step.r#move.is_some(),
            step.delete.is_some(),
            step.regex.is_some(),
            step.template.is_some(),
            step.cel.is_some(),
        ];
        let wrong = |reason: &str| MutationError::Compile { at: at.to_owned(), reason: reason.to_owned() };
        match set.iter().filter(|set| **set).count() {
            0 => return Err(wrong("nothing to do; set one of move, delete, regex, template, cel")),
            1 => {}
            _ => return Err(wrong("several things to do; set exactly one of move, delete, regex, template, cel")),
        }
        let when = Some(step.when.as_str()).filter(|when| !when.is_empty());
        let when = when.map(|when| {
            carrick_cel::Mutation::compile(when)
                .map(Arc::new)
                .map_err(|error| MutationError::Compile { at: format!("{at}.when"), reason: error.to_string() })
        });
        let action = if let Some(step) = &step.r#move {
            if step.from.is_empty() || step.to.is_empty() {
                return Err(wrong("path cannot be empty"));
            }
            Action::Move { from: step.from.clone(), to: step.to.clone() }
        } else {
            let change = api::ResourceMutation {
                delete: step.delete.clone(),
                regex: step.regex.clone(),
                template: step.template.clone(),
                cel: step.cel.clone(),
            };
            // An object is converted whenever it is read, and has to be the same each time.
            Action::Change(MutationStep::compile(
                at.to_owned(),
                &change,
                Template::compile_steady,
                carrick_cel::Mutation::compile,
            )?)
        };
        Ok(Self { at: at.to_owned(), when: when.transpose()?, action })
    }

    /// Changes an object; `before` is the same object before the first step.
    pub(super) fn apply(&self, object: &mut Value, before: &Value) -> Result<(), MutationError> {
        let failed =
            |path: &str, reason: String| MutationError::Apply { at: self.at.clone(), path: path.to_owned(), reason };
        if let Some(when) = &self.when {
            let holds = when.eval(&Value::Null, object, before).map_err(|error| failed("when", error.to_string()))?;
            match holds {
                Value::Bool(true) => {}
                Value::Bool(false) => return Ok(()),
                _ => return Err(failed("when", "the condition is neither true nor false".to_owned())),
            }
        }
        match &self.action {
            Action::Change(change) => change.apply(object, before, &Value::Null),
            Action::Move { from, to } => {
                let found = path::get(object, from);
                if !found.exists() {
                    return Ok(());
                }
                let value = found.into_value();
                remove(object, from);
                path::set(object, to, value).map_err(|error| failed(to, error.to_string()))
            }
        }
    }
}

/// Removes the value at a path, with what it leaves empty above it, up to the fields of the object itself.
pub(super) fn remove(object: &mut Value, from: &str) {
    // What is not there need not be removed.
    let _ = path::delete(object, from);
    let mut at = from;
    while let Some((above, _)) = at.rsplit_once('.') {
        let is_empty = path::get(object, above)
            .value()
            .is_some_and(|value| value.as_object().is_some_and(serde_json::Map::is_empty));
        if above.ends_with('\\') || !above.contains('.') || !is_empty {
            return;
        }
        let _ = path::delete(object, above);
        at = above;
    }
}
