//! Lists.

use super::cast;
use crate::{
    compare::deep_equal,
    functions::{
        Args, Function,
        Type::{Any, Int},
    },
    heap::{Heap, Outcome},
    value::{Elem, Value},
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::variadic("list", &[], Any, |heap, args| heap.any_list(args.all().to_vec())),
    Function::variadic("tuple", &[], Any, |heap, args| heap.any_list(args.all().to_vec())),
    Function::new("append", &[Any, Any], push),
    Function::new("push", &[Any, Any], push),
    Function::new("mustAppend", &[Any, Any], push),
    Function::new("mustPush", &[Any, Any], push),
    Function::new("prepend", &[Any, Any], prepend),
    Function::new("mustPrepend", &[Any, Any], prepend),
    Function::new("first", &[Any], first),
    Function::new("mustFirst", &[Any], first),
    Function::new("rest", &[Any], rest),
    Function::new("mustRest", &[Any], rest),
    Function::new("last", &[Any], last),
    Function::new("mustLast", &[Any], last),
    Function::new("initial", &[Any], initial),
    Function::new("mustInitial", &[Any], initial),
    Function::new("reverse", &[Any], reverse),
    Function::new("mustReverse", &[Any], reverse),
    Function::new("compact", &[Any], compact),
    Function::new("mustCompact", &[Any], compact),
    Function::new("uniq", &[Any], uniq),
    Function::new("mustUniq", &[Any], uniq),
    Function::variadic("without", &[Any], Any, without),
    Function::variadic("mustWithout", &[Any], Any, without),
    Function::new("has", &[Any, Any], has),
    Function::new("mustHas", &[Any, Any], has),
    Function::variadic("slice", &[Any], Any, slice),
    Function::variadic("mustSlice", &[Any], Any, slice),
    Function::variadic("concat", &[], Any, concat),
    Function::new("chunk", &[Int, Any], chunk),
    Function::new("mustChunk", &[Int, Any], chunk),
];

fn items(heap: &Heap, args: Args<'_>, index: usize, verb: &str) -> Outcome<Vec<Value>> {
    let list = args.list(index, verb)?;
    heap.step(list.len() / 8)?;
    Ok(list.items().clone())
}

fn push(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let mut items = items(heap, args, 0, "push")?;
    items.push(args.any(1)?.clone());
    heap.any_list(items)
}

fn prepend(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let mut items = items(heap, args, 0, "prepend")?;
    items.insert(0, args.any(1)?.clone());
    heap.any_list(items)
}

fn first(_: &Heap, args: Args<'_>) -> Outcome<Value> {
    Ok(args.list(0, "find first")?.items().first().cloned().unwrap_or(Value::Nil))
}

fn last(_: &Heap, args: Args<'_>) -> Outcome<Value> {
    Ok(args.list(0, "find last")?.items().last().cloned().unwrap_or(Value::Nil))
}

fn rest(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let mut items = items(heap, args, 0, "find rest")?;
    if items.is_empty() {
        return Ok(heap.nil_list(Elem::Any));
    }
    items.remove(0);
    heap.any_list(items)
}

fn initial(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let mut items = items(heap, args, 0, "find initial")?;
    match items.pop() {
        Some(_) => heap.any_list(items),
        None => Ok(heap.nil_list(Elem::Any)),
    }
}

fn reverse(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let mut items = items(heap, args, 0, "find reverse")?;
    items.reverse();
    heap.any_list(items)
}

fn compact(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let mut items = items(heap, args, 0, "compact")?;
    items.retain(Value::truth);
    heap.any_list(items)
}

fn is_in(heap: &Heap, needle: &Value, items: &[Value]) -> Outcome<bool> {
    for item in items {
        if deep_equal(heap, needle, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn uniq(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let mut kept = Vec::new();
    for item in items(heap, args, 0, "find uniq")? {
        if !is_in(heap, &item, &kept)? {
            kept.push(item);
        }
    }
    heap.any_list(kept)
}

fn without(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let mut kept = Vec::new();
    for item in items(heap, args, 0, "find without")? {
        if !is_in(heap, &item, args.from(1))? {
            kept.push(item);
        }
    }
    heap.any_list(kept)
}

fn has(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    match args.any(1)? {
        Value::Missing | Value::Nil => Ok(Value::Bool(false)),
        _ => Ok(is_in(heap, args.any(0)?, &args.list(1, "find has")?.items())?.into()),
    }
}

fn slice(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let Value::List(list) = args.any(0)? else {
        return Err(format!("list should be type of slice or array but {}", args.any(0)?.kind_name()).into());
    };
    let length = list.len();
    if length == 0 {
        return Ok(Value::Nil);
    }
    let bound = |index: usize, default: usize| match args.from(1).get(index) {
        Some(value) => usize::try_from(cast::int(value)).ok().filter(|bound| *bound <= length),
        None => Some(default),
    };
    let (Some(start), Some(end)) = (bound(0, 0), bound(1, length)) else {
        return Err("slice bounds out of range".into());
    };
    let Some(part) = list.items().get(start..end).map(<[Value]>::to_vec) else {
        return Err("slice bounds out of range".into());
    };
    heap.list(list.elem(), part)
}

fn concat(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let mut all = Vec::new();
    for index in 0..args.all().len() {
        let part = items(heap, args, index, "concat")?;
        heap.take(part.len())?;
        all.extend(part);
    }
    if all.is_empty() { Ok(heap.nil_list(Elem::Any)) } else { heap.any_list(all) }
}

fn chunk(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let items = items(heap, args, 1, "chunk")?;
    let size = match args.int(0)? {
        size @ 1.. => usize::try_from(size).unwrap_or(usize::MAX),
        // Go's arithmetic makes no chunk, one of a single element, or fails.
        size @ ..=-1 if items.len() == 1 || items.len() > 1 && size.unsigned_abs() >= items.len() as u64 - 1 => {
            let items = if items.len() == 1 { vec![heap.any_list(items)?] } else { Vec::new() };
            return heap.list(Elem::AnyList, items);
        }
        ..=0 => return Err("chunk size must be positive".into()),
    };
    let chunks = items.chunks(size).map(|chunk| heap.any_list(chunk.to_vec())).collect::<Outcome<_>>()?;
    heap.list(Elem::AnyList, chunks)
}
