//! Why an expression is refused, or gives no result.

use crate::limits::{MAX_DEPTH, MAX_LENGTH, STEPS};

/// Why an expression or rule is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The text is not a CEL expression.
    #[error("{position}: {reason}")]
    Syntax {
        /// What was found there, or expected.
        reason: String,
        /// Line and column at which parsing failed.
        position: Position,
    },
    /// A variable, type or function does not exist.
    #[error("{position}: undeclared reference to '{name}'")]
    Undeclared {
        /// The name that is unknown.
        name: String,
        /// Line and column of its use.
        position: Position,
    },
    /// A function or operator cannot take these arguments.
    #[error("{position}: {reason}")]
    NoOverload {
        /// What was called with what.
        reason: String,
        /// Line and column of the call.
        position: Position,
    },
    /// Several parts of a rule are wrong; the message is that of the first one, [`listing`](Self::listing) has them all.
    #[error("{}", .0.first().map(ToString::to_string).unwrap_or_default())]
    Several(Vec<CompileError>),
    /// The expression is too long or nested too deeply.
    #[error("expression is too complex: at most {MAX_LENGTH} bytes and {MAX_DEPTH} levels are accepted")]
    TooComplex,
    /// The thread that parses could not be started or did not survive.
    #[error("expression cannot be parsed here: no thread with a large stack")]
    NoThread,
    /// A validation rule lacks `rule`, or a field of it has the wrong type.
    #[error("invalid validation rule: {0}")]
    InvalidRule(String),
    /// The `messageExpression` of a validation rule is refused.
    #[error("messageExpression: {0}")]
    MessageExpression(Box<CompileError>),
    /// An expression of an admission policy gives something that cannot be used.
    #[error("{0}")]
    InvalidResult(String),
    /// A validation rule gives something other than a boolean, or its message something other than a string.
    #[error("{field} must evaluate to a {wanted}")]
    WrongResult {
        /// The field with the expression.
        field: &'static str,
        /// The type it must have.
        wanted: &'static str,
    },
}

impl CompileError {
    /// The errors of one expression, in the order of their positions.
    pub(crate) fn all(mut faults: Vec<Self>) -> Self {
        faults.sort_by_key(|fault| fault.position().map(|place| (place.line, place.column)));
        match <[Self; 1]>::try_from(faults) {
            Ok([only]) => only,
            Err(faults) => Self::Several(faults),
        }
    }

    /// Where the expression is wrong, if that is one place.
    pub fn position(&self) -> Option<Position> {
        match self {
            Self::Syntax { position, .. } | Self::Undeclared { position, .. } | Self::NoOverload { position, .. } => {
                Some(*position)
            }
            Self::MessageExpression(error) => error.position(),
            Self::Several(faults) => faults.first().and_then(Self::position),
            _ => None,
        }
    }

    /// The error as cel-go writes it: the place, the line, and a caret below what is wrong.
    ///
    /// ```
    /// let source = "1 + size";
    /// let error = carrick_cel::Mutation::compile(source).unwrap_err();
    /// let lines = ["ERROR: <input>:1:5: undeclared reference to 'size' (in container '')", " | 1 + size", " | ....^"];
    /// assert_eq!(error.listing(source), lines.join("\n"));
    /// ```
    pub fn listing(&self, source: &str) -> String {
        if let Self::Several(faults) = self {
            return faults.iter().map(|fault| fault.listing(source)).collect::<Vec<_>>().join("\n");
        }
        let Some(Position { line, column }) = self.position() else { return self.to_string() };
        let container = if matches!(self, Self::Undeclared { .. }) { " (in container '')" } else { "" };
        let shown = source.lines().nth(line - 1).unwrap_or_default();
        let dots = ".".repeat(column - 1);
        format!("ERROR: <input>:{line}:{column}: {}{container}\n | {shown}\n | {dots}^", self.message())
    }

    /// What is wrong, without the place.
    pub fn message(&self) -> String {
        match self {
            Self::Syntax { reason, .. } | Self::NoOverload { reason, .. } => reason.clone(),
            Self::Undeclared { name, .. } => format!("undeclared reference to '{name}'"),
            other => other.to_string(),
        }
    }
}

/// Line and column in characters, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Why an expression gave no result. Messages contain no values, which may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// A map has no such key.
    #[error("no such key: {0}")]
    NoSuchKey(String),
    /// A map has no key of the value that was computed for it.
    #[error("no such key")]
    NoComputedKey,
    /// A list has no such element.
    #[error("index out of bounds")]
    IndexOutOfBounds,
    /// A division or modulus by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A number left the range of its type.
    #[error("integer overflow")]
    Overflow,
    /// A function or operator cannot take arguments of these types.
    #[error("no such overload: {0}")]
    NoSuchOverload(String),
    /// A function could not handle its arguments.
    #[error("function '{0}' failed")]
    Function(String),
    /// Anything else that went wrong inside.
    #[error("evaluation failed: {0}")]
    Other(&'static str),
    /// The expression was stopped because it took too long, or made too much.
    #[error("expression takes too many steps: at most {STEPS} are allowed, loop over less or compute less")]
    TooManySteps,
    /// A value does not fit the schema that the rule was compiled with.
    #[error("value does not fit the schema: {0}")]
    Schema(&'static str),
    /// The result has no JSON form.
    #[error("result cannot be written as JSON: {0}")]
    NotJson(&'static str),
    /// A variable of an admission policy has no value.
    #[error("composited variable {0:?} fails to evaluate: {1}")]
    Variable(String, Box<EvalError>),
    /// A rule gave something other than a boolean.
    #[error("rule must evaluate to a bool")]
    NotBool,
}

impl EvalError {
    /// The message as cel-go words it, which is what API servers show.
    pub fn wording(&self) -> String {
        match self {
            Self::NoSuchOverload(_) => "no such overload".to_owned(),
            // Most of what cannot be converted is text.
            Self::Function(name) if matches!(name.as_str(), "int" | "uint" | "double" | "bool") => {
                format!("type conversion error from 'string' to '{name}'")
            }
            Self::Variable(name, why) => {
                format!("composited variable {name:?} fails to evaluate: {}", why.wording())
            }
            Self::TooManySteps => "operation cancelled: actual cost limit exceeded".to_owned(),
            other => other.to_string(),
        }
    }
}

/// The error of a function that cannot handle its arguments.
pub(crate) fn failed(function: &str) -> EvalError {
    EvalError::Function(function.to_owned())
}
