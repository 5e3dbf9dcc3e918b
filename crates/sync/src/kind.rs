//! Kinds of objects.

/// One API kind on one side.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ApiKind {
    /// API group, empty for core.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Plural resource name.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

impl ApiKind {
    /// `group/version`, or the version alone for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `<plural>.<group>`.
    pub fn resource(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }
}
