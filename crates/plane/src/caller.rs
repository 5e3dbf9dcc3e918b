//! Who makes a request.

use std::collections::BTreeMap;

/// The attribute that holds the logical cluster of a service account, in kcp.
pub(crate) const ACCOUNT_CLUSTER: &str = "authentication.kcp.io/cluster-name";

/// Who makes a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// User name.
    pub user: String,
    /// User id, may be empty.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
    /// Extra attributes.
    pub extra: BTreeMap<String, Vec<String>>,
    /// The plane itself: bypasses admission and authorization.
    pub system: bool,
}

impl Caller {
    /// The plane itself.
    pub fn system() -> Self {
        Self { user: "system:apiserver".into(), groups: vec!["system:masters".into()], system: true, ..Self::default() }
    }

    /// Whether the caller is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|found| found == group)
    }
}
