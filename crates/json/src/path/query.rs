//! Queries on arrays: `#(path op value)`.

use std::cmp::Ordering;

use serde_json::Value;

use super::found::parse_bool;
use super::{find, part};

/// A parsed query.
#[derive(Debug)]
pub(super) struct Query<'p> {
    path: &'p str,
    op: &'p str,
    value: String,
    /// Whether all matches are wanted (`#(...)#`) instead of the first.
    pub all: bool,
}

/// Length of the query at the start of `path`, brackets included; none when it is not closed.
pub(super) fn length(path: &str) -> Option<usize> {
    scan(path).map(|(end, _)| end + 1)
}

/// Positions of the closing bracket and of the operator.
fn scan(path: &str) -> Option<(usize, Option<usize>)> {
    let bytes = path.as_bytes();
    let (mut at, mut depth, mut op) = (2, 1, None);
    while at < bytes.len() {
        match bytes[at] {
            b'!' | b'=' | b'<' | b'>' | b'%' if depth == 1 && op.is_none() => op = Some(at),
            b'\\' => at += 1,
            b'(' | b'[' => depth += 1,
            b')' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some((at, op));
                }
            }
            b'"' => at = end_of_string(bytes, at),
            _ => {}
        }
        at += 1;
    }
    None
}

/// Position of the quote that closes the string opened at `start`.
pub(super) fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at
}

impl<'p> Query<'p> {
    /// Parses the query at the start of `path`; returns it with what follows. None when a bracket is missing.
    pub fn parse(path: &'p str) -> Option<(Self, &'p str)> {
        let (end, op_at) = scan(path)?;
        let (left, op, value) = match op_at {
            None => (&path[2..end], "", ""),
            Some(at) => {
                let (op, value) = split_operator(&path[at..end]);
                (&path[2..at], op, value)
            }
        };
        let quoted = value.len() >= 2 && value.starts_with('"') && value.ends_with('"');
        let value = if quoted {
            let inner = value[1..value.len() - 1].to_owned();
            if inner.contains('\\') { serde_json::from_str(value).unwrap_or(inner) } else { inner }
        } else {
            value.to_owned()
        };
        let rest = &path[end + 1..];
        let all = rest.starts_with('#');
        Some((Self { path: left.trim(), op, value, all }, if all { &rest[1..] } else { rest }))
    }
}

/// Splits `>=5` into operator and value; `==` is the same as `=`.
fn split_operator(text: &str) -> (&str, &str) {
    let length = match text.as_bytes() {
        [b'!', b'=' | b'%', ..] | [b'<' | b'>', b'=', ..] => 2,
        [b'=', b'=', ..] => return ("=", text[2..].trim()),
        [b'!', _, ..] => 0,
        _ => 1,
    };
    (&text[..length], text[length..].trim())
}

/// Whether an element satisfies the query.
pub(super) fn matches(query: &Query<'_>, item: &Value, depth: usize) -> bool {
    let is_container = item.is_object() || item.is_array();
    if !is_container && !query.path.is_empty() {
        return false;
    }
    let found = if is_container {
        find::find(item, query.path, depth + 1).map(|hit| hit.value.into_owned())
    } else {
        Some(item.clone())
    };
    match query.value.strip_prefix('~') {
        None => found.is_some_and(|value| compare(&value, query.op, &query.value)),
        Some(wanted) => {
            let like = match wanted {
                "*" => found.is_some(),
                "null" => found.is_none_or(|value| value.is_null()),
                "true" => found.is_some_and(|value| truth(&value) == Some(true)),
                "false" => found.is_none_or(|value| value.is_null() || truth(&value) == Some(false)),
                _ => return false,
            };
            compare(&Value::Bool(like), query.op, "true")
        }
    }
}

/// Whether a value looks true or false; objects and unreadable text look like neither.
fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        Value::Number(number) => Some(number.as_f64() != Some(0.0)),
        Value::String(text) => parse_bool(text),
        _ => None,
    }
}

fn compare(value: &Value, op: &str, wanted: &str) -> bool {
    if op.is_empty() {
        return true;
    }
    match value {
        Value::String(text) => match op {
            "%" => part::matches(&part::pattern(wanted), text),
            "!%" => !part::matches(&part::pattern(wanted), text),
            _ => ordered(Some(text.as_str().cmp(wanted)), op),
        },
        Value::Number(number) => {
            let wanted: f64 = wanted.parse().unwrap_or_default();
            ordered(number.as_f64().and_then(|value| value.partial_cmp(&wanted)), op)
        }
        Value::Bool(true) => match op {
            "=" => wanted == "true",
            "!=" => wanted != "true",
            ">" => wanted == "false",
            ">=" => true,
            _ => false,
        },
        Value::Bool(false) => match op {
            "=" => wanted == "false",
            "!=" => wanted != "false",
            "<" => wanted == "true",
            "<=" => true,
            _ => false,
        },
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

fn ordered(ordering: Option<Ordering>, op: &str) -> bool {
    match (op, ordering) {
        ("=", Some(order)) => order.is_eq(),
        ("!=", order) => order != Some(Ordering::Equal),
        ("<", Some(order)) => order.is_lt(),
        ("<=", Some(order)) => order.is_le(),
        (">", Some(order)) => order.is_gt(),
        (">=", Some(order)) => order.is_ge(),
        _ => false,
    }
}
