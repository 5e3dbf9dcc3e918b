//! Replacements: `$1` and `${name}` stand for what the groups matched.

use std::sync::LazyLock;

use regex::Regex;

use crate::runes;

/// A part of a replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'r> {
    /// Text that is taken as it is.
    Text(&'r [u8]),
    /// The number or the name of a group.
    Group(&'r [u8]),
}

/// The parts of a replacement as `Regexp.Expand` reads it: `$1`, `$name` and `${name}` stand for groups, `$$` for a dollar sign.
///
/// ```
/// use carrick_go::regex::{Piece, pieces};
///
/// assert!(pieces(b"a${1}b").eq([Piece::Text(b"a"), Piece::Group(b"1"), Piece::Text(b"b")]));
/// ```
pub fn pieces(replacement: &[u8]) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = replacement;
    std::iter::from_fn(move || {
        let dollar = rest.iter().position(|byte| *byte == b'$').unwrap_or(rest.len());
        let (piece, after) = match dollar {
            0 if rest.is_empty() => return None,
            0 if rest.starts_with(b"$$") => (Piece::Text(b"$"), &rest[2..]),
            0 => match group_name(&rest[1..]) {
                Some((name, after)) => (Piece::Group(name), after),
                // It is malformed, and the dollar sign stands for itself.
                None => (Piece::Text(b"$"), &rest[1..]),
            },
            _ => (Piece::Text(&rest[..dollar]), &rest[dollar..]),
        };
        rest = after;
        Some(piece)
    })
}

/// The group name after a dollar sign and what follows; none when it is malformed.
fn group_name(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = text.strip_prefix(b"{").unwrap_or(text);
    let end = runes::pieces(inner).take_while(|(c, _)| is_word(*c)).map(|(_, bytes)| bytes.len()).sum();
    let (name, after) = inner.split_at(end);
    let after = if inner.len() == text.len() { after } else { after.strip_prefix(b"}")? };
    (!name.is_empty()).then_some((name, after))
}

/// Letters and decimal digits of all scripts, and underscores.
fn is_word(c: char) -> bool {
    static WORD: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^[\pL\p{Nd}]$").ok());
    match c {
        '_' | 'a'..='z' | 'A'..='Z' | '0'..='9' => true,
        _ if c.is_ascii() => false,
        _ => WORD.as_ref().is_some_and(|word| word.is_match(c.encode_utf8(&mut [0; 4]))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_letters_decimal_digits_and_underscores_make_a_name() {
        for (replacement, wanted) in [
            ("$1x", vec![Piece::Group(b"1x")]),
            ("${1}x", vec![Piece::Group(b"1"), Piece::Text(b"x")]),
            ("$é_2-", vec![Piece::Group("é_2".as_bytes()), Piece::Text(b"-")]),
            // A number, but no decimal digit.
            ("$1²", vec![Piece::Group(b"1"), Piece::Text("²".as_bytes())]),
            ("$$1", vec![Piece::Text(b"$"), Piece::Text(b"1")]),
            ("${1", vec![Piece::Text(b"$"), Piece::Text(b"{1")]),
            ("$", vec![Piece::Text(b"$")]),
            ("", vec![]),
        ] {
            assert_eq!(pieces(replacement.as_bytes()).collect::<Vec<_>>(), wanted, "{replacement}");
        }
    }
}
