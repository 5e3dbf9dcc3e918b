//! A compiled expression: parsed, checked, ready to be evaluated any number of times.

use std::collections::BTreeSet;

use cel::ParseErrors;

use crate::budget::Budget;
use crate::check::Checker;
use crate::environment::Environment;
use crate::error::{CompileError, EvalError, Position};
use crate::eval::Evaluator;
use crate::input::{Converted, Input};
use crate::limits::{MAX_LENGTH, STEPS};
use crate::node::Node;
use crate::reads::{self, FieldRead};
use crate::stack;
use crate::types::Type;
use crate::value::Value;

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

    /// The fields of a variable that the expression reads.
    pub fn reads(&self, variable: &str) -> BTreeSet<FieldRead> {
        let at = self.variables.iter().position(|(name, _)| *name == variable);
        at.map(|at| reads::of(&self.root, at)).unwrap_or_default()
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

    /// Evaluates with at most `steps` steps, and subtracts those it took.
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

/// The parser's errors. Of a mutation, only the first is reported: the others mostly follow from it.
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
