//! From stored JSON to messages, as Kubernetes' Go types write them: whatever can be unset is left out if it is, everything else is
//! always there.

use data_encoding::BASE64;
use serde_json::{Map, Value};

use super::table::{self, Count, Form, Message};
use super::wire::{put_bytes, put_eight, put_message, put_number};

/// Appends the fields of a message.
pub(super) fn message(out: &mut Vec<u8>, map: &Map<String, Value>, message: &Message) {
    for field in &message.fields {
        if let (true, Form::Message(inner)) = (field.inline, field.form) {
            put_message(out, field.number, |out| self::message(out, map, inner.get()));
            continue;
        }
        let value = map.get(field.name).filter(|value| !value.is_null());
        match (field.count, value) {
            (Count::One, None) if field.optional || matches!(field.form, Form::Bytes | Form::Texts) => {}
            (Count::One, value) => one(out, field.number, field.form, value),
            (Count::Many, value) => {
                for item in value.and_then(Value::as_array).into_iter().flatten() {
                    one(out, field.number, field.form, Some(item).filter(|item| !item.is_null()));
                }
            }
            (Count::Map, value) => {
                for (key, item) in value.and_then(Value::as_object).into_iter().flatten() {
                    put_message(out, field.number, |out| {
                        put_bytes(out, 1, key.as_bytes());
                        one(out, 2, field.form, Some(item).filter(|item| !item.is_null()));
                    });
                }
            }
        }
    }
}

/// Appends one value; what is absent or does not fit is written as empty.
fn one(out: &mut Vec<u8>, number: u64, form: Form, value: Option<&Value>) {
    let text = || value.and_then(Value::as_str);
    match form {
        Form::Text => put_bytes(out, number, text().unwrap_or_default().as_bytes()),
        Form::Int32 | Form::Int64 => put_number(out, number, int(value).cast_unsigned()),
        Form::Flag => put_number(out, number, u64::from(value == Some(&Value::Bool(true)))),
        Form::Double => {
            let double = value.and_then(Value::as_f64).unwrap_or_default();
            put_eight(out, number, double.to_le_bytes());
        }
        Form::Bytes => {
            let bytes = BASE64.decode(text().unwrap_or_default().as_bytes());
            put_bytes(out, number, &bytes.unwrap_or_default());
        }
        Form::Time | Form::MicroTime => put_message(out, number, |out| {
            if let Some(stamp) = text().and_then(|text| text.parse().ok()).filter(|stamp| !is_zero(*stamp)) {
                time(out, stamp, form);
            }
        }),
        Form::Quantity => put_message(out, number, |out| match value {
            Some(Value::String(text)) => put_bytes(out, 1, text.as_bytes()),
            Some(other @ Value::Number(_)) => put_bytes(out, 1, other.to_string().as_bytes()),
            _ => put_bytes(out, 1, b"0"),
        }),
        Form::IntOrText => put_message(out, number, |out| {
            put_number(out, 1, u64::from(text().is_some()));
            put_number(out, 2, int(value).cast_unsigned());
            put_bytes(out, 3, text().unwrap_or_default().as_bytes());
        }),
        Form::Json => put_message(out, number, |out| {
            if let Some(value) = value {
                put_bytes(out, 1, value.to_string().as_bytes());
            }
        }),
        Form::Texts => put_message(out, number, |out| texts(out, 1, value)),
        Form::SchemaOrSchemas | Form::SchemaOrFlag | Form::SchemaOrTexts => {
            put_message(out, number, |out| schema(out, form, value));
        }
        Form::Message(inner) => {
            let nothing = Map::new();
            let map = value.and_then(Value::as_object).unwrap_or(&nothing);
            put_message(out, number, |out| message(out, map, inner.get()));
        }
    }
}

fn int(value: Option<&Value>) -> i64 {
    value.and_then(Value::as_i64).unwrap_or_default()
}

fn texts(out: &mut Vec<u8>, number: u64, value: Option<&Value>) {
    for item in value.and_then(Value::as_array).into_iter().flatten() {
        put_bytes(out, number, item.as_str().unwrap_or_default().as_bytes());
    }
}

/// Go's zero time stands for none.
fn is_zero(stamp: jiff::Timestamp) -> bool {
    const YEAR_ONE: i64 = -62_135_596_800;
    stamp.as_second() == YEAR_ONE && stamp.subsec_nanosecond() == 0
}

fn time(out: &mut Vec<u8>, stamp: jiff::Timestamp, form: Form) {
    // Fractions count upwards, also before 1970.
    let nanos = i64::from(stamp.subsec_nanosecond());
    let (seconds, nanos) =
        if nanos < 0 { (stamp.as_second() - 1, nanos + 1_000_000_000) } else { (stamp.as_second(), nanos) };
    let nanos = if form == Form::MicroTime { nanos - nanos % 1_000 } else { 0 };
    put_number(out, 1, seconds.cast_unsigned());
    put_number(out, 2, nanos.cast_unsigned());
}

/// A schema or what stands for one.
fn schema(out: &mut Vec<u8>, form: Form, value: Option<&Value>) {
    let Some(table) = table::schema() else { return };
    let flag = form == Form::SchemaOrFlag;
    let whole = |out: &mut Vec<u8>, number: u64, value: &Value| {
        if let Some(map) = value.as_object() {
            put_message(out, number, |out| message(out, map, table));
        }
    };
    match value {
        Some(schema @ Value::Object(_)) if flag => {
            put_number(out, 1, 1);
            whole(out, 2, schema);
        }
        Some(schema @ Value::Object(_)) => whole(out, 1, schema),
        Some(Value::Array(list)) if form == Form::SchemaOrSchemas => {
            for schema in list {
                whole(out, 2, schema);
            }
        }
        Some(list @ Value::Array(_)) if !flag => texts(out, 2, Some(list)),
        other if flag => put_number(out, 1, u64::from(other == Some(&Value::Bool(true)))),
        _ => {}
    }
}
