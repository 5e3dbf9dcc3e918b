//! Questions about paths from outside, text in and text out.

use serde_json::Value;

use super::{Kind, PathError, Problem, delete, get, set};

/// Answers one question on a document.
///
/// `gjson` (or `get`) tells what the path leads to as `exists=… type=… raw=… str=…`, `sjsonset` (or `set`) gives the
/// document with `value`, which is JSON, at the path, `sjsondel` (or `delete`) the document without what is there.
pub fn answer(op: &str, path: &str, input: &str, value: Option<&str>) -> Result<String, PathError> {
    let mut document: Value = serde_json::from_str(input).unwrap_or_default();
    match op {
        "gjson" | "get" => {
            let found = get(&document, path);
            let (exists, kind) = (found.exists(), found.kind());
            return Ok(format!("exists={exists} type={kind} raw={} str={}", found.raw(), found.text()));
        }
        "sjsonset" | "set" => {
            let value = serde_json::from_str(value.unwrap_or("null"));
            set(&mut document, path, value.map_err(|error| Problem::Value(error.to_string()).anywhere())?)?;
        }
        "sjsondel" | "delete" => delete(&mut document, path)?,
        other => return Err(Problem::Operation(other.to_owned()).anywhere()),
    }
    Ok(crate::go::to_string(&document).unwrap_or_default())
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Kind::Null => "Null",
            Kind::False => "False",
            Kind::Number => "Number",
            Kind::String => "String",
            Kind::True => "True",
            Kind::Json => "JSON",
        })
    }
}
