//! Lenient conversions to numbers: what cannot be converted is zero.

use crate::{literal, value::Value};

/// To an integer.
pub(super) fn int(value: &Value) -> i64 {
    match value {
        Value::Int(i) | Value::Int64(i) => *i,
        Value::Uint(_, u) => u.cast_signed(),
        Value::Float(f) => truncated(*f),
        Value::Bool(b) => i64::from(*b),
        Value::Str(text) => parse_int(without_zero_decimals(&text.text())).unwrap_or(0),
        _ => 0,
    }
}

/// Cuts the fraction off. What does not fit becomes the smallest integer, as in Go on most machines.
#[expect(clippy::cast_possible_truncation, reason = "what does not fit was sorted out")]
fn truncated(float: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&float) { float as i64 } else { i64::MIN }
}

/// To a float.
pub(super) fn float(value: &Value) -> f64 {
    match value {
        #[expect(clippy::cast_precision_loss, reason = "Go rounds as well")]
        Value::Int(i) | Value::Int64(i) => *i as f64,
        #[expect(clippy::cast_precision_loss, reason = "Go rounds as well")]
        Value::Uint(_, u) => *u as f64,
        Value::Float(f) => *f,
        Value::Bool(b) => f64::from(u8::from(*b)),
        Value::Str(text) => carrick_go::float::parse(&text.text()).unwrap_or(0.0),
        _ => 0.0,
    }
}

/// `1.00` is 1.
fn without_zero_decimals(text: &str) -> &str {
    match text.rsplit_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|b| b == b'0') => whole,
        _ => text,
    }
}

/// `strconv.ParseInt` with the base that the prefix says.
fn parse_int(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let magnitude = literal::unsigned(digits)?;
    if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}
