//! Validation rules of CRDs: `x-kubernetes-validations`.

use serde_json::Value;

use crate::convert::{Integers, to_cel};
use crate::environment;
use crate::error::{CompileError, EvalError};
use crate::expression::Expression;
use crate::input::Input;
use crate::limits::STEPS;
use crate::reads::FieldRead;
use crate::schema::Schema;
use crate::types::Type;
use crate::value::Value as Cel;

/// One `x-kubernetes-validations` entry, compiled.
///
/// ```
/// use carrick_cel::{Rule, Verdict};
/// use serde_json::json;
///
/// // A transition rule: it compares with the old value, and is skipped where there is none.
/// let rule = Rule::compile(&json!({"rule": "self == oldSelf", "message": "the size cannot be changed"}))?;
/// assert_eq!(rule.eval(&json!("large"), None)?, Verdict::Skipped);
/// let verdict = rule.eval(&json!("large"), Some(&json!("small")))?;
/// assert_eq!(verdict, Verdict::Fail { message: "the size cannot be changed".into() });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Rule {
    source: String,
    condition: Expression,
    message: Option<String>,
    message_expression: Option<Expression>,
    reason: Option<String>,
    field_path: Option<String>,
    optional_old_self: bool,
    schema: Option<Schema>,
}

/// What a rule says about a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The value is fine.
    Pass,
    /// The value breaks the rule.
    Fail {
        /// The message for the user.
        message: String,
    },
    /// The rule compares with an old value and there is none.
    Skipped,
}

impl Rule {
    /// Compiles an entry with `rule`, and optionally `message`, `messageExpression`, `reason`, `fieldPath` and
    /// `optionalOldSelf`. Nothing is known about the values: types are checked when the rule is evaluated.
    pub fn compile(entry: &Value) -> Result<Self, CompileError> {
        Self::build(entry, None)
    }

    /// Compiles an entry for values of a schema: unknown fields and wrong types are refused, numbers, times and lists
    /// are what the schema says.
    pub fn compile_typed(entry: &Value, schema: &Schema) -> Result<Self, CompileError> {
        Self::build(entry, Some(schema))
    }

    fn build(entry: &Value, schema: Option<&Schema>) -> Result<Self, CompileError> {
        let text = |field: &'static str| match entry.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(CompileError::InvalidRule(format!("{field} must be a string"))),
        };
        let optional_old_self = entry.get("optionalOldSelf").and_then(Value::as_bool).unwrap_or_default();
        let this = match schema.map(Schema::kind) {
            None => Type::Dyn,
            Some(Some(kind)) => kind.clone(),
            Some(None) => return Err(CompileError::InvalidRule("the schema here has no type".to_owned())),
        };
        let old = if optional_old_self { Type::optional(this.clone()) } else { this.clone() };
        let types = if schema.is_some() { vec![this, old] } else { Vec::new() };
        let compile = |field: &'static str, source: &str, wanted: Type, name: &'static str| {
            let expression = Expression::compile(source, environment::rule(), &types)?;
            let found = expression.result_type();
            let fits = if schema.is_some() { *found == wanted } else { found.fits(&wanted) };
            if fits { Ok(expression) } else { Err(CompileError::WrongResult { field, wanted: name }) }
        };
        if let (Some(schema), Some(path)) = (schema, text("fieldPath")?)
            && !schema.has_field(&path)
        {
            let reason = format!("fieldPath {path} does not refer to a valid field");
            return Err(CompileError::InvalidRule(reason));
        }
        let source = text("rule")?.ok_or_else(|| CompileError::InvalidRule("rule is required".to_owned()))?;
        let condition = compile("rule", &source, Type::Bool, "bool")?;
        let message_expression = text("messageExpression")?
            .map(|source| compile("messageExpression", &source, Type::String, "string"))
            .transpose()
            .map_err(|error| match error {
                // names the field itself
                error @ CompileError::WrongResult { .. } => error,
                error => CompileError::MessageExpression(Box::new(error)),
            })?;
        Ok(Self {
            source: source.trim().to_owned(),
            condition,
            message: text("message")?.map(|message| message.trim().to_owned()),
            message_expression,
            reason: text("reason")?,
            field_path: text("fieldPath")?,
            optional_old_self,
            schema: schema.cloned(),
        })
    }

    /// Whether the rule compares with the old value, which makes it a transition rule.
    pub fn uses_old_self(&self) -> bool {
        self.condition.uses("oldSelf")
    }

    /// The fields of `self` that the rule reads.
    pub fn reads(&self) -> Vec<FieldRead> {
        self.condition.reads("self").into_iter().collect()
    }

    /// The `reason` of the entry.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// The `fieldPath` of the entry.
    pub fn field_path(&self) -> Option<&str> {
        self.field_path.as_deref()
    }

    /// The text of the rule, without surrounding white space.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The `message` of the entry, without surrounding white space.
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// Judges a value, given the old one if there is one to compare with.
    pub fn eval(&self, this: &Value, old: Option<&Value>) -> Result<Verdict, EvalError> {
        let mut steps = STEPS;
        self.eval_within(this, old, &mut steps)
    }

    /// Judges a value with at most `steps` steps, and subtracts those it took: many rules can share
    /// them.
    pub fn eval_within(&self, this: &Value, old: Option<&Value>, steps: &mut u64) -> Result<Verdict, EvalError> {
        if self.uses_old_self() && old.is_none() && !self.optional_old_self {
            return Ok(Verdict::Skipped);
        }
        match self.run(&self.condition, this, old, steps)? {
            Cel::Bool(true) => Ok(Verdict::Pass),
            Cel::Bool(false) => Ok(Verdict::Fail { message: self.complaint(this, old, steps) }),
            _ => Err(EvalError::NotBool),
        }
    }

    fn run(
        &self,
        expression: &Expression,
        this: &Value,
        old: Option<&Value>,
        steps: &mut u64,
    ) -> Result<Cel, EvalError> {
        let value = |json: &Value| match &self.schema {
            Some(schema) => schema.value(json),
            None => Ok(to_cel(json, Integers::Kept)),
        };
        let variable = |name: &'static str| match (name, &self.schema) {
            ("self", None) => Ok(Input::Json(this, Integers::Kept)),
            ("self", Some(schema)) => schema.value(this).map(Input::Value),
            _ => {
                let old = old.map(value).transpose()?;
                let old = if self.optional_old_self { Cel::optional(old) } else { old.unwrap_or(Cel::Null) };
                Ok(Input::Value(old))
            }
        };
        expression.eval_within(variable, steps)
    }

    /// The message expression wins if it gives usable text, then the message, then the rule itself.
    fn complaint(&self, this: &Value, old: Option<&Value>, steps: &mut u64) -> String {
        let computed =
            self.message_expression.as_ref().and_then(|expression| self.run(expression, this, old, steps).ok());
        match computed {
            Some(Cel::String(text)) if !text.trim().is_empty() && !text.contains('\n') => text.trim().to_owned(),
            _ => self.message.clone().unwrap_or_else(|| format!("failed rule: {}", self.source)),
        }
    }
}
