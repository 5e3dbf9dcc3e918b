//! One component of a path: a key, maybe with wildcards, and what follows it.

use super::modifier;

/// A key to look for.
#[derive(Debug, PartialEq)]
pub(super) enum Key {
    Exact(String),
    Pattern(Vec<Token>),
}

/// A piece of a wildcard pattern.
#[derive(Debug, PartialEq, Clone, Copy)]
pub(super) enum Token {
    Char(char),
    AnyChar,
    AnyText,
}

/// What comes after a component.
#[derive(Debug, PartialEq, Clone, Copy)]
pub(super) enum Rest<'p> {
    /// Nothing: the component names the result.
    End,
    /// A dot: go on inside the value, or try the next match.
    Dot(&'p str),
    /// A pipe: evaluate on the result as a whole.
    Pipe(&'p str),
}

/// Splits the first component off a path into an object.
pub(super) fn first_key(path: &str) -> (Key, Rest<'_>) {
    let mut tokens = Vec::new();
    let mut rest = Rest::End;
    let mut chars = path.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '|' => {
                rest = Rest::Pipe(&path[at + 1..]);
                break;
            }
            '.' => {
                rest = after_dot(&path[at + 1..]);
                break;
            }
            '*' => tokens.push(Token::AnyText),
            '?' => tokens.push(Token::AnyChar),
            '\\' => tokens.extend(chars.next().map(|(_, escaped)| Token::Char(escaped))),
            other => tokens.push(Token::Char(other)),
        }
    }
    let exact = tokens.iter().map(|token| match token {
        Token::Char(c) => Some(*c),
        Token::AnyChar | Token::AnyText => None,
    });
    match exact.collect() {
        Some(key) => (Key::Exact(key), rest),
        None => (Key::Pattern(tokens), rest),
    }
}

/// A dot before a modifier or a multipath works like a pipe.
pub(super) fn after_dot(path: &str) -> Rest<'_> {
    let piped = match path.as_bytes().first() {
        Some(b'@') => modifier::is_known(modifier::name_of(path)),
        Some(b'[' | b'{') => true,
        _ => false,
    };
    if piped { Rest::Pipe(path) } else { Rest::Dot(path) }
}

/// Reads a bare wildcard pattern, as the `%` operator of queries takes it.
pub(super) fn pattern(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '*' => tokens.push(Token::AnyText),
            '?' => tokens.push(Token::AnyChar),
            '\\' => tokens.extend(chars.next().map(Token::Char)),
            other => tokens.push(Token::Char(other)),
        }
    }
    tokens
}

/// Whether the whole text matches the pattern. Only the last `*` is ever retried, so time stays quadratic.
pub(super) fn matches(pattern: &[Token], text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(Token::AnyText) => {
                retry = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some(Token::AnyChar) => {
                p += 1;
                t += 1;
                continue;
            }
            Some(Token::Char(c)) if *c == text[t] => {
                p += 1;
                t += 1;
                continue;
            }
            _ => {}
        }
        let Some((after_star, from)) = retry else { return false };
        retry = Some((after_star, from + 1));
        p = after_star;
        t = from + 1;
    }
    pattern[p..].iter().all(|token| *token == Token::AnyText)
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
            ("a.@keys", "a", Rest::Pipe("@keys")),
            ("a.@nope", "a", Rest::Dot("@nope")),
            ("a.{b}", "a", Rest::Pipe("{b}")),
            ("a.", "a", Rest::Dot("")),
            ("", "", Rest::End),
        ] {
            assert_eq!(first_key(path), (Key::Exact(key.to_owned()), rest), "{path}");
        }
    }

    #[test]
    fn wildcards_match_any_text_and_any_character() {
        for (wanted, text, want) in [
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("*b*", "abc", true),
            ("a?c", "abc", true),
            ("a?c", "aéc", true),
            ("a?", "a", false),
            ("a*b*c", "aXbXbXc", true),
            ("a*b*c", "aXbXbX", false),
            (r"a\*", "a*", true),
            (r"a\*", "ab", false),
            ("", "a", false),
        ] {
            assert_eq!(matches(&pattern(wanted), text), want, "{wanted} on {text}");
        }
    }
}
