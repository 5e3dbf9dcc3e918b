//! Conversions between types.

use carrick_go::{duration, float};

use crate::budget::Budget;
use crate::error::{EvalError, failed};
use crate::signature::Row;
use crate::value::time::{self, Time};
use crate::value::{Outcome, Value, overload};

pub(crate) const ROWS: &[Row] = &[
    ("bool(bool): bool\nbool(string): bool", to_bool),
    ("bytes(bytes): bytes\nbytes(string): bytes", to_bytes),
    ("double(double): double\ndouble(int): double\ndouble(uint): double\ndouble(string): double", to_double),
    (
        "int(int): int
         int(uint): int
         int(double): int
         int(string): int
         int(duration): int
         int(timestamp): int",
        to_int,
    ),
    ("uint(uint): uint\nuint(int): uint\nuint(double): uint\nuint(string): uint", to_uint),
    ("duration(duration): duration\nduration(string): duration", to_duration),
    ("timestamp(timestamp): timestamp\ntimestamp(int): timestamp\ntimestamp(string): timestamp", to_timestamp),
    (
        "string(string): string
         string(bool): string
         string(bytes): string
         string(double): string
         string(duration): string
         string(int): string
         string(timestamp): string
         string(uint): string",
        to_string,
    ),
];

fn to_bool(arguments: &[Value], _: &Budget) -> Outcome {
    match arguments {
        [Value::Bool(value)] => Ok(Value::Bool(*value)),
        [Value::String(text)] => match text.as_ref() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => Err(failed("bool")),
        },
        _ => Err(overload("bool", arguments)),
    }
}

fn to_bytes(arguments: &[Value], budget: &Budget) -> Outcome {
    match arguments {
        [Value::String(text)] => {
            budget.bytes(text.len())?;
            Ok(Value::Bytes(text.as_bytes().into()))
        }
        [bytes @ Value::Bytes(_)] => Ok(bytes.clone()),
        _ => Err(overload("bytes", arguments)),
    }
}

#[allow(clippy::cast_precision_loss)] // that is what the conversion does
fn to_double(arguments: &[Value], budget: &Budget) -> Outcome {
    Ok(Value::Double(match arguments {
        [Value::Double(value)] => *value,
        [Value::Int(value)] => *value as f64,
        [Value::Uint(value)] => *value as f64,
        [Value::String(text)] => {
            budget.bytes(text.len())?;
            float::parse(text).map_err(|_| failed("double"))?
        }
        _ => return Err(overload("double", arguments)),
    }))
}

#[allow(clippy::cast_possible_truncation)] // the range is checked
fn to_int(arguments: &[Value], _: &Budget) -> Outcome {
    const EDGE: f64 = 9_223_372_036_854_775_808.0;
    let value = match arguments {
        [Value::Int(value)] => Some(*value),
        [Value::Uint(value)] => i64::try_from(*value).ok(),
        [Value::Double(value)] => (*value > -EDGE && *value < EDGE).then_some(*value as i64),
        [Value::String(text)] => return text.parse().map(Value::Int).map_err(|_| failed("int")),
        [Value::Duration(nanos)] => Some(*nanos),
        [Value::Timestamp(time)] => Some(time.nanos.div_euclid(1_000_000_000) as i64),
        _ => return Err(overload("int", arguments)),
    };
    value.map(Value::Int).ok_or(EvalError::Overflow)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // the range is checked
fn to_uint(arguments: &[Value], _: &Budget) -> Outcome {
    const EDGE: f64 = 18_446_744_073_709_551_616.0;
    let value = match arguments {
        [Value::Uint(value)] => Some(*value),
        [Value::Int(value)] => u64::try_from(*value).ok(),
        [Value::Double(value)] => (*value >= 0.0 && *value < EDGE).then_some(*value as u64),
        [Value::String(text)] if text.starts_with('+') => return Err(failed("uint")),
        [Value::String(text)] => return text.parse().map(Value::Uint).map_err(|_| failed("uint")),
        _ => return Err(overload("uint", arguments)),
    };
    value.map(Value::Uint).ok_or(EvalError::Overflow)
}

fn to_duration(arguments: &[Value], _: &Budget) -> Outcome {
    match arguments {
        [duration @ Value::Duration(_)] => Ok(duration.clone()),
        [Value::String(text)] => duration::parse(text).map(Value::Duration).ok_or_else(|| failed("duration")),
        _ => Err(overload("duration", arguments)),
    }
}

fn to_timestamp(arguments: &[Value], _: &Budget) -> Outcome {
    match arguments {
        [time @ Value::Timestamp(_)] => Ok(time.clone()),
        [Value::Int(seconds)] => {
            Time::utc(i128::from(*seconds) * 1_000_000_000).map(Value::Timestamp).ok_or(EvalError::Overflow)
        }
        [Value::String(text)] => time::parse_timestamp(text).map(Value::Timestamp).ok_or_else(|| failed("timestamp")),
        _ => Err(overload("timestamp", arguments)),
    }
}

fn to_string(arguments: &[Value], budget: &Budget) -> Outcome {
    let [value] = arguments else { return Err(overload("string", arguments)) };
    text(value, budget)?.map(Value::string).ok_or_else(|| overload("string", arguments))
}

/// The text that `string()` gives for a value; none for types that have no text.
pub(crate) fn text(value: &Value, budget: &Budget) -> Result<Option<String>, EvalError> {
    Ok(Some(match value {
        Value::String(text) => {
            budget.bytes(text.len())?;
            text.to_string()
        }
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => float::format(*value, 'g', None),
        Value::Duration(nanos) => duration::format_seconds(*nanos),
        Value::Timestamp(time) => time.text(),
        Value::Bytes(bytes) => {
            budget.bytes(bytes.len())?;
            String::from_utf8(bytes.to_vec()).map_err(|_| failed("string"))?
        }
        Value::Type(name) => name.to_string(),
        _ => return Ok(None),
    }))
}
