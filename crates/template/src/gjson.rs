//! gjson results: what a path of a mutation led to.

use carrick_go::float;
use serde_json::Value as Json;

/// Reads a gjson path below a value, for `.Value.Get "path"`; none if nothing is there.
pub type Get = fn(&Json, &str) -> Option<Json>;

/// A gjson `Result`.
pub(crate) struct Found {
    /// None if the path led to nothing.
    pub(crate) json: Option<Json>,
    pub(crate) get: Get,
}

/// A gjson `Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null = 0,
    False = 1,
    Number = 2,
    String = 3,
    True = 4,
    Json = 5,
}

impl Kind {
    /// The type with a number.
    pub(crate) fn of(number: i64) -> Option<Kind> {
        use Kind::{False, Json, Null, Number, String, True};
        [Null, False, Number, String, True, Json].into_iter().find(|kind| *kind as i64 == number)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Null => "Null",
            Kind::False => "False",
            Kind::Number => "Number",
            Kind::String => "String",
            Kind::True => "True",
            Kind::Json => "JSON",
        }
    }
}

impl Found {
    pub(crate) fn new(json: Option<Json>, get: Get) -> Found {
        Found { json, get }
    }

    /// The result of a path that led to nothing.
    pub(crate) fn nothing() -> Found {
        Found { json: None, get: |_, _| None }
    }

    pub(crate) fn kind(&self) -> Kind {
        match &self.json {
            None | Some(Json::Null) => Kind::Null,
            Some(Json::Bool(false)) => Kind::False,
            Some(Json::Bool(true)) => Kind::True,
            Some(Json::Number(_)) => Kind::Number,
            Some(Json::String(_)) => Kind::String,
            Some(Json::Array(_) | Json::Object(_)) => Kind::Json,
        }
    }

    pub(crate) fn exists(&self) -> bool {
        self.json.is_some()
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(self.json, Some(Json::Object(_)))
    }

    pub(crate) fn is_array(&self) -> bool {
        matches!(self.json, Some(Json::Array(_)))
    }

    /// The number that it is, else 0.
    pub(crate) fn num(&self) -> f64 {
        match &self.json {
            Some(Json::Number(number)) => number.as_f64().unwrap_or_default(),
            _ => 0.0,
        }
    }

    pub(crate) fn bool(&self) -> bool {
        match &self.json {
            Some(Json::Bool(b)) => *b,
            Some(Json::Number(_)) => self.num() != 0.0,
            Some(Json::String(text)) => matches!(text.to_lowercase().as_str(), "1" | "t" | "true"),
            _ => false,
        }
    }

    pub(crate) fn int(&self) -> i64 {
        match &self.json {
            Some(Json::Bool(b)) => i64::from(*b),
            Some(Json::String(text)) => match text.strip_prefix('-') {
                Some(digits) => digits_of(digits).unwrap_or(0).cast_signed().wrapping_neg(),
                None => digits_of(text).unwrap_or(0).cast_signed(),
            },
            Some(Json::Number(number)) => number.as_i64().unwrap_or_else(|| truncated(self.num())),
            _ => 0,
        }
    }

    pub(crate) fn uint(&self) -> u64 {
        match &self.json {
            Some(Json::String(text)) => digits_of(text).unwrap_or(0),
            _ => self.int().cast_unsigned(),
        }
    }

    pub(crate) fn float(&self) -> f64 {
        match &self.json {
            Some(Json::Bool(b)) => f64::from(u8::from(*b)),
            Some(Json::String(text)) => text.parse().unwrap_or(0.0),
            _ => self.num(),
        }
    }
}

/// A number of decimal digits only; what is too large wraps, as it does in gjson.
fn digits_of(text: &str) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.bytes().try_fold(0_u64, |number, byte| {
        byte.is_ascii_digit().then(|| number.wrapping_mul(10).wrapping_add(u64::from(byte - b'0')))
    })
}

/// A float as integer. Larger ones are written with digits only up to 1e21, and are then read as such.
#[expect(clippy::cast_possible_truncation, reason = "fractions are cut off")]
fn truncated(number: f64) -> i64 {
    const LARGEST_EXACT: f64 = 9_007_199_254_740_991.0;
    if number.abs() <= LARGEST_EXACT {
        return number as i64;
    }
    let text = float::json(number);
    match text.strip_prefix('-') {
        Some(digits) => digits_of(digits).map(|n| n.cast_signed().wrapping_neg()),
        None => digits_of(&text).map(u64::cast_signed),
    }
    .unwrap_or(i64::MIN)
}
