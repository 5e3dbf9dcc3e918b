//! Protobuf for built-in kinds: clients written in Go send and expect it.
//!
//! ```text
//!  request ─▶ envelope ─▶ read ──▶ JSON, as a client could have sent it ─▶ everything else
//!                           │
//!                         table   what Kubernetes' own types say about every field
//!                           │
//!  answer ◀─ envelope ◀── write ◀─ JSON, as it is stored
//! ```
//!
//! Nothing else in the plane knows about it, and requests in JSON never come here. It is public for tests that play such a client.

mod read;
mod table;
mod wire;
mod write;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub(crate) use table::{Count, Field, Form, Message, kind, named};
pub use wire::WireError;
use wire::{Fields, put_bytes, put_message};

/// The media type of such bodies.
pub const MEDIA: &str = "application/vnd.kubernetes.protobuf";

/// The media type of watches: messages with their lengths.
pub(crate) const STREAM: &str = "application/vnd.kubernetes.protobuf;stream=watch";

const MAGIC: &[u8] = b"k8s\0";

/// Why a body cannot be read, in the words of the real server.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// There is no body.
    #[error("empty data")]
    Empty,
    /// The body is something else.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Prefix,
    /// The body ends after its first four bytes.
    #[error("empty body")]
    Envelope,
    /// The body starts as it should, but is damaged.
    #[error("{0}")]
    Damaged(WireError),
    /// The object in the body is damaged.
    #[error("{error}")]
    Object {
        /// What the envelope says.
        api_version: String,
        /// What the envelope says.
        kind: String,
        /// What is wrong.
        error: WireError,
    },
    /// The object is of a kind that only has JSON, or of none.
    #[error("no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:110\"")]
    Unknown {
        /// What the envelope says.
        api_version: String,
        /// What the envelope says.
        kind: String,
    },
}

impl ReadError {
    /// API version and kind, as far as the body tells.
    pub(super) fn types(&self) -> Option<(&str, &str)> {
        match self {
            Self::Object { api_version, kind, .. } | Self::Unknown { api_version, kind } => Some((api_version, kind)),
            _ => None,
        }
    }
}

/// What a body says about itself, and the message in it.
struct Envelope<'a> {
    api_version: String,
    kind: String,
    raw: &'a [u8],
}

fn open(content: &[u8]) -> Result<Envelope<'_>, ReadError> {
    if content.is_empty() {
        return Err(ReadError::Empty);
    }
    let content = content.strip_prefix(MAGIC).ok_or(ReadError::Prefix)?;
    if content.is_empty() {
        return Err(ReadError::Envelope);
    }
    inside(content).map_err(ReadError::Damaged)
}

fn inside(content: &[u8]) -> Result<Envelope<'_>, WireError> {
    let (mut types, mut raw): (&[u8], &[u8]) = (&[], &[]);
    for part in Fields(content) {
        match part? {
            (1, wire) => types = wire.bytes()?,
            (2, wire) => raw = wire.bytes()?,
            _ => {}
        }
    }
    let (mut api_version, mut kind) = (String::new(), String::new());
    for part in Fields(types) {
        let (number, wire) = part?;
        match number {
            1 => api_version = String::from_utf8_lossy(wire.bytes()?).into_owned(),
            2 => kind = String::from_utf8_lossy(wire.bytes()?).into_owned(),
            _ => {}
        }
    }
    Ok(Envelope { api_version, kind, raw })
}

/// Decodes an object, however deep, as long as the stack is large enough.
///
/// # Errors
///
/// If it is not in protobuf, damaged, or of a kind that only has JSON.
pub fn decode(content: &[u8]) -> Result<Value, ReadError> {
    decode_as(content, ("", ""), usize::MAX)
}

/// Decodes an object into the JSON a client could have sent instead; `default` is the API version and kind of an object that names none,
/// and `levels` is how deep it may nest.
pub(crate) fn decode_as(content: &[u8], default: (&str, &str), levels: usize) -> Result<Value, ReadError> {
    let Envelope { mut api_version, mut kind, raw } = open(content)?;
    if api_version.is_empty() {
        default.0.clone_into(&mut api_version);
    }
    if kind.is_empty() {
        default.1.clone_into(&mut kind);
    }
    let Some(message) = table::kind(&api_version, &kind) else {
        return Err(ReadError::Unknown { api_version, kind });
    };
    match read::message(raw, message, levels) {
        Ok(mut object) => {
            object.insert("apiVersion".into(), api_version.into());
            object.insert("kind".into(), kind.into());
            Ok(object.into())
        }
        Err(error) => Err(ReadError::Object { api_version, kind, error }),
    }
}

/// Why a body cannot be read, if it cannot.
pub(crate) fn fault(content: &[u8]) -> Option<String> {
    open(content).err().map(|error| error.to_string())
}

/// Whether a kind has a message.
pub(crate) fn is_known(api_version: &str, kind: &str) -> bool {
    table::kind(api_version, kind).is_some()
}

/// The name of the object in a body; empty if there is none.
pub(crate) fn name(content: &[u8]) -> String {
    let first = |bytes| {
        let field = Fields(bytes).filter_map(Result::ok).find(|(number, _)| *number == 1);
        field.and_then(|(_, wire)| wire.bytes().ok()).unwrap_or_default()
    };
    // Metadata comes first in every object, and the name comes first in it.
    let raw = open(content).map(|envelope| envelope.raw).unwrap_or_default();
    String::from_utf8_lossy(first(first(raw))).into_owned()
}

/// Encodes an object, a list, a Status or a document of discovery, if its kind is a built-in one.
pub fn encode(object: &Value) -> Option<Vec<u8>> {
    let (api_version, kind) = types(object)?;
    let message = table::kind(api_version, kind)?;
    let map = object.as_object()?;
    Some(envelope(api_version, kind, |out| write::message(out, map, message)))
}

/// Encodes a list whose items come one by one.
pub(crate) fn encode_list(
    api_version: &str,
    kind: &str,
    metadata: &Value,
    items: impl Iterator<Item = Value>,
) -> Option<Vec<u8>> {
    let list = table::kind(api_version, kind)?;
    let Form::Message(item) = list.field(ITEMS)?.form else { return None };
    let head = Map::from_iter([("metadata".to_owned(), metadata.clone())]);
    Some(envelope(api_version, kind, |out| {
        write::message(out, &head, list);
        for object in items {
            if let Value::Object(map) = object {
                put_message(out, ITEMS, |out| write::message(out, &map, item.get()));
            }
        }
    }))
}

/// The field of the items in every list; it is the last one.
const ITEMS: u64 = 2;

/// Encodes one event of a watch, with its length before it.
pub(crate) fn encode_event(kind: &str, object: &Value) -> Option<Vec<u8>> {
    let object = encode(object)?;
    let mut frame = vec![0; 4];
    put_bytes(&mut frame, 1, kind.as_bytes());
    put_message(&mut frame, 2, |out| put_bytes(out, 1, &object));
    let length = u32::try_from(frame.len() - 4).ok()?.to_be_bytes();
    frame[..4].copy_from_slice(&length);
    Some(frame)
}

/// Takes one event off the start of a watch: its kind and its object; none if it is not there yet.
///
/// # Errors
///
/// If it cannot be read.
pub fn take_event(stream: &mut Vec<u8>) -> Result<Option<(String, Value)>, ReadError> {
    let Some(length) = stream.first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes) as usize) else {
        return Ok(None);
    };
    if stream.len() < 4 + length {
        return Ok(None);
    }
    let frame: Vec<u8> = stream.drain(..4 + length).skip(4).collect();
    let (mut kind, mut object): (String, &[u8]) = (String::new(), &[]);
    for part in Fields(&frame) {
        match part.map_err(ReadError::Damaged)? {
            (1, wire) => {
                kind = String::from_utf8_lossy(wire.bytes().map_err(ReadError::Damaged)?).into_owned();
            }
            (2, wire) => {
                let inner = wire.bytes().and_then(|bytes| read::first(bytes)).map_err(ReadError::Damaged)?;
                object = inner.map_or(Ok(&[][..]), wire::Wire::bytes).map_err(ReadError::Damaged)?;
            }
            _ => {}
        }
    }
    Ok(Some((kind, decode(object)?)))
}

fn types(object: &Value) -> Option<(&str, &str)> {
    let api_version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    Some((api_version, object.get("kind")?.as_str()?))
}

fn envelope(api_version: &str, kind: &str, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    put_message(&mut out, 1, |out| {
        put_bytes(out, 1, api_version.as_bytes());
        put_bytes(out, 2, kind.as_bytes());
    });
    put_message(&mut out, 2, write);
    // Encoding and media type of the content.
    put_bytes(&mut out, 3, b"");
    put_bytes(&mut out, 4, b"");
    out
}
