//! The components of a path: what comes before the next dot or pipe.

use std::borrow::Cow;

use super::query::Query;
use super::{modifier, query, scan};

/// What follows a component.
#[derive(Debug, PartialEq, Clone, Copy)]
pub(super) enum Rest<'p> {
    End,
    /// A path below the value.
    Dot(&'p str),
    /// A path for the value taken by itself.
    Pipe(&'p str),
}

impl<'p> Rest<'p> {
    /// The rest at the first dot or pipe of `text`.
    fn of(text: &'p str, dot: fn(&'p str) -> Self) -> Self {
        match text.find(['.', '|']) {
            None => Rest::End,
            Some(at) if text.as_bytes()[at] == b'|' => Rest::Pipe(&text[at + 1..]),
            Some(at) => dot(&text[at + 1..]),
        }
    }

    /// A dot before a modifier or a multipath is a pipe.
    fn after_dot(rest: &'p str) -> Self {
        let piped = match rest.as_bytes().first() {
            Some(b'@') => modifier::is_known(modifier::name_of(rest)),
            Some(b'[' | b'{') => true,
            _ => false,
        };
        if piped { Rest::Pipe(rest) } else { Rest::Dot(rest) }
    }
}

/// The first component of a path, seen from an object.
#[derive(Debug, PartialEq)]
pub(super) struct Key<'p> {
    pub name: Cow<'p, str>,
    /// Whether the name has wildcards.
    pub wild: bool,
    pub rest: Rest<'p>,
}

impl<'p> Key<'p> {
    pub fn parse(path: &'p str) -> Self {
        let bytes = path.as_bytes();
        let (mut at, mut copied, mut wild) = (0, 0, false);
        let mut unescaped: Option<String> = None;
        let mut rest = Rest::End;
        while at < bytes.len() {
            match bytes[at] {
                b'|' => {
                    rest = Rest::Pipe(&path[at + 1..]);
                    break;
                }
                b'.' => {
                    rest = Rest::after_dot(&path[at + 1..]);
                    break;
                }
                b'*' | b'?' => wild = true,
                b'\\' => {
                    unescaped.get_or_insert_default().push_str(&path[copied..at]);
                    copied = at + 1;
                    at += 1;
                }
                _ => {}
            }
            at += 1;
        }
        let tail = &path[copied..at.min(path.len())];
        let name = match unescaped {
            None => Cow::Borrowed(tail),
            Some(head) => Cow::Owned(head + tail),
        };
        Self { name, wild, rest }
    }
}

/// The first component of a path, seen from an array.
#[derive(Debug)]
pub(super) enum Element<'p> {
    /// `3`: one element.
    Index(u64, Rest<'p>),
    /// `#`: the number of elements.
    Count(Rest<'p>),
    /// `#.path`: what is at the path of each element, and a path for all of that.
    Each(&'p str, Option<&'p str>),
    /// `#(query)`: elements that match.
    Query(Query<'p>, Rest<'p>),
    /// Anything else, which no element has.
    Nothing(Rest<'p>),
}

impl<'p> Element<'p> {
    pub fn parse(path: &'p str) -> Self {
        if let Some(each) = path.strip_prefix("#.") {
            let (each, pipe) = split_pipe(each);
            return Element::Each(each, pipe);
        }
        if path.starts_with("#(") || path.starts_with("#[") {
            return match Query::parse(path) {
                Some((query, rest)) => Element::Query(query, Rest::of(rest, Rest::Dot)),
                None => Element::Query(Query::default(), Rest::End),
            };
        }
        let name = &path[..path.find(['.', '|']).unwrap_or(path.len())];
        match name {
            "#" => Element::Count(Rest::of(path, Rest::Dot)),
            _ if name.contains('#') => Element::Nothing(Rest::of(path, Rest::Dot)),
            _ => {
                let rest = Rest::of(path, Rest::after_dot);
                scan::digits(name).map_or(Element::Nothing(rest), |index| Element::Index(index, rest))
            }
        }
    }
}

/// Splits a path for elements from a path for all that they yield.
///
/// The pipe is looked for after a multipath at the start, else anywhere outside queries; one directly after a `#`
/// belongs to the elements.
pub(super) fn split_pipe(path: &str) -> (&str, Option<&str>) {
    let at = match path.strip_prefix('{') {
        // the byte after the brace counts as an opening bracket, unless it is a quote
        Some("") | None => find_pipe(path.as_bytes()),
        Some(inner) => {
            let end = 1 + scan::enclosed_end(inner);
            path[end..].starts_with('|').then_some(end)
        }
    };
    at.map_or((path, None), |at| (&path[..at], Some(&path[at + 1..])))
}

fn find_pipe(path: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < path.len() {
        match path[at] {
            b'\\' => at += 1,
            b'|' => return Some(at),
            b'.' if at + 1 == path.len() => return None,
            b'.' if path[at + 1] == b'#' => {
                at += 2;
                if let Some(open @ (b'[' | b'(')) = path.get(at) {
                    at = query::selector_end(path, at, *open);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_end_at_dots_and_pipes_that_are_not_escaped() {
        for (path, key, rest) in [
            ("a", "a", Rest::End),
            ("a.b.c", "a", Rest::Dot("b.c")),
            ("a|b", "a", Rest::Pipe("b")),
            (r"a\.b.c", "a.b", Rest::Dot("c")),
            (r"a\*b", "a*b", Rest::End),
            (r"a\", "a", Rest::End),
            (r"\é.b", "é", Rest::Dot("b")),
            ("a.@keys", "a", Rest::Pipe("@keys")),
            ("a.@nope", "a", Rest::Dot("@nope")),
            ("a.{b}", "a", Rest::Pipe("{b}")),
            ("a.", "a", Rest::Dot("")),
            ("", "", Rest::End),
        ] {
            assert_eq!(Key::parse(path), Key { name: key.into(), wild: false, rest }, "{path}");
        }
    }

    #[test]
    fn pipes_behind_elements_split() {
        for (path, left, right) in [
            ("a.b", "a.b", None),
            ("a|b|c", "a", Some("b|c")),
            (r"a\|b|c", r"a\|b", Some("c")),
            ("a.#(x|y).b|c", "a.#(x|y).b", Some("c")),
            (r#"a.#(x=")|").b|c"#, r#"a.#(x=")|").b"#, Some("c")),
            ("a.#|c", "a.#|c", None),
            ("{a|b,c}|d", "{a|b,c}", Some("d")),
            (r#"{"a":b}|d"#, r#"{"a":b}|d"#, None),
            ("[a|b]|d", "[a", Some("b]|d")),
            ("a|.", "a", Some(".")),
        ] {
            assert_eq!(split_pipe(path), (left, right), "{path}");
        }
    }
}
