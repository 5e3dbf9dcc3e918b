//! Packed objects: JSON text, which takes a tenth of the memory of a tree of values.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde_json::Value;

/// A packed object, in its storage version. Cheap to clone; `value` unpacks it.
#[derive(Debug, Clone)]
pub struct Object(Arc<Packed>);

#[derive(Debug)]
struct Packed {
    revision: u64,
    /// Unlike the revision, this number is never given to another object.
    serial: u64,
    /// Without `metadata.resourceVersion`, which is added when the object is unpacked.
    text: Box<str>,
    /// Shared while anybody holds it.
    unpacked: Mutex<Weak<Value>>,
}

impl Object {
    pub(super) fn new(revision: u64, text: Box<str>) -> Self {
        static SERIAL: AtomicU64 = AtomicU64::new(1);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        Self(Arc::new(Packed { revision, serial, text, unpacked: Mutex::default() }))
    }

    /// Says which state this is, also across restores, after which revisions are given out a second time.
    pub(crate) fn serial(&self) -> u64 {
        self.0.serial
    }

    /// Revision of the last write to this object.
    pub fn revision(&self) -> u64 {
        self.0.revision
    }

    /// The object; its `metadata.resourceVersion` is `revision`.
    pub fn value(&self) -> Arc<Value> {
        let mut unpacked = self.0.unpacked.lock();
        if let Some(value) = unpacked.upgrade() {
            return value;
        }
        // The text was written from a value.
        let value = unpack(self.0.text.as_bytes()).unwrap_or_default();
        let value = Arc::new(at_revision(value, self.0.revision));
        *unpacked = Arc::downgrade(&value);
        value
    }

    /// Whether the text has a field of this name anywhere, or a text that looks like one. Much cheaper than unpacking the object.
    pub(crate) fn mentions(&self, field: &str) -> bool {
        // With the quote behind it, which makes the search faster and the answer more often right.
        self.0.text.match_indices(field).any(|(at, _)| self.0.text.as_bytes().get(at + field.len()) == Some(&b'"'))
    }

    /// Keeps the value this was made from, so that it need not be unpacked soon.
    pub(super) fn share(&self, value: &Arc<Value>) {
        *self.0.unpacked.lock() = Arc::downgrade(value);
    }

    /// Packs an object that is not stored like this.
    pub(crate) fn packed(revision: u64, mut value: Value) -> Self {
        let text = pack(&mut value);
        Self::new(revision, text)
    }

    /// The JSON text, without the revision.
    pub(crate) fn text(&self) -> &str {
        &self.0.text
    }
}

/// Parses what was once accepted, however deep it is.
pub(super) fn unpack<'a, T: serde::Deserialize<'a>>(text: &'a [u8]) -> serde_json::Result<T> {
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
    TEXT.with_borrow_mut(|text| {
        text.clear();
        // Values always become JSON, and JSON is UTF-8.
        let written = serde_json::to_writer(&mut *text, object);
        let packed = written.ok().and_then(|()| std::str::from_utf8(text).ok()).map(Box::from);
        text.shrink_to(TEXT_KEPT);
        packed.unwrap_or_else(|| object.to_string().into())
    })
}

/// How much of the buffer below stays allocated.
const TEXT_KEPT: usize = 64 * 1024;

thread_local! {
    /// Texts are written here first, so that each is allocated once and in its size.
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

pub(super) fn at_revision(mut object: Value, revision: u64) -> Value {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.insert("resourceVersion".to_owned(), revision.to_string().into());
    }
    object
}

/// How many bytes of text are cached unpacked; as values they take about ten times as much.
const KEPT: usize = 2 * 1024 * 1024;

/// A cache of unpacked objects that were written or read last, because the same few objects are requested again and again.
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
