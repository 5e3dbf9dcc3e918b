//! Functions of our own: those the Kubernetes API server adds, and ordered iteration.

#![allow(clippy::needless_pass_by_value)] // the cel crate fixes the signature of functions

use std::cmp::Ordering;

use cel::common::types::{DYN_TYPE, LIST_TYPE};
use cel::common::value::{CowVal, Val};
use cel::objects::Key;
use cel::{DeclarationError, Env, ExecutionError, Value};

/// Name of the function around the range of every comprehension, see [`ordered`].
pub(crate) const ORDERED: &str = "@ordered";

/// Adds [`ORDERED`].
pub(crate) fn iteration(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload(ORDERED, "ordered_dyn", vec![DYN_TYPE], ordered)
}

/// Adds the list functions of Kubernetes.
pub(crate) fn kubernetes(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_member_overload("isSorted", "list_is_sorted", LIST_TYPE, vec![], is_sorted)?;
    env.add_member_overload("sum", "list_sum", LIST_TYPE, vec![], sum)?;
    env.add_member_overload("min", "list_min", LIST_TYPE, vec![], min)?;
    env.add_member_overload("max", "list_max", LIST_TYPE, vec![], max)?;
    env.add_member_overload("indexOf", "list_index_of", LIST_TYPE, vec![DYN_TYPE], index_of)?;
    env.add_member_overload("lastIndexOf", "list_last_index_of", LIST_TYPE, vec![DYN_TYPE], last_index_of)
}

type Arguments<'b, 'v> = Vec<CowVal<'b, 'v>>;
type Outcome<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

/// A map as the sorted list of its keys, which is what iterating over it yields; everything else unchanged. The maps of
/// the cel crate are hash maps, whose order differs from run to run.
fn ordered<'b, 'v>(mut arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let range = arguments.pop().ok_or(ExecutionError::MissingArgumentOrTarget)?;
    let Value::Map(map) = Value::try_from(range.as_ref()).unwrap_or(Value::Null) else { return Ok(range) };
    let mut keys: Vec<&Key> = map.map.keys().collect();
    keys.sort_by_key(|key| rank(key));
    owned(Value::List(keys.into_iter().map(Value::from).collect::<Vec<_>>().into()))
}

/// Booleans before numbers before text.
fn rank(key: &Key) -> (u8, i128, &str) {
    match key {
        Key::Bool(value) => (0, i128::from(*value), ""),
        Key::Int(value) => (1, i128::from(*value), ""),
        Key::Uint(value) => (1, i128::from(*value), ""),
        Key::String(text) => (2, 0, text),
    }
}

fn owned<'b, 'v>(value: Value) -> Outcome<'b, 'v> {
    let value: Box<dyn Val> = value.try_into()?;
    Ok(CowVal::Owned(value))
}

/// The list a function was called on.
fn list(function: &str, arguments: &Arguments<'_, '_>) -> Result<Vec<Value>, ExecutionError> {
    match arguments.first().map(|list| Value::try_from(list.as_ref())) {
        Some(Ok(Value::List(items))) => Ok(items.to_vec()),
        _ => Err(ExecutionError::function_error(function, "no list")),
    }
}

fn compare(function: &str, a: &Value, b: &Value) -> Result<Ordering, ExecutionError> {
    a.partial_cmp(b).ok_or_else(|| ExecutionError::function_error(function, "elements cannot be compared"))
}

fn is_sorted<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let items = list("isSorted", &arguments)?;
    for pair in items.windows(2) {
        if compare("isSorted", &pair[0], &pair[1])?.is_gt() {
            return owned(Value::Bool(false));
        }
    }
    owned(Value::Bool(true))
}

fn sum<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let mut items = list("sum", &arguments)?.into_iter();
    let Some(mut total) = items.next() else { return owned(Value::Int(0)) };
    for item in items {
        total = (total + item)?;
    }
    owned(total)
}

fn min<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    extreme("min", &arguments, Ordering::Less)
}

fn max<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    extreme("max", &arguments, Ordering::Greater)
}

fn extreme<'b, 'v>(function: &str, arguments: &Arguments<'b, 'v>, wanted: Ordering) -> Outcome<'b, 'v> {
    let mut items = list(function, arguments)?.into_iter();
    let mut best = items.next().ok_or_else(|| ExecutionError::function_error(function, "list is empty"))?;
    for item in items {
        if compare(function, &item, &best)? == wanted {
            best = item;
        }
    }
    owned(best)
}

fn index_of<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    position("indexOf", &arguments, |items, wanted| items.iter().position(|item| item == wanted))
}

fn last_index_of<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    position("lastIndexOf", &arguments, |items, wanted| items.iter().rposition(|item| item == wanted))
}

fn position<'b, 'v>(
    function: &str,
    arguments: &Arguments<'b, 'v>,
    find: impl Fn(&[Value], &Value) -> Option<usize>,
) -> Outcome<'b, 'v> {
    let items = list(function, arguments)?;
    let wanted = arguments.get(1).ok_or(ExecutionError::MissingArgumentOrTarget)?;
    let wanted = Value::try_from(wanted.as_ref())?;
    let index = find(&items, &wanted).and_then(|index| i64::try_from(index).ok());
    owned(Value::Int(index.unwrap_or(-1)))
}
