//! Mutations: expressions that compute a new value for a field.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::convert::{Integers, exact_as_doubles, to_json};
use crate::environment;
use crate::error::{CompileError, EvalError};
use crate::expression::Expression;
use crate::input::Input;
use crate::reads::FieldRead;

/// An expression over `value`, `self` and `other` that gives a JSON value.
///
/// ```
/// use carrick_cel::Mutation;
/// use serde_json::json;
///
/// let mutation = Mutation::compile("value + self.step")?;
/// assert_eq!(mutation.eval(&json!(1), &json!({"step": 2}), &json!(null))?, json!(3));
/// assert!(Mutation::compile("value + nope").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Mutation {
    expression: Expression,
}

impl Mutation {
    /// Compiles an expression; unknown names and functions are refused.
    pub fn compile(expression: &str) -> Result<Self, CompileError> {
        Ok(Self { expression: Expression::compile(expression, environment::mutation(), &[])? })
    }

    /// The same for an expression that may use `objects` as well.
    pub fn compile_with_objects(expression: &str) -> Result<Self, CompileError> {
        Ok(Self { expression: Expression::compile(expression, environment::mutation_with_objects(), &[])? })
    }

    /// The same for an expression that may use `copy` as well.
    pub fn compile_with_copy(expression: &str) -> Result<Self, CompileError> {
        Ok(Self { expression: Expression::compile(expression, environment::mapping(), &[])? })
    }

    /// Evaluates the expression: `value` is what is at the path now, `this` is bound to `self`.
    pub fn eval(&self, value: &Value, this: &Value, other: &Value) -> Result<Value, EvalError> {
        self.eval_beside(value, this, other, &Value::Null)
    }

    /// The same with `objects` or `copy`, whichever it was compiled with.
    pub fn eval_beside(&self, value: &Value, this: &Value, other: &Value, beside: &Value) -> Result<Value, EvalError> {
        let run = |integers: Integers| {
            let result = self.expression.eval(|name| {
                Ok(match name {
                    "value" => Input::Json(value, integers),
                    "self" => Input::Json(this, Integers::Kept),
                    "objects" | "copy" => Input::Json(beside, Integers::Kept),
                    _ => Input::Json(other, Integers::Kept),
                })
            });
            result.and_then(|result| to_json(&result))
        };
        if !self.expression.uses("value") || !exact_as_doubles(value) {
            return run(Integers::Kept);
        }
        match run(Integers::Doubles) {
            Err(error) if error != EvalError::TooManySteps => run(Integers::Kept),
            result => result,
        }
    }

    /// What of `objects` the expression reads.
    pub fn objects_read(&self) -> BTreeSet<FieldRead> {
        self.expression.reads("objects")
    }

    /// What of `other` the expression reads.
    pub fn other_read(&self) -> BTreeSet<FieldRead> {
        self.expression.reads("other")
    }
}
