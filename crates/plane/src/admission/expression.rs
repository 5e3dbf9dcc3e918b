//! Expressions of policies and match conditions, ready to be evaluated.

use carrick_cel::{Admission, AdmissionBinding, AdmissionScope, AdmissionType, CompileError, Evaluated};
use serde_json::Value;

/// A compiled expression with its text; one that does not compile fails when it is evaluated.
#[derive(Debug)]
pub(super) struct Expression {
    source: String,
    compiled: Result<Admission, String>,
}

impl Expression {
    /// Compiles an expression for values of one type.
    pub(super) fn new(source: &str, scope: &AdmissionScope, wanted: AdmissionType) -> Self {
        let compiled = Admission::compile(source, scope, wanted).map_err(|error| wording(&error, source));
        Self { source: source.to_owned(), compiled }
    }

    /// The text.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// The value for one request, or the error in the API server's words.
    pub(super) fn eval(&self, binding: &AdmissionBinding<'_>) -> Result<Evaluated, String> {
        let compiled = self.compiled.as_ref().map_err(|error| format!("compilation error: {error}"))?;
        compiled.eval(binding).map_err(|error| {
            let Self { source, .. } = self;
            format!("expression '{source}' resulted in error: {}", error.wording())
        })
    }
}

/// A compile error in the API server's words.
pub(super) fn wording(error: &CompileError, source: &str) -> String {
    match error {
        CompileError::InvalidResult(why) => why.clone(),
        other => format!("compilation failed: {}", other.listing(source)),
    }
}

/// The `matchConditions` of a webhook or a policy.
#[derive(Debug)]
pub(super) struct Conditions {
    expressions: Vec<Expression>,
    /// Errors mean that the request is not matched, instead of failing it.
    lenient: bool,
}

impl Conditions {
    pub(super) fn read(list: &Value, scope: &AdmissionScope, lenient: bool) -> Self {
        let list = list.as_array().into_iter().flatten();
        let source = |condition: &Value| condition["expression"].as_str().unwrap_or_default().to_owned();
        let expressions = list.map(|one| Expression::new(&source(one), scope, AdmissionType::Bool)).collect();
        Self { expressions, lenient }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.expressions.is_empty()
    }

    /// Whether all of them hold: one that does not wins over errors of others.
    pub(super) fn hold(&self, binding: &AdmissionBinding<'_>) -> Result<bool, String> {
        let mut errors: Vec<String> = Vec::new();
        for expression in &self.expressions {
            match expression.eval(binding) {
                Ok(Evaluated::Bool(false)) => return Ok(false),
                Err(error) if !errors.contains(&error) => errors.push(error),
                _ => {}
            }
        }
        match errors.as_slice() {
            [] => Ok(true),
            _ if self.lenient => Ok(false),
            [only] => Err(only.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }
}
