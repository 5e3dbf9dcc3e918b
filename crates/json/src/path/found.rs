//! What a path led to.

use std::borrow::Cow;

use serde_json::Value;

use crate::go;

/// The result of reading a path; gjson's `Result`.
#[derive(Debug, Clone, PartialEq)]
pub struct Found<'a> {
    value: Option<Cow<'a, Value>>,
}

/// The kinds of results that gjson tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `null`, or nothing there.
    Null,
    /// `false`.
    False,
    /// A number.
    Number,
    /// A string.
    String,
    /// `true`.
    True,
    /// An object or an array.
    Json,
}

impl<'a> Found<'a> {
    pub(super) fn new(value: Option<Cow<'a, Value>>) -> Self {
        Self { value }
    }

    /// Whether the path led to anything, be it `null`.
    pub fn exists(&self) -> bool {
        self.value.is_some()
    }

    /// The kind of the result.
    pub fn kind(&self) -> Kind {
        match self.value() {
            None | Some(Value::Null) => Kind::Null,
            Some(Value::Bool(false)) => Kind::False,
            Some(Value::Bool(true)) => Kind::True,
            Some(Value::Number(_)) => Kind::Number,
            Some(Value::String(_)) => Kind::String,
            Some(Value::Array(_) | Value::Object(_)) => Kind::Json,
        }
    }

    /// The value, if there is one.
    pub fn value(&self) -> Option<&Value> {
        self.value.as_deref()
    }

    /// The value itself, `null` if there is none.
    pub fn into_value(self) -> Value {
        self.value.map_or(Value::Null, Cow::into_owned)
    }

    /// The JSON of the value as Go writes it, empty if there is none.
    pub fn raw(&self) -> String {
        self.value().map(raw).unwrap_or_default()
    }

    /// The value as text: strings without quotes, numbers without exponent, objects and arrays as JSON, `null` and
    /// nothing as the empty string.
    pub fn text(&self) -> String {
        self.value().map(text).unwrap_or_default()
    }

    /// The elements of an array; a single value counts as an array of one, `null` and nothing as an empty one.
    pub fn array(&self) -> impl Iterator<Item = Found<'_>> {
        let items: &[Value] = match self.value() {
            None | Some(Value::Null) => &[],
            Some(Value::Array(items)) => items,
            Some(single) => std::slice::from_ref(single),
        };
        items.iter().map(|item| Found::new(Some(Cow::Borrowed(item))))
    }

    /// The value as an integer: `true` is 1, text is parsed, fractions are cut off, everything else is 0.
    pub fn int(&self) -> i64 {
        match self.value() {
            Some(Value::Bool(true)) => 1,
            Some(Value::Number(number)) => number.as_i64().unwrap_or_else(|| cut(number.as_f64().unwrap_or_default())),
            Some(Value::String(text)) => leading_int(text),
            _ => 0,
        }
    }

    /// The value as a float: `true` is 1, text is parsed, everything else is 0.
    pub fn float(&self) -> f64 {
        match self.value() {
            Some(Value::Bool(true)) => 1.0,
            Some(Value::Number(number)) => number.as_f64().unwrap_or_default(),
            Some(Value::String(text)) => text.parse().unwrap_or_default(),
            _ => 0.0,
        }
    }

    /// The value as a boolean: numbers other than 0 are true, text is parsed, everything else is false.
    pub fn bool(&self) -> bool {
        match self.value() {
            Some(Value::Bool(value)) => *value,
            Some(Value::Number(number)) => number.as_f64() != Some(0.0),
            Some(Value::String(text)) => parse_bool(text).unwrap_or_default(),
            _ => false,
        }
    }
}

/// JSON of a value; encoding a [`Value`] cannot fail, so there is no error to pass on.
pub(super) fn raw(value: &Value) -> String {
    go::to_string(value).unwrap_or_default()
}

/// Text of a value, see [`Found::text`].
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => number.as_f64().unwrap_or_default().to_string(),
        other => raw(other),
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

#[allow(clippy::cast_possible_truncation)] // cutting off the fraction is what is asked for
fn cut(value: f64) -> i64 {
    value as i64
}

/// Digits up to the first character that is none, as gjson reads integers from text.
fn leading_int(text: &str) -> i64 {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    if end < digits.len() {
        return 0;
    }
    text.parse().unwrap_or_default()
}
