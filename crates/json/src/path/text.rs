//! Paths on JSON text: what a path does not address stays byte for byte as it was, numbers and the order of keys too.

use std::borrow::Cow;

use super::error::{PathError, Problem};
use super::find::{Source, find};
use super::found::{Found, parse_float};
use super::limits::{Limits, Scope};
use super::write;
use crate::go;

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

/// A string as sjson writes it: only those that need an escape are encoded as Go does it.
pub(super) fn quoted(text: &str) -> String {
    let plain = |byte: u8| (b' '..=0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
    if text.bytes().all(plain) { format!("\"{text}\"") } else { go::to_string(text).unwrap_or_default() }
}

/// A number as Go writes it after reading it as a float, by `format`; one that no float holds stays as it is written.
pub(super) fn number(literal: &str, format: fn(f64) -> String) -> Cow<'_, str> {
    let written = format(parse_float(literal));
    if decimal(&written) == decimal(literal) { Cow::Owned(written) } else { Cow::Borrowed(literal) }
}

/// A number as its sign, its digits without leading and trailing zeros, and the power of ten of the first one.
fn decimal(literal: &str) -> Option<(bool, String, i64)> {
    let (negative, unsigned) = literal.strip_prefix('-').map_or((false, literal), |rest| (true, rest));
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let exponent: i64 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return Some((negative, String::new(), 0));
    }
    let leading = i64::try_from(digits.len() - significant.len()).ok()?;
    let power = exponent.checked_add(i64::try_from(whole.len()).ok()?)?.checked_sub(leading)?;
    Some((negative, significant.trim_end_matches('0').to_owned(), power))
}
