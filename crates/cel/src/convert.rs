//! JSON to CEL values and back.

use carrick_go::duration;
use serde_json::{Number, Value};

use crate::error::EvalError;
use crate::value::key::Key;
use crate::value::{Map, Value as Cel};

/// What numbers without fraction become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Integers {
    /// `int`, as they are written.
    Kept,
    /// `double`, as Go decodes them from JSON.
    Doubles,
}

/// The largest integer up to which all are exact as doubles.
const EXACT: i64 = 1 << 53;

/// A CEL value for a JSON value.
pub(crate) fn to_cel(json: &Value, integers: Integers) -> Cel {
    match json {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(value) if integers == Integers::Kept => Cel::Int(value),
            _ => Cel::Double(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Cel::string(text.as_str()),
        Value::Array(items) => Cel::list(items.iter().map(|item| to_cel(item, integers)).collect()),
        Value::Object(map) => Cel::map(entries(map.iter().map(|(key, value)| (key, to_cel(value, integers))))),
    }
}

/// A map with text as keys.
pub(crate) fn entries<'a>(pairs: impl Iterator<Item = (&'a String, Cel)>) -> Map {
    pairs.map(|(key, value)| (Key::String(key.as_str().into()), value)).collect()
}

/// Whether all integers in the value keep their digits as doubles.
pub(crate) fn exact_as_doubles(json: &Value) -> bool {
    match json {
        Value::Number(number) => match number.as_i64() {
            Some(value) => (-EXACT..=EXACT).contains(&value),
            None => number.is_f64(),
        },
        Value::Array(items) => items.iter().all(exact_as_doubles),
        Value::Object(map) => map.values().all(exact_as_doubles),
        _ => true,
    }
}

/// The JSON of a CEL value.
pub(crate) fn to_json(value: &Cel) -> Result<Value, EvalError> {
    Ok(match value {
        Cel::Null => Value::Null,
        Cel::Bool(value) => Value::Bool(*value),
        Cel::Int(value) => (*value).into(),
        Cel::Uint(value) => (*value).into(),
        Cel::Double(value) => double(*value)?,
        Cel::String(text) => (&**text).into(),
        Cel::Bytes(bytes) => data_encoding::BASE64.encode(bytes).into(),
        Cel::Timestamp(time) => time.text().into(),
        Cel::Duration(nanos) => duration::format(*nanos).into(),
        Cel::Type(name) => (&**name).into(),
        Cel::List(list) => Value::Array(list.items.iter().map(to_json).collect::<Result<_, _>>()?),
        Cel::Map(map) => {
            let entries = map.iter().map(|(key, value)| Ok((key.text(), to_json(value)?)));
            Value::Object(entries.collect::<Result<_, EvalError>>()?)
        }
        Cel::Pattern(pattern) => pattern.as_str().into(),
        _ => return Err(EvalError::NotJson("value of a library")),
    })
}

/// Whole doubles become integers: that is how Go writes them, with the fewest digits that tell them apart and then
/// zeros, and how everyone reads them back.
fn double(value: f64) -> Result<Value, EvalError> {
    if value.fract() == 0.0 {
        let digits = format!("{value}");
        if let Ok(whole) = digits.parse::<i64>() {
            return Ok(whole.into());
        }
        if let Ok(whole) = digits.parse::<u64>() {
            return Ok(whole.into());
        }
    }
    Number::from_f64(value).map(Value::Number).ok_or(EvalError::NotJson("double that is infinite or not a number"))
}
