//! Writing and deleting at a path.

use std::ops::Range;

use super::encode::quoted;
use super::error::{MAX_PADDING, PathError, Problem};
use super::find::{Source, find};
use super::found::{Found, Origin};
use super::kind::Kind;
use super::limits::{Limits, Scope};

/// Sets the value at `path`, see [`super::text::set`].
pub(super) fn set(json: &str, path: &str, raw: &str) -> Result<String, PathError> {
    if path.is_empty() {
        return Err(Problem::Empty.at(0));
    }
    let limits = Limits::for_length(json.len());
    let Ok(parts) = parse(path) else {
        let found = find(Source { text: json, at: Some(0) }, path, Scope::new(&limits));
        return if limits.exceeded() { Err(Problem::TooMuchWork.anywhere()) } else { Ok(replace(json, &found, raw)) };
    };
    let mut range = 0..json.len();
    for (done, part) in parts.iter().enumerate() {
        let Some(found) = part.find(&json[range.clone()], &limits) else {
            let container = extended(&json[range.clone()], &parts[done..], raw)?;
            return Ok(spliced(json, &range, &container));
        };
        range = range.start + found.start..range.start + found.end;
    }
    Ok(spliced(json, &range, raw))
}

/// Deletes the value at `path`, see [`super::text::delete`].
pub(super) fn delete(json: &str, path: &str) -> Result<String, PathError> {
    if path.is_empty() {
        return Err(Problem::Empty.at(0));
    }
    let parts = parse(path).map_err(|at| Problem::ComplexDelete.at(at))?;
    let limits = Limits::for_length(json.len());
    let mut range = 0..json.len();
    for part in &parts {
        let inner = &json[range.clone()];
        let found = if part.is_last() { last_element(inner) } else { None };
        let Some(found) = found.or_else(|| part.find(inner, &limits)) else { return Ok(json.to_owned()) };
        range = range.start + found.start..range.start + found.end;
    }
    Ok(spliced(json, &with_key_and_comma(json.as_bytes(), &range), ""))
}

fn spliced(json: &str, range: &Range<usize>, new: &str) -> String {
    [&json[..range.start], new, &json[range.end..]].concat()
}

/// Replaces what a complex path found. The document itself, and what was computed, cannot be replaced.
fn replace(json: &str, found: &Found<'_>, raw: &str) -> String {
    let mut places = match &found.origin {
        Origin::At(0) | Origin::Piped(_) | Origin::Nowhere => return json.to_owned(),
        Origin::At(at) => return spliced(json, &(*at..at + found.raw().len()), raw),
        Origin::Each(places) => places.clone(),
    };
    places.sort_by_key(|range| range.start);
    let mut out = String::with_capacity(json.len());
    let mut copied = 0;
    for range in places {
        if range.start >= copied {
            out.push_str(&json[copied..range.start]);
            out.push_str(raw);
            copied = range.end;
        }
    }
    out.push_str(&json[copied..]);
    out
}

/// One part of a plain path.
#[derive(Debug)]
struct Part<'p> {
    name: String,
    /// The part as it is written, for reading.
    written: &'p str,
    /// Written with a leading `:`: never an index.
    forced: bool,
    /// Where it starts in the path.
    at: usize,
}

impl Part<'_> {
    fn is_last(&self) -> bool {
        self.name == "-1" && !self.forced
    }

    /// The part as an array index; an empty part is 0.
    fn index(&self) -> Option<usize> {
        match self.name.as_str() {
            _ if self.forced => None,
            "" => Some(0),
            name if name.bytes().all(|byte| byte.is_ascii_digit()) => Some(name.parse().unwrap_or(usize::MAX)),
            _ => None,
        }
    }

    /// Where in an object or array it leads to.
    fn find(&self, json: &str, limits: &Limits) -> Option<Range<usize>> {
        json.trim_start_matches(|c: char| c <= ' ').starts_with(['{', '['].as_slice()).then_some(())?;
        let found = find(Source { text: json, at: Some(0) }, self.written, Scope::new(limits));
        match found.origin {
            Origin::At(at) if at > 0 && found.exists() => Some(at..at + found.raw().len()),
            _ => None,
        }
    }

    /// The brackets of its container, for when that has to be made, with nulls before it.
    fn container(&self) -> Result<(String, char), PathError> {
        match self.index() {
            Some(index) => Ok((format!("[{}", self.padding(index, "null,")?), ']')),
            None if self.is_last() => Ok(("[".to_owned(), ']')),
            None => Ok(("{".to_owned(), '}')),
        }
    }

    fn padding(&self, count: usize, null: &str) -> Result<String, PathError> {
        let too_large = || Problem::IndexTooLarge(self.name.clone()).at(self.at);
        if count <= MAX_PADDING { Ok(null.repeat(count)) } else { Err(too_large()) }
    }
}

/// Splits a plain path; for complex ones the place of the character that makes it complex.
fn parse(path: &str) -> Result<Vec<Part<'_>>, usize> {
    let mut parts = Vec::new();
    let mut chars = path.char_indices().peekable();
    loop {
        let mut at = chars.peek().map_or(path.len(), |(at, _)| *at);
        let forced = chars.next_if(|(_, c)| *c == ':').is_some();
        at += usize::from(forced);
        let mut name = String::new();
        let end = loop {
            match chars.next() {
                None => break None,
                Some((end, '.')) => break Some(end),
                Some((at, '|' | '#' | '@' | '*' | '?')) => return Err(at),
                Some((_, '\\')) => name.extend(chars.next().map(|(_, c)| c)),
                Some((_, other)) => name.push(other),
            }
        };
        parts.push(Part { name, written: &path[at..end.unwrap_or(path.len())], forced, at });
        if end.is_none() {
            return Ok(parts);
        }
    }
}

fn last_element(json: &str) -> Option<Range<usize>> {
    Found::of(json).is_array().then_some(())?;
    super::scan::Members::of(json).last().map(|(_, token)| token.start..token.end)
}

/// The object or array in `json` with the value at parts that it does not have. A scalar is replaced by one.
fn extended(json: &str, parts: &[Part<'_>], raw: &str) -> Result<String, PathError> {
    let part = &parts[0];
    let found = Found::of(json);
    let container = match (found.kind(), part.index()) {
        (Kind::Json, _) => found.raw(),
        (_, Some(_)) => "[]",
        (_, None) => "{}",
    };
    let first = container[1..].bytes().find(|byte| *byte > b' ');
    let comma = if matches!(first, Some(b'}' | b']') | None) { "" } else { "," };
    if container.starts_with('{') {
        let end = container.rfind('}').unwrap_or(0);
        return Ok(format!("{}{comma}{}}}", &container[..end], built(parts, false, raw)?));
    }
    if part.index().is_none() && !part.is_last() {
        return Err(Problem::NonNumericKey(part.name.clone()).at(part.at));
    }
    let new = built(parts, true, raw)?;
    if part.is_last() {
        let items = container.trim_matches(|c: char| c <= ' ');
        return Ok(format!("{}{comma}{new}]", items.strip_suffix(']').unwrap_or(items)));
    }
    let index = part.index().unwrap_or_default();
    let items: Vec<&str> =
        super::scan::Members::of(container).map(|(_, token)| &container[token.start..token.end]).collect();
    let missing = index.saturating_sub(items.len());
    Ok(if items.is_empty() {
        format!("[{}{new}]", part.padding(missing, "null,")?)
    } else {
        format!("[{}{}{comma}{new}]", items.join(","), part.padding(missing, ",null")?)
    })
}

/// The value in as many new objects and arrays as there are parts; the first one goes into an existing array or object.
fn built(parts: &[Part<'_>], in_array: bool, raw: &str) -> Result<String, PathError> {
    let mut out = String::new();
    let mut closing = String::new();
    let mut keyed = !in_array;
    for (at, part) in parts.iter().enumerate() {
        if keyed {
            out.push_str(&quoted(&part.name));
            out.push(':');
        }
        if let Some(next) = parts.get(at + 1) {
            let (open, close) = next.container()?;
            keyed = open == "{";
            out.push_str(&open);
            closing.push(close);
        }
    }
    out.push_str(raw);
    out.extend(closing.chars().rev());
    Ok(out)
}

/// What to cut out to delete a value: its key, and the comma before it, or the one after it if it is the first.
fn with_key_and_comma(json: &[u8], value: &Range<usize>) -> Range<usize> {
    let before = |at: usize| json[..at].iter().rposition(|byte| *byte > b' ');
    let mut start = value.start;
    if let Some(colon) = before(start).filter(|at| json[*at] == b':') {
        start = before(colon).map_or(0, |quote| opening_quote(json, quote));
    }
    let in_object = start < value.start;
    match before(start) {
        Some(comma) if json[comma] == b',' => comma..value.end,
        open => {
            let behind = json[value.end..].iter().position(|byte| *byte > b' ').map(|skipped| value.end + skipped);
            let end = behind.filter(|at| json[*at] == b',').map_or(value.end, |comma| comma + 1);
            // whitespace after the opening bracket of an array stays
            open.filter(|_| in_object).map_or(start, |open| open + 1)..end
        }
    }
}

/// The quote that opens the string which ends at `closing`.
fn opening_quote(json: &[u8], closing: usize) -> usize {
    let is_open = |at: &usize| json[*at] == b'"' && (*at == 0 || json[*at - 1] != b'\\');
    (0..closing).rev().find(is_open).unwrap_or(0)
}
