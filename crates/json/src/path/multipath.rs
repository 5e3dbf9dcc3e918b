//! Multipaths: `{name,"other":path}` builds an object, `[path,path]` an array.

use serde_json::{Map, Value};

use super::{find, query};

/// Evaluates the multipath at the start of `path`; returns the result with what follows. None when it is no multipath
/// after all.
pub(super) fn run<'p>(json: &Value, path: &'p str, depth: usize) -> Option<(Option<Value>, &'p str)> {
    let (selectors, rest) = parse(path)?;
    if !rest.is_empty() && !rest.starts_with(['.', '|']) {
        return None;
    }
    let found = selectors.iter().filter_map(|selector| {
        find::find(json, selector.path, depth + 1).map(|hit| (selector, hit.value.into_owned()))
    });
    let value = if path.starts_with('[') {
        Value::Array(found.map(|(_, value)| value).collect())
    } else {
        Value::Object(found.map(|(selector, value)| (selector.key(), value)).collect::<Map<_, _>>())
    };
    Some((Some(value), rest))
}

/// One comma-separated part.
#[derive(Debug, PartialEq)]
struct Selector<'p> {
    name: &'p str,
    path: &'p str,
}

impl Selector<'_> {
    /// The name it gets in an object: the one given, else the last part of the path if that is simple, else `_`.
    fn key(&self) -> String {
        if !self.name.is_empty() {
            return serde_json::from_str(self.name).unwrap_or_else(|_| self.name.to_owned());
        }
        let last = last_part(self.path);
        let simple = !last.contains(|c: char| c < ' ' || "[]{}()#|!".contains(c));
        if simple { last.to_owned() } else { "_".to_owned() }
    }
}

fn last_part(path: &str) -> &str {
    let bytes = path.as_bytes();
    let cut =
        (0..bytes.len()).rev().find(|&at| matches!(bytes[at], b'|' | b'.') && (at == 0 || bytes[at - 1] != b'\\'));
    cut.map_or(path, |at| &path[at + 1..])
}

/// Splits `{a,b}rest` into its selectors and the rest; none when the brackets do not close.
fn parse(path: &str) -> Option<(Vec<Selector<'_>>, &str)> {
    let bytes = path.as_bytes();
    let mut selectors = Vec::new();
    let (mut depth, mut start, mut colon, mut in_modifier) = (1, 1, None, false);
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'@' if matches!(bytes[at - 1], b'.' | b'|') => in_modifier = true,
            b':' if !in_modifier => colon = Some(at),
            b'"' => at = query::end_of_string(bytes, at),
            b'[' | b'(' | b'{' => depth += 1,
            b',' if depth > 1 => {}
            b',' | b']' | b')' | b'}' => {
                if bytes[at] != b',' {
                    depth -= 1;
                }
                if depth == 0 || bytes[at] == b',' {
                    selectors.push(match colon {
                        None => Selector { name: "", path: &path[start..at] },
                        Some(colon) => Selector { name: &path[start..colon], path: &path[colon + 1..at] },
                    });
                    (start, colon, in_modifier) = (at + 1, None, false);
                }
                if depth == 0 {
                    return Some((selectors, &path[at + 1..]));
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}
