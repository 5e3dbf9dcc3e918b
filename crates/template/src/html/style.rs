//! How literal text moves the context inside style sheets.

use super::{
    context::{Context, Place},
    scan::{Moved, find, find_all, url_part},
};
use crate::runes;

const SPACE: &[u8] = b"\t\n\x0c\r ";

pub(super) fn transition(context: &Context, text: &[u8]) -> Moved {
    match context.place {
        Place::CssBlockComment => Ok(match find_all(text, b"*/") {
            Some(end) => (moved(context, Place::Css), end + 2),
            None => (context.clone(), text.len()),
        }),
        Place::CssLineComment => Ok(match find(text, b"\n\x0c\r") {
            Some(end) => (moved(context, Place::Css), end),
            None => (context.clone(), text.len()),
        }),
        Place::CssDouble | Place::CssDoubleUrl => string(context, text, b"\\\""),
        Place::CssSingle | Place::CssSingleUrl => string(context, text, b"\\'"),
        Place::CssUrl => string(context, text, b"\\\t\n\x0c\r )"),
        _ => Ok(rules(context, text)),
    }
}

fn moved(context: &Context, place: Place) -> Context {
    Context { place, ..context.clone() }
}

fn rules(context: &Context, text: &[u8]) -> (Context, usize) {
    let mut from = 0;
    while let Some(at) = find(&text[from..], b"(\"'/") {
        let at = from + at;
        from = at + 1;
        match (text[at], text.get(from)) {
            (b'(', _) if ends_with_url(&text[..at]) => {
                let start = from + text[from..].iter().take_while(|byte| SPACE.contains(byte)).count();
                return match text.get(start) {
                    Some(b'"') => (moved(context, Place::CssDoubleUrl), start + 1),
                    Some(b'\'') => (moved(context, Place::CssSingleUrl), start + 1),
                    _ => (moved(context, Place::CssUrl), start),
                };
            }
            (b'/', Some(b'/')) => return (moved(context, Place::CssLineComment), from + 1),
            (b'/', Some(b'*')) => return (moved(context, Place::CssBlockComment), from + 1),
            (b'"', _) => return (moved(context, Place::CssDouble), from),
            (b'\'', _) => return (moved(context, Place::CssSingle), from),
            _ => {}
        }
    }
    (context.clone(), text.len())
}

/// Whether the last word is `url`.
fn ends_with_url(text: &[u8]) -> bool {
    let end = text.iter().rposition(|byte| !SPACE.contains(byte)).map_or(0, |last| last + 1);
    let Some(start) = end.checked_sub(3) else { return false };
    text[start..end].eq_ignore_ascii_case(b"url") && !text[..start].last().is_some_and(|byte| is_name(*byte))
}

/// Whether a byte is part of a name; those of other scripts all are.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || byte >= 0x80
}

fn string(context: &Context, text: &[u8], special: &[u8]) -> Moved {
    let mut next = context.clone();
    let mut from = 0;
    // Where the last escape sequence began: only now it is known where that ends.
    let mut piece = 0;
    while let Some(at) = find(&text[from..], special) {
        let at = from + at;
        if text[at] != b'\\' {
            return Ok((moved(&next, Place::Css), at + 1));
        }
        if at + 1 == text.len() {
            return Err("an action stands inside an escape sequence of a style sheet".into());
        }
        next.url = url_part(next.url, &decode(&text[piece..at + 2]));
        piece = at;
        from = at + 2;
    }
    next.url = url_part(next.url, &text[from..]);
    Ok((next, text.len()))
}

/// Replaces the escape sequences of style sheets.
pub(super) fn decode(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = find(rest, b"\\") {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let Some((_, width)) = runes::first(rest) else { return out };
        let mut digits = rest.iter().take(6).take_while(|byte| byte.is_ascii_hexdigit()).count();
        if digits == 0 {
            out.extend_from_slice(&rest[..width]);
            rest = &rest[width..];
            continue;
        }
        let mut number = hex(&rest[..digits]);
        if number > 0x10_ffff {
            number /= 16;
            digits -= 1;
        }
        let c = char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        rest = &rest[digits..];
        rest = match rest {
            [b'\r', b'\n', after @ ..] | [b'\t' | b'\n' | b'\x0c' | b'\r' | b' ', after @ ..] => after,
            _ => rest,
        };
    }
    out.extend_from_slice(rest);
    out
}

fn hex(digits: &[u8]) -> u32 {
    digits.iter().fold(0, |number, digit| number << 4 | char::from(*digit).to_digit(16).unwrap_or(0))
}
