//! Makes values safe for a place.

use super::{
    attributes::{self, Meaning},
    script, style,
};
use crate::{
    builtin, escape, fmt,
    heap::{Failure, Heap, Outcome},
    runes, sprig,
    value::{Str, Value},
};

/// What takes the place of a value that cannot be made safe.
const REFUSED: &str = "ZgotmplZ";

/// One step of making a value safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escaper {
    /// For text and values of attributes in quotes.
    Html,
    /// For values of attributes without quotes.
    NoSpace,
    /// Lets only harmless names of attributes through.
    AttrName,
    /// Lets only URLs of harmless schemes through.
    UrlFilter,
    /// For a URL or the start of one.
    UrlNormalize,
    /// For a part of a query.
    UrlEscape,
    Srcset,
    /// A JavaScript expression.
    JsValue,
    JsString,
    JsTemplate,
    JsRegex,
    CssString,
    /// Lets only harmless values of style rules through.
    CssFilter,
    /// Comments are left out, and so is what stands in them.
    Comment,
    /// The function `html`, which the template calls itself.
    HtmlFunction,
    /// The function `urlquery`, which the template calls itself.
    QueryFunction,
}

impl Escaper {
    pub(crate) fn apply(self, heap: &Heap, value: &Value) -> Outcome<Value> {
        let escaped = match self {
            Escaper::Comment => "".into(),
            Escaper::JsValue => js_value(heap, value)?,
            Escaper::HtmlFunction => {
                return escape::html(heap, builtin::text(heap, std::slice::from_ref(value))?.as_bytes());
            }
            Escaper::QueryFunction => {
                return escape::query(heap, builtin::text(heap, std::slice::from_ref(value))?.as_bytes());
            }
            _ => self.text(heap, stringify(heap, value)?.as_bytes())?,
        };
        Ok(Value::Str(escaped))
    }

    fn text(self, heap: &Heap, text: &[u8]) -> Outcome<Str> {
        heap.scan(4 * text.len())?;
        match self {
            Escaper::Html => replace(heap, text, |c| html(c).unwrap_or_default().to_owned()),
            Escaper::NoSpace if text.is_empty() => Ok(REFUSED.into()),
            Escaper::NoSpace => replace(heap, text, no_space),
            Escaper::AttrName => Ok(attribute_name(text).into()),
            Escaper::UrlFilter if is_safe_url(text) => Ok(text.into()),
            Escaper::UrlFilter => Ok(format!("#{REFUSED}").into()),
            Escaper::UrlNormalize => url(heap, text, true),
            Escaper::UrlEscape => url(heap, text, false),
            Escaper::Srcset => srcset(heap, text),
            Escaper::JsString => replace(heap, text, |c| js(c, "")),
            Escaper::JsTemplate => replace(heap, text, |c| js(c, "${}")),
            Escaper::JsRegex if text.is_empty() => Ok("(?:)".into()),
            Escaper::JsRegex => replace(heap, text, js_regex),
            Escaper::CssString => css_string(heap, text),
            _ => Ok(css_filter(text)),
        }
    }
}

/// A value as text; nothing is no text.
fn stringify(heap: &Heap, value: &Value) -> Outcome<Str> {
    if value.is_nothing() { Ok("".into()) } else { fmt::to_str(heap, value) }
}

/// Replaces characters; an empty text leaves one as it is.
fn replace(heap: &Heap, text: &[u8], by: impl Fn(char) -> String) -> Outcome<Str> {
    let mut out = heap.builder();
    for (c, piece) in runes::pieces(text) {
        match by(c) {
            same if same.is_empty() => out.push(piece)?,
            other => out.text(&other)?,
        }
    }
    out.finish()
}

fn html(c: char) -> Option<&'static str> {
    Some(match c {
        '\0' => "\u{fffd}",
        '"' => "&#34;",
        '&' => "&amp;",
        '\'' => "&#39;",
        '+' => "&#43;",
        '<' => "&lt;",
        '>' => "&gt;",
        _ => return None,
    })
}

fn no_space(c: char) -> String {
    match c {
        '\0' => "&#xfffd;".into(),
        '\t' | '\n' | '\x0b' | '\x0c' | '\r' | ' ' | '=' | '`' => format!("&#{};", u32::from(c)),
        '\u{fdd0}'..='\u{fdef}' | '\u{fff0}'..='\u{ffff}' => format!("&#x{:x};", u32::from(c)),
        _ => html(c).unwrap_or_default().into(),
    }
}

fn attribute_name(text: &[u8]) -> String {
    let name = String::from_utf8_lossy(text).to_lowercase();
    let harmless = attributes::meaning(&name) == Meaning::Plain
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if harmless { name } else { REFUSED.into() }
}

fn is_safe_url(text: &[u8]) -> bool {
    let Some(colon) = text.iter().position(|byte| *byte == b':') else { return true };
    let scheme = &text[..colon];
    scheme.contains(&b'/')
        || ["http", "https", "mailto"].iter().any(|safe| scheme.eq_ignore_ascii_case(safe.as_bytes()))
}

/// Escapes what has no place in a URL and, unless it is a whole one, what has a meaning there.
fn url(heap: &Heap, text: &[u8], whole: bool) -> Outcome<Str> {
    let mut out = heap.builder();
    for (at, byte) in text.iter().enumerate() {
        let keep = match byte {
            b'-' | b'.' | b'_' | b'~' => true,
            b'%' => whole && matches!(text[at + 1..], [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit()),
            b'!' | b'#' | b'$' | b'&' | b'*' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' | b'[' | b']' => {
                whole
            }
            _ => byte.is_ascii_alphanumeric(),
        };
        if keep { out.push(&[*byte])? } else { out.text(&format!("%{byte:02x}"))? }
    }
    out.finish()
}

/// URLs with sizes, separated by commas.
fn srcset(heap: &Heap, text: &[u8]) -> Outcome<Str> {
    let is_space = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ');
    let mut out = heap.builder();
    for (index, candidate) in text.split(|byte| *byte == b',').enumerate() {
        if index > 0 {
            out.text(",")?;
        }
        let start = candidate.iter().position(|byte| !is_space(byte)).unwrap_or(candidate.len());
        let length = candidate[start..].iter().position(is_space).unwrap_or(candidate.len() - start);
        let (address, sizes) = candidate[start..].split_at(length);
        if is_safe_url(address) && sizes.iter().all(|byte| is_space(byte) || byte.is_ascii_alphanumeric()) {
            out.push(&candidate[..start])?;
            out.push(url(heap, address, true)?.as_bytes())?;
            out.push(sizes)?;
        } else {
            out.text("#")?;
            out.text(REFUSED)?;
        }
    }
    out.finish()
}

/// A JSON value is an expression; spaces keep it apart from names around it.
fn js_value(heap: &Heap, value: &Value) -> Outcome<Str> {
    let json = match value {
        Value::Found(found) => sprig::json(heap, &Value::Str(found.text(heap)?)),
        Value::Named(named) => sprig::json(heap, &named.name().into()),
        other => sprig::json(heap, other),
    };
    let json = match json {
        Ok(json) => json,
        Err(Failure::Message(message)) => return Ok(format!(" /* {} */null ", message.replace("*/", "* /")).into()),
        Err(limit) => return Err(limit),
    };
    let bytes = json.as_bytes();
    let touches = |byte: Option<&u8>| byte.is_some_and(|byte| script::is_name(*byte));
    if touches(bytes.first()) || touches(bytes.last()) {
        heap.take(bytes.len() + 2)?;
        return Ok([b" ", bytes, b" "].concat().into());
    }
    Ok(json)
}

/// Escapes for strings of JavaScript, and for some characters more.
fn js(c: char, more: &str) -> String {
    match c {
        '\t' => "\\t".into(),
        '\n' => "\\n".into(),
        '\x0c' => "\\f".into(),
        '\r' => "\\r".into(),
        '/' => "\\/".into(),
        '\\' => "\\\\".into(),
        '\0'..' ' | '"' | '`' | '&' | '\'' | '+' | '<' | '>' | '\u{2028}' | '\u{2029}' => {
            format!("\\u{:04x}", u32::from(c))
        }
        _ if more.contains(c) => format!("\\u{:04x}", u32::from(c)),
        _ => String::new(),
    }
}

fn js_regex(c: char) -> String {
    match c {
        '$' | '(' | ')' | '*' | '-' | '.' | '?' | '[' | ']' | '^' | '{' | '|' | '}' => format!("\\{c}"),
        '`' => String::new(),
        _ => js(c, ""),
    }
}

fn css_string(heap: &Heap, text: &[u8]) -> Outcome<Str> {
    let mut out = heap.builder();
    let mut rest = text;
    while let Some((c, width)) = runes::first(rest) {
        let piece = &rest[..width];
        rest = &rest[width..];
        match c {
            '\\' => out.text("\\\\")?,
            '\0' | '\t' | '\n' | '\x0c' | '\r' | '"' | '&' | '\'' | '(' | ')' | '+' | '/' | ':' | ';' | '<' | '>'
            | '{' | '}' => {
                out.text(&format!("\\{:x}", u32::from(c)))?;
                // Without the space the next character could belong to the number.
                let next = rest.first();
                if next.is_none_or(|byte| byte.is_ascii_hexdigit() || b"\t\n\x0c\r ".contains(byte)) {
                    out.text(" ")?;
                }
            }
            _ => out.push(piece)?,
        }
    }
    out.finish()
}

fn css_filter(text: &[u8]) -> Str {
    let decoded = style::decode(text);
    let harmful =
        decoded.iter().any(|byte| b"\0\"'()/;@[\\]`{}<>".contains(byte)) || decoded.windows(2).any(|two| two == b"--");
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let names: Vec<u8> = decoded.iter().copied().filter(is_letter).map(|byte| byte.to_ascii_lowercase()).collect();
    let contains = |word: &[u8]| names.windows(word.len()).any(|window| window == word);
    if harmful || contains(b"expression") || contains(b"mozbinding") { REFUSED.into() } else { decoded.into() }
}
