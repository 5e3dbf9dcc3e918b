//! Patterns as RE2 understands them.

use std::borrow::Cow;

use carrick_go::regex::{GoRegex, Pattern};

use crate::budget::Budget;
use crate::error::{EvalError, failed};
use crate::signature::Row;
use crate::value::{Outcome, Value, overload};

/// `matches` belongs to the standard library.
pub(crate) const STANDARD_ROWS: &[Row] = &[("matches(string, string): bool\nstring.matches(string): bool", matches)];

/// The pattern functions of Kubernetes.
pub(crate) const ROWS: &[Row] = &[
    ("string.find(string): string", find),
    ("string.findAll(string): list(string)\nstring.findAll(string, int): list(string)", find_all),
];

/// Memory that a compiled pattern may take.
const SIZE: usize = 1 << 20;

/// What compiling costs, and each state: it is far slower than a step.
const COMPILING: u64 = 1_000;
const STATE: u64 = 30;

/// Compiles a pattern.
pub(crate) fn compile(pattern: &str, budget: &Budget) -> Result<GoRegex, EvalError> {
    let pattern = Pattern::parse(pattern).map_err(|_| failed("matches"))?;
    budget.charge(COMPILING + (pattern.states() as u64).saturating_mul(STATE))?;
    pattern.compile(SIZE).map_err(|_| failed("matches"))
}

/// Compiles a literal in place.
pub(crate) fn literal(pattern: &mut Value) -> Result<(), EvalError> {
    if let Value::String(text) = pattern {
        *pattern = Value::Pattern(compile(text, &Budget::new())?.into());
    }
    Ok(())
}

/// The pattern and the text of a call, with their cost taken from the budget.
fn prepared<'a>(name: &str, arguments: &'a [Value], budget: &Budget) -> Result<(&'a str, Cow<'a, GoRegex>), EvalError> {
    match arguments {
        [Value::String(text), Value::Pattern(pattern), ..] => {
            budget.bytes(text.len().saturating_mul(2 + pattern.as_str().len() / 4))?;
            Ok((text, Cow::Borrowed(pattern)))
        }
        [Value::String(text), Value::String(pattern), ..] => {
            budget.bytes(text.len().saturating_mul(2 + pattern.len() / 4))?;
            Ok((text, Cow::Owned(compile(pattern, budget)?)))
        }
        _ => Err(overload(name, arguments)),
    }
}

fn matches(arguments: &[Value], budget: &Budget) -> Outcome {
    let (text, pattern) = prepared("matches", arguments, budget)?;
    Ok(Value::Bool(pattern.is_match(text)))
}

fn find(arguments: &[Value], budget: &Budget) -> Outcome {
    let (text, pattern) = prepared("find", arguments, budget)?;
    Ok(Value::string(pattern.find(text).map_or("", |found| &text[found])))
}

fn find_all(arguments: &[Value], budget: &Budget) -> Outcome {
    let (text, pattern) = prepared("findAll", arguments, budget)?;
    let limit = match arguments {
        [_, _, Value::Int(limit)] => usize::try_from(*limit).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let mut found = Vec::new();
    for part in pattern.find_iter(text).take(limit) {
        budget.step()?;
        found.push(Value::string(&text[part]));
    }
    Ok(Value::list(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_re2_and_large_ones_are_paid_for() {
        assert!(compile(r"^\d+$", &Budget::new()).unwrap().is_match("12"));
        for wrong in ["[", "a**", r"\", "(?=a)", "(a{101}){10}", r"\pL{1000}"] {
            assert!(compile(wrong, &Budget::new()).is_err(), "{wrong}");
        }
    }
}
