//! The schema of a kind as it was written, for OpenAPI: text takes a tenth of the memory of a tree of values, and is seldom read.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// A schema as JSON text, shared by everything that serves it.
#[derive(Clone, Default)]
pub struct SchemaText {
    text: Option<Arc<str>>,
    digest: [u8; 32],
}

impl SchemaText {
    /// A schema; whatever is no object counts as no schema.
    pub fn new(schema: &Value) -> Self {
        if !schema.is_object() {
            return Self::default();
        }
        let text = schema.to_string();
        let digest = Sha256::digest(text.as_bytes()).into();
        Self { text: Some(text.into()), digest }
    }

    /// The JSON text, if there is a schema.
    pub fn get(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The schema as a value, if there is one.
    pub(crate) fn value(&self) -> Option<Value> {
        let mut reader = serde_json::Deserializer::from_str(self.get()?);
        // It was written from a value.
        reader.disable_recursion_limit();
        serde::Deserialize::deserialize(&mut reader).ok()
    }

    /// The text itself, to be shared.
    pub(super) fn shared(&self) -> Option<&Arc<str>> {
        self.text.as_ref()
    }

    /// The same with a text that is equal, but kept elsewhere already.
    pub(super) fn with(&self, text: Arc<str>) -> Self {
        Self { text: Some(text), digest: self.digest }
    }

    /// A hash of the text, so that nobody needs to read it to see whether it has changed.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }
}

impl fmt::Debug for SchemaText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of schema", self.get().map_or(0, str::len))
    }
}
