//! Lists seen as sets.

use crate::budget::Budget;
use crate::error::EvalError;
use crate::signature::Row;
use crate::value::{List, Outcome, Value, overload};

pub(crate) const ROWS: &[Row] = &[
    ("sets.contains(list(A), list(A)): bool", |arguments, budget| {
        compare("sets.contains", arguments, |a, b| contains(a, b, budget))
    }),
    ("sets.equivalent(list(A), list(A)): bool", |arguments, budget| {
        compare("sets.equivalent", arguments, |a, b| Ok(contains(a, b, budget)? && contains(b, a, budget)?))
    }),
    ("sets.intersects(list(A), list(A)): bool", |arguments, budget| {
        compare("sets.intersects", arguments, |a, b| intersects(a, b, budget))
    }),
];

fn compare(name: &str, arguments: &[Value], holds: impl Fn(&List, &List) -> Result<bool, EvalError>) -> Outcome {
    match arguments {
        [Value::List(a), Value::List(b)] => holds(a, b).map(Value::Bool),
        _ => Err(overload(name, arguments)),
    }
}

fn contains(whole: &List, part: &List, budget: &Budget) -> Result<bool, EvalError> {
    for item in &part.items {
        if !whole.contains(item, budget)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn intersects(a: &List, b: &List, budget: &Budget) -> Result<bool, EvalError> {
    for item in &a.items {
        if b.contains(item, budget)? {
            return Ok(true);
        }
    }
    Ok(false)
}
