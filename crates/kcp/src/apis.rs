//! The group `apis.kcp.io`: what providers export and consumers bind.
//!
//! APIExport and APIBinding have two versions, of which [`v1alpha2`] is the stored one; kcp converts between them, see
//! [`convert`](crate::convert). Everything else has only [`v1alpha1`].

mod common;
pub mod v1alpha1;
pub mod v1alpha2;

pub use common::{
    ApiExportStatus, BindingPhase, BindingReference, BoundApiResource, BoundApiResourceSchema, ClaimState,
    ExportReference, Identity, LocalPolicy, MaximalPermissionPolicy, SecretReference, VirtualWorkspace,
};

/// Splits a schema name into version, resource and group at its first two dots.
pub fn split_schema_name(name: &str) -> Option<(&str, &str, &str)> {
    let (version, rest) = name.split_once('.')?;
    let (resource, group) = rest.split_once('.')?;
    (!version.is_empty() && !resource.is_empty()).then_some((version, resource, group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_names_split_at_their_first_two_dots() {
        assert_eq!(split_schema_name("v1.widgets.a.example.io"), Some(("v1", "widgets", "a.example.io")));
        assert_eq!(split_schema_name("v1.widgets"), None);
    }
}
