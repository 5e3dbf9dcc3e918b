//! References between schemas.

/// How a document refers to one of its schemas.
pub(super) fn reference(name: &str) -> String {
    format!("#/components/schemas/{name}")
}
