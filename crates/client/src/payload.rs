//! What requests send, and what they accept as an answer.

use bytes::Bytes;
use serde_json::Value;

/// The media type of JSON.
pub(crate) const JSON: &str = "application/json";

/// How much of objects is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// All of them.
    Whole,
    /// Their metadata; all of them where a server cannot send it alone.
    Metadata,
}

impl Form {
    /// What to accept as an answer about one object, or as the events of a watch.
    pub(crate) fn of_objects(self) -> &'static str {
        match self {
            Self::Whole => JSON,
            Self::Metadata => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
        }
    }

    /// What to accept as a list.
    pub(crate) fn of_lists(self) -> &'static str {
        match self {
            Self::Whole => JSON,
            Self::Metadata => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
        }
    }
}

/// What can be sent as the body of a request.
pub(crate) trait Payload: Sync {
    /// The JSON text.
    fn to_json(&self) -> Result<Bytes, serde_json::Error>;
}

impl Payload for Value {
    fn to_json(&self) -> Result<Bytes, serde_json::Error> {
        serde_json::to_vec(self).map(Bytes::from)
    }
}

/// JSON that was written already.
pub(crate) struct Text(pub(crate) Bytes);

impl Payload for Text {
    fn to_json(&self) -> Result<Bytes, serde_json::Error> {
        Ok(self.0.clone())
    }
}
