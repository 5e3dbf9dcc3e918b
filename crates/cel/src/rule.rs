//! Validation rules of CRDs: `x-kubernetes-validations`.

use serde_json::Value;

use crate::convert::{Integers, to_cel};
use crate::environment;
use crate::expression::{CompileError, EvalError, Expression};
use crate::types::Type;
use crate::value::Value as Cel;

/// One `x-kubernetes-validations` entry, compiled.
#[derive(Debug)]
pub struct Rule {
    source: String,
    condition: Expression,
    message: Option<String>,
    message_expression: Option<Expression>,
    reason: Option<String>,
    field_path: Option<String>,
    optional_old_self: bool,
}

/// What a rule says about a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The value is fine.
    Pass,
    /// The value breaks the rule.
    Fail {
        /// What to tell the user.
        message: String,
    },
    /// The rule compares with an old value and there is none.
    Skipped,
}

impl Rule {
    /// Compiles an entry with `rule`, and optionally `message`, `messageExpression`, `reason`, `fieldPath` and
    /// `optionalOldSelf`.
    pub fn compile(entry: &Value) -> Result<Self, CompileError> {
        let text = |field: &'static str| match entry.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(CompileError::InvalidRule(format!("{field} must be a string"))),
        };
        let source = text("rule")?.ok_or_else(|| CompileError::InvalidRule("rule is required".to_owned()))?;
        let condition = typed("rule", &source, Type::Bool, "bool")?;
        let message_expression = text("messageExpression")?
            .map(|source| typed("messageExpression", &source, Type::String, "string"))
            .transpose()?;
        Ok(Self {
            source: source.trim().to_owned(),
            condition,
            message: text("message")?.map(|message| message.trim().to_owned()),
            message_expression,
            reason: text("reason")?,
            field_path: text("fieldPath")?,
            optional_old_self: entry.get("optionalOldSelf").and_then(Value::as_bool).unwrap_or_default(),
        })
    }

    /// Whether the rule compares with the old value, which makes it a transition rule.
    pub fn uses_old_self(&self) -> bool {
        self.condition.uses("oldSelf")
    }

    /// The `reason` of the entry.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// The `fieldPath` of the entry.
    pub fn field_path(&self) -> Option<&str> {
        self.field_path.as_deref()
    }

    /// Judges a value, given the old one if there is one to compare with.
    pub fn eval(&self, this: &Value, old: Option<&Value>) -> Result<Verdict, EvalError> {
        if self.uses_old_self() && old.is_none() && !self.optional_old_self {
            return Ok(Verdict::Skipped);
        }
        match self.run(&self.condition, this, old)? {
            Cel::Bool(true) => Ok(Verdict::Pass),
            Cel::Bool(false) => Ok(Verdict::Fail { message: self.message(this, old) }),
            _ => Err(EvalError::NotBool),
        }
    }

    fn run(&self, expression: &Expression, this: &Value, old: Option<&Value>) -> Result<Cel, EvalError> {
        expression.eval(|name| {
            if name == "self" {
                return Ok(to_cel(this, Integers::Kept));
            }
            let old = old.map(|old| to_cel(old, Integers::Kept));
            Ok(if self.optional_old_self { Cel::optional(old) } else { old.unwrap_or(Cel::Null) })
        })
    }

    /// The message expression wins if it gives usable text, then the message, then the rule itself.
    fn message(&self, this: &Value, old: Option<&Value>) -> String {
        let computed = self.message_expression.as_ref().and_then(|expression| self.run(expression, this, old).ok());
        match computed {
            Some(Cel::String(text)) if !text.trim().is_empty() && !text.contains('\n') => text.trim().to_owned(),
            _ => self.message.clone().unwrap_or_else(|| format!("failed rule: {}", self.source)),
        }
    }
}

fn typed(field: &'static str, source: &str, wanted: Type, name: &'static str) -> Result<Expression, CompileError> {
    let expression = Expression::compile(source, environment::rule(), &[])?;
    match expression.result_type() {
        found if !found.fits(&wanted) => Err(CompileError::WrongResult { field, wanted: name }),
        _ => Ok(expression),
    }
}
