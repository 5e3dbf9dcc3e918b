//! Comparison: the strict one of `eq` and `lt`, and Go's deep equality.

use std::cmp::Ordering;

use crate::{
    functions::Args,
    heap::{Heap, Outcome},
    value::Value,
};

/// Groups of types that compare with each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Basic {
    Bool,
    Integer,
    Float,
    Complex,
    Str,
    /// Lists, maps and the like.
    Other,
}

fn basic(value: &Value) -> Basic {
    match value {
        Value::Bool(_) => Basic::Bool,
        Value::Int(_) | Value::Int64(_) | Value::Uint(..) | Value::Named(_) => Basic::Integer,
        Value::Float(_) => Basic::Float,
        Value::Complex(..) => Basic::Complex,
        Value::Str(_) => Basic::Str,
        _ => Basic::Other,
    }
}

fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::Int(i) | Value::Int64(i) => Some(i128::from(*i)),
        Value::Uint(_, u) => Some(i128::from(*u)),
        Value::Named(named) => Some(named.number().into()),
        _ => None,
    }
}

/// `eq`: whether the first equals one of the others.
pub(crate) fn equal_any(first: &Value, others: &[Value]) -> Outcome<bool> {
    if others.is_empty() {
        return Err("missing argument for comparison".into());
    }
    for other in others {
        if equal(first, other)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `eq` of two values. Values of different types are refused, except that nothing equals only nothing.
pub(crate) fn equal(a: &Value, b: &Value) -> Outcome<bool> {
    match (a.is_nothing(), b.is_nothing()) {
        (true, true) => return Ok(true),
        (true, false) => return Ok(is_nil_container(b)),
        (false, true) => return Ok(is_nil_container(a)),
        (false, false) => {}
    }
    if basic(a) != basic(b) {
        let (a, b) = (a.type_name(), b.type_name());
        return Err(format!("incompatible types for comparison: {a} and {b}").into());
    }
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => Ok(a == b),
        (Value::Float(a), Value::Float(b)) => Ok(same_float(*a, *b)),
        (Value::Complex(a, b), Value::Complex(c, d)) => Ok(same_float(*a, *c) && same_float(*b, *d)),
        (Value::Str(a), Value::Str(b)) => Ok(a == b),
        (Value::Time(a), Value::Time(b)) => Ok(a == b),
        (Value::Version(a), Value::Version(b)) => Ok(std::rc::Rc::ptr_eq(a, b)),
        _ => match (integer(a), integer(b)) {
            (Some(a), Some(b)) => Ok(a == b),
            _ if is_nil_container(a) || is_nil_container(b) => Ok(is_nil_container(a) == is_nil_container(b)),
            _ => Err(format!("values of type {} cannot be compared", b.type_name()).into()),
        },
    }
}

#[expect(clippy::float_cmp, reason = "Go compares exactly as well")]
fn same_float(a: f64, b: f64) -> bool {
    a == b
}

fn is_nil_container(value: &Value) -> bool {
    match value {
        Value::List(list) => list.is_nil(),
        Value::Map(map) => map.is_nil(),
        _ => false,
    }
}

/// Order of the two arguments of `lt`, `le`, `gt` and `ge`; none if one is NaN.
pub(crate) fn order(args: Args<'_>) -> Outcome<Option<Ordering>> {
    let (a, b) = (args.any(0)?, args.any(1)?);
    if basic(a) == Basic::Other || basic(b) == Basic::Other {
        return Err("invalid type for comparison".into());
    }
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => Ok(a.partial_cmp(b)),
        (Value::Str(a), Value::Str(b)) => Ok(Some(a.cmp(b))),
        (Value::Bool(_), Value::Bool(_)) => Err("invalid type for comparison".into()),
        _ => {
            if let (Some(a), Some(b)) = (integer(a), integer(b)) {
                return Ok(Some(a.cmp(&b)));
            }
            let (a, b) = (a.type_name(), b.type_name());
            Err(format!("incompatible types for comparison: {a} and {b}").into())
        }
    }
}

/// `reflect.DeepEqual`: same types, same contents.
pub(crate) fn deep_equal(heap: &Heap, a: &Value, b: &Value) -> Outcome<bool> {
    heap.step(1)?;
    let _level = heap.enter()?;
    Ok(match (a, b) {
        (Value::Missing | Value::Nil, Value::Missing | Value::Nil) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) | (Value::Int64(a), Value::Int64(b)) => a == b,
        (Value::Uint(kind, a), Value::Uint(other, b)) => kind == other && a == b,
        (Value::Float(a), Value::Float(b)) => same_float(*a, *b),
        (Value::Complex(a, b), Value::Complex(c, d)) => same_float(*a, *c) && same_float(*b, *d),
        (Value::Str(a), Value::Str(b)) => {
            heap.scan(a.len())?;
            a == b
        }
        (Value::Time(a), Value::Time(b)) => a == b,
        (Value::Version(a), Value::Version(b)) => a == b,
        (Value::Named(a), Value::Named(b)) => a == b,
        (Value::Found(a), Value::Found(b)) => a.kind() == b.kind() && a.raw(heap)? == b.raw(heap)?,
        (Value::List(a), Value::List(b)) => {
            if a.elem() != b.elem() || a.is_nil() != b.is_nil() || a.len() != b.len() {
                return Ok(false);
            }
            for (a, b) in a.items().iter().zip(b.items().iter()) {
                if !deep_equal(heap, a, b)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Map(a), Value::Map(b)) | (Value::Root(a), Value::Root(b)) => {
            if a.elem() != b.elem() || a.is_nil() != b.is_nil() || a.len() != b.len() {
                return Ok(false);
            }
            for ((a_key, a), (b_key, b)) in a.entries().iter().zip(b.entries().iter()) {
                if a_key != b_key || !deep_equal(heap, a, b)? {
                    return Ok(false);
                }
            }
            true
        }
        _ => false,
    })
}
