//! What the backend was told, as far as decisions need it.

use carrick_bind_api::v1alpha2::{InformerScope, Isolation};

/// What the backend was told about one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Prefix of the names of contract namespaces.
    pub namespace_prefix: String,
    /// What the provider calls itself.
    pub pretty_name: String,
    /// What konnectors may watch.
    pub informer_scope: InformerScope,
    /// How consumers are kept apart.
    pub isolation: Isolation,
    /// Where consumers reach this cluster.
    pub address: Address,
    /// Whether consumers may read claimed kinds in all namespaces, if they may watch the whole cluster: kube-bind's own konnector wants that, and
    /// a consumer that may read all Secrets can read the credentials of all others.
    pub cluster_wide_claims: bool,
    /// Whether several contracts may have one namespace, if isolation None gives them the same: each can read there what the others have.
    pub shared_namespaces: bool,
    /// Who may log in.
    pub logins: Logins,
    /// The workspace that the cluster is, in kcp.
    pub workspace: Option<Workspace>,
    /// How many namespaces of this cluster one contract may have.
    pub most_namespaces: usize,
}

/// How many namespaces one contract may have, unless a flag says otherwise.
pub const MOST_NAMESPACES: usize = 250;

/// A workspace of kcp whose bound APIs are offered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workspace {
    /// Its logical cluster.
    pub cluster: String,
    /// The user that the backend is there, if that is known: it is given the right to read bindings.
    pub backend: Option<String>,
    /// Bindings and exports whose names begin like this are not offered.
    pub ignored: Vec<String>,
}

/// Where consumers reach a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// The URL of the server.
    pub server: String,
    /// Who has signed its certificate, in PEM; what the account's token says if it is left out.
    pub authority: Option<String>,
    /// Whether somebody has said so, or it was tried; what was only found out does not replace what may work.
    pub authority_given: bool,
    /// The name in its certificate, if that is not the one in the URL.
    pub server_name: Option<String>,
}

/// Who may log in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logins {
    /// Groups.
    pub groups: Vec<String>,
    /// Users.
    pub users: Vec<String>,
}

#[cfg(test)]
impl Terms {
    /// Terms for tests.
    pub(crate) fn example(informer_scope: InformerScope, isolation: Isolation) -> Self {
        Self {
            namespace_prefix: "cluster-".to_owned(),
            pretty_name: "Wild West Inc.".to_owned(),
            informer_scope,
            isolation,
            address: Address { server: "https://provider.example:6443".to_owned(), ..Address::default() },
            cluster_wide_claims: false,
            shared_namespaces: false,
            logins: Logins::default(),
            workspace: None,
            most_namespaces: MOST_NAMESPACES,
        }
    }
}
