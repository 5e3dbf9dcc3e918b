//! A compiled expression: parsed, checked, ready to be evaluated any number of times.

use cel::ParseErrors;

use crate::budget::{Budget, STEPS};
use crate::check::Checker;
use crate::environment::Environment;
use crate::eval::Evaluator;
use crate::input::{Converted, Input};
use crate::node::Node;
use crate::stack;
use crate::types::Type;
use crate::value::Value;

/// The longest expression that is accepted; longer ones nest too deep to be parsed safely.
const MAX_LENGTH: usize = 16 * 1024;

/// The deepest that an expression may nest.
pub(crate) const MAX_DEPTH: usize = 200;

/// Why an expression or rule is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The text is no CEL expression.
    #[error("{position}: {reason}")]
    Syntax {
        /// What was found there, or expected.
        reason: String,
        /// Line and column where it cannot go on.
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
    /// Several parts of a rule are faulty; the first one is told, [`listing`](Self::listing) has them all.
    #[error("{}", .0.first().map(ToString::to_string).unwrap_or_default())]
    Several(Vec<CompileError>),
    /// The expression is too long or nests too deep.
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
    /// Faults of one expression, in the order of their places.
    fn all(mut faults: Vec<Self>) -> Self {
        faults.sort_by_key(|fault| fault.position().map(|place| (place.line, place.column)));
        match <[Self; 1]>::try_from(faults) {
            Ok([only]) => only,
            Err(faults) => Self::Several(faults),
        }
    }

    /// Where the expression is faulty, if one place is.
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
    /// A rule gave something other than a boolean.
    #[error("rule must evaluate to a bool")]
    NotBool,
}

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Expression {
    root: Node,
    result: Type,
    /// The variables of the environment, and whether the expression mentions them.
    variables: Vec<(&'static str, bool)>,
    depth: usize,
}

impl Expression {
    /// Parses an expression over variables of these types, or of types that are not known, and refuses what the environment does not have.
    pub fn compile(source: &str, environment: &'static Environment, types: &[Type]) -> Result<Self, CompileError> {
        if source.len() > MAX_LENGTH {
            return Err(CompileError::TooComplex);
        }
        stack::with_stack(stack::PARSING, || Self::parse(source, environment, types))
            .unwrap_or(Err(CompileError::NoThread))
    }

    fn parse(source: &str, environment: &'static Environment, types: &[Type]) -> Result<Self, CompileError> {
        let parser = environment.parser.parser().enable_ident_escape_syntax(true);
        let (parsed, info) =
            parser.parse_with_source_info(source).map_err(|errors| syntax(&errors, environment.kubernetes))?;
        let names = environment.variables;
        let strict = environment.kubernetes && !types.is_empty();
        let types = types.iter().cloned().chain(std::iter::repeat(Type::Dyn));
        let mut checker = Checker {
            environment,
            source,
            info: &info,
            scope: names.iter().map(ToString::to_string).zip(types).collect(),
            used: vec![false; names.len()],
            deepest: 0,
            strict,
            crossing: environment.kubernetes,
            mixed: 0,
            elements: Vec::new(),
            faults: Vec::new(),
            later: Vec::new(),
        };
        let (root, result) = checker.visit(&parsed, 0)?;
        let faults = if checker.faults.is_empty() { checker.later } else { checker.faults };
        if !faults.is_empty() {
            return Err(CompileError::all(faults));
        }
        let variables = names.iter().copied().zip(checker.used).collect();
        Ok(Self { root, result, variables, depth: checker.deepest })
    }

    /// Whether the expression mentions the variable.
    pub fn uses(&self, variable: &str) -> bool {
        self.variables.iter().any(|(name, used)| *used && *name == variable)
    }

    /// The type of the result, as far as it is certain.
    pub fn result_type(&self) -> &Type {
        &self.result
    }

    /// Evaluates with the given variables; those it does not use are never made.
    pub fn eval<'j>(
        &self,
        variable: impl Fn(&'static str) -> Result<Input<'j>, EvalError> + Sync,
    ) -> Result<Value, EvalError> {
        let mut steps = STEPS;
        self.eval_within(variable, &mut steps)
    }

    /// Evaluates with at most so many steps, from which those that were taken are subtracted.
    pub fn eval_within<'j>(
        &self,
        variable: impl Fn(&'static str) -> Result<Input<'j>, EvalError> + Sync,
        steps: &mut u64,
    ) -> Result<Value, EvalError> {
        let most = (*steps).min(STEPS);
        let result = stack::for_depth(self.depth, || {
            let mut stack = Vec::new();
            for (name, used) in &self.variables {
                match if *used { variable(name) } else { Ok(Input::Value(Value::Null)) } {
                    Ok(value) => stack.push(value),
                    Err(error) => return (Err(error), 0),
                }
            }
            let mut evaluator = Evaluator { budget: Budget::of(most), stack, converted: Converted::default() };
            let result = evaluator.eval(&self.root);
            (result, most - evaluator.budget.left())
        });
        let (result, taken) = result.unwrap_or((Err(EvalError::Other("no thread with a large stack")), 0));
        *steps -= taken;
        result
    }
}

/// The parser's errors. Of a mutation the first is told: the others mostly follow from it.
fn syntax(errors: &ParseErrors, all: bool) -> CompileError {
    let counted = |from_one: isize| usize::try_from(from_one).unwrap_or(1).max(1);
    let fault = |(line, column): (isize, isize), reason: &str| CompileError::Syntax {
        reason: reason.to_owned(),
        position: Position { line: counted(line), column: counted(column) },
    };
    let mut faults: Vec<_> = errors.errors.iter().map(|error| fault(error.pos, &error.msg)).collect();
    if !all {
        faults.truncate(1);
    }
    if faults.is_empty() { fault((1, 1), "syntax error") } else { CompileError::all(faults) }
}
