//! Multipaths: `{name,"other":path}` builds an object, `[path,path]` an array.

use super::{modifier, scan};

/// One comma-separated part.
#[derive(Debug, PartialEq)]
pub(super) struct Selector<'p> {
    name: &'p str,
    pub path: &'p str,
}

impl Selector<'_> {
    /// The key it gets in an object: the one given, else the last part of the path if that is simple, else `_`.
    pub fn key(&self) -> String {
        if self.name.starts_with('"') && modifier::is_valid(self.name) {
            return self.name.to_owned();
        }
        if !self.name.is_empty() {
            return modifier::quoted(self.name);
        }
        let last = last_part(self.path);
        let simple = !last.contains(|c: char| c < ' ' || "[]{}()#|!".contains(c));
        modifier::quoted(if simple { last } else { "_" })
    }
}

fn last_part(path: &str) -> &str {
    let bytes = path.as_bytes();
    let cut =
        (0..bytes.len()).rev().find(|&at| matches!(bytes[at], b'|' | b'.') && (at == 0 || bytes[at - 1] != b'\\'));
    cut.map_or(path, |at| &path[at + 1..])
}

/// Splits `{a,b}rest` into its selectors and the rest; none when the brackets do not close.
pub(super) fn parse(path: &str) -> Option<(Vec<Selector<'_>>, &str)> {
    let bytes = path.as_bytes();
    let mut selectors = Vec::new();
    let (mut depth, mut start, mut colon, mut in_modifier) = (1usize, 1, None, false);
    let mut at = 1;
    loop {
        let byte = *bytes.get(at)?;
        match byte {
            b'\\' => at += 1,
            b'@' if matches!(bytes[at - 1], b'.' | b'|') => in_modifier = true,
            b':' if !in_modifier && colon.is_none() && depth == 1 => colon = Some(at),
            b'"' => at = scan::string_end(bytes, at)? - 1,
            b'[' | b'(' | b'{' => depth += 1,
            b']' | b')' | b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && byte == b',') {
            selectors.push(match colon {
                None => Selector { name: "", path: &path[start..at] },
                Some(colon) => Selector { name: &path[start..colon], path: &path[colon + 1..at] },
            });
            (start, colon, in_modifier) = (at + 1, None, false);
        }
        at += 1;
        if depth == 0 {
            return Some((selectors, &path[at..]));
        }
    }
}
