//! Request bodies: size limit, JSON, YAML and protobuf, duplicate fields.

use std::fmt;

use bytes::Bytes;
use carrick_json::yaml::Document;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::depth::{MAX_DEPTH, deepest};
use crate::protobuf::{self, ReadError};
use crate::status::Status;

/// The body of a request, or why it could not be read.
pub(super) type BodyResult = Result<Bytes, Status>;

/// Reads a whole body, or refuses it when it is longer than the limit.
pub(super) async fn read(body: Incoming, limit: usize) -> BodyResult {
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Status::too_large(limit)),
        Err(error) => Err(Status::bad_request(format!("the request body could not be read: {error}"))),
    }
}

/// The name of the object in a body of JSON or protobuf; empty if there is none.
pub(super) fn name(content: &[u8], media: &str) -> String {
    #[derive(Default, serde::Deserialize)]
    struct Metadata {
        #[serde(default)]
        name: String,
    }
    #[derive(serde::Deserialize)]
    struct Object {
        #[serde(default)]
        metadata: Metadata,
    }
    if media == protobuf::MEDIA {
        return protobuf::name(content);
    }
    let mut reader = serde_json::Deserializer::from_slice(content);
    // Skipped values use no stack.
    reader.disable_recursion_limit();
    <Object as serde::Deserialize>::deserialize(&mut reader).map(|object| object.metadata.name).unwrap_or_default()
}

/// A decoded body and the paths of fields that occurred twice.
pub(super) struct Decoded {
    pub(super) value: Value,
    pub(super) duplicates: Vec<String>,
    /// What a strict YAML reader says about it.
    pub(super) strict: Option<String>,
    /// The body itself, if it is YAML.
    pub(super) yaml: Option<String>,
}

/// Decodes JSON, YAML or protobuf; the media type is without parameters, and the object may leave out its API version and kind.
pub(super) fn decode(content: &[u8], media: &str, api_version: &str, kind: &str) -> Result<Decoded, Status> {
    let unreadable =
        |error: &str| unrecognized(content, kind, &format!("couldn't get version/kind; json parse error: {error}"));
    let (mut duplicates, mut strict, mut text) = (Vec::new(), None, None);
    let value = match media {
        protobuf::MEDIA => protobuf::decode_as(content, (api_version, kind), deepest() / 2)
            .map_err(|error| undecoded(&error, content, kind))?,
        "application/yaml" => {
            let document = yaml(content).map_err(|why| unrecognized(content, kind, &why))?;
            strict = document.strict_error();
            text = Some(String::from_utf8_lossy(content).into_owned());
            document.value
        }
        _ => json(content, &mut duplicates).map_err(|why| unreadable(&why))?,
    };
    Ok(Decoded { value, duplicates, strict, yaml: text })
}

/// Decodes YAML as the API server does.
pub(super) fn yaml(content: &[u8]) -> Result<Document, String> {
    let text = std::str::from_utf8(content).map_err(|error| error.to_string())?;
    if text.chars().any(is_control) {
        return Err("yaml: control characters are not allowed".to_owned());
    }
    carrick_json::yaml::read_nested(text, deepest()).map_err(|error| {
        let message = unclosed(&error.message, text).unwrap_or(&error.message);
        format!("yaml: line {}: {message}", error.line)
    })
}

/// What Go's YAML reader refuses, wherever it is and whatever surrounds it.
fn is_control(character: char) -> bool {
    let allowed = matches!(character, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}');
    !allowed && u32::from(character) < 0x1_0000
}

/// What a reader of YAML has against a text that is JSON as well; `value` is what it says.
pub(super) fn check_as_yaml(content: &[u8], value: &Value) -> Result<(), String> {
    if String::from_utf8_lossy(content).chars().any(is_control) {
        return Err("yaml: control characters are not allowed".to_owned());
    }
    if has_long_key(value) {
        return Err("yaml: did not find expected ',' or '}'".to_owned());
    }
    Ok(())
}

/// Whether something has a key that must be marked as one.
fn has_long_key(value: &Value) -> bool {
    /// With its quotes.
    const LONGEST: usize = 1024;
    match value {
        Value::Object(map) => map.iter().any(|(key, value)| key.chars().count() + 2 > LONGEST || has_long_key(value)),
        Value::Array(list) => list.iter().any(has_long_key),
        _ => false,
    }
}

/// What Go's reader says about a list or a map without an end.
fn unclosed<'a>(message: &str, text: &str) -> Option<&'a str> {
    let open = message.strip_prefix("unclosed bracket '")?.chars().next()?;
    Some(match open {
        _ if text.trim_end().ends_with([open, ',']) => "did not find expected node content",
        '[' => "did not find expected ',' or ']'",
        _ => "did not find expected ',' or '}'",
    })
}

fn undecoded(error: &ReadError, content: &[u8], kind: &str) -> Status {
    let Some((api_version, sent)) = error.types() else { return unrecognized(content, kind, &error.to_string()) };
    let version = api_version.rsplit('/').next().unwrap_or_default();
    Status::bad_request(format!("{sent} in version {version:?} cannot be handled as a {kind}: {error}"))
}

fn unrecognized(content: &[u8], kind: &str, why: &str) -> Status {
    let dump = dump(content);
    Status::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {why} ({dump})"))
}

/// The error of Go's decoder for a text that is not JSON.
pub(super) fn json_fault(content: &[u8]) -> Option<String> {
    carrick_go::json::fault(content, MAX_DEPTH)
}

/// The first bytes of a text, as they are appended to error messages.
fn dump(content: &[u8]) -> String {
    if content.is_empty() {
        return "<empty>".to_owned();
    }
    let start = &content[..content.len().min(30)];
    // A text that looks like an object is shown as it is.
    let shown = match std::str::from_utf8(start) {
        Ok(text) if text.starts_with('{') => text.to_owned(),
        _ => data_encoding::HEXLOWER.encode(start),
    };
    if content.len() > 30 { format!("{shown} ...") } else { shown }
}

/// Decodes JSON and records duplicate fields, or returns what is wrong with it.
pub(super) fn json(content: &[u8], duplicates: &mut Vec<String>) -> Result<Value, String> {
    if carrick_json::depth(content) > deepest() {
        return Err("exceeded max depth".to_owned());
    }
    let reported = |error: serde_json::Error| json_fault(content).unwrap_or_else(|| error.to_string());
    let mut reader = serde_json::Deserializer::from_slice(content);
    // It was validated above.
    reader.disable_recursion_limit();
    let value = Node { path: "", duplicates }.deserialize(&mut reader).map_err(reported)?;
    reader.end().map_err(reported)?;
    Ok(value)
}

/// Builds a value like `serde_json` does, and records duplicate keys.
struct Node<'a> {
    path: &'a str,
    duplicates: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let path = format!("{}[{}]", self.path, items.len());
            let below = Node { path: &path, duplicates: &mut *self.duplicates };
            match list.next_element_seed(below)? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let path = if self.path.is_empty() { key.clone() } else { format!("{}.{key}", self.path) };
            if self.duplicates.len() > 100 {
                return Err(A::Error::custom("too many duplicate fields"));
            }
            if map.contains_key(&key) {
                self.duplicates.push(path.clone());
            }
            let below = Node { path: &path, duplicates: &mut *self.duplicates };
            let value = entries.next_value_seed(below)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_fields_are_found_at_any_depth() {
        let text = br#"{"a":1,"spec":{"x":1,"x":2,"list":[{"k":1,"k":2}]},"a":2}"#;
        let decoded = decode(text, "application/json", "example.io/v1", "Widget").unwrap();
        assert_eq!(decoded.duplicates, ["spec.x", "spec.list[0].k", "a"]);
        assert_eq!(decoded.value["spec"]["x"], 2);
    }

    #[test]
    fn what_nests_deep_is_read_and_what_nests_deeper_is_refused_as_by_go() {
        let nested = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
        let read = move || {
            let decoded =
                decode(nested(MAX_DEPTH).as_bytes(), "application/json", "example.io/v1", "Widget").ok().unwrap();
            assert_eq!(decoded.value.to_string(), nested(MAX_DEPTH));
            let refused =
                decode(nested(MAX_DEPTH + 1).as_bytes(), "application/json", "example.io/v1", "Widget").err().unwrap();
            assert!(refused.code == 400 && refused.message.contains("exceeded max depth"), "{}", refused.message);
        };
        std::thread::Builder::new().stack_size(carrick_json::STACK).spawn(read).unwrap().join().unwrap();
    }

    #[test]
    fn yaml_without_an_end_is_refused_in_the_words_of_go() {
        for (text, why) in [
            ("a: [", "yaml: line 1: did not find expected node content"),
            ("a: {", "yaml: line 1: did not find expected node content"),
            ("a: [1", "yaml: line 1: did not find expected ',' or ']'"),
            ("a: {b: 1", "yaml: line 1: did not find expected ',' or '}'"),
        ] {
            assert_eq!(yaml(text.as_bytes()).unwrap_err(), why, "{text}");
        }
    }

    #[test]
    fn text_that_is_not_json_is_refused() {
        for text in ["{", "", "nope", "{} {}"] {
            assert_eq!(
                decode(text.as_bytes(), "application/json", "example.io/v1", "Widget").err().unwrap().code,
                400,
                "{text}"
            );
        }
    }
}
