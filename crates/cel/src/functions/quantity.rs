//! Functions on quantities.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::budget::Budget;
use crate::error::{EvalError, failed};
use crate::signature::Row;
use crate::value::quantity::Quantity;
use crate::value::{Outcome, Value, overload};

pub(crate) const ROWS: &[Row] = &[
    ("quantity(string): Quantity", |arguments, budget| {
        let found = parsed("quantity", arguments, budget)?;
        found.map(|found| Value::Quantity(Arc::new(found))).ok_or_else(|| failed("quantity"))
    }),
    ("isQuantity(string): bool", |arguments, budget| {
        parsed("isQuantity", arguments, budget).map(|found| Value::Bool(found.is_some()))
    }),
    ("sign(Quantity): int", |arguments, _| {
        let (found, _) = target("sign", arguments)?;
        Ok(Value::Int(found.sign()))
    }),
    ("Quantity.isGreaterThan(Quantity): bool", |arguments, _| {
        compare("isGreaterThan", arguments, |order| Value::Bool(order.is_gt()))
    }),
    ("Quantity.isLessThan(Quantity): bool", |arguments, _| {
        compare("isLessThan", arguments, |order| Value::Bool(order.is_lt()))
    }),
    ("Quantity.compareTo(Quantity): int", |arguments, _| {
        compare("compareTo", arguments, |order| Value::Int(order as i64))
    }),
    ("Quantity.asApproximateFloat(): double", |arguments, _| {
        Ok(Value::Double(target("asApproximateFloat", arguments)?.0.approximate()))
    }),
    ("Quantity.asInteger(): int", |arguments, _| {
        target("asInteger", arguments)?.0.integer().map(Value::Int).ok_or_else(|| failed("asInteger"))
    }),
    ("Quantity.isInteger(): bool", |arguments, _| {
        Ok(Value::Bool(target("isInteger", arguments)?.0.integer().is_some()))
    }),
    ("Quantity.add(Quantity): Quantity\nQuantity.add(int): Quantity", |arguments, _| {
        let (a, b) = target("add", arguments)?;
        Ok(Value::Quantity(Arc::new(a.plus(&b.ok_or_else(|| overload("add", arguments))?))))
    }),
    ("Quantity.sub(Quantity): Quantity\nQuantity.sub(int): Quantity", |arguments, _| {
        let (a, b) = target("sub", arguments)?;
        Ok(Value::Quantity(Arc::new(a.minus(&b.ok_or_else(|| overload("sub", arguments))?))))
    }),
];

/// The quantity a function was called on, and the other one.
fn target<'a>(name: &str, arguments: &'a [Value]) -> Result<(&'a Quantity, Option<Quantity>), EvalError> {
    match arguments {
        [Value::Quantity(a)] => Ok((a, None)),
        [Value::Quantity(a), Value::Quantity(b)] => Ok((a, Some((**b).clone()))),
        [Value::Quantity(a), Value::Int(b)] => Ok((a, Some(Quantity::whole(*b)))),
        _ => Err(overload(name, arguments)),
    }
}

fn parsed(name: &str, arguments: &[Value], budget: &Budget) -> Result<Option<Quantity>, EvalError> {
    let [Value::String(text)] = arguments else { return Err(overload(name, arguments)) };
    budget.bytes(text.len())?;
    Ok(Quantity::parse(text))
}

fn compare(name: &str, arguments: &[Value], result: impl Fn(Ordering) -> Value) -> Outcome {
    match target(name, arguments)? {
        (a, Some(b)) => Ok(result(a.cmp(&b))),
        _ => Err(overload(name, arguments)),
    }
}
