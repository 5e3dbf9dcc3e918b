//! Dictionaries.

use std::{collections::BTreeMap, rc::Rc};

use super::merge::merge;
use crate::{
    fmt,
    functions::{
        Args, Function,
        Type::{Any, Map, Str},
    },
    heap::{Heap, Outcome},
    value::{self, Elem, Value},
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::variadic("dict", &[], Any, dict),
    Function::new("get", &[Map, Str], |_, args| Ok(args.map(0)?.get(args.str(1)?).unwrap_or_else(|| Value::from("")))),
    Function::new("set", &[Map, Str, Any], |heap, args| {
        heap.insert(args.map(0)?, args.str(1)?.clone(), args.any(2)?.clone())?;
        Ok(args.any(0)?.clone())
    }),
    Function::new("unset", &[Map, Str], |_, args| {
        args.map(0)?.remove(args.str(1)?);
        Ok(args.any(0)?.clone())
    }),
    Function::new("hasKey", &[Map, Str], |_, args| Ok(args.map(0)?.get(args.str(1)?).is_some().into())),
    Function::variadic("pluck", &[Str], Map, pluck),
    Function::variadic("keys", &[], Map, keys),
    Function::new("values", &[Map], |heap, args| {
        let values = args.map(0)?.entries().values().cloned().collect();
        heap.any_list(values)
    }),
    Function::variadic("pick", &[Map], Str, pick),
    Function::variadic("omit", &[Map], Str, omit),
    Function::variadic("merge", &[Map], Map, |heap, args| merge(heap, args, false)),
    Function::variadic("mustMerge", &[Map], Map, |heap, args| merge(heap, args, false)),
    Function::variadic("mergeOverwrite", &[Map], Map, |heap, args| merge(heap, args, true)),
    Function::variadic("mustMergeOverwrite", &[Map], Map, |heap, args| merge(heap, args, true)),
    Function::variadic("dig", &[], Any, dig),
    Function::new("deepCopy", &[Any], copy_of),
    Function::new("mustDeepCopy", &[Any], copy_of),
];

fn dict(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let mut entries = BTreeMap::new();
    for pair in args.all().chunks(2) {
        let key = fmt::to_str(heap, &pair[0])?;
        entries.insert(key, pair.get(1).cloned().unwrap_or_else(|| Value::from("")));
    }
    heap.any_map(entries)
}

fn pluck(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let mut found = Vec::new();
    for index in 1..args.all().len() {
        found.extend(args.map(index)?.get(args.str(0)?));
    }
    heap.any_list(found)
}

/// Go's order is random; ours is sorted, so that output is stable.
fn keys(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let mut keys = Vec::new();
    for index in 0..args.all().len() {
        keys.extend(args.map(index)?.entries().keys().cloned());
        heap.step(1 + keys.len() / 8)?;
    }
    heap.str_list(keys)
}

fn pick(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let mut entries = BTreeMap::new();
    for index in 1..args.all().len() {
        let key = args.str(index)?;
        if let Some(value) = args.map(0)?.get(key) {
            entries.insert(key.clone(), value);
        }
    }
    heap.any_map(entries)
}

fn omit(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let mut entries = args.map(0)?.entries().clone();
    heap.step(entries.len())?;
    for index in 1..args.all().len() {
        entries.remove(args.str(index)?);
    }
    heap.any_map(entries)
}

fn dig(_: &Heap, args: Args<'_>) -> Outcome<Value> {
    let [keys @ .., default, map] = args.all() else {
        return Err("dig needs at least three arguments".into());
    };
    if keys.is_empty() {
        return Err("dig needs at least three arguments".into());
    }
    let mut current = map.clone();
    if let Some(key) = keys.iter().find(|key| !matches!(key, Value::Str(_))) {
        return Err(format!("dig needs strings as keys, not {}", key.type_name()).into());
    }
    for key in keys {
        let Value::Str(key) = key else { continue };
        let next = match &current {
            Value::Map(map) if map.elem() == Elem::Any => map.get(key),
            other => return Err(format!("dig needs maps on its way, not {}", other.type_name()).into()),
        };
        match next {
            Some(next) => current = next,
            None => return Ok(default.clone()),
        }
    }
    Ok(current)
}

fn copy_of(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    match args.any(0)? {
        Value::Missing | Value::Nil => Err("there is nothing to copy".into()),
        other => deep_copy(heap, other),
    }
}

fn deep_copy(heap: &Heap, value: &Value) -> Outcome<Value> {
    heap.step(1)?;
    let _level = heap.enter()?;
    match value {
        Value::List(list) if list.is_nil() => Ok(value.clone()),
        Value::List(list) => {
            let items = list.items().iter().map(|item| deep_copy(heap, item)).collect::<Outcome<_>>()?;
            heap.list(list.elem(), items)
        }
        Value::Map(map) if map.is_nil() => Ok(value.clone()),
        Value::Map(map) => {
            let copy = |(key, item): (&value::Str, &Value)| Ok((key.clone(), deep_copy(heap, item)?));
            let entries = map.entries().iter().map(copy).collect::<Outcome<_>>()?;
            Ok(Value::Map(heap.new_map(map.elem(), entries)?))
        }
        // Go's copy leaves out what is private, which is all of a version.
        Value::Version(_) => Ok(Value::Version(Rc::default())),
        other => Ok(other.clone()),
    }
}
