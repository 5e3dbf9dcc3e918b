//! `merge` and `mergeOverwrite`: fill one map from others, in place.

use std::collections::BTreeMap;

use crate::{
    functions::Args,
    heap::{Heap, Outcome},
    value::{Elem, Map, Value},
};

/// Merges the later maps into the first one and returns that.
pub(super) fn merge(heap: &Heap, args: Args<'_>, overwrite: bool) -> Outcome<Value> {
    let first = args.map(0)?;
    let target = if first.is_nil() { heap.new_map(Elem::Any, BTreeMap::new())? } else { first.clone() };
    for index in 1..args.all().len() {
        merge_into(heap, &target, args.map(index)?, overwrite)?;
    }
    Ok(Value::Map(target))
}

fn merge_into(heap: &Heap, target: &Map, source: &Map, overwrite: bool) -> Outcome<()> {
    let _level = heap.enter()?;
    // The maps may be the same one, so nothing stays borrowed while writing.
    let entries: Vec<_> = source.entries().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    heap.step(1 + entries.len())?;
    for (key, new) in entries {
        if new.is_nothing() {
            if overwrite {
                heap.insert(target, key, new)?;
            }
            continue;
        }
        let old = target.get(&key);
        if let (Value::Map(new), Some(Value::Map(old))) = (&new, &old) {
            merge_into(heap, old, new, overwrite)?;
            if old.len() > 0 {
                continue;
            }
        }
        // What is empty counts as not set.
        if overwrite || !old.is_some_and(|old| old.truth()) {
            heap.insert(target, key, new)?;
        }
    }
    Ok(())
}
