//! Wildcards in keys and queries: `*` for any text, `?` for any character, `\` before a character for itself.

#[derive(Debug, PartialEq, Clone, Copy)]
enum Token {
    AnyText,
    AnyChar,
    Char(char),
    /// A backslash at the end, which matches nothing unless it follows a star.
    Dangling,
}

use super::limits::Scope;

/// Whether the pattern matches the whole text; false when that would be too much work.
pub(super) fn matches(pattern: &str, text: &str, scope: Scope<'_>) -> bool {
    // with several stars every character may be compared with every other
    let several = pattern.matches('*').count() > 1;
    let work = if several { pattern.len().saturating_mul(text.len()) / 8 } else { pattern.len() + text.len() };
    scope.work(work) && fits_whole(pattern, text)
}

fn fits_whole(pattern: &str, text: &str) -> bool {
    let tokens = tokens(pattern);
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    // where to continue when the text after the last star does not match
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match tokens.get(p) {
            Some(Token::AnyText) => {
                p += 1;
                retry = Some((p, t));
                continue;
            }
            Some(token) if fits(*token, text[t], retry.is_some()) => {
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
    tokens[p..].iter().all(|token| *token == Token::AnyText)
}

fn fits(token: Token, c: char, after_star: bool) -> bool {
    match token {
        Token::AnyText => false,
        Token::AnyChar => true,
        Token::Char(wanted) => wanted == c,
        Token::Dangling => after_star && c == '\\',
    }
}

fn tokens(pattern: &str) -> Vec<Token> {
    let mut chars = pattern.chars();
    let mut tokens = Vec::with_capacity(pattern.len());
    while let Some(c) = chars.next() {
        tokens.push(match c {
            '*' => Token::AnyText,
            '?' => Token::AnyChar,
            '\\' => chars.next().map_or(Token::Dangling, Token::Char),
            other => Token::Char(other),
        });
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_any_text_and_any_character() {
        for (pattern, text, want) in [
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
            (r"a\", r"a\", false),
            (r"*\", r"a\", true),
            ("", "a", false),
        ] {
            assert_eq!(fits_whole(pattern, text), want, "{pattern} on {text}");
        }
    }
}
