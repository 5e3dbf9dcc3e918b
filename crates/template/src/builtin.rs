//! Functions of text/template itself.

use std::cmp::Ordering;

use crate::{
    compare, escape, fmt,
    functions::{
        Args, Function, Run,
        Type::{Any, Reflect, Str},
    },
    heap::{Heap, Outcome},
    value::{self, Uint, Value},
};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function { name: "and", params: &[Reflect], rest: Some(Reflect), run: Run::And },
    Function { name: "or", params: &[Reflect], rest: Some(Reflect), run: Run::Or },
    Function::new("not", &[Reflect], |_, args| Ok(Value::Bool(!args.any(0)?.truth()))),
    Function::variadic("call", &[Reflect], Reflect, call),
    Function::variadic("eq", &[Reflect], Reflect, |_, args| {
        compare::equal_any(args.any(0)?, args.from(1)).map(Value::Bool)
    }),
    Function::new("ne", &[Reflect, Reflect], |_, args| Ok((!compare::equal(args.any(0)?, args.any(1)?)?).into())),
    Function::new("lt", &[Reflect, Reflect], |_, args| Ok(compare::order(args)?.is_some_and(Ordering::is_lt).into())),
    Function::new("le", &[Reflect, Reflect], |_, args| Ok(compare::order(args)?.is_some_and(Ordering::is_le).into())),
    Function::new("gt", &[Reflect, Reflect], |_, args| Ok(compare::order(args)?.is_none_or(Ordering::is_gt).into())),
    Function::new("ge", &[Reflect, Reflect], |_, args| Ok(compare::order(args)?.is_none_or(Ordering::is_ge).into())),
    Function::variadic("index", &[Reflect], Reflect, index),
    Function::new("len", &[Reflect], len),
    Function::variadic("print", &[], Any, |heap, args| Ok(Value::Str(fmt::sprint(heap, args.all())?))),
    Function::variadic("println", &[], Any, |heap, args| Ok(Value::Str(fmt::sprintln(heap, args.all())?))),
    Function::variadic("printf", &[Str], Any, |heap, args| {
        Ok(Value::Str(fmt::sprintf(heap, args.bytes(0)?, args.from(1))?))
    }),
    Function::variadic("html", &[], Any, |heap, args| escape::html(heap, text(heap, args.all())?.as_bytes())),
    Function::variadic("js", &[], Any, |heap, args| escape::js(heap, text(heap, args.all())?.as_bytes())),
    Function::variadic("urlquery", &[], Any, |heap, args| escape::query(heap, text(heap, args.all())?.as_bytes())),
];

/// Arguments of the escaping functions as one text.
pub(crate) fn text(heap: &Heap, args: &[Value]) -> Outcome<value::Str> {
    // Inside these functions Go shows an absent value as actions do.
    let shown: Vec<Value> =
        args.iter().map(|value| if value.is_nothing() { Value::from("<no value>") } else { value.clone() }).collect();
    fmt::sprint(heap, &shown)
}

fn call(_: &Heap, args: Args<'_>) -> Outcome<Value> {
    match args.any(0)? {
        Value::Missing | Value::Nil => Err("call of nil".into()),
        other => Err(format!("call of a {}, which is not a function", other.type_name()).into()),
    }
}

fn len(_: &Heap, args: Args<'_>) -> Outcome<Value> {
    let length = match args.any(0)? {
        Value::Str(text) => text.len(),
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        Value::Missing | Value::Nil => return Err("len of nil".into()),
        other => return Err(format!("len of type {}", other.type_name()).into()),
    };
    Ok(Value::Int(i64::try_from(length).unwrap_or(i64::MAX)))
}

fn index(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let mut item = args.any(0)?.clone();
    if item.is_nothing() {
        return Err("index of untyped nil".into());
    }
    for key in args.from(1) {
        heap.step(1)?;
        item = match &item {
            Value::Str(text) => Value::Uint(Uint::U8, text.as_bytes()[position(key, text.len())?].into()),
            Value::List(list) => list.items()[position(key, list.len())?].clone(),
            Value::Map(map) => match key {
                Value::Str(key) => map.get(key).unwrap_or_else(|| map.elem().zero()),
                Value::Missing | Value::Nil => return Err("value is nil; should be of type string".into()),
                other => return Err(format!("value has type {}; should be string", other.type_name()).into()),
            },
            Value::Missing | Value::Nil => return Err("index of nil pointer".into()),
            other => return Err(format!("can't index item of type {}", other.type_name()).into()),
        };
    }
    Ok(item)
}

/// A valid index into something of the given length.
fn position(key: &Value, length: usize) -> Outcome<usize> {
    let (position, shown) = match key {
        Value::Int(i) | Value::Int64(i) => (usize::try_from(*i).ok(), i.to_string()),
        Value::Uint(_, u) => (usize::try_from(*u).ok(), u.to_string()),
        Value::Missing | Value::Nil => return Err("cannot index slice/array with nil".into()),
        other => return Err(format!("cannot index slice/array with type {}", other.type_name()).into()),
    };
    position.filter(|i| *i < length).ok_or_else(|| format!("index out of range: {shown}").into())
}
