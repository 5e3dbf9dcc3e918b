//! Functions on lists.

use std::cmp::Ordering;

use crate::budget::Budget;
use crate::error::{EvalError, failed};
use crate::functions::operators::plus;
use crate::signature::Row;
use crate::value::{List, Outcome, Value, overload};

/// cel-go's list extension.
pub(crate) const ROWS: &[Row] = &[
    ("list(A).slice(int, int): list(A)", slice),
    ("list(list(A)).flatten(): list(A)\nlist(dyn).flatten(int): list(dyn)", flatten),
    ("list(A).distinct(): list(A)", distinct),
    ("list(A).reverse(): list(A)", reverse),
    ("lists.range(int): list(int)", range),
    (
        "list(int).sort(): list(int)
         list(uint).sort(): list(uint)
         list(double).sort(): list(double)
         list(bool).sort(): list(bool)
         list(duration).sort(): list(duration)
         list(timestamp).sort(): list(timestamp)
         list(string).sort(): list(string)
         list(bytes).sort(): list(bytes)",
        sort,
    ),
];

/// The list functions of Kubernetes.
pub(crate) const KUBERNETES_ROWS: &[Row] = &[
    (
        "list(int).isSorted(): bool
         list(uint).isSorted(): bool
         list(double).isSorted(): bool
         list(bool).isSorted(): bool
         list(duration).isSorted(): bool
         list(timestamp).isSorted(): bool
         list(string).isSorted(): bool
         list(bytes).isSorted(): bool",
        is_sorted,
    ),
    ("list(int).sum(): int", |arguments, budget| sum(arguments, budget, Value::Int(0))),
    ("list(uint).sum(): uint", |arguments, budget| sum(arguments, budget, Value::Uint(0))),
    ("list(double).sum(): double", |arguments, budget| sum(arguments, budget, Value::Double(0.0))),
    ("list(duration).sum(): duration", |arguments, budget| sum(arguments, budget, Value::Duration(0))),
    (
        "list(int).min(): int
         list(uint).min(): uint
         list(double).min(): double
         list(bool).min(): bool
         list(duration).min(): duration
         list(timestamp).min(): timestamp
         list(string).min(): string
         list(bytes).min(): bytes",
        |arguments, budget| extreme("min", arguments, budget, Ordering::Less),
    ),
    (
        "list(int).max(): int
         list(uint).max(): uint
         list(double).max(): double
         list(bool).max(): bool
         list(duration).max(): duration
         list(timestamp).max(): timestamp
         list(string).max(): string
         list(bytes).max(): bytes",
        |arguments, budget| extreme("max", arguments, budget, Ordering::Greater),
    ),
    ("list(A).indexOf(A): int", |arguments, budget| position("indexOf", arguments, budget, false)),
    ("list(A).lastIndexOf(A): int", |arguments, budget| position("lastIndexOf", arguments, budget, true)),
];

/// The list a function was called on, with its cost taken from the budget.
fn target<'a>(name: &str, arguments: &'a [Value], budget: &Budget) -> Result<&'a List, EvalError> {
    match arguments.first() {
        Some(Value::List(list)) => {
            budget.charge(list.items.len() as u64)?;
            Ok(list)
        }
        _ => Err(overload(name, arguments)),
    }
}

fn slice(arguments: &[Value], budget: &Budget) -> Outcome {
    let list = target("slice", arguments, budget)?;
    let [_, Value::Int(start), Value::Int(end)] = arguments else { return Err(overload("slice", arguments)) };
    let bounds = usize::try_from(*start).and_then(|start| Ok((start, usize::try_from(*end)?)));
    let (start, end) = bounds.map_err(|_| failed("slice"))?;
    list.items.get(start..end).map(|items| Value::list(items.to_vec())).ok_or_else(|| failed("slice"))
}

fn flatten(arguments: &[Value], budget: &Budget) -> Outcome {
    let list = target("flatten", arguments, budget)?;
    let depth = match arguments {
        [_] => 1,
        [_, Value::Int(depth)] => u64::try_from(*depth).map_err(|_| failed("flatten"))?,
        _ => return Err(overload("flatten", arguments)),
    };
    let mut out = Vec::new();
    flatten_into(&mut out, &list.items, depth, budget)?;
    Ok(Value::list(out))
}

fn flatten_into(out: &mut Vec<Value>, items: &[Value], depth: u64, budget: &Budget) -> Result<(), EvalError> {
    for item in items {
        budget.step()?;
        match item {
            Value::List(inner) if depth > 0 => flatten_into(out, &inner.items, depth - 1, budget)?,
            other => out.push(other.clone()),
        }
    }
    Ok(())
}

fn distinct(arguments: &[Value], budget: &Budget) -> Outcome {
    let list = target("distinct", arguments, budget)?;
    let mut kept = List::default();
    for item in &list.items {
        if !kept.contains(item, budget)? {
            kept.items.push(item.clone());
        }
    }
    Ok(Value::list(kept.items))
}

fn reverse(arguments: &[Value], budget: &Budget) -> Outcome {
    let list = target("reverse", arguments, budget)?;
    Ok(Value::list(list.items.iter().rev().cloned().collect()))
}

fn range(arguments: &[Value], budget: &Budget) -> Outcome {
    let [Value::Int(count)] = arguments else { return Err(overload("lists.range", arguments)) };
    budget.charge(u64::try_from(*count).map_err(|_| failed("lists.range"))?)?;
    Ok(Value::list((0..*count).map(Value::Int).collect()))
}

fn sort(arguments: &[Value], budget: &Budget) -> Outcome {
    let list = target("sort", arguments, budget)?;
    Ok(Value::list(sort_by_keys(list.items.clone(), list.items.clone(), budget)?))
}

/// The items in the order of their keys, which have to be of one type.
pub(crate) fn sort_by_keys(items: Vec<Value>, keys: Vec<Value>, budget: &Budget) -> Result<Vec<Value>, EvalError> {
    if let Some(first) = keys.first()
        && (!first.kind().has_order() || keys.iter().any(|key| key.kind().name() != first.kind().name()))
    {
        return Err(failed("sort"));
    }
    let mut pairs: Vec<(Value, Value)> = keys.into_iter().zip(items).collect();
    let mut error = None;
    pairs.sort_by(|(a, _), (b, _)| {
        // once something is wrong the order does not matter, and comparing costs nothing
        if error.is_some() {
            return Ordering::Equal;
        }
        match a.compare(b, budget) {
            Ok(Some(order)) => order,
            Ok(None) => {
                error = Some(failed("sort"));
                Ordering::Equal
            }
            Err(failure) => {
                error = Some(failure);
                Ordering::Equal
            }
        }
    });
    match error {
        Some(error) => Err(error),
        None => Ok(pairs.into_iter().map(|(_, item)| item).collect()),
    }
}

fn is_sorted(arguments: &[Value], budget: &Budget) -> Outcome {
    for pair in target("isSorted", arguments, budget)?.items.windows(2) {
        if pair[0].compare(&pair[1], budget)?.is_some_and(Ordering::is_gt) {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn sum(arguments: &[Value], budget: &Budget, zero: Value) -> Outcome {
    let items = &target("sum", arguments, budget)?.items;
    // a list whose type is not known came here by chance: start with what it holds
    let Some((first, rest)) = items.split_first() else { return Ok(zero) };
    if !matches!(first, Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Duration(_)) {
        return Err(overload("sum", std::slice::from_ref(first)));
    }
    let mut total = first.clone();
    for item in rest {
        total = plus(&total, item, budget)?;
    }
    Ok(total)
}

fn extreme(name: &str, arguments: &[Value], budget: &Budget, wanted: Ordering) -> Outcome {
    let mut items = target(name, arguments, budget)?.items.iter();
    let mut best = items.next().ok_or_else(|| failed(name))?;
    if !best.kind().has_order() {
        return Err(overload(name, std::slice::from_ref(best)));
    }
    for item in items {
        if item.compare(best, budget)? == Some(wanted) {
            best = item;
        }
    }
    Ok(best.clone())
}

fn position(name: &str, arguments: &[Value], budget: &Budget, backwards: bool) -> Outcome {
    let items = &target(name, arguments, budget)?.items;
    let [_, wanted] = arguments else { return Err(overload(name, arguments)) };
    for step in 0..items.len() {
        let at = if backwards { items.len() - 1 - step } else { step };
        if items[at].equals(wanted, budget)? {
            return Ok(Value::count(at));
        }
    }
    Ok(Value::Int(-1))
}
