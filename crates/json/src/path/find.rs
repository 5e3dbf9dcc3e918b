//! Following a path through a document.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::part::{self, Key, Rest};
use super::query::{self, Query};
use super::{modifier, multipath};

/// Paths that nest deeper are treated as leading nowhere, so that no path can exhaust the stack.
const MAX_DEPTH: usize = 64;

/// A value that a path led to, and where in the document it sits.
#[derive(Debug)]
pub(super) struct Hit<'a> {
    pub value: Cow<'a, Value>,
    pub place: Place,
}

/// Where a value sits.
#[derive(Debug, PartialEq)]
pub(super) enum Place {
    /// Nowhere: a count, a modifier's result or anything behind a pipe.
    Computed,
    /// At one place.
    One(Vec<Step>),
    /// The value is an array made of the values at these places.
    Many(Vec<Vec<Step>>),
}

/// One step down into a document.
#[derive(Debug, PartialEq, Clone)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

impl<'a> Hit<'a> {
    fn at(value: &'a Value) -> Self {
        Self { value: Cow::Borrowed(value), place: Place::One(Vec::new()) }
    }

    pub fn computed(value: Value) -> Self {
        Self { value: Cow::Owned(value), place: Place::Computed }
    }

    /// The same hit seen from one level further up.
    fn below(mut self, step: &Step) -> Self {
        match &mut self.place {
            Place::Computed => {}
            Place::One(steps) => steps.insert(0, step.clone()),
            Place::Many(places) => places.iter_mut().for_each(|steps| steps.insert(0, step.clone())),
        }
        self
    }
}

/// The outcome of one search: the value, and the part of the path behind a pipe.
struct Stop<'a, 'p> {
    hit: Option<Hit<'a>>,
    pipe: Option<&'p str>,
}

impl<'p> Rest<'p> {
    /// The outcome when a component matches nothing: what is behind a pipe is evaluated all the same.
    fn missed<'a>(self) -> Option<Stop<'a, 'p>> {
        match self {
            Rest::Pipe(pipe) => Some(Stop { hit: None, pipe: Some(pipe) }),
            Rest::End | Rest::Dot(_) => None,
        }
    }
}

/// Finds what is at `path`.
pub(super) fn find<'a>(json: &'a Value, path: &str, depth: usize) -> Option<Hit<'a>> {
    if depth > MAX_DEPTH {
        return None;
    }
    let special = match path.as_bytes() {
        [b'@', _, ..] => modifier::run(json, path, depth),
        [b'!', _, ..] => modifier::literal(path),
        [b'[' | b'{', _, ..] => multipath::run(json, path, depth),
        _ => None,
    };
    if let Some((value, rest)) = special {
        let value = value?;
        return match rest.as_bytes().first() {
            Some(b'.' | b'|') => find_in_owned(&value, &rest[1..], depth),
            _ => Some(Hit::computed(value)),
        };
    }
    let stop = match (path.strip_prefix(".."), json) {
        (Some(lines), _) => in_array(std::slice::from_ref(json), lines, depth),
        (None, Value::Object(map)) => in_object(map, path, depth),
        (None, Value::Array(items)) => in_array(items, path, depth),
        (None, _) => None,
    }?;
    let Some(hit) = stop.hit else {
        return nothing(stop.pipe?, depth);
    };
    match stop.pipe {
        None => Some(hit),
        Some(rest) => match hit.value {
            Cow::Borrowed(value) => {
                let piped = find(value, rest, depth + 1)?;
                Some(Hit { value: piped.value, place: Place::Computed })
            }
            Cow::Owned(value) => find_in_owned(&value, rest, depth),
        },
    }
}

/// What a path behind a pipe makes of a missing value: some modifiers and all multipaths give something.
fn nothing<'a>(path: &str, depth: usize) -> Option<Hit<'a>> {
    let (value, rest) = match path.as_bytes() {
        [b'@', _, ..] => modifier::run_on_nothing(path),
        [b'!', _, ..] => modifier::literal(path),
        [b'[' | b'{', _, ..] => multipath::run(&Value::Null, path, depth),
        _ => None,
    }?;
    match rest.as_bytes().first() {
        Some(b'.' | b'|') => find_in_owned(&value?, &rest[1..], depth),
        _ => value.map(Hit::computed),
    }
}

fn find_in_owned<'a>(value: &Value, path: &str, depth: usize) -> Option<Hit<'a>> {
    find(value, path, depth + 1).map(|hit| Hit::computed(hit.value.into_owned()))
}

fn in_object<'a, 'p>(map: &'a Map<String, Value>, path: &'p str, depth: usize) -> Option<Stop<'a, 'p>> {
    let (key, rest) = part::first_key(path);
    let visit = |(key, value): (&String, &'a Value)| step_into(&Step::Key(key.clone()), value, rest, depth);
    let missed = match key {
        Key::Exact(key) => map.get_key_value(&key).and_then(visit),
        Key::Pattern(pattern) => {
            let mut missed = None;
            for entry in map.iter().filter(|(key, _)| part::matches(&pattern, key)) {
                match visit(entry) {
                    Some(found) if found.hit.is_some() => return Some(found),
                    other => missed = other.or(missed),
                }
            }
            missed
        }
    };
    missed.or_else(|| rest.missed())
}

/// Continues below `value`, which sits at `step`.
fn step_into<'a, 'p>(step: &Step, value: &'a Value, rest: Rest<'p>, depth: usize) -> Option<Stop<'a, 'p>> {
    let found = match rest {
        Rest::End => Stop { hit: Some(Hit::at(value)), pipe: None },
        Rest::Pipe(pipe) => Stop { hit: Some(Hit::at(value)), pipe: Some(pipe) },
        Rest::Dot(path) => match value {
            Value::Object(map) => in_object(map, path, depth)?,
            Value::Array(items) => in_array(items, path, depth)?,
            _ => return None,
        },
    };
    Some(Stop { hit: found.hit.map(|hit| hit.below(step)), pipe: found.pipe })
}

fn in_array<'a, 'p>(items: &'a [Value], path: &'p str, depth: usize) -> Option<Stop<'a, 'p>> {
    if let Some(each) = path.strip_prefix("#.") {
        return Some(each_element(items, each, depth));
    }
    if path.starts_with("#(") || path.starts_with("#[") {
        let (query, rest) = Query::parse(path)?;
        return query_elements(items, &query, rest, depth);
    }
    let end = path.find(['.', '|']).unwrap_or(path.len());
    let (name, rest) = (&path[..end], &path[end..]);
    let rest = match rest.as_bytes().first() {
        None => Rest::End,
        Some(b'|') => Rest::Pipe(&rest[1..]),
        Some(_) => part::after_dot(&rest[1..]),
    };
    if name == "#" {
        let pipe = match rest {
            Rest::End => None,
            Rest::Pipe(path) | Rest::Dot(path) => Some(path),
        };
        return Some(Stop { hit: Some(Hit::computed(items.len().into())), pipe });
    }
    let is_index = !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit());
    let Some(index) = name.parse().ok().filter(|_| is_index) else { return rest.missed() };
    items.get(index).and_then(|item| step_into(&Step::Index(index), item, rest, depth)).or_else(|| rest.missed())
}

/// `#.path`: the value at `path` of each element that has one.
fn each_element<'a, 'p>(items: &'a [Value], path: &'p str, depth: usize) -> Stop<'a, 'p> {
    let (path, pipe) = split_pipe(path);
    let hits = items
        .iter()
        .enumerate()
        .filter_map(|(index, item)| find(item, path, depth + 1).map(|hit| hit.below(&Step::Index(index))));
    Stop { hit: Some(collect(hits)), pipe }
}

/// `#(query)` and `#(query)#`: the first element that matches, or all of them.
fn query_elements<'a, 'p>(items: &'a [Value], query: &Query<'p>, rest: &'p str, depth: usize) -> Option<Stop<'a, 'p>> {
    let (path, pipe) = match rest.as_bytes().first() {
        None => (None, None),
        Some(b'|') => (None, Some(&rest[1..])),
        Some(b'.') => {
            let (path, pipe) = split_pipe(&rest[1..]);
            (Some(path), pipe)
        }
        Some(_) => return None,
    };
    let mut hits =
        items.iter().enumerate().filter(|(_, item)| query::matches(query, item, depth)).map(|(index, item)| {
            let hit = match path {
                None => Some(Hit::at(item)),
                Some(path) => find(item, path, depth + 1),
            };
            hit.map(|hit| hit.below(&Step::Index(index)))
        });
    if query.all {
        return Some(Stop { hit: Some(collect(hits.flatten())), pipe });
    }
    match hits.next() {
        Some(hit) => Some(Stop { hit, pipe }),
        // a pipe behind a path inside the element counts only once there is an element
        None => pipe.filter(|_| path.is_none()).map(|pipe| Stop { hit: None, pipe: Some(pipe) }),
    }
}

/// An array of values found at several places.
fn collect<'a>(hits: impl Iterator<Item = Hit<'a>>) -> Hit<'a> {
    let mut places = Some(Vec::new());
    let mut values = Vec::new();
    for hit in hits {
        values.push(hit.value.into_owned());
        match (&mut places, hit.place) {
            (Some(places), Place::One(steps)) => places.push(steps),
            _ => places = None,
        }
    }
    Hit { value: Cow::Owned(Value::Array(values)), place: places.map_or(Place::Computed, Place::Many) }
}

/// Splits at the first pipe that is neither escaped nor inside a query.
fn split_pipe(path: &str) -> (&str, Option<&str>) {
    let bytes = path.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'|' => return (&path[..at], Some(&path[at + 1..])),
            b'#' if matches!(bytes.get(at + 1), Some(b'(' | b'[')) => {
                at += query::length(&path[at..]).unwrap_or(1) - 1;
            }
            _ => {}
        }
        at += 1;
    }
    (path, None)
}
