//! What can be claimed at all.

/// A kind whose objects can be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claimable {
    /// API group, empty for core.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural name.
    pub resource: &'static str,
}

const fn core(kind: &'static str, resource: &'static str) -> Claimable {
    Claimable { group: "", version: "v1", kind, resource }
}

/// Every kind whose objects can be claimed. All of them live in namespaces.
pub const CLAIMABLE: [Claimable; 3] =
    [core("ConfigMap", "configmaps"), core("Secret", "secrets"), core("ServiceAccount", "serviceaccounts")];

pub(super) fn find(group: &str, resource: &str) -> Option<Claimable> {
    CLAIMABLE.into_iter().find(|api| api.group == group && api.resource == resource)
}

pub(super) fn list() -> String {
    CLAIMABLE.map(|api| api.resource).join(", ")
}
