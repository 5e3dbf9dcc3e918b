//! YAML as Kubernetes' Go programs read it: YAML 1.1 scalars (`0444` is 292, `yes` is true), turned into JSON.
//!
//! ```text
//!   text ──▶ events (granit-parser) ──▶ builder ──▶ value, and the keys that occurred twice
//!                                         └─▶ scalar   0444, yes, ~, 1_000, .5
//! ```
//!
//! kubectl and API servers read YAML with go-yaml version 2 behind `sigs.k8s.io/yaml`. Whoever reads the same files with another reader
//! stores something else, silently.
//!
//! ```
//! use carrick_json::yaml;
//!
//! let read = yaml::read("mode: 0444\non: yes\n").unwrap();
//! assert_eq!(read.value, serde_json::json!({"mode": 292, "true": true}));
//! ```
//!
//! Deviations from Go, each on purpose: the grammar is that of YAML 1.2, which has the escape `\/`; documents nest
//! [`DEEPEST`] levels unless told otherwise, Go's 10 000; error messages are our own.

mod builder;
mod document;
mod lenient;
mod scalar;

use serde_json::Value;

pub use document::{Document, Duplicate, YamlError};

/// How deep a document may nest, unless told otherwise.
pub const DEEPEST: usize = 200;

/// Reads the first document of a text, as Go does; an empty text is null.
pub fn read(text: &str) -> Result<Document, YamlError> {
    read_nested(text, DEEPEST)
}

/// The same with another limit for nesting, for callers that know how much stack they have.
pub fn read_nested(text: &str, deepest: usize) -> Result<Document, YamlError> {
    lenient::read(text, |text| {
        let first = builder::documents(text, deepest).next();
        first.unwrap_or_else(|| Ok(Document::default()))
    })
}

/// Reads all documents of a text; documents that are empty are null.
pub fn read_all(text: &str) -> Result<Vec<Document>, YamlError> {
    lenient::read(text, |text| builder::documents(text, DEEPEST).collect())
}

/// The values of all documents of a text.
pub fn values(text: &str) -> Result<Vec<Value>, YamlError> {
    Ok(read_all(text)?.into_iter().map(|document| document.value).collect())
}

/// The value of the first document of a text.
pub fn value(text: &str) -> Result<Value, YamlError> {
    Ok(read(text)?.value)
}

#[cfg(test)]
mod tests;
