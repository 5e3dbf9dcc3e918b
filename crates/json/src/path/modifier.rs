//! Modifiers (`@keys`, `@flatten:{"deep":true}`) and literals (`!"text"`).

use serde_json::{Map, Value};

use super::{find, found, get};

const NAMES: [&str; 13] = [
    "pretty", "ugly", "reverse", "this", "flatten", "join", "valid", "keys", "values", "tostr", "fromstr", "group",
    "dig",
];

/// Whether there is a modifier of this name.
pub(super) fn is_known(name: &str) -> bool {
    NAMES.contains(&name)
}

/// The name in `@name:argument.rest`.
pub(super) fn name_of(path: &str) -> &str {
    let path = path.strip_prefix('@').unwrap_or(path);
    &path[..path.find(['.', '|', ':']).unwrap_or(path.len())]
}

/// Runs the modifier at the start of `path`; returns its result with what follows. None when there is no such modifier.
pub(super) fn run<'p>(json: &Value, path: &'p str, depth: usize) -> Option<(Option<Value>, &'p str)> {
    let (name, argument, rest) = split(path)?;
    let value = match name {
        "reverse" => Some(reverse(json)),
        "flatten" => Some(flatten(json, flag(argument, "deep"))),
        "join" => Some(join(json)),
        "keys" => Some(keys(json)),
        "values" => Some(values(json)),
        "tostr" => Some(found::raw(json).into()),
        "fromstr" => json.as_str().and_then(|text| serde_json::from_str(text).ok()),
        "group" => json.as_object().map(group),
        "dig" => Some(Value::Array(dig(json, argument, depth))),
        _ => Some(json.clone()),
    };
    Some((value, rest))
}

/// Runs the modifier at the start of `path` on a missing value.
pub(super) fn run_on_nothing(path: &str) -> Option<(Option<Value>, &str)> {
    let (name, _, rest) = split(path)?;
    let value = match name {
        "keys" | "values" | "dig" => Some(Value::Array(Vec::new())),
        "tostr" => Some(Value::String(String::new())),
        _ => None,
    };
    Some((value, rest))
}

/// Splits `@name:argument.rest`; none when there is no such modifier.
fn split(path: &str) -> Option<(&str, &str, &str)> {
    let name = name_of(path);
    if !is_known(name) {
        return None;
    }
    let rest = &path[1 + name.len()..];
    let (argument, rest) = rest.strip_prefix(':').map_or(("", rest), split_argument);
    Some((name, argument, rest))
}

/// The literal at the start of `path` (`!true`, `!"text"`, `!{...}`), with what follows.
pub(super) fn literal(path: &str) -> Option<(Option<Value>, &str)> {
    let text = &path[1..];
    let length = match text.as_bytes().first()? {
        b'{' | b'[' | b'"' => balanced(text),
        b'+' | b'-' | b'0'..=b'9' => text.len(),
        _ => {
            let end = text.find(['.', '|']).unwrap_or(text.len());
            matches!(&text[..end], "true" | "false" | "null").then_some(end)?
        }
    };
    Some((serde_json::from_str(&text[..length]).ok(), &text[length..]))
}

/// An argument is a JSON value, or text up to the next pipe outside of brackets and strings.
fn split_argument(text: &str) -> (&str, &str) {
    let bytes = text.as_bytes();
    let mut at = 0;
    if matches!(bytes.first(), Some(b'{' | b'[' | b'"')) {
        at = balanced(text);
    } else {
        while at < bytes.len() && bytes[at] != b'|' {
            at += if matches!(bytes[at], b'{' | b'[' | b'"' | b'(') { balanced(&text[at..]) } else { 1 };
        }
    }
    text.split_at(at)
}

/// Length of the bracketed or quoted text at the start.
fn balanced(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0usize);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'"' => at = super::query::end_of_string(bytes, at),
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at.min(bytes.len())
}

fn flag(argument: &str, name: &str) -> bool {
    serde_json::from_str(argument).is_ok_and(|options: Value| get(&options, name).bool())
}

fn reverse(json: &Value) -> Value {
    match json {
        Value::Array(items) => items.iter().rev().cloned().collect(),
        other => other.clone(),
    }
}

fn flatten(json: &Value, deep: bool) -> Value {
    let Value::Array(items) = json else { return json.clone() };
    let mut flat = Vec::new();
    for item in items {
        match item {
            Value::Array(_) if deep => {
                if let Value::Array(inner) = flatten(item, true) {
                    flat.extend(inner);
                }
            }
            Value::Array(inner) => flat.extend(inner.iter().cloned()),
            other => flat.push(other.clone()),
        }
    }
    Value::Array(flat)
}

fn join(json: &Value) -> Value {
    let Value::Array(items) = json else { return json.clone() };
    let members = items.iter().filter_map(Value::as_object).flatten();
    Value::Object(members.map(|(key, value)| (key.clone(), value.clone())).collect())
}

fn keys(json: &Value) -> Value {
    match json {
        Value::Object(map) => map.keys().map(String::as_str).collect(),
        Value::Array(items) => items.iter().map(|_| Value::Null).collect(),
        _ => Value::Array(vec![Value::Null]),
    }
}

fn values(json: &Value) -> Value {
    match json {
        Value::Object(map) => map.values().cloned().collect(),
        Value::Array(_) => json.clone(),
        other => Value::Array(vec![other.clone()]),
    }
}

/// `{"a":[1,2],"b":[3]}` becomes `[{"a":1,"b":3},{"a":2}]`.
fn group(map: &Map<String, Value>) -> Value {
    let mut rows: Vec<Map<String, Value>> = Vec::new();
    for (key, column) in map {
        for (index, value) in column.as_array().into_iter().flatten().enumerate() {
            if index == rows.len() {
                rows.push(Map::new());
            }
            rows[index].insert(key.clone(), value.clone());
        }
    }
    rows.into_iter().map(Value::Object).collect()
}

/// What is at `path` in this value and in everything below it.
fn dig(json: &Value, path: &str, depth: usize) -> Vec<Value> {
    let mut all: Vec<Value> = find::find(json, path, depth + 1).map(|hit| hit.value.into_owned()).into_iter().collect();
    match json {
        Value::Object(map) => all.extend(map.values().flat_map(|value| dig(value, path, depth + 1))),
        Value::Array(items) => all.extend(items.iter().flat_map(|value| dig(value, path, depth + 1))),
        _ => {}
    }
    all
}
