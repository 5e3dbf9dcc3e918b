//! Typed views of the kcp objects the agent reads and writes, v1alpha1.
//!
//! Only fields with a meaning for the agent are typed. Whoever writes an object back edits the JSON it read, so that nothing it
//! does not know is lost.

use serde::{Deserialize, Serialize};

/// `spec` of an APIExport.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApiExportSpec {
    /// Names of the APIResourceSchemas that consumers get.
    pub latest_resource_schemas: Vec<String>,
    /// What the provider asks to see in consumers' workspaces.
    pub permission_claims: Vec<PermissionClaim>,
}

/// One permission claim of an APIExport.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PermissionClaim {
    /// API group, empty for core.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Plural resource name.
    pub resource: String,
    /// Whether all objects are claimed.
    #[serde(skip_serializing_if = "is_false")]
    pub all: bool,
    /// Identity of the foreign export that owns the resource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub identity_hash: String,
    /// Selectors, kept as they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_selector: Vec<serde_json::Value>,
}

/// `spec.export` of an APIExportEndpointSlice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExportReference {
    /// Workspace path or cluster name; empty means the slice's own workspace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Name of the APIExport.
    pub name: String,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature serde asks for
fn is_false(value: &bool) -> bool {
    !*value
}

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
