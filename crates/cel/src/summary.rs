//! Summaries: expressions that say in one value how an object and what belongs to it are doing.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::convert::{Integers, to_json};
use crate::environment;
use crate::error::{CompileError, EvalError};
use crate::expression::Expression;
use crate::input::Input;
use crate::reads::FieldRead;

/// An expression over `self`, `other`, `objects` and `related` that gives a JSON value.
///
/// ```
/// use carrick_cel::{Summary, SummaryInput};
/// use serde_json::json;
///
/// let summary = Summary::compile("self.ready && objects.door != null ? 'Available' : 'Provisioning'")?;
/// let (ready, door, none) = (json!({"ready": true}), json!({"door": {"port": 1}}), json!({}));
/// let input = SummaryInput { this: &ready, other: &none, objects: &door, related: &none };
/// assert_eq!(summary.eval(input)?, json!("Available"));
/// assert!(Summary::compile("value").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Summary {
    expression: Expression,
}

/// What a summary is made of.
#[derive(Debug, Clone, Copy)]
pub struct SummaryInput<'a> {
    /// Bound to `self`.
    pub this: &'a Value,
    /// Bound to `other`.
    pub other: &'a Value,
    /// Bound to `objects`.
    pub objects: &'a Value,
    /// Bound to `related`.
    pub related: &'a Value,
}

impl Summary {
    /// Compiles an expression; unknown names and functions are refused.
    pub fn compile(expression: &str) -> Result<Self, CompileError> {
        Ok(Self { expression: Expression::compile(expression, environment::summary(), &[])? })
    }

    /// Evaluates the expression.
    pub fn eval(&self, input: SummaryInput<'_>) -> Result<Value, EvalError> {
        let result = self.expression.eval(|name| {
            let value = match name {
                "self" => input.this,
                "objects" => input.objects,
                "related" => input.related,
                _ => input.other,
            };
            Ok(Input::Json(value, Integers::Kept))
        });
        result.and_then(|result| to_json(&result))
    }

    /// What of `objects` the expression reads.
    pub fn objects_read(&self) -> BTreeSet<FieldRead> {
        self.expression.reads("objects")
    }
}
