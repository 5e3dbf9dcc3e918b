//! Why a schema cannot be used.

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct SchemaError {
    /// Path inside the schema, such as `openAPIV3Schema.properties[spec].type`.
    pub field: String,
    /// What is wrong there, as Kubernetes words it.
    pub message: String,
    /// `FieldValueRequired` and so on.
    pub reason: &'static str,
}
