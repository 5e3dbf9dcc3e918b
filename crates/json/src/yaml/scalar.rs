//! Plain scalars: what YAML 1.1 makes of an unquoted word.

use serde_json::{Number, Value};

/// A resolved scalar.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Integer(i64),
    /// Too large for the others.
    Unsigned(u64),
    Float(f64),
    Text(String),
}

/// What a plain scalar without a tag stands for.
pub(super) fn resolve(text: &str) -> Scalar {
    if let Some(known) = word(text) {
        return known;
    }
    match text.as_bytes()[0] {
        b'.' => float(text).map(Scalar::Float),
        b'+' | b'-' | b'0'..=b'9' => number(&text.replace('_', "")),
        _ => None,
    }
    .unwrap_or_else(|| Scalar::Text(text.to_owned()))
}

fn word(text: &str) -> Option<Scalar> {
    Some(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Scalar::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Scalar::Bool(false),
        "" | "~" | "null" | "Null" | "NULL" => Scalar::Null,
        ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Scalar::Float(f64::NEG_INFINITY),
        _ => return None,
    })
}

fn number(plain: &str) -> Option<Scalar> {
    let (negative, digits) = match plain.as_bytes() {
        [b'-', ..] => (true, &plain[1..]),
        [b'+', ..] => (false, &plain[1..]),
        _ => (false, plain),
    };
    if let Some(magnitude) = integer(digits) {
        if let Ok(small) = i64::try_from(magnitude) {
            return Some(Scalar::Integer(if negative { -small } else { small }));
        }
        // The smallest integer has no positive counterpart; Go reads no sign before what only fits without one.
        if negative && magnitude == i64::MIN.unsigned_abs() {
            return Some(Scalar::Integer(i64::MIN));
        }
        if plain == digits {
            return Some(Scalar::Unsigned(magnitude));
        }
    }
    let fits = |text: &str| {
        let (mantissa, exponent) = text.split_once(['e', 'E']).map_or((text, None), |(m, e)| (m, Some(e)));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let exponent = exponent.is_none_or(|exponent| {
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            !digits.is_empty() && all(digits)
        });
        all(whole) && all(fraction) && !(whole.is_empty() && fraction.is_empty()) && exponent
    };
    if fits(digits) { float(plain).map(Scalar::Float) } else { None }
}

/// Digits with Go's prefixes: `0x`, `0o`, `0b`, and a leading zero for octal numbers.
fn integer(digits: &str) -> Option<u64> {
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

fn float(text: &str) -> Option<f64> {
    let fine = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    text.parse().ok().filter(|float: &f64| fine && float.is_finite())
}

impl Scalar {
    /// As a value of JSON; fails for what JSON cannot express.
    pub(super) fn value(self) -> Result<Value, String> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(flag) => flag.into(),
            Self::Integer(number) => number.into(),
            Self::Unsigned(number) => number.into(),
            Self::Float(float) => return json_number(float),
            Self::Text(text) => text.into(),
        })
    }

    /// As a key of a JSON object; fails for null.
    pub(super) fn key(&self) -> Result<String, String> {
        Ok(match self {
            Self::Null => return Err("null cannot be the key of a map".to_owned()),
            Self::Bool(flag) => flag.to_string(),
            Self::Integer(number) => number.to_string(),
            Self::Unsigned(number) => number.to_string(),
            Self::Float(float) if float.is_nan() => ".nan".to_owned(),
            Self::Float(float) if float.is_infinite() => if *float > 0.0 { ".inf" } else { "-.inf" }.to_owned(),
            Self::Float(float) => carrick_go::float::format(*float, 'g', None),
            Self::Text(text) => text.clone(),
        })
    }

    /// As Go prints it in error messages.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Text(text) => carrick_go::quote::text(text),
            other => other.key().unwrap_or_default(),
        }
    }
}

/// Go writes whole floats without a fraction, and reads them back as integers.
fn json_number(float: f64) -> Result<Value, String> {
    if !float.is_finite() {
        return Err(format!("JSON has no number {}", Scalar::Float(float).shown()));
    }
    if float.fract() == 0.0 && float.abs() < 1e21 {
        let whole: Option<i64> = format!("{float:.0}").parse().ok();
        if let Some(whole) = whole {
            return Ok(whole.into());
        }
    }
    Ok(Number::from_f64(float).map_or(Value::Null, Value::Number))
}
