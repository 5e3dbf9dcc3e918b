//! JSON to CEL values and back.

use std::collections::HashMap;
use std::sync::Arc;

use cel::Value as Cel;
use cel::objects::{Key, Map};
use serde_json::{Number, Value};

use crate::expression::EvalError;

/// What numbers without fraction become.
#[derive(Debug, Clone, Copy, PartialEq)]
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
            _ => Cel::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(|item| to_cel(item, integers)).collect())),
        Value::Object(map) => {
            let entries: HashMap<Key, Cel> =
                map.iter().map(|(key, value)| (Key::String(Arc::new(key.clone())), to_cel(value, integers))).collect();
            Cel::Map(Map { map: Arc::new(entries) })
        }
    }
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
        Cel::UInt(value) => (*value).into(),
        Cel::Float(value) => double(*value)?,
        Cel::String(text) => text.as_str().into(),
        Cel::Bytes(bytes) => data_encoding::BASE64.encode(bytes).into(),
        Cel::Timestamp(time) => {
            let time = time.to_utc();
            let nanos = fraction(u64::from(time.timestamp_subsec_nanos()), 9);
            format!("{}{nanos}Z", time.format("%Y-%m-%dT%H:%M:%S")).into()
        }
        Cel::Duration(duration) => {
            go_duration(duration.num_nanoseconds().ok_or(EvalError::NotJson("duration of more than 292 years"))?).into()
        }
        Cel::List(items) => Value::Array(items.iter().map(to_json).collect::<Result<_, _>>()?),
        Cel::Map(map) => {
            let entries = map.map.iter().map(|(key, value)| Ok((key.to_string(), to_json(value)?)));
            Value::Object(entries.collect::<Result<_, EvalError>>()?)
        }
        Cel::Opaque(_) => return Err(EvalError::NotJson("optional")),
        Cel::Struct(_) => return Err(EvalError::NotJson("message")),
        Cel::Function(..) => return Err(EvalError::NotJson("function")),
    })
}

/// Whole doubles become integers: that is how Go writes them, and how everyone reads them back.
fn double(value: f64) -> Result<Value, EvalError> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // exact below 2^53
    if value.fract() == 0.0 && value.abs() <= EXACT as f64 {
        return Ok((value as i64).into());
    }
    Number::from_f64(value).map(Value::Number).ok_or(EvalError::NotJson("double that is infinite or not a number"))
}

/// A duration as Go prints it: `1h30m0s`, `1.5s`, `20ms`.
fn go_duration(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let size = nanos.unsigned_abs();
    let small =
        |unit: u64, digits: usize, name: &str| format!("{sign}{}{}{name}", size / unit, fraction(size % unit, digits));
    match size {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{size}ns"),
        1_000..1_000_000 => small(1_000, 3, "µs"),
        1_000_000..1_000_000_000 => small(1_000_000, 6, "ms"),
        _ => {
            let seconds = size / 1_000_000_000;
            let tail = format!("{}{}s", seconds % 60, fraction(size % 1_000_000_000, 9));
            match (seconds / 3600, seconds / 60 % 60) {
                (0, 0) => format!("{sign}{tail}"),
                (0, minutes) => format!("{sign}{minutes}m{tail}"),
                (hours, minutes) => format!("{sign}{hours}h{minutes}m{tail}"),
            }
        }
    }
}

/// `.5` for 500 of 3 digits; nothing for 0.
fn fraction(value: u64, digits: usize) -> String {
    if value == 0 { String::new() } else { format!(".{value:0digits$}").trim_end_matches('0').to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_print_as_go_prints_them() {
        for (nanos, want) in [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1µs"),
            (2_200_000, "2.2ms"),
            (1_500_000_000, "1.5s"),
            (60_000_000_000, "1m0s"),
            (5_400_000_000_000, "1h30m0s"),
            (3_600_000_000_000, "1h0m0s"),
            (-90_000_000_000, "-1m30s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(go_duration(nanos), want);
        }
    }
}
