//! One write: what is stored, what a writer expects, what changed.

use std::sync::Arc;

use serde_json::Value;

use super::key::Key;
use super::object::Object;

/// An object as it is worked with, in its storage version.
#[derive(Debug, Clone)]
pub struct Stored {
    /// Revision of the last write to this object.
    pub revision: u64,
    /// The object; `metadata.resourceVersion` equals `revision`.
    pub object: Arc<Value>,
}

/// One write.
#[derive(Debug)]
pub struct Change {
    /// Revision this write took.
    pub revision: u64,
    /// The object written.
    pub key: Key,
    /// State before, none for a creation.
    pub before: Option<Object>,
    /// State after, none for a deletion.
    pub after: Option<Object>,
}

impl Change {
    /// State before, unpacked.
    pub fn old(&self) -> Option<Arc<Value>> {
        self.before.as_ref().map(Object::value)
    }

    /// State after, unpacked.
    pub fn now(&self) -> Option<Arc<Value>> {
        self.after.as_ref().map(Object::value)
    }
}

/// The state that a writer expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// The object does not exist.
    Absent,
    /// The object exists at this revision.
    Revision(u64),
    /// Anything goes.
    Any,
}

/// The revision written in an object's metadata.
pub fn revision_of(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}
