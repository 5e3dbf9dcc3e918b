//! What can go wrong.

use carrick_client::{ConnectError, Error};

use crate::deploy::DeployError;

/// Why something of v2 was not done, or not all of it. No message holds a word of a kubeconfig.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum V2Error {
    /// A kubeconfig cannot be read, or something cannot be written.
    #[error(transparent)]
    Deploy(#[from] DeployError),
    /// The provider's kubeconfig cannot be used.
    #[error("the provider's kubeconfig: {0}")]
    Connect(#[from] ConnectError),
    /// Something cannot be read or written.
    #[error("{what}: {source}")]
    Server {
        /// What was read or written.
        what: String,
        /// What the server said.
        source: Error,
    },
    /// The object cannot be read.
    #[error("{what} cannot be read: {problem}")]
    Unreadable {
        /// The object.
        what: String,
        /// What is wrong with it.
        problem: String,
    },
    /// There is no such object.
    #[error("there is no {0}; kubectl bind status lists what there is")]
    Missing(String),
    /// The Connection exists and cannot become this one.
    #[error(
        "Connection {name} has its kubeconfig in Secret {there}, and that cannot be changed; choose another name, or replace what is in that Secret"
    )]
    OtherSecret {
        /// Its name.
        name: String,
        /// Where its kubeconfig is.
        there: String,
    },
    /// The provider offers no such API.
    #[error("Connection {connection} offers no {api}; it offers: {offered}")]
    NotOffered {
        /// The Connection.
        connection: String,
        /// The API.
        api: String,
        /// What it offers.
        offered: String,
    },
    /// The binding belongs to another Connection.
    #[error("{what} is for Connection {connection}; choose another name with --name")]
    OtherConnection {
        /// The binding.
        what: String,
        /// Its Connection.
        connection: String,
    },
    /// A Connection with autoBind would create it again.
    #[error(
        "ClusterBinding {name} was made for Connection {connection}, which binds everything and would create it again; set its spec.autoBind to false first"
    )]
    Automatic {
        /// The binding.
        name: String,
        /// The Connection.
        connection: String,
    },
    /// Objects would be lost.
    #[error("{0} would be deleted here as well; delete them first, or pass --delete-objects")]
    HasObjects(String),
    /// An upgrade, or the way back, is not possible.
    #[error("{name} stays what it is:\n{}", reasons.iter().map(|it| format!("  {it}")).collect::<Vec<_>>().join("\n"))]
    Refused {
        /// The binding.
        name: String,
        /// All reasons.
        reasons: Vec<String>,
    },
    /// It takes too long.
    #[error("{what} is not as it should be after {seconds} s: {why}; run the command again to wait longer")]
    Late {
        /// What was waited for.
        what: String,
        /// For how long.
        seconds: u64,
        /// What it says.
        why: String,
    },
}
