//! What can go wrong.

use carrick_client::{ConnectError, Error};

use crate::backend::BackendError;
use crate::callback::CallbackError;
use crate::config::ConfigError;
use crate::deploy::DeployError;
use crate::identity::IdentityError;

/// Why nothing is bound, or not everything. No message holds a token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConsumeError {
    /// The backend does not help.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The browser did not come back.
    #[error(transparent)]
    Callback(#[from] CallbackError),
    /// The file with logins cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// This cluster has no identity.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Something cannot be written here.
    #[error(transparent)]
    Deploy(#[from] DeployError),
    /// The provider's kubeconfig cannot be used.
    #[error("the provider's kubeconfig: {0}")]
    Connect(#[from] ConnectError),
    /// The browser came from another page.
    #[error("the browser came back from another session; try again")]
    OtherSession,
    /// The browser brought nothing.
    #[error("the browser came back without an answer of the backend; try again")]
    NoAnswer,
    /// The request cannot be used.
    #[error("the APIServiceExportRequest cannot be used: {0}")]
    Request(String),
    /// The provider's cluster refuses.
    #[error("the provider's cluster, {what}: {source}")]
    Provider {
        /// What was read or written.
        what: String,
        /// What the server said.
        source: Error,
    },
    /// This cluster refuses.
    #[error("{what}: {source}")]
    Consumer {
        /// What was read or written.
        what: String,
        /// What the server said.
        source: Error,
    },
    /// The provider has refused the request.
    #[error("the provider refuses request {name}: {why}")]
    Failed {
        /// Its name.
        name: String,
        /// What the provider says.
        why: String,
    },
    /// Somebody has deleted the request.
    #[error("request {0} was deleted before the provider has answered it; try again")]
    Deleted(String),
    /// The provider does not answer the request.
    #[error(
        "the provider has not answered request {name} within {seconds} s: {why}; run the command again to wait longer"
    )]
    Late {
        /// Its name.
        name: String,
        /// What the provider says meanwhile.
        why: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The binding of this name is for another provider.
    #[error("APIServiceBinding {0} is there already and uses another Secret; choose another name")]
    OtherBinding(String),
}
