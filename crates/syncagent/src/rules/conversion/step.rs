//! One change of a conversion.

use std::sync::Arc;

use carrick_json::path;
use carrick_template::Template;
use serde_json::Value;

use crate::api;
use crate::rules::mutation::{Beside, CelCompiler, MutationError, MutationStep, fields_read};

#[derive(Debug)]
pub(in crate::rules) struct ConversionStep {
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
        Self::compile_by(at, step, carrick_cel::Mutation::compile)
    }

    /// The same for a step that makes an object of another kind.
    pub(in crate::rules) fn compile_mapping(at: &str, step: &api::ConversionStep) -> Result<Self, MutationError> {
        Self::compile_by(at, step, carrick_cel::Mutation::compile_with_copy)
    }

    fn compile_by(at: &str, step: &api::ConversionStep, cel: CelCompiler) -> Result<Self, MutationError> {
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
            cel(when)
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
            Action::Change(MutationStep::compile(at.to_owned(), &change, Template::compile_steady, cel)?)
        };
        Ok(Self { at: at.to_owned(), when: when.transpose()?, action })
    }

    /// Changes an object; `before` is the same object before the first step.
    pub(super) fn apply(&self, object: &mut Value, before: &Value) -> Result<(), MutationError> {
        if !self.applies(object, before, &Value::Null)? {
            return Ok(());
        }
        match &self.action {
            Action::Change(change) => change.apply(object, before, Beside::Nothing),
            Action::Move { from, to } => {
                let found = path::get(object, from);
                if !found.exists() {
                    return Ok(());
                }
                let value = found.into_value();
                remove(object, from);
                path::set(object, to, value).map_err(|error| self.failed(to, error.to_string()))
            }
        }
    }

    /// Changes an object that is made from another one; `copy` has the name of the copy.
    pub(in crate::rules) fn map(&self, object: &mut Value, other: &Value, copy: &Value) -> Result<(), MutationError> {
        if !self.applies(object, other, copy)? {
            return Ok(());
        }
        match &self.action {
            Action::Change(change) => change.apply(object, other, Beside::Copy(copy)),
            Action::Move { from, to } => {
                let found = path::get(other, from);
                if !found.exists() {
                    return Ok(());
                }
                path::set(object, to, found.into_value()).map_err(|error| self.failed(to, error.to_string()))
            }
        }
    }

    fn applies(&self, object: &Value, other: &Value, copy: &Value) -> Result<bool, MutationError> {
        let Some(when) = &self.when else { return Ok(true) };
        match when.eval_beside(&Value::Null, object, other, copy) {
            Ok(Value::Bool(holds)) => Ok(holds),
            Ok(_) => Err(self.failed("when", "the condition is neither true nor false".to_owned())),
            Err(error) => Err(self.failed("when", error.to_string())),
        }
    }

    fn failed(&self, path: &str, reason: String) -> MutationError {
        MutationError::Apply { at: self.at.clone(), path: path.to_owned(), reason }
    }

    /// The field of the PublishedResource.
    pub(in crate::rules) fn at(&self) -> &str {
        &self.at
    }

    /// The path that is written.
    pub(in crate::rules) fn writes(&self) -> &str {
        match &self.action {
            Action::Move { to, .. } => to,
            Action::Change(change) => change.path(),
        }
    }

    /// The fields of the other object that the step reads, each from the outermost name; an empty one stands for the whole object.
    pub(in crate::rules) fn reads_other(&self) -> Vec<Vec<String>> {
        let when = self.when.iter().flat_map(|when| fields_read(&when.other_read()));
        let action = match &self.action {
            Action::Move { from, .. } => vec![from.split('.').map(str::to_owned).collect()],
            Action::Change(change) => change.reads_other(),
        };
        when.chain(action).collect()
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
