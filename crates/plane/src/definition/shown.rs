//! Values of a CRD as error messages show them: all fields of a type, with the names they have in Kubernetes' Go code.

use serde_json::Value;

use super::decode::empty;
use super::fields::{FieldPresence, Kind, PROPS, Record};

/// A record with all its fields.
pub(super) fn record(value: &Value, record: &Record) -> String {
    let fields = record.fields.iter().map(|field| {
        let shown = match value.get(field.key) {
            Some(found) => any(found, field.kind),
            None if field.need == FieldPresence::Given => "null".to_owned(),
            None => any(&empty(field.kind), field.kind),
        };
        format!("{:?}:{shown}", field.shown)
    });
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

/// A list of records.
pub(super) fn list<'a>(values: impl Iterator<Item = &'a Value>, kind: &Record) -> String {
    format!("[{}]", values.map(|value| record(value, kind)).collect::<Vec<_>>().join(","))
}

/// A value as Go writes JSON, in which some letters are escaped.
pub(super) fn plain(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// A value as error messages show it: strings are quoted as by Go's `%q`, everything else is JSON.
pub(super) fn value(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        other => plain(other),
    }
}

/// A string in quotes; characters that cannot be printed are escaped.
pub(super) fn quoted(text: &str) -> String {
    let mut shown = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => shown.push_str("\\\""),
            '\\' => shown.push_str("\\\\"),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            '\u{7}' => shown.push_str("\\a"),
            '\u{8}' => shown.push_str("\\b"),
            '\u{c}' => shown.push_str("\\f"),
            '\u{b}' => shown.push_str("\\v"),
            letter if letter.is_control() => {
                let number = u32::from(letter);
                shown.extend([if number < 128 { format!("\\x{number:02x}") } else { format!("\\u{number:04x}") }]);
            }
            letter => shown.push(letter),
        }
    }
    shown.push('"');
    shown
}

/// `items` as error messages show it.
pub(super) fn items(value: &Value) -> String {
    any(value, Kind::SchemaOrList)
}

fn any(found: &Value, kind: Kind) -> String {
    let of_schema = |value: &Value| if value.is_object() { record(value, &PROPS) } else { "null".to_owned() };
    match (kind, found) {
        (Kind::Record(kind), found) => record(found, kind),
        (Kind::Schema, found) => record(found, &PROPS),
        (Kind::List(kind), Value::Array(found)) => {
            format!("[{}]", found.iter().map(|item| any(item, *kind)).collect::<Vec<_>>().join(","))
        }
        (Kind::Map(kind), Value::Object(found)) => {
            let entries =
                found.iter().map(|(key, item)| format!("{}:{}", plain(&key.as_str().into()), any(item, *kind)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
        }
        (Kind::SchemaOrFlag, found) => {
            format!("{{\"Allows\":{},\"Schema\":{}}}", *found != Value::Bool(false), of_schema(found))
        }
        (Kind::SchemaOrList | Kind::SchemaOrTexts, found) => {
            let (name, kind) = match kind {
                Kind::SchemaOrList => ("JSONSchemas", Kind::List(&Kind::Schema)),
                _ => ("Property", Kind::List(&Kind::Text)),
            };
            let list = match found.as_array() {
                Some(list) if !list.is_empty() => any(found, kind),
                _ => "null".to_owned(),
            };
            format!("{{\"Schema\":{},{name:?}:{list}}}", of_schema(found))
        }
        (_, found) => plain(found),
    }
}
