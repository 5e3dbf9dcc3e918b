//! Writing and deleting at a path.

use serde_json::{Map, Value};

use super::error::{MAX_PADDING, PathError, Problem};
use super::find::{self, Place, Step};

/// Sets the value at `path`, creating missing parents: objects, or arrays padded with null for numeric parts.
///
/// A part that starts with `:` is a key even if numeric, `-1` appends to an array. Complex paths (with `|`, `#`, `@`,
/// `*` or `?`) replace what they find and do nothing otherwise.
pub fn set(json: &mut Value, path: &str, value: Value) -> Result<(), PathError> {
    if path.is_empty() {
        return Err(Problem::Empty.at(0));
    }
    match parse(path) {
        Ok(parts) => {
            // checked first, so that a path that fails leaves the document alone
            check(json, &parts)?;
            set_plain(json, &parts, value);
        }
        Err(_) => set_complex(json, path, &value),
    }
    Ok(())
}

/// Deletes the value at `path`; a missing one is fine. Elements behind a deleted array element move up, `-1` is the
/// last one.
pub fn delete(json: &mut Value, path: &str) -> Result<(), PathError> {
    if path.is_empty() {
        return Err(Problem::Empty.at(0));
    }
    let parts = parse(path).map_err(|at| Problem::ComplexDelete.at(at))?;
    let Some((last, parents)) = parts.split_last() else { return Ok(()) };
    let mut at = json;
    for part in parents {
        let next = match at {
            Value::Object(map) => map.get_mut(&part.name),
            Value::Array(items) => part.existing(items).and_then(|index| items.get_mut(index)),
            _ => None,
        };
        let Some(next) = next else { return Ok(()) };
        at = next;
    }
    match at {
        Value::Object(map) => {
            map.remove(&last.name);
        }
        Value::Array(items) => {
            if let Some(index) = last.existing(items) {
                items.remove(index);
            }
        }
        _ => {}
    }
    Ok(())
}

/// One part of a plain path.
#[derive(Debug)]
struct Part {
    name: String,
    /// Written with a leading `:`: never an index.
    forced: bool,
    /// Where it starts in the path.
    at: usize,
}

impl Part {
    fn is_last(&self) -> bool {
        self.name == "-1" && !self.forced
    }

    /// The part as an array index; sjson takes an empty part as 0.
    fn index(&self) -> Option<usize> {
        match self.name.as_str() {
            _ if self.forced => None,
            "" => Some(0),
            name => number(name),
        }
    }

    /// The index of the element it addresses for deletion.
    fn existing(&self, items: &[Value]) -> Option<usize> {
        if self.is_last() { items.len().checked_sub(1) } else { self.element(items) }
    }

    /// The index of the element it addresses, if there is one; here a forced key is an index after all.
    fn element(&self, items: &[Value]) -> Option<usize> {
        number(&self.name).filter(|index| *index < items.len())
    }
}

/// The number that consists of these digits, capped at the largest.
fn number(digits: &str) -> Option<usize> {
    let numeric = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    numeric.then(|| digits.parse().unwrap_or(usize::MAX))
}

/// Splits a plain path; for complex ones the place of the character that makes it complex.
fn parse(path: &str) -> Result<Vec<Part>, usize> {
    let mut parts = Vec::new();
    let mut chars = path.char_indices().peekable();
    loop {
        let at = chars.peek().map_or(path.len(), |(at, _)| *at);
        let forced = chars.next_if(|(_, c)| *c == ':').is_some();
        let mut name = String::new();
        let more = loop {
            match chars.next() {
                None => break false,
                Some((_, '.')) => break true,
                Some((at, '|' | '#' | '@' | '*' | '?')) => return Err(at),
                Some((_, '\\')) => name.extend(chars.next().map(|(_, c)| c)),
                Some((_, other)) => name.push(other),
            }
        };
        parts.push(Part { name, forced, at });
        if !more {
            return Ok(parts);
        }
    }
}

/// Whether the parts can be set in this document.
fn check(json: &Value, parts: &[Part]) -> Result<(), PathError> {
    let mut at = Some(json);
    for part in parts {
        let length = match at {
            Some(Value::Object(map)) => {
                at = map.get(&part.name);
                continue;
            }
            Some(Value::Array(items)) => {
                at = part.element(items).map(|index| &items[index]);
                if at.is_none() && part.index().is_none() && !part.is_last() {
                    return Err(Problem::NonNumericKey(part.name.clone()).at(part.at));
                }
                items.len()
            }
            _ => {
                at = None;
                0
            }
        };
        if part.index().is_some_and(|index| index >= length + MAX_PADDING) {
            return Err(Problem::IndexTooLarge(part.name.clone()).at(part.at));
        }
    }
    Ok(())
}

/// Sets at a path that [`check`] approved.
fn set_plain(json: &mut Value, parts: &[Part], value: Value) {
    let Some((part, rest)) = parts.split_first() else {
        *json = value;
        return;
    };
    if !json.is_object() && !json.is_array() {
        *json = if part.index().is_some() { Value::Array(Vec::new()) } else { Value::Object(Map::new()) };
    }
    let slot = match json {
        Value::Object(map) => map.entry(part.name.as_str()).or_insert_with(|| empty_parent(rest)),
        Value::Array(items) => {
            let index = if part.is_last() { items.len() } else { number(&part.name).unwrap_or_default() };
            if index >= items.len() {
                items.resize(index, Value::Null);
                items.push(empty_parent(rest));
            }
            &mut items[index]
        }
        _ => return,
    };
    set_plain(slot, rest, value);
}

/// The container that a new parent becomes: a list when an index or `-1` follows, else an object.
fn empty_parent(rest: &[Part]) -> Value {
    match rest.first() {
        Some(next) if next.index().is_some() || next.is_last() => Value::Array(Vec::new()),
        _ => Value::Object(Map::new()),
    }
}

fn set_complex(json: &mut Value, path: &str, value: &Value) {
    let places = match find::find(json, path, 0).map(|hit| hit.place) {
        Some(Place::One(place)) => vec![place],
        Some(Place::Many(places)) => places,
        Some(Place::Computed) | None => return,
    };
    for place in places {
        let target = place.iter().try_fold(&mut *json, |at, step| match step {
            Step::Key(key) => at.get_mut(key),
            Step::Index(index) => at.get_mut(index),
        });
        if let Some(target) = target {
            *target = value.clone();
        }
    }
}
