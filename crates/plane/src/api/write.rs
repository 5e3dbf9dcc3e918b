//! What a write is asked to do, and its response.

use serde_json::Value;

/// How strictly unknown fields are treated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drop them silently.
    Ignore,
    /// Drop them and warn.
    #[default]
    Warn,
    /// Refuse the request.
    Strict,
}

/// Options of writes.
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// Do everything but store.
    pub dry_run: bool,
    /// Name in `managedFields`.
    pub manager: String,
    /// Unknown fields.
    pub validation: FieldValidation,
    /// Take ownership in conflicts of server-side apply.
    pub force: bool,
    /// Fields that occur twice in the body, found while decoding.
    pub duplicates: Vec<String>,
    /// What a strict YAML reader says about the body.
    pub strict: Option<String>,
    /// The body itself if it is YAML, for errors that show it.
    pub yaml: Option<String>,
    /// The options as they were sent, for webhooks and policies.
    pub sent: Value,
    /// Name in `managedFields` where a virtual workspace took the write, which then forwarded it under its own name.
    pub forwarded: Option<String>,
}

/// The response to a write.
#[derive(Debug, Clone)]
pub struct Written {
    /// 200 or 201.
    pub code: u16,
    /// The object as stored, in the version of the request, or a Status for a finished deletion.
    pub object: Value,
    /// Texts for `Warning` headers.
    pub warnings: Vec<String>,
}
