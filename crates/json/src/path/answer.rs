//! Questions about paths from outside, text in and text out.

use std::collections::BTreeMap;

use carrick_go::float;
use serde_json::value::RawValue;

use super::encode::{number, quoted};
use super::error::{PathError, Problem};
use super::found::Found;
use super::limits::MAX_DEPTH;
use super::text;
use crate::go;

/// Answers one question on a document.
///
/// `gjson` (or `get`) prints what the path leads to as `exists=… type=… raw=… str=…`, `sjsonset` (or `set`) gives the
/// document with `value`, which is JSON, at the path, `sjsondel` (or `delete`) the document without what is there.
pub fn answer(op: &str, path: &str, input: &str, value: Option<&str>) -> Result<String, PathError> {
    match op {
        "gjson" | "get" => {
            let found = text::try_get(input, path)?;
            let (exists, kind) = (found.exists(), found.kind());
            Ok(format!("exists={exists} type={kind} raw={} str={}", found.raw(), found.text()))
        }
        "sjsonset" | "set" => text::set(input, path, &as_go_writes(value.unwrap_or("null"))?),
        "sjsondel" | "delete" => text::delete(input, path),
        other => Err(Problem::Operation(other.to_owned()).anywhere()),
    }
}

/// JSON as sjson writes what Go reads from it: keys sorted, numbers in Go's form. Only numbers that a float cannot
/// hold stay as they are.
fn as_go_writes(value: &str) -> Result<String, PathError> {
    let invalid = |error: serde_json::Error| Problem::Value(error.to_string()).anywhere();
    let value: &RawValue = serde_json::from_str(value).map_err(invalid)?;
    let text = value.get();
    match text.as_bytes().first() {
        Some(b'"') => Ok(quoted(&string(text))),
        Some(b'-' | b'0'..=b'9') => Ok(number(text, |value| float::format(value, 'f', None)).into_owned()),
        _ => {
            let mut out = String::with_capacity(text.len());
            encode(text, &mut out, 0).map_err(invalid)?;
            Ok(out)
        }
    }
}

/// The text of a JSON string. Halves of surrogate pairs become U+FFFD.
fn string(json: &str) -> String {
    serde_json::from_str(json).unwrap_or_else(|_| Found::of(json).str().into_owned())
}

/// Writes JSON as `json.Marshal` does.
fn encode(json: &str, out: &mut String, depth: usize) -> Result<(), serde_json::Error> {
    if depth > MAX_DEPTH {
        return Err(serde::de::Error::custom("it nests too deeply"));
    }
    match json.as_bytes().first() {
        Some(b'{') => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(json)?;
            out.push('{');
            for (index, (key, value)) in members.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                out.push_str(&go::to_string(key).unwrap_or_default());
                out.push(':');
                encode(value.get(), out, depth + 1)?;
            }
            out.push('}');
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(json)?;
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                encode(item.get(), out, depth + 1)?;
            }
            out.push(']');
        }
        Some(b'"') => out.push_str(&go::to_string(&string(json)).unwrap_or_default()),
        Some(b'-' | b'0'..=b'9') => out.push_str(&number(json, float::json)),
        _ => out.push_str(json),
    }
    Ok(())
}
