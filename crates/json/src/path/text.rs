//! Paths on JSON text: what a path does not address stays byte for byte as it was, numbers and the order of keys too.

use super::error::{PathError, Problem};
use super::find::{Source, find};
use super::found::Found;
use super::limits::{Limits, Scope};
use super::write;

/// What is at `path`, exactly as gjson finds it.
///
/// The text is not checked; text that is not JSON leads to some result. A path that would take too much work leads
/// nowhere, see [`try_get`].
pub fn get<'a>(json: &'a str, path: &str) -> Found<'a> {
    find(Source { text: json, at: Some(0) }, path, Scope::new(&Limits::for_length(json.len())))
}

/// Like [`get`], with an error for a path that nests too deeply or makes too much work.
pub fn try_get<'a>(json: &'a str, path: &str) -> Result<Found<'a>, PathError> {
    let limits = Limits::for_length(json.len());
    let found = find(Source { text: json, at: Some(0) }, path, Scope::new(&limits));
    if limits.exceeded() { Err(Problem::TooMuchWork.anywhere()) } else { Ok(found) }
}

/// The text with `raw`, which is JSON, at `path`, exactly as sjson's `SetRaw` writes it.
///
/// Missing parents are created: objects, or arrays padded with null for numeric parts. A part that starts with `:` is a
/// key even if numeric, `-1` appends to an array. Complex paths (with `|`, `#`, `@`, `*` or `?`) replace what they
/// find and do nothing otherwise.
pub fn set(json: &str, path: &str, raw: &str) -> Result<String, PathError> {
    write::set(json, path, raw)
}

/// The text without what is at `path`; a missing value is fine. Elements after a deleted array element move up, `-1`
/// is the last one.
pub fn delete(json: &str, path: &str) -> Result<String, PathError> {
    write::delete(json, path)
}

impl Found<'_> {
    /// What a path below this leads to.
    pub fn get(&self, path: &str) -> Found<'_> {
        get(&self.raw, path)
    }
}
