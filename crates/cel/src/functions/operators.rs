//! Operators, `size`, `type` and `dyn`.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::budget::Budget;
use crate::error::EvalError;
use crate::signature::Row;
use crate::value::{Outcome, Value, overload};

pub(crate) const ROWS: &[Row] = &[
    ("_==_(A, A): bool", equal),
    ("_!=_(A, A): bool", not_equal),
    ("!_(bool): bool", not),
    ("-_(int): int\n-_(double): double", negate),
    (
        "_+_(int, int): int
         _+_(uint, uint): uint
         _+_(double, double): double
         _+_(string, string): string
         _+_(bytes, bytes): bytes
         _+_(duration, duration): duration
         _+_(timestamp, duration): timestamp
         _+_(duration, timestamp): timestamp
         _+_(list(A), list(A)): list(A)",
        add,
    ),
    (
        "_-_(int, int): int
         _-_(uint, uint): uint
         _-_(double, double): double
         _-_(duration, duration): duration
         _-_(timestamp, duration): timestamp
         _-_(timestamp, timestamp): duration",
        subtract,
    ),
    ("_*_(int, int): int\n_*_(uint, uint): uint\n_*_(double, double): double", multiply),
    ("_/_(int, int): int\n_/_(uint, uint): uint\n_/_(double, double): double", divide),
    ("_%_(int, int): int\n_%_(uint, uint): uint", modulo),
    ("@in(A, list(A)): bool\n@in(A, map(A, B)): bool", contained),
    (
        "size(string): int
         size(bytes): int
         size(list(A)): int
         size(map(A, B)): int
         string.size(): int
         bytes.size(): int
         list(A).size(): int
         map(A, B).size(): int",
        size,
    ),
    ("type(A): type(A)", type_of),
    ("dyn(A): dyn", |arguments, _| first(arguments)),
    // evaluated by nodes of their own; declared for their types
    ("_&&_(bool, bool): bool\n_||_(bool, bool): bool", |arguments, _| first(arguments)),
    ("_?_:_(bool, A, A): A", |arguments, _| first(arguments)),
    ("_[_](list(A), int): A\n_[_](map(A, B), A): B", |arguments, _| first(arguments)),
    ("_<_(bool, bool): bool\n_<_(string, string): bool\n_<_(bytes, bytes): bool", less),
    ("_<_(duration, duration): bool\n_<_(timestamp, timestamp): bool", less),
    ("_<_(int, int): bool\n_<_(uint, uint): bool\n_<_(double, double): bool", less),
    ("_<_(int, uint): bool\n_<_(int, double): bool\n_<_(uint, int): bool", less),
    ("_<_(uint, double): bool\n_<_(double, int): bool\n_<_(double, uint): bool", less),
    ("_<=_(bool, bool): bool\n_<=_(string, string): bool\n_<=_(bytes, bytes): bool", less_equal),
    ("_<=_(duration, duration): bool\n_<=_(timestamp, timestamp): bool", less_equal),
    ("_<=_(int, int): bool\n_<=_(uint, uint): bool\n_<=_(double, double): bool", less_equal),
    ("_<=_(int, uint): bool\n_<=_(int, double): bool\n_<=_(uint, int): bool", less_equal),
    ("_<=_(uint, double): bool\n_<=_(double, int): bool\n_<=_(double, uint): bool", less_equal),
    ("_>_(bool, bool): bool\n_>_(string, string): bool\n_>_(bytes, bytes): bool", greater),
    ("_>_(duration, duration): bool\n_>_(timestamp, timestamp): bool", greater),
    ("_>_(int, int): bool\n_>_(uint, uint): bool\n_>_(double, double): bool", greater),
    ("_>_(int, uint): bool\n_>_(int, double): bool\n_>_(uint, int): bool", greater),
    ("_>_(uint, double): bool\n_>_(double, int): bool\n_>_(double, uint): bool", greater),
    ("_>=_(bool, bool): bool\n_>=_(string, string): bool\n_>=_(bytes, bytes): bool", greater_equal),
    ("_>=_(duration, duration): bool\n_>=_(timestamp, timestamp): bool", greater_equal),
    ("_>=_(int, int): bool\n_>=_(uint, uint): bool\n_>=_(double, double): bool", greater_equal),
    ("_>=_(int, uint): bool\n_>=_(int, double): bool\n_>=_(uint, int): bool", greater_equal),
    ("_>=_(uint, double): bool\n_>=_(double, int): bool\n_>=_(double, uint): bool", greater_equal),
];

fn first(arguments: &[Value]) -> Outcome {
    arguments.first().cloned().ok_or(EvalError::Other("missing argument"))
}

fn equal(arguments: &[Value], budget: &Budget) -> Outcome {
    match arguments {
        [a, b] if !a.is_foreign() || a.kind() == b.kind() => a.equals(b, budget).map(Value::Bool),
        _ => Err(overload("_==_", arguments)),
    }
}

fn not_equal(arguments: &[Value], budget: &Budget) -> Outcome {
    let [a, b] = arguments else { return Err(overload("_!=_", arguments)) };
    a.equals(b, budget).map(|equal| Value::Bool(!equal))
}

fn not(arguments: &[Value], _: &Budget) -> Outcome {
    match arguments {
        [Value::Bool(value)] => Ok(Value::Bool(!value)),
        _ => Err(overload("!_", arguments)),
    }
}

fn negate(arguments: &[Value], _: &Budget) -> Outcome {
    match arguments {
        [Value::Int(value)] => value.checked_neg().map(Value::Int).ok_or(EvalError::Overflow),
        [Value::Double(value)] => Ok(Value::Double(-value)),
        [Value::Duration(nanos)] => nanos.checked_neg().map(Value::Duration).ok_or(EvalError::Overflow),
        _ => Err(overload("-_", arguments)),
    }
}

fn add(arguments: &[Value], budget: &Budget) -> Outcome {
    let [a, b] = arguments else { return Err(overload("_+_", arguments)) };
    plus(a, b, budget)
}

/// The sum of two values.
pub(crate) fn plus(a: &Value, b: &Value, budget: &Budget) -> Outcome {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.checked_add(*b).map(Value::Int).ok_or(EvalError::Overflow),
        (Value::Uint(a), Value::Uint(b)) => a.checked_add(*b).map(Value::Uint).ok_or(EvalError::Overflow),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a + b)),
        (Value::String(a), Value::String(b)) => {
            budget.bytes(a.len() + b.len())?;
            Ok(Value::string([a.as_ref(), b.as_ref()].concat()))
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            budget.bytes(a.len() + b.len())?;
            Ok(Value::Bytes([a.as_ref(), b.as_ref()].concat().into()))
        }
        (Value::Duration(a), Value::Duration(b)) => a.checked_add(*b).map(Value::Duration).ok_or(EvalError::Overflow),
        (Value::Timestamp(time), Value::Duration(nanos)) | (Value::Duration(nanos), Value::Timestamp(time)) => {
            time.plus(i128::from(*nanos)).map(Value::Timestamp).ok_or(EvalError::Overflow)
        }
        (Value::List(a), Value::List(b)) => Ok(Value::List(Arc::new(a.plus(b, budget)?))),
        _ => Err(overload("_+_", &[a.clone(), b.clone()])),
    }
}

fn subtract(arguments: &[Value], _: &Budget) -> Outcome {
    let result = match arguments {
        [Value::Int(a), Value::Int(b)] => a.checked_sub(*b).map(Value::Int),
        [Value::Uint(a), Value::Uint(b)] => a.checked_sub(*b).map(Value::Uint),
        [Value::Double(a), Value::Double(b)] => Some(Value::Double(a - b)),
        [Value::Duration(a), Value::Duration(b)] => a.checked_sub(*b).map(Value::Duration),
        [Value::Timestamp(time), Value::Duration(nanos)] => time.plus(-i128::from(*nanos)).map(Value::Timestamp),
        [Value::Timestamp(a), Value::Timestamp(b)] => i64::try_from(a.nanos - b.nanos).ok().map(Value::Duration),
        _ => return Err(overload("_-_", arguments)),
    };
    result.ok_or(EvalError::Overflow)
}

fn multiply(arguments: &[Value], _: &Budget) -> Outcome {
    let result = match arguments {
        [Value::Int(a), Value::Int(b)] => a.checked_mul(*b).map(Value::Int),
        [Value::Uint(a), Value::Uint(b)] => a.checked_mul(*b).map(Value::Uint),
        [Value::Double(a), Value::Double(b)] => Some(Value::Double(a * b)),
        _ => return Err(overload("_*_", arguments)),
    };
    result.ok_or(EvalError::Overflow)
}

fn divide(arguments: &[Value], _: &Budget) -> Outcome {
    let result = match arguments {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => return Err(EvalError::DivisionByZero),
        [Value::Int(a), Value::Int(b)] => a.checked_div(*b).map(Value::Int),
        [Value::Uint(a), Value::Uint(b)] => a.checked_div(*b).map(Value::Uint),
        [Value::Double(a), Value::Double(b)] => Some(Value::Double(a / b)),
        _ => return Err(overload("_/_", arguments)),
    };
    result.ok_or(EvalError::Overflow)
}

fn modulo(arguments: &[Value], _: &Budget) -> Outcome {
    let result = match arguments {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => return Err(EvalError::DivisionByZero),
        [Value::Int(a), Value::Int(b)] => a.checked_rem(*b).map(Value::Int),
        [Value::Uint(a), Value::Uint(b)] => a.checked_rem(*b).map(Value::Uint),
        _ => return Err(overload("_%_", arguments)),
    };
    result.ok_or(EvalError::Overflow)
}

fn contained(arguments: &[Value], budget: &Budget) -> Outcome {
    match arguments {
        [wanted, Value::List(list)] => list.contains(wanted, budget).map(Value::Bool),
        [wanted, Value::Map(map)] => Ok(Value::Bool(wanted.key().is_some_and(|key| key.find(map).is_some()))),
        _ => Err(overload("@in", arguments)),
    }
}

fn size(arguments: &[Value], budget: &Budget) -> Outcome {
    match arguments {
        [Value::String(text)] => {
            budget.bytes(text.len())?;
            Ok(Value::count(text.chars().count()))
        }
        [Value::Bytes(bytes)] => Ok(Value::count(bytes.len())),
        [Value::List(list)] => Ok(Value::count(list.items.len())),
        [Value::Map(map)] => Ok(Value::count(map.len())),
        _ => Err(overload("size", arguments)),
    }
}

fn type_of(arguments: &[Value], _: &Budget) -> Outcome {
    first(arguments).map(|value| Value::Type(value.kind().name().into()))
}

fn ordered(name: &str, arguments: &[Value], budget: &Budget, wanted: impl Fn(Ordering) -> bool) -> Outcome {
    let [a, b] = arguments else { return Err(overload(name, arguments)) };
    let is_nan = |value: &Value| matches!(value, Value::Double(value) if value.is_nan());
    match a.compare(b, budget)? {
        Some(order) => Ok(Value::Bool(wanted(order))),
        None if is_nan(a) || is_nan(b) => Err(EvalError::Other("NaN values cannot be ordered")),
        None => Err(overload(name, arguments)),
    }
}

fn less(arguments: &[Value], budget: &Budget) -> Outcome {
    ordered("_<_", arguments, budget, Ordering::is_lt)
}

fn less_equal(arguments: &[Value], budget: &Budget) -> Outcome {
    ordered("_<=_", arguments, budget, Ordering::is_le)
}

fn greater(arguments: &[Value], budget: &Budget) -> Outcome {
    ordered("_>_", arguments, budget, Ordering::is_gt)
}

fn greater_equal(arguments: &[Value], budget: &Budget) -> Outcome {
    ordered("_>=_", arguments, budget, Ordering::is_ge)
}
