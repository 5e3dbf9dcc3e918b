//! The three encodings in which every sequence is played.

use carrick_plane::protobuf;
use hyper::body::Bytes;
use serde_json::Value;

use super::request::Request;

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";

/// How requests and answers are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// As generated.
    Json,
    /// Whatever would be JSON is YAML.
    Yaml,
    /// Whatever would be JSON is protobuf, if it is of a built-in kind.
    Protobuf,
}

impl Encoding {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Json, Self::Yaml, Self::Protobuf];

    /// A sequence in this encoding.
    pub fn of(self, mut sequence: Vec<Request>) -> Vec<Request> {
        for request in &mut sequence {
            self.encode(request);
        }
        sequence
    }

    fn encode(self, request: &mut Request) {
        let (media, accept) = match self {
            Self::Json => (JSON, JSON),
            Self::Yaml => (YAML, YAML),
            Self::Protobuf => (protobuf::MEDIA, "application/vnd.kubernetes.protobuf,application/json"),
        };
        if request.media == JSON {
            request.media = media;
        }
        if request.accept == JSON {
            request.accept = accept;
        }
        if let Some(between) = &mut request.between {
            self.encode(between);
        }
    }
}

/// A body of JSON in the encoding that its media type names, and that media type; what has no such form stays JSON.
pub fn body(media: &str, json: Bytes) -> (&str, Bytes) {
    let encoded = match (media, serde_json::from_slice::<Value>(&json)) {
        (YAML, Ok(value)) => serde_saphyr::to_string(&value).ok().map(Bytes::from),
        (protobuf::MEDIA, Ok(value)) => protobuf::encode(&value).map(Bytes::from),
        _ => None,
    };
    match (encoded, media) {
        (Some(encoded), _) => (media, encoded),
        (None, YAML | protobuf::MEDIA) => (JSON, json),
        (None, _) => (media, json),
    }
}

/// An answer as JSON, as far as it can be read.
pub fn answer(content: &str, body: Bytes) -> Bytes {
    let mut value = match content {
        YAML => std::str::from_utf8(&body).ok().and_then(|text| serde_saphyr::from_str::<Value>(text).ok()),
        protobuf::MEDIA => protobuf::decode(&body).ok(),
        _ => None,
    };
    // In protobuf no items are none, which looks different from a list whose only item does not count.
    if let Some(items) = value.as_mut().and_then(|value| value.get_mut("items")).filter(|items| items.is_null()) {
        *items = Value::Array(Vec::new());
    }
    value.map_or(body, |value| value.to_string().into())
}
