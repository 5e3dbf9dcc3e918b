//! Strings in quotes, as Go's `%q` prints them.
//!
//! ```
//! assert_eq!(carrick_go::quote::text("it's \t \u{1}"), r#""it's \t \x01""#);
//! ```

use std::fmt::Write;

use crate::runes;

/// Which characters stay as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// Whatever can be printed.
    Printable,
    /// What can be printed and is ASCII.
    Ascii,
}

/// `strconv.Quote` of a text.
pub fn text(text: &str) -> String {
    quote(text.as_bytes(), Charset::Printable)
}

/// `strconv.Quote` and `strconv.QuoteToASCII`.
pub fn quote(bytes: &[u8], charset: Charset) -> String {
    let mut text = String::with_capacity(bytes.len() + 2);
    text.push('"');
    for (c, piece) in runes::pieces(bytes) {
        if c == char::REPLACEMENT_CHARACTER && piece.len() == 1 {
            let _ = write!(text, "\\x{:02x}", piece[0]);
        } else {
            push_char(&mut text, c, '"', charset);
        }
    }
    text.push('"');
    text
}

/// `strconv.QuoteRune` and `strconv.QuoteRuneToASCII`.
pub fn quote_char(c: char, charset: Charset) -> String {
    let mut text = String::from('\'');
    push_char(&mut text, c, '\'', charset);
    text.push('\'');
    text
}

/// Whether the string can be written between back quotes.
pub fn can_backquote(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    !text.chars().any(|c| c < ' ' && c != '\t' || c == '`' || c == '\x7f' || c == '\u{feff}')
}

fn push_char(text: &mut String, c: char, quote: char, charset: Charset) {
    match c {
        _ if c == quote || c == '\\' => text.extend(['\\', c]),
        '\x07' => text.push_str("\\a"),
        '\x08' => text.push_str("\\b"),
        '\x0c' => text.push_str("\\f"),
        '\n' => text.push_str("\\n"),
        '\r' => text.push_str("\\r"),
        '\t' => text.push_str("\\t"),
        '\x0b' => text.push_str("\\v"),
        _ if runes::is_print(c) && (charset == Charset::Printable || c.is_ascii()) => text.push(c),
        '\0'..' ' | '\x7f' => {
            let _ = write!(text, "\\x{:02x}", u32::from(c));
        }
        '\0'..='\u{ffff}' => {
            let _ = write!(text, "\\u{:04x}", u32::from(c));
        }
        _ => {
            let _ = write!(text, "\\U{:08x}", u32::from(c));
        }
    }
}
