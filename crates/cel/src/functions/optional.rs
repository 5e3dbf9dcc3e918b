//! Optional values.

use crate::budget::Budget;
use crate::error::failed;
use crate::signature::Row;
use crate::value::{Outcome, Value, overload};

pub(crate) const ROWS: &[Row] = &[
    ("optional.of(V): optional(V)", |arguments, _| Ok(Value::optional(arguments.first().cloned()))),
    ("optional.ofNonZeroValue(V): optional(V)", |arguments, _| {
        Ok(Value::optional(arguments.first().filter(|value| !value.is_zero()).cloned()))
    }),
    ("optional.none(): optional(V)", |_, _| Ok(Value::Optional(None))),
    ("optional(V).hasValue(): bool", |arguments, _| match arguments {
        [Value::Optional(value)] => Ok(Value::Bool(value.is_some())),
        _ => Err(overload("hasValue", arguments)),
    }),
    ("optional(V).value(): V", |arguments, _| match arguments {
        [Value::Optional(value)] => value.as_ref().map(|value| (**value).clone()).ok_or_else(|| failed("value")),
        _ => Err(overload("value", arguments)),
    }),
    ("list(V).first(): optional(V)", |arguments, _| end("first", arguments, true)),
    ("list(V).last(): optional(V)", |arguments, _| end("last", arguments, false)),
    ("optional.unwrap(list(optional(V))): list(V)\nlist(optional(V)).unwrapOpt(): list(V)", unwrap),
    // evaluated by nodes of their own; declared for their types
    ("optional(V).or(optional(V)): optional(V)\noptional(V).orValue(V): V", |arguments, _| {
        Err(overload("or", arguments))
    }),
    (
        "_[_](optional(list(V)), int): optional(V)
         _[_](optional(map(K, V)), K): optional(V)
         _[?_](list(V), int): optional(V)
         _[?_](optional(list(V)), int): optional(V)
         _[?_](map(K, V), K): optional(V)
         _[?_](optional(map(K, V)), K): optional(V)",
        |arguments, _| Err(overload("_[_]", arguments)),
    ),
];

fn end(name: &str, arguments: &[Value], first: bool) -> Outcome {
    match arguments {
        [Value::List(list)] => Ok(Value::optional(if first { list.items.first() } else { list.items.last() }.cloned())),
        _ => Err(overload(name, arguments)),
    }
}

fn unwrap(arguments: &[Value], budget: &Budget) -> Outcome {
    let [Value::List(list)] = arguments else { return Err(overload("optional.unwrap", arguments)) };
    let mut items = Vec::new();
    for item in &list.items {
        budget.step()?;
        match item {
            Value::Optional(value) => items.extend(value.as_ref().map(|value| (**value).clone())),
            other => return Err(overload("optional.unwrap", std::slice::from_ref(other))),
        }
    }
    Ok(Value::list(items))
}
