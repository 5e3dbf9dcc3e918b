//! The words of JSON text. Lenient: commas and colons are skipped, brackets of any kind close each other, so that text
//! which is no JSON leads to some answer, the one that gjson gives.

use super::found::Kind;

/// A value in a text: its kind and the bytes it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

/// What begins at a byte.
pub(super) enum Start {
    Value(Token),
    /// A string without its closing quote.
    Unclosed,
    /// No value: whitespace, punctuation or something else.
    Other,
}

/// The byte behind the string whose opening quote is at `open`; none when it is not closed.
pub(super) fn string_end(text: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The byte behind the bracket that closes the one at `open`; the end of the text when there is none.
pub(super) fn balanced_end(text: &[u8], open: usize) -> usize {
    let (mut at, mut depth) = (open + 1, 1usize);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => match string_end(text, at) {
                Some(end) => {
                    at = end;
                    continue;
                }
                None => return text.len(),
            },
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// Like [`balanced_end`] for the start of a text, which may also be a string.
pub(super) fn enclosed_end(text: &str) -> usize {
    if text.starts_with('"') {
        string_end(text.as_bytes(), 0).unwrap_or(text.len())
    } else {
        balanced_end(text.as_bytes(), 0)
    }
}

/// What begins at a byte of the text.
pub(super) fn start_at(text: &[u8], start: usize) -> Start {
    let Some(&first) = text.get(start) else { return Start::Other };
    let (kind, end) = match first {
        b'"' => match string_end(text, start) {
            Some(end) => (Kind::String, end),
            None => return Start::Unclosed,
        },
        b'{' | b'[' => (Kind::Json, balanced_end(text, start)),
        b't' => (Kind::True, literal_end(text, start)),
        b'f' => (Kind::False, literal_end(text, start)),
        b'n' if text.get(start + 1).is_none_or(|next| *next == b'u') => (Kind::Null, literal_end(text, start)),
        // infinities and what is no number
        b'+' | b'-' | b'0'..=b'9' | b'i' | b'I' | b'n' | b'N' => (Kind::Number, number_end(text, start)),
        _ => return Start::Other,
    };
    Start::Value(Token { kind, start, end })
}

fn number_end(text: &[u8], start: usize) -> usize {
    let ends = |byte: &u8| *byte <= b' ' || matches!(byte, b',' | b']' | b'}');
    text[start + 1..].iter().position(ends).map_or(text.len(), |length| start + 1 + length)
}

fn literal_end(text: &[u8], start: usize) -> usize {
    text[start + 1..].iter().position(|byte| !byte.is_ascii_lowercase()).map_or(text.len(), |length| start + 1 + length)
}

/// The next value at or behind a byte, whatever stands before it.
pub(super) fn next_value(text: &[u8], from: usize) -> Option<Token> {
    for at in from..text.len() {
        match start_at(text, at) {
            Start::Value(token) => return Some(token),
            Start::Unclosed => return None,
            Start::Other => {}
        }
    }
    None
}

/// The members of an object or the elements of an array, in order.
pub(super) struct Members<'a> {
    text: &'a [u8],
    at: usize,
    object: bool,
}

impl<'a> Members<'a> {
    /// The members of the value that begins the text; none if it is a scalar.
    pub fn of(text: &'a str) -> Self {
        let text = text.as_bytes();
        let first = text.iter().position(|byte| *byte > b' ').unwrap_or(text.len());
        let (at, object) = match text.get(first) {
            Some(b'{') => (first + 1, true),
            Some(b'[') => (first + 1, false),
            _ => (text.len(), false),
        };
        Self { text, at, object }
    }
}

impl Iterator for Members<'_> {
    /// The key, with its quotes, and the value.
    type Item = (Option<Token>, Token);

    fn next(&mut self) -> Option<Self::Item> {
        let mut key = None;
        if self.object {
            let start = self.at + self.text.get(self.at..)?.iter().position(|byte| *byte == b'"')?;
            let end = string_end(self.text, start)?;
            key = Some(Token { kind: Kind::String, start, end });
            self.at = end;
        }
        let value = next_value(self.text, self.at)?;
        // the comma
        self.at = value.end + 1;
        Some((key, value))
    }
}
