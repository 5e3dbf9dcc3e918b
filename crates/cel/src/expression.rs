//! A compiled expression: parsed, its names checked, ready to be evaluated any number of times.

use std::sync::Arc;

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, SourceInfo};
use cel::{Context, ExecutionError, Value};

use crate::environment::Environment;
use crate::{escape, library, stack, types};

/// The longest expression that is accepted; longer ones nest too deep to be parsed safely.
const MAX_LENGTH: usize = 16 * 1024;

/// The deepest that an expression may nest.
const MAX_DEPTH: usize = 200;

/// Why an expression or rule is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The text is no CEL expression.
    #[error("{0}")]
    Syntax(String),
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
    /// The expression is too long or nests too deep.
    #[error("expression is too complex: at most {MAX_LENGTH} bytes and {MAX_DEPTH} levels are accepted")]
    TooComplex,
    /// The thread that parses could not be started or did not survive.
    #[error("expression cannot be parsed here: no thread with a large stack")]
    NoThread,
    /// A validation rule lacks `rule`, or a field of it has the wrong type.
    #[error("invalid validation rule: {0}")]
    InvalidRule(String),
    /// A validation rule gives something other than a boolean, or its message something other than a string.
    #[error("{field} must evaluate to a {wanted}")]
    WrongResult {
        /// The field with the expression.
        field: &'static str,
        /// The type it must have.
        wanted: &'static str,
    },
}

/// Line and column, both counted from 1.
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
    root: IdedExpr,
    variables: Vec<&'static str>,
    depth: usize,
}

impl Expression {
    /// Parses an expression and refuses names that the environment does not have.
    pub fn compile(source: &str, environment: &'static Environment) -> Result<Self, CompileError> {
        if source.len() > MAX_LENGTH {
            return Err(CompileError::TooComplex);
        }
        stack::with_stack(stack::PARSING, || Self::parse(source, environment)).unwrap_or(Err(CompileError::NoThread))
    }

    fn parse(source: &str, environment: &'static Environment) -> Result<Self, CompileError> {
        let program = environment.env.compile(source).map_err(|errors| CompileError::Syntax(errors.to_string()))?;
        let mut root = program.expression().clone();
        let mut checker = Checker {
            environment,
            source,
            info: program.source_info(),
            scope: Vec::new(),
            variables: Vec::new(),
            deepest: 0,
        };
        checker.visit(&mut root, 0)?;
        let (variables, depth) = (checker.variables, checker.deepest);
        Ok(Self { root, variables, depth })
    }

    /// Whether the expression mentions the variable.
    pub fn uses(&self, variable: &str) -> bool {
        self.variables.contains(&variable)
    }

    /// The type of the result where it is certain.
    pub fn result_type(&self) -> Option<types::Type> {
        types::of(&self.root)
    }

    /// Evaluates with the given variables; those it does not use are never made.
    pub fn eval(
        &self,
        environment: &Environment,
        variable: impl Fn(&'static str) -> Value + Sync,
    ) -> Result<Value, EvalError> {
        let result = stack::for_depth(self.depth, || {
            let mut context = Context::with_env(Arc::clone(&environment.env));
            for name in &self.variables {
                context.add_variable_from_value(*name, variable(name));
            }
            Value::resolve(&self.root, &context).map_err(|error| without_values(&error))
        });
        result.unwrap_or(Err(EvalError::Other("no thread with a large stack")))
    }
}

/// Walks an expression once: checks names, unescapes fields, puts comprehensions in order.
struct Checker<'s> {
    environment: &'static Environment,
    source: &'s str,
    info: &'s SourceInfo,
    /// Variables of the comprehensions around the current place.
    scope: Vec<String>,
    /// Variables of the environment that were met.
    variables: Vec<&'static str>,
    deepest: usize,
}

impl Checker<'_> {
    fn visit(&mut self, node: &mut IdedExpr, depth: usize) -> Result<(), CompileError> {
        if depth > MAX_DEPTH {
            return Err(CompileError::TooComplex);
        }
        self.deepest = self.deepest.max(depth);
        let id = node.id;
        if let Some(name) = qualified_name(node)
            && self.environment.env.types().find_type(&name).is_some()
        {
            return Ok(());
        }
        match &mut node.expr {
            Expr::Unspecified | Expr::Literal(_) => Ok(()),
            Expr::Ident(name) => self.variable(name, id),
            Expr::Select(select) => {
                if self.environment.escaped_fields {
                    select.field = escape::unescape(&select.field).into_owned();
                }
                self.visit(&mut select.operand, depth + 1)
            }
            Expr::Call(call) => self.call(call, id, depth),
            Expr::List(list) => list.elements.iter_mut().try_for_each(|element| self.visit(element, depth + 1)),
            Expr::Map(map) => map.entries.iter_mut().try_for_each(|entry| self.entry(entry, depth + 1)),
            Expr::Struct(message) => Err(self.undeclared(message.type_name.clone(), id)),
            Expr::Comprehension(fold) => {
                self.visit(&mut fold.iter_range, depth + 1)?;
                self.visit(&mut fold.accu_init, depth + 1)?;
                if fold.iter_var2.is_none() {
                    in_order(&mut fold.iter_range);
                }
                let outer = self.scope.len();
                self.scope.push(fold.accu_var.clone());
                self.visit(&mut fold.result, depth + 1)?;
                self.scope.push(fold.iter_var.clone());
                self.scope.extend(fold.iter_var2.clone());
                self.visit(&mut fold.loop_cond, depth + 1)?;
                self.visit(&mut fold.loop_step, depth + 1)?;
                self.scope.truncate(outer);
                Ok(())
            }
        }
    }

    fn variable(&mut self, name: &str, id: u64) -> Result<(), CompileError> {
        if self.scope.iter().any(|known| known == name) {
            return Ok(());
        }
        match self.environment.variables.iter().find(|known| **known == name) {
            Some(known) => {
                if !self.variables.contains(known) {
                    self.variables.push(known);
                }
                Ok(())
            }
            None => Err(self.undeclared(name.to_owned(), id)),
        }
    }

    fn call(&mut self, call: &mut CallExpr, id: u64, depth: usize) -> Result<(), CompileError> {
        let arguments = call.args.len();
        let is_operator = call.target.is_none() && !call.func_name.starts_with(|c: char| c.is_ascii_alphabetic());
        if !is_operator {
            let qualified =
                call.target.as_deref().and_then(qualified_name).map(|prefix| format!("{prefix}.{}", call.func_name));
            let namespaced = qualified.filter(|name| self.environment.has_function(name, false));
            let member = call.target.is_some() && namespaced.is_none();
            let name = namespaced.as_ref().unwrap_or(&call.func_name).clone();
            if !self.environment.has_function(&name, member) {
                return Err(self.undeclared(name, id));
            }
            if !self.environment.accepts(&name, member, arguments) {
                let reason = format!("function '{name}' cannot be called with {arguments} arguments");
                return Err(CompileError::NoOverload { reason, position: self.position(id) });
            }
            if let (true, Some(target)) = (member, call.target.as_deref_mut()) {
                self.visit(target, depth + 1)?;
            }
        }
        call.args.iter_mut().try_for_each(|argument| self.visit(argument, depth + 1))?;
        if is_operator && call.func_name == "_?._" && self.environment.escaped_fields {
            unescape_literal(call);
        }
        types::check(call).map_err(|reason| CompileError::NoOverload { reason, position: self.position(id) })
    }

    fn entry(&mut self, entry: &mut IdedEntryExpr, depth: usize) -> Result<(), CompileError> {
        match &mut entry.expr {
            EntryExpr::StructField(field) => self.visit(&mut field.value, depth),
            EntryExpr::MapEntry(entry) => {
                self.visit(&mut entry.key, depth)?;
                self.visit(&mut entry.value, depth)
            }
        }
    }

    fn undeclared(&self, name: String, id: u64) -> CompileError {
        CompileError::Undeclared { name, position: self.position(id) }
    }

    fn position(&self, id: u64) -> Position {
        let offset = self.info.offset_for(id).map_or(0, |(start, _)| start as usize);
        let before: String = self.source.chars().take(offset).collect();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Position { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }
}

/// `a.b.c` as text, if the expression is nothing but names.
fn qualified_name(node: &IdedExpr) -> Option<String> {
    match &node.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => {
            qualified_name(&select.operand).map(|operand| format!("{operand}.{}", select.field))
        }
        _ => None,
    }
}

/// Lets a comprehension see the keys of a map in order.
fn in_order(range: &mut IdedExpr) {
    let id = range.id;
    let inner = std::mem::take(range);
    let call = CallExpr { func_name: library::ORDERED.to_owned(), target: None, args: vec![inner] };
    *range = IdedExpr { id, expr: Expr::Call(call) };
}

/// The field of `a.?b` is a literal argument.
fn unescape_literal(call: &mut CallExpr) {
    use cel::common::ast::LiteralValue;
    if let Some(IdedExpr { expr: Expr::Literal(LiteralValue::String(field)), .. }) = call.args.get_mut(1) {
        *field = escape::unescape(field.inner()).into_owned().into();
    }
}

/// The messages of the cel crate quote values; ours do not.
fn without_values(error: &ExecutionError) -> EvalError {
    match error {
        ExecutionError::NoSuchKey(key) => EvalError::NoSuchKey(key.to_string()),
        ExecutionError::IndexOutOfBounds(_) => EvalError::IndexOutOfBounds,
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => EvalError::DivisionByZero,
        ExecutionError::Overflow(..) => EvalError::Overflow,
        ExecutionError::NoSuchOverload(overload) => {
            EvalError::NoSuchOverload(format!("{}({})", overload.function(), overload.argument_types().join(", ")))
        }
        ExecutionError::UnsupportedBinaryOperator(operator, left, right) => {
            EvalError::NoSuchOverload(format!("{operator}({}, {})", left.type_of(), right.type_of()))
        }
        ExecutionError::ValuesNotComparable(left, right) => {
            EvalError::NoSuchOverload(format!("compare({}, {})", left.type_of(), right.type_of()))
        }
        ExecutionError::UnsupportedTargetType { target } | ExecutionError::NotSupportedAsMethod { target, .. } => {
            EvalError::NoSuchOverload(format!("call on {}", target.type_of()))
        }
        ExecutionError::UnsupportedIndex(index, list) => {
            EvalError::NoSuchOverload(format!("_[_]({}, {})", list.type_of(), index.type_of()))
        }
        ExecutionError::UnsupportedKeyType(key) => {
            EvalError::NoSuchOverload(format!("map key of type {}", key.type_of()))
        }
        ExecutionError::UnexpectedType { got, want } => EvalError::NoSuchOverload(format!("{got} instead of {want}")),
        ExecutionError::FunctionError { function, .. } => EvalError::Function(function.clone()),
        ExecutionError::DuplicateKey(_) => EvalError::Other("a map has the same key twice"),
        ExecutionError::UndeclaredReference(_) => EvalError::Other("undeclared reference"),
        _ => EvalError::Other("unsupported expression"),
    }
}
