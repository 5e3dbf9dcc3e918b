//! The words of JSON text. Lenient: commas and colons are skipped, brackets of any kind close each other, so that text
//! which is not JSON leads to some answer, the one that gjson gives.

use super::kind::Kind;

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

/// Whether a value may start with a byte; infinities and NaN count as numbers.
const STARTS: [bool; 256] = table(b"\"{[tfnNiI+-0123456789");

/// The number 1 in each byte of a word.
const ONES: u64 = u64::from_ne_bytes([1; 8]);

const fn table(bytes: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut at = 0;
    while at < bytes.len() {
        table[bytes[at] as usize] = true;
        at += 1;
    }
    table
}

/// Whether a value may start with this byte.
#[inline]
pub(super) fn starts_value(byte: u8) -> bool {
    STARTS[usize::from(byte)]
}

/// The byte after the string whose opening quote is at `open`; none when it is not closed.
#[inline]
pub(super) fn string_end(text: &[u8], open: usize) -> Option<usize> {
    string(text, open).map(|(end, _)| end)
}

/// Like [`string_end`], and whether the string has escapes.
#[inline]
pub(super) fn string(text: &[u8], open: usize) -> Option<(usize, bool)> {
    let (mut at, mut escapes) = (open + 1, false);
    loop {
        at += quote_or_backslash(text.get(at..)?)?;
        if text[at] == b'"' {
            return Some((at + 1, escapes));
        }
        escapes = true;
        at += 2;
    }
}

/// The first quote or backslash. Most of the time of reading goes into strings, so eight bytes are compared together.
#[inline]
fn quote_or_backslash(text: &[u8]) -> Option<usize> {
    let (words, rest) = text.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let marks = marks(word, b'"') | marks(word, b'\\');
        if marks != 0 {
            return Some(index * 8 + marks.trailing_zeros() as usize / 8);
        }
    }
    let found = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
    Some(words.len() * 8 + found)
}

/// A word with the highest bit set in each byte of `word` that equals `byte`. The first one is certain, others may be
/// set although they differ; 0 if no byte is equal.
#[inline]
fn marks(word: u64, byte: u8) -> u64 {
    let zero_if_equal = word ^ (ONES * u64::from(byte));
    zero_if_equal.wrapping_sub(ONES) & !zero_if_equal & (ONES << 7)
}

/// The byte after the bracket that closes the one at `open`; the end of the text when there is none.
pub(super) fn balanced_end(text: &[u8], open: usize) -> usize {
    let mut at = open + 1;
    let (words, rest) = text.get(at..).unwrap_or_default().as_chunks::<8>();
    let mut nesting = Nesting { depth: 1, quoted: false, escaped: None };
    for word in words {
        if let Some(end) = nesting.pass(word, at) {
            return end;
        }
        at += 8;
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    nesting.pass(&last, at).unwrap_or(text.len())
}

/// Where in a value a search for its end is.
struct Nesting {
    /// The brackets that are open.
    depth: usize,
    /// Whether it is inside a string.
    quoted: bool,
    /// The byte after the last backslash that escapes.
    escaped: Option<usize>,
}

impl Nesting {
    /// Passes the eight bytes at `at`; returns the byte after the bracket that closes the value, if it is among them.
    #[allow(clippy::trivially_copy_pass_by_ref)] // single bytes are read where they are, without a copy on the stack
    #[inline]
    fn pass(&mut self, bytes: &[u8; 8], at: usize) -> Option<usize> {
        let word = u64::from_le_bytes(*bytes);
        // `(` and `)` differ in one bit, `[`, `]`, `{`, `}` and the backslash in four; what else looks like them then
        // is distinguished below
        let mut marks = marks(word, b'"') | marks(word | ONES, b')') | marks(word | (ONES * 0x27), 0x7f);
        while marks != 0 {
            let index = marks.trailing_zeros() as usize / 8;
            marks &= marks - 1;
            match bytes[index] {
                b'"' if self.escaped != Some(at + index) => self.quoted = !self.quoted,
                b'\\' if self.quoted && self.escaped != Some(at + index) => self.escaped = Some(at + index + 1),
                b'{' | b'[' | b'(' if !self.quoted => self.depth += 1,
                b'}' | b']' | b')' if !self.quoted => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(at + index + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }
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
#[inline]
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
        // infinities and NaN
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

/// The next value at or after a byte, whatever comes before it.
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

/// The number that consists of these digits; too large ones wrap around.
pub(super) fn digits(text: &str) -> Option<u64> {
    let digit = |number: u64, byte: u8| {
        byte.is_ascii_digit().then(|| number.wrapping_mul(10).wrapping_add(u64::from(byte - b'0')))
    };
    if text.is_empty() { None } else { text.bytes().try_fold(0, digit) }
}
