//! Objects at rest: JSON text, a tenth of what a tree of values takes.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde_json::Value;

/// An object at rest, in its storage version. Cheap to copy; `value` unfolds it.
#[derive(Debug, Clone)]
pub struct Object(Arc<Packed>);

#[derive(Debug)]
struct Packed {
    revision: u64,
    /// Without `metadata.resourceVersion`, which is put in when the object is unfolded.
    text: Box<str>,
    /// Shared while anybody holds it.
    unfolded: Mutex<Weak<Value>>,
}

impl Object {
    pub(super) fn new(revision: u64, text: Box<str>) -> Self {
        Self(Arc::new(Packed { revision, text, unfolded: Mutex::default() }))
    }

    /// Revision of the last write to this object.
    pub fn revision(&self) -> u64 {
        self.0.revision
    }

    /// The object; its `metadata.resourceVersion` is `revision`.
    pub fn value(&self) -> Arc<Value> {
        let mut unfolded = self.0.unfolded.lock();
        if let Some(value) = unfolded.upgrade() {
            return value;
        }
        // The text was written from a value.
        let value = unfold(self.0.text.as_bytes()).unwrap_or_default();
        let value = Arc::new(at_revision(value, self.0.revision));
        *unfolded = Arc::downgrade(&value);
        value
    }

    /// The value this was made from, so that it need not be unfolded soon.
    pub(super) fn share(&self, value: &Arc<Value>) {
        *self.0.unfolded.lock() = Arc::downgrade(value);
    }

    pub(super) fn text(&self) -> &str {
        &self.0.text
    }
}

/// Reads what was once accepted, however deep it is.
pub(super) fn unfold<'a, T: serde::Deserialize<'a>>(text: &'a [u8]) -> serde_json::Result<T> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    reader.disable_recursion_limit();
    let value = T::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// The text of an object without its revision. Keys are in order, so equal objects have equal texts.
pub(super) fn pack(object: &mut Value) -> Box<str> {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("resourceVersion");
    }
    object.to_string().into()
}

pub(super) fn at_revision(mut object: Value, revision: u64) -> Value {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.insert("resourceVersion".to_owned(), revision.to_string().into());
    }
    object
}

/// So much text is kept unfolded; as values that is about ten times as much.
const KEPT: usize = 2 * 1024 * 1024;

/// What was written or read last, unfolded: the same few objects are asked for again and again.
#[derive(Debug, Default)]
pub(super) struct Recent {
    values: VecDeque<(usize, Arc<Value>)>,
    bytes: usize,
}

impl Recent {
    pub(super) fn keep(&mut self, bytes: usize, value: Arc<Value>) {
        self.bytes += bytes;
        self.values.push_back((bytes, value));
        while self.bytes > KEPT && self.values.len() > 1 {
            let Some((bytes, _)) = self.values.pop_front() else { return };
            self.bytes -= bytes;
        }
    }
}
