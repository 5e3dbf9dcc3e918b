//! Protobuf request bodies of built-in kinds.
//!
//! Clients written in Go send the kinds they know as protobuf and cannot fall back to JSON. The messages are described by
//! the tables in `messages`; this module walks them.

mod messages;
mod workloads;

use data_encoding::BASE64;
use serde_json::{Map, Value, json};

use crate::status::Status;
use messages::message;
pub(super) use messages::{Field, Form};
pub(super) use workloads::named;

/// The media type of such bodies.
pub(super) const MEDIA: &str = "application/vnd.kubernetes.protobuf";

const MAGIC: &[u8] = b"k8s\0";
/// Real objects are not nested deeper; anything deeper is an attack.
const DEPTH: usize = 32;

/// Decodes an enveloped object into the JSON a client could have sent instead.
pub(super) fn decode(content: &[u8]) -> Result<Value, Status> {
    let broken = || Status::bad_request("the protobuf body is malformed");
    let envelope = content.strip_prefix(MAGIC).ok_or_else(broken)?;
    let fields = split(envelope).ok_or_else(broken)?;
    let bytes = |wanted: u64, fields: &[(u64, Wire<'_>)]| -> Vec<u8> {
        fields
            .iter()
            .rev()
            .find_map(|(number, wire)| match wire {
                Wire::Bytes(bytes) if *number == wanted => Some(bytes.to_vec()),
                _ => None,
            })
            .unwrap_or_default()
    };
    let types = bytes(1, &fields);
    let types = split(&types).ok_or_else(broken)?;
    let text = |number: u64| String::from_utf8_lossy(&bytes(number, &types)).into_owned();
    let (api_version, kind) = (text(1), text(2));
    let raw = bytes(2, &fields);
    let Some(table) = message(&api_version, &kind) else {
        return Err(Status::unsupported_media(&["application/json", "application/yaml"]));
    };
    let mut object = read(&raw, table, 0).ok_or_else(broken)?;
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    Ok(object)
}

enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Other,
}

/// The fields of one message, in the order sent.
fn split(mut bytes: &[u8]) -> Option<Vec<(u64, Wire<'_>)>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let wire = match tag & 7 {
            0 => Wire::Number(varint(&mut bytes)?),
            1 => {
                bytes = bytes.get(8..)?;
                Wire::Other
            }
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                let content = bytes.get(..length)?;
                bytes = &bytes[length..];
                Wire::Bytes(content)
            }
            5 => {
                bytes = bytes.get(4..)?;
                Wire::Other
            }
            _ => return None,
        };
        fields.push((tag >> 3, wire));
    }
    Some(fields)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn read(bytes: &[u8], table: &[Field], depth: usize) -> Option<Value> {
    if depth > DEPTH {
        return None;
    }
    let mut map = Map::new();
    for (number, wire) in split(bytes)? {
        let Some(field) = table.iter().find(|field| field.number == number) else { continue };
        let Some(value) = value(&wire, &field.form, depth)? else { continue };
        if field.zero_is_absent && (value == 0 || value == false) {
            continue;
        }
        match field.form {
            _ if field.inline => {
                if let Value::Object(inner) = value {
                    map.extend(inner);
                }
            }
            Form::Map | Form::BytesMap | Form::ListMap | Form::QuantityMap => {
                let target = map.entry(field.name).or_insert_with(|| json!({}));
                if let (Value::Object(target), Value::Object(entry)) = (target, value) {
                    target.extend(entry);
                }
            }
            _ if field.repeated => match map.entry(field.name).or_insert_with(|| json!([])) {
                Value::Array(list) => list.push(value),
                _ => return None,
            },
            _ => {
                map.insert(field.name.to_owned(), value);
            }
        }
    }
    Some(Value::Object(map))
}

/// The value of one field; the inner none means "absent".
#[allow(clippy::option_option, reason = "malformed and absent are different things")]
fn value(wire: &Wire<'_>, form: &Form, depth: usize) -> Option<Option<Value>> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    Some(match (form, wire) {
        (Form::Text, Wire::Bytes(bytes)) => Some(text(bytes)?).filter(|text| !text.is_empty()).map(Value::from),
        // Lists keep empty strings: the core API group is one.
        (Form::ItemText, Wire::Bytes(bytes)) => Some(text(bytes)?.into()),
        (Form::Number | Form::Int32, Wire::Number(number)) => Some(i64::from_ne_bytes(number.to_ne_bytes()).into()),
        (Form::Flag, Wire::Number(number)) => Some((*number != 0).into()),
        (Form::Time | Form::MicroTime, Wire::Bytes(bytes)) => time(bytes, matches!(form, Form::MicroTime))?,
        (Form::Json, Wire::Bytes(bytes)) => {
            let inner = split(bytes)?;
            let raw = inner.iter().find_map(|(number, wire)| match wire {
                Wire::Bytes(bytes) if *number == 1 => Some(*bytes),
                _ => None,
            });
            raw.map(|raw| serde_json::from_slice(raw).unwrap_or(Value::Null))
        }
        (Form::Map | Form::BytesMap | Form::ListMap | Form::QuantityMap, Wire::Bytes(bytes)) => {
            Some(entry(bytes, form)?)
        }
        (Form::Named(name), Wire::Bytes(bytes)) => Some(read(bytes, workloads::named(name)?, depth + 1)?),
        (Form::Quantity, Wire::Bytes(bytes)) => Some(quantity(bytes)?),
        (Form::IntOrText, Wire::Bytes(bytes)) => Some(int_or_text(bytes)?),
        (Form::Bytes, Wire::Bytes(bytes)) => Some(BASE64.encode(bytes).into()).filter(|_| !bytes.is_empty()),
        (Form::Unknown, _) => None,
        (Form::Message(table), Wire::Bytes(bytes)) => Some(read(bytes, table, depth + 1)?),
        _ => return None,
    })
}

fn entry(bytes: &[u8], form: &Form) -> Option<Value> {
    let (mut key, mut value) = (String::new(), Value::String(String::new()));
    for (number, wire) in split(bytes)? {
        match (number, wire, form) {
            (1, Wire::Bytes(bytes), _) => key = String::from_utf8(bytes.to_vec()).ok()?,
            (2, Wire::Bytes(bytes), Form::BytesMap) => value = BASE64.encode(bytes).into(),
            (2, Wire::Bytes(bytes), Form::QuantityMap) => value = quantity(bytes)?,
            (2, Wire::Bytes(bytes), Form::ListMap) => {
                let items = split(bytes)?.into_iter().filter_map(|(_, wire)| match wire {
                    Wire::Bytes(bytes) => String::from_utf8(bytes.to_vec()).ok(),
                    _ => None,
                });
                value = items.collect();
            }
            (2, Wire::Bytes(bytes), _) => value = String::from_utf8(bytes.to_vec()).ok()?.into(),
            _ => {}
        }
    }
    Some(json!({key: value}))
}

/// A message with the text in its first field.
fn quantity(bytes: &[u8]) -> Option<Value> {
    let mut text = String::new();
    for (number, wire) in split(bytes)? {
        if let (1, Wire::Bytes(bytes)) = (number, wire) {
            text = String::from_utf8(bytes.to_vec()).ok()?;
        }
    }
    Some(text.into())
}

/// Which of the two it is, the number, the text.
fn int_or_text(bytes: &[u8]) -> Option<Value> {
    let (mut is_text, mut int, mut text) = (false, 0_i64, String::new());
    for (number, wire) in split(bytes)? {
        match (number, wire) {
            (1, Wire::Number(kind)) => is_text = kind == 1,
            (2, Wire::Number(value)) => int = i64::from_ne_bytes(value.to_ne_bytes()),
            (3, Wire::Bytes(bytes)) => text = String::from_utf8(bytes.to_vec()).ok()?,
            _ => {}
        }
    }
    Some(if is_text { text.into() } else { int.into() })
}

#[allow(clippy::option_option, reason = "malformed and absent are different things")]
fn time(bytes: &[u8], micro: bool) -> Option<Option<Value>> {
    let (mut seconds, mut nanos) = (0_i64, 0_i32);
    let fields = split(bytes)?;
    for (number, wire) in &fields {
        match (number, wire) {
            (1, Wire::Number(value)) => seconds = i64::from_ne_bytes(value.to_ne_bytes()),
            (2, Wire::Number(value)) => nanos = i32::try_from(*value).ok()?,
            _ => {}
        }
    }
    // The zero time is sent for "unset".
    if fields.is_empty() || seconds <= 0 {
        return Some(None);
    }
    let stamp = jiff::Timestamp::new(seconds, nanos).ok()?;
    let pattern = if micro { "%Y-%m-%dT%H:%M:%S.%6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    Some(Some(stamp.strftime(pattern).to_string().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![number << 3 | 2, u8::try_from(content.len()).unwrap()];
        bytes.extend(content);
        bytes
    }

    fn envelope(kind: &str, raw: &[u8]) -> Vec<u8> {
        let types = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &types), field(2, raw)].concat()
    }

    #[test]
    fn a_secret_becomes_json() {
        let time = [8, 0x80, 0xd8, 0xcf, 0xb9, 0x6];
        let label = [field(1, b"a"), field(2, b"b")].concat();
        let meta = [field(1, b"s"), field(3, b""), field(8, &time), field(11, &label), field(14, b"x/y")].concat();
        let entry = [field(1, b"key"), field(2, &[0xff, 0])].concat();
        let raw = [field(1, &meta), field(2, &entry), field(3, b"Opaque"), field(9, b"unknown")].concat();
        assert_eq!(
            decode(&envelope("Secret", &raw)).unwrap(),
            json!({
                "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"key": "/wA="},
                "metadata": {
                    "name": "s", "labels": {"a": "b"}, "finalizers": ["x/y"], "creationTimestamp": "2024-11-13T00:00:00Z",
                },
            })
        );
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let valid = envelope("ConfigMap", &field(1, &field(1, b"name")));
        for end in 0..valid.len() {
            // A truncated body is refused or lacks its end, but never does harm.
            let _ = decode(&valid[..end]);
        }
        assert_eq!(decode(b"{}").unwrap_err().code, 400);
        assert_eq!(decode(&envelope("Nonsense", b"")).unwrap_err().code, 415);
    }
}
