//! Queries on arrays: `#(path op value)`.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::found::{self, Found};
use super::kind::Kind;
use super::limits::Scope;
use super::wildcard;

/// A parsed query. The default one asks for nothing, so every scalar matches.
#[derive(Debug, Default)]
pub(super) struct Query<'p> {
    /// Where in the element to look.
    pub path: &'p str,
    op: Option<Op>,
    value: Cow<'p, str>,
    /// Whether all matches are wanted (`#(...)#`) instead of the first.
    pub all: bool,
}

/// Comparisons; without one, the value at the path just has to exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Like,
    NotLike,
    /// A `!` alone, which nothing satisfies.
    Never,
}

/// The operators as they are written.
pub(super) const OPERATORS: [(&str, Op); 9] = [
    ("==", Op::Equal),
    ("!=", Op::NotEqual),
    ("!%", Op::NotLike),
    ("<=", Op::LessOrEqual),
    (">=", Op::GreaterOrEqual),
    ("=", Op::Equal),
    ("<", Op::Less),
    (">", Op::Greater),
    ("%", Op::Like),
];

/// The byte that closes the selector opened at `open`, brackets of its kind and strings considered.
pub(super) fn selector_end(path: &[u8], open: usize, opening: u8) -> usize {
    let closing = if opening == b'[' { b']' } else { b')' };
    let (mut at, mut depth) = (open + 1, 1);
    while at < path.len() {
        match path[at] {
            b'\\' => at += 1,
            b'"' => at = closing_quote(path, at),
            byte if byte == opening => depth += 1,
            byte if byte == closing => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            }
            _ => {}
        }
        at += 1;
    }
    at
}

/// Position of the quote that closes the string opened at `open`, or the end.
fn closing_quote(path: &[u8], open: usize) -> usize {
    super::scan::string_end(path, open).map_or(path.len(), |end| end - 1)
}

impl<'p> Query<'p> {
    /// Parses the query at the start of `path`; returns it with what follows. None when a bracket is missing.
    pub fn parse(path: &'p str) -> Option<(Self, &'p str)> {
        let bytes = path.as_bytes();
        let (mut at, mut depth, mut op_at, mut escapes) = (2, 1, None, false);
        loop {
            match bytes.get(at)? {
                b'!' | b'=' | b'<' | b'>' | b'%' if depth == 1 && op_at.is_none() => op_at = Some(at),
                b'\\' => at += 1,
                b'(' | b'[' => depth += 1,
                b')' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                b'"' => {
                    let end = closing_quote(bytes, at);
                    escapes |= bytes[at..end].contains(&b'\\');
                    at = end;
                }
                _ => {}
            }
            at += 1;
        }
        let (condition, rest) = (&path[2..at], &path[at + 1..]);
        let (path, op, value) = match op_at {
            None => (condition, None, ""),
            Some(op_at) => {
                let (op, value) = split_operator(trim(&condition[op_at - 2..]));
                (&condition[..op_at - 2], op, trim(value))
            }
        };
        let value = match value.strip_prefix('"').and_then(|value| value.strip_suffix('"')) {
            Some(inner) if escapes => found::unescape(inner),
            Some(inner) => Cow::Borrowed(inner),
            None => Cow::Borrowed(value),
        };
        Some((Self { path: trim(path), op, value, all: rest.starts_with('#') }, rest))
    }

    /// Whether the value found in an element satisfies the query.
    pub fn matches(&self, found: &Found<'_>, scope: Scope<'_>) -> bool {
        if let Some(wanted) = self.value.strip_prefix('~') {
            let like = match wanted {
                "*" => found.exists(),
                "null" => found.kind() == Kind::Null,
                "true" => truth(found) == Some(true),
                "false" => truth(found) == Some(false),
                _ => return false,
            };
            return self.op.is_none_or(|op| compare_bool(like, op, "true"));
        }
        if !found.exists() {
            return false;
        }
        let Some(op) = self.op else { return true };
        let wanted = self.value.as_ref();
        match found.kind() {
            Kind::String => match op {
                Op::Like => wildcard::matches(wanted, &found.str(), scope),
                Op::NotLike => !wildcard::matches(wanted, &found.str(), scope),
                _ => ordered(Some(found.str().as_ref().cmp(wanted)), op),
            },
            Kind::Number => ordered(found.num().partial_cmp(&found::parse_float(wanted)), op),
            Kind::True => compare_bool(true, op, wanted),
            Kind::False => compare_bool(false, op, wanted),
            Kind::Null | Kind::Json => false,
        }
    }
}

/// Splits `>=5` into operator and value. A `!` before anything else is not an operator.
fn split_operator(text: &str) -> (Option<Op>, &str) {
    if text == "!" {
        return (Some(Op::Never), "");
    }
    for (name, op) in OPERATORS {
        if let Some(value) = text.strip_prefix(name) {
            return (Some(op), value);
        }
    }
    (None, text)
}

fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c <= ' ')
}

/// Whether a value looks true or false; objects and other text look like neither.
fn truth(found: &Found<'_>) -> Option<bool> {
    match found.kind() {
        Kind::Null | Kind::False => Some(false),
        Kind::True => Some(true),
        Kind::Number => Some(found.num() != 0.0),
        Kind::String => found::parse_bool(&found.str()),
        Kind::Json => None,
    }
}

fn compare_bool(value: bool, op: Op, wanted: &str) -> bool {
    let equal = wanted == if value { "true" } else { "false" };
    match op {
        Op::Equal => equal,
        Op::NotEqual => !equal,
        Op::Greater => value && wanted == "false",
        Op::GreaterOrEqual => value,
        Op::Less => !value && wanted == "true",
        Op::LessOrEqual => !value,
        Op::Like | Op::NotLike | Op::Never => false,
    }
}

fn ordered(ordering: Option<Ordering>, op: Op) -> bool {
    match op {
        Op::Equal => ordering == Some(Ordering::Equal),
        Op::NotEqual => ordering != Some(Ordering::Equal),
        Op::Less => ordering.is_some_and(Ordering::is_lt),
        Op::LessOrEqual => ordering.is_some_and(Ordering::is_le),
        Op::Greater => ordering.is_some_and(Ordering::is_gt),
        Op::GreaterOrEqual => ordering.is_some_and(Ordering::is_ge),
        Op::Like | Op::NotLike | Op::Never => false,
    }
}
