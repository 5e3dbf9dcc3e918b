//! From messages to the JSON that a client written in Go could have sent instead.

use data_encoding::BASE64;
use serde_json::{Map, Value};

use super::table::{self, Count, Field, Form, Message};
use super::wire::{Fields, Wire, WireError, varint};

/// Reads a message; `levels` says how deep messages may nest.
pub(super) fn message(bytes: &[u8], message: &Message, levels: usize) -> Result<Map<String, Value>, WireError> {
    let levels = levels.checked_sub(1).ok_or(WireError::Depth)?;
    let mut map = Map::new();
    for part in Fields(bytes) {
        let (number, wire) = part?;
        // The real server drops what it does not know, too.
        let Some(field) = message.field(number) else { continue };
        match field.count {
            Count::One => {
                let value = one(wire, field.form, levels)?;
                match value {
                    Value::Object(inner) if field.inline => map.extend(inner),
                    value => _ = map.insert(field.name.to_owned(), value),
                }
            }
            Count::Many => {
                if let Value::Array(list) = map.entry(field.name).or_insert_with(|| Value::Array(Vec::new())) {
                    items(list, wire, field.form, levels)?;
                }
            }
            Count::Map => {
                let (key, value) = entry(wire.bytes()?, field, levels)?;
                if let Value::Object(values) = map.entry(field.name).or_insert_with(|| Value::Object(Map::new())) {
                    values.insert(key, value);
                }
            }
        }
    }
    tidy(&mut map, message);
    Ok(map)
}

/// Adds what JSON shows even if it is empty, and removes other empty values that protobuf always has.
fn tidy(map: &mut Map<String, Value>, message: &Message) {
    for field in &message.fields {
        if let (true, Form::Message(inner)) = (field.inline, field.form) {
            tidy(map, inner.get());
        } else if field.shown {
            map.entry(field.name).or_insert_with(|| empty(field));
        } else if !field.optional && field.count == Count::One && map.get(field.name).is_some_and(is_empty) {
            map.remove(field.name);
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// What Go shows for a field that was not set.
fn empty(field: &Field) -> Value {
    if field.optional || field.count != Count::One {
        return Value::Null;
    }
    match field.form {
        Form::Text => "".into(),
        Form::Int32 | Form::Int64 | Form::Double | Form::IntOrText => 0.into(),
        Form::Flag | Form::SchemaOrFlag => false.into(),
        Form::Quantity => "0".into(),
        Form::Message(inner) => {
            let mut map = Map::new();
            tidy(&mut map, inner.get());
            map.into()
        }
        _ => Value::Null,
    }
}

/// One value, or several numbers in one field.
fn items(list: &mut Vec<Value>, wire: Wire<'_>, form: Form, levels: usize) -> Result<(), WireError> {
    if let (Form::Int32 | Form::Int64 | Form::Flag, Wire::Bytes(mut packed)) = (form, wire) {
        while !packed.is_empty() {
            list.push(one(Wire::Number(varint(&mut packed)?), form, levels)?);
        }
        return Ok(());
    }
    list.push(one(wire, form, levels)?);
    Ok(())
}

fn entry(bytes: &[u8], field: &Field, levels: usize) -> Result<(String, Value), WireError> {
    let (mut key, mut value) = (String::new(), None);
    for part in Fields(bytes) {
        match part? {
            (1, wire) => key = text(wire)?,
            (2, wire) => value = Some(one(wire, field.form, levels)?),
            _ => {}
        }
    }
    let unset = || match field.form {
        Form::Bytes | Form::Text => Ok("".into()),
        form => one(Wire::Bytes(&[]), form, levels),
    };
    Ok((key, value.map_or_else(unset, Ok)?))
}

fn text(wire: Wire<'_>) -> Result<String, WireError> {
    // Go's texts may hold any bytes, and its JSON encoder replaces those that are none.
    Ok(String::from_utf8_lossy(wire.bytes()?).into_owned())
}

/// A signed number, which has the bits of an unsigned one.
fn signed(wire: Wire<'_>) -> Result<i64, WireError> {
    Ok(wire.number()?.cast_signed())
}

fn int32(wire: Wire<'_>) -> Result<i32, WireError> {
    let [a, b, c, d, ..] = wire.number()?.to_le_bytes();
    Ok(i32::from_le_bytes([a, b, c, d]))
}

fn one(wire: Wire<'_>, form: Form, levels: usize) -> Result<Value, WireError> {
    Ok(match form {
        Form::Text => text(wire)?.into(),
        Form::Int64 => signed(wire)?.into(),
        Form::Int32 => int32(wire)?.into(),
        Form::Flag => (wire.number()? != 0).into(),
        Form::Double => match wire {
            Wire::Eight(bytes) => double(f64::from_le_bytes(bytes))?,
            other => return Err(other.wrong()),
        },
        Form::Bytes => BASE64.encode(wire.bytes()?).into(),
        Form::Time | Form::MicroTime => time(wire.bytes()?, form)?,
        Form::Quantity => first(wire.bytes()?)?.map_or(Ok("0".to_owned()), |wire| text(wire))?.into(),
        Form::IntOrText => int_or_text(wire.bytes()?)?,
        Form::Json => match first(wire.bytes()?)? {
            Some(raw) => json(raw.bytes()?)?,
            None => Value::Null,
        },
        Form::Texts => {
            let wires = Fields(wire.bytes()?).map(|part| text(part?.1).map(Value::from));
            Value::Array(wires.collect::<Result<_, _>>()?)
        }
        Form::SchemaOrSchemas | Form::SchemaOrFlag | Form::SchemaOrTexts => schema(wire.bytes()?, form, levels)?,
        Form::Message(inner) => message(wire.bytes()?, inner.get(), levels)?.into(),
    })
}

/// The last value of a message's first field.
pub(super) fn first(bytes: &[u8]) -> Result<Option<Wire<'_>>, WireError> {
    let mut found = None;
    for part in Fields(bytes) {
        if let (1, wire) = part? {
            found = Some(wire);
        }
    }
    Ok(found)
}

/// A number as Go writes it: without a fraction if it has none.
fn double(value: f64) -> Result<Value, WireError> {
    /// Up to here every whole number has a form of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        #[allow(clippy::cast_possible_truncation, reason = "it is a whole number in range")]
        return Ok((value as i64).into());
    }
    serde_json::Number::from_f64(value).map(Value::Number).ok_or(WireError::Value)
}

fn json(raw: &[u8]) -> Result<Value, WireError> {
    if raw.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(raw).map_err(|_| WireError::Value)
}

/// Which of the two it is, the number, the text.
fn int_or_text(bytes: &[u8]) -> Result<Value, WireError> {
    let (mut is_text, mut int, mut string) = (false, 0, String::new());
    for part in Fields(bytes) {
        match part? {
            (1, kind) => is_text = kind.number()? == 1,
            (2, value) => int = int32(value)?,
            (3, value) => string = text(value)?,
            _ => {}
        }
    }
    Ok(if is_text { string.into() } else { int.into() })
}

/// A time, or null for the zero time.
fn time(bytes: &[u8], form: Form) -> Result<Value, WireError> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0_i64, 0_i32);
    for part in Fields(bytes) {
        match part? {
            (1, value) => seconds = signed(value)?,
            (2, value) => nanos = int32(value)?,
            _ => {}
        }
    }
    let micro = form == Form::MicroTime;
    let stamp = jiff::Timestamp::new(seconds, if micro { nanos } else { 0 }).map_err(|_| WireError::Value)?;
    let pattern = if micro { "%Y-%m-%dT%H:%M:%S.%6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    Ok(stamp.strftime(pattern).to_string().into())
}

/// A schema or what stands for one.
fn schema(bytes: &[u8], form: Form, levels: usize) -> Result<Value, WireError> {
    let table = table::schema().ok_or(WireError::Value)?;
    let (mut whole, mut flag, mut list) = (None, false, Vec::<Value>::new());
    for part in Fields(bytes) {
        let (number, wire) = part?;
        match (form, number) {
            (Form::SchemaOrFlag, 1) => flag = wire.number()? != 0,
            (Form::SchemaOrFlag, 2) | (_, 1) => whole = Some(message(wire.bytes()?, table, levels)?),
            (Form::SchemaOrTexts, 2) => list.push(text(wire)?.into()),
            (Form::SchemaOrSchemas, 2) => list.push(message(wire.bytes()?, table, levels)?.into()),
            _ => {}
        }
    }
    Ok(match whole {
        _ if !list.is_empty() => list.into(),
        Some(schema) => schema.into(),
        None if form == Form::SchemaOrFlag => flag.into(),
        None => Value::Null,
    })
}
