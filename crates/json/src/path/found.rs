//! What a path led to.

use std::borrow::Cow;
use std::ops::Range;

use carrick_go::float::{self, FloatError};
use serde_json::Value;

use super::kind::Kind;
use super::scan::{self, Members, Start, Token};

/// The result of reading a path; gjson's `Result`.
///
/// ```
/// use carrick_json::path::{Kind, text};
///
/// let found = text::get(r#"{"size": 1.50}"#, "size");
/// assert_eq!((found.kind(), found.raw(), found.text().as_str(), found.int()), (Kind::Number, "1.50", "1.5", 1));
/// assert!(!text::get("{}", "size").exists());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Found<'a> {
    pub(super) kind: Kind,
    pub(super) raw: Cow<'a, str>,
    pub(super) origin: Origin,
}

/// Where in the document a result is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Origin {
    /// Nowhere: it was computed.
    Nowhere,
    /// It starts at this byte.
    At(usize),
    /// It starts at this byte, but a pipe led there. That is for reading only, unless it happened inside an element.
    Piped(usize),
    /// It is an array of what is at these places.
    Each(Vec<Range<usize>>),
}

impl Origin {
    /// The byte at which it starts, if it is at one place.
    pub fn start(&self) -> Option<usize> {
        match self {
            Origin::At(at) | Origin::Piped(at) => Some(*at),
            Origin::Nowhere | Origin::Each(_) => None,
        }
    }
}

impl<'a> Found<'a> {
    /// The result that does not exist.
    pub(super) fn nothing() -> Self {
        Self { kind: Kind::Null, raw: Cow::Borrowed(""), origin: Origin::Nowhere }
    }

    /// A value inside a text; `at` is where the text is in the document.
    pub(super) fn token(text: &'a str, at: Option<usize>, token: Token) -> Self {
        let origin = at.map_or(Origin::Nowhere, |at| Origin::At(at + token.start));
        Self { kind: token.kind, raw: Cow::Borrowed(&text[token.start..token.end]), origin }
    }

    /// A value that was made on the way.
    pub(super) fn computed(kind: Kind, raw: String) -> Self {
        Self { kind, raw: Cow::Owned(raw), origin: Origin::Nowhere }
    }

    /// The value that begins the text; objects and arrays take the whole rest of it.
    pub(super) fn parse(text: Cow<'a, str>, at: Option<usize>) -> Self {
        let bytes = text.as_bytes();
        let Some(first) = bytes.iter().position(|byte| *byte > b' ') else { return Self::nothing() };
        let token = match bytes[first] {
            b'{' | b'[' => Token { kind: Kind::Json, start: first, end: text.len() },
            _ => match scan::start_at(bytes, first) {
                Start::Value(token) => token,
                Start::Unclosed => Token { kind: Kind::String, start: first, end: text.len() },
                Start::Other => return Self::nothing(),
            },
        };
        match text {
            Cow::Borrowed(text) => Self::token(text, at, token),
            Cow::Owned(text) => Self::computed(token.kind, text[token.start..token.end].to_owned()),
        }
    }

    /// The value that begins a text of its own.
    pub(super) fn of(json: &'a str) -> Self {
        Self::parse(json.into(), None)
    }

    /// The same result independent of the text it was read from.
    pub fn into_owned(self) -> Found<'static> {
        Found { kind: self.kind, raw: Cow::Owned(self.raw.into_owned()), origin: self.origin }
    }

    pub(super) fn into_raw(self) -> Cow<'a, str> {
        self.raw
    }

    /// Whether the path led to anything, be it `null`.
    pub fn exists(&self) -> bool {
        self.kind != Kind::Null || !self.raw.is_empty()
    }

    /// The kind of the result.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether it is an object.
    pub fn is_object(&self) -> bool {
        self.kind == Kind::Json && self.raw.starts_with('{')
    }

    /// Whether it is an array.
    pub fn is_array(&self) -> bool {
        self.kind == Kind::Json && self.raw.starts_with('[')
    }

    /// The JSON as it is written in the document, empty if there is none.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// The byte of the document at which the raw JSON starts; 0 if it was computed.
    pub fn index(&self) -> usize {
        if let Origin::At(at) = self.origin { at } else { 0 }
    }

    /// Where the parts of an array are that `#` collected; none if they are computed or there was no `#`.
    pub fn indexes(&self) -> Option<Vec<usize>> {
        match &self.origin {
            Origin::Each(places) => Some(places.iter().map(|range| range.start).collect()),
            Origin::Nowhere | Origin::At(_) | Origin::Piped(_) => None,
        }
    }

    /// The text of a string, empty for all else.
    pub fn str(&self) -> Cow<'_, str> {
        if self.kind != Kind::String {
            return Cow::Borrowed("");
        }
        match scan::string(self.raw.as_bytes(), 0) {
            Some((end, false)) if end == self.raw.len() => Cow::Borrowed(&self.raw[1..end - 1]),
            Some((end, true)) if end == self.raw.len() => unescape(&self.raw[1..end - 1]),
            _ => unescape(&self.raw[1..]),
        }
    }

    /// The number as a float, 0 for all else.
    pub fn num(&self) -> f64 {
        if self.kind == Kind::Number { parse_float(&self.raw) } else { 0.0 }
    }

    /// The value as text: strings without quotes, numbers without exponent, objects and arrays as JSON, `null` and
    /// nothing as the empty string.
    pub fn text(&self) -> String {
        match self.kind {
            Kind::Null => String::new(),
            Kind::False => "false".to_owned(),
            Kind::True => "true".to_owned(),
            Kind::String => self.str().into_owned(),
            Kind::Json => self.raw.to_string(),
            Kind::Number => {
                let digits = self.raw.strip_prefix('-').unwrap_or(&self.raw);
                let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
                if plain { self.raw.to_string() } else { float::format(self.num(), 'f', None) }
            }
        }
    }

    /// The value; none if there is none, or if the text was not JSON.
    pub fn value(&self) -> Option<Value> {
        crate::from_str(&self.raw).ok()
    }

    /// The value itself, `null` if there is none.
    pub fn into_value(self) -> Value {
        self.value().unwrap_or_default()
    }

    /// The elements of an array; a single value counts as an array of one, `null` and nothing as an empty one.
    pub fn array(&self) -> impl Iterator<Item = Found<'_>> {
        let single = (!self.is_array() && self.kind != Kind::Null).then(|| self.clone());
        let members = self.is_array().then(|| self.members().map(|(_, value)| value));
        single.into_iter().chain(members.into_iter().flatten())
    }

    /// The keys and values of an object, or the values of an array; nothing for others.
    pub(super) fn members(&self) -> impl Iterator<Item = (Option<Found<'_>>, Found<'_>)> {
        let at = self.origin.start();
        let text = if self.kind == Kind::Json { self.raw.as_ref() } else { "" };
        let found = move |token| Found::token(text, at, token);
        Members::of(text).map(move |(key, value)| (key.map(found), found(value)))
    }

    /// The value as an integer: `true` is 1, text is parsed, fractions are cut off, everything else is 0.
    pub fn int(&self) -> i64 {
        match self.kind {
            Kind::True => 1,
            Kind::Number => cut(self.num()).or_else(|| parse_int(&self.raw)).unwrap_or_else(|| truncated(self.num())),
            Kind::String => parse_int(&self.str()).unwrap_or_default(),
            _ => 0,
        }
    }

    /// The value as a float: `true` is 1, text is parsed, everything else is 0.
    pub fn float(&self) -> f64 {
        match self.kind {
            Kind::True => 1.0,
            Kind::Number => self.num(),
            Kind::String => parse_float(&self.str()),
            _ => 0.0,
        }
    }

    /// The value as a boolean: numbers other than 0 are true, text is parsed, everything else is false.
    pub fn bool(&self) -> bool {
        match self.kind {
            Kind::True => true,
            Kind::Number => self.num() != 0.0,
            Kind::String => parse_bool(&self.str()).unwrap_or_default(),
            _ => false,
        }
    }
}

/// The text between the quotes of a JSON string. What follows a wrong escape is lost.
pub(super) fn unescape(inner: &str) -> Cow<'_, str> {
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let bytes = inner.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        if byte < b' ' {
            break;
        }
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let Some(&escaped) = bytes.get(at) else { break };
        at += 1;
        match escaped {
            b'\\' | b'/' | b'"' => out.push(escaped),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'u' => {
                let Some(first) = bytes.get(at..at + 4).map(hex) else { break };
                at += 4;
                let mut code = first;
                if (0xD800..0xE000).contains(&first)
                    && let Some([b'\\', b'u', second @ ..]) = bytes.get(at..at + 6)
                {
                    code = from_surrogates(first, hex(second));
                    at += 6;
                }
                let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            _ => break,
        }
    }
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

/// Four hexadecimal digits; 0 if they are none.
fn hex(digits: &[u8]) -> u32 {
    let digit = |number: u32, byte: &u8| char::from(*byte).to_digit(16).map(|digit| number * 16 + digit);
    digits.iter().try_fold(0, digit).unwrap_or_default()
}

fn from_surrogates(high: u32, low: u32) -> u32 {
    if (0xD800..0xDC00).contains(&high) && (0xDC00..0xE000).contains(&low) {
        0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00)
    } else {
        u32::from(char::REPLACEMENT_CHARACTER)
    }
}

/// Go's `strconv.ParseFloat`, with 0 for what is not a number.
pub(super) fn parse_float(text: &str) -> f64 {
    match float::parse(text) {
        Ok(number) | Err(FloatError::Range(number)) => number,
        Err(FloatError::Syntax) => 0.0,
    }
}

/// Go's `strconv.ParseBool` on lower-cased text.
pub(super) fn parse_bool(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "1" | "t" | "true" => Some(true),
        "0" | "f" | "false" => Some(false),
        _ => None,
    }
}

/// The integer part of a float whose integers are exact.
fn cut(value: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_991.0;
    (value.is_nan() || (-EXACT..=EXACT).contains(&value)).then(|| truncated(value))
}

/// The integer part; the smallest integer for what does not fit, as processors answer.
#[allow(clippy::cast_possible_truncation)] // cutting off the fraction is what is asked for
fn truncated(value: f64) -> i64 {
    const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;
    if (-TOO_LARGE..TOO_LARGE).contains(&value) { value as i64 } else { i64::MIN }
}

/// Digits with a sign, nothing else; too large ones wrap around.
fn parse_int(text: &str) -> Option<i64> {
    match text.strip_prefix('-') {
        Some(digits) => scan::digits(digits).map(|number| number.cast_signed().wrapping_neg()),
        None => scan::digits(text).map(u64::cast_signed),
    }
}
