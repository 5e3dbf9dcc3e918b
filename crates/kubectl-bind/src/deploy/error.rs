//! What can go wrong.

use carrick_bind_api::install::OtherProvider;
use carrick_bind_api::response::ResponseError;
use carrick_bind_api::secret::SecretError;
use carrick_client::{Error, RefusedKubeconfig};

/// Why nothing was deployed, or not everything. No message holds a word of a kubeconfig.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeployError {
    /// Nobody says where the answer is.
    #[error("name the answer of the backend with -f or --secret")]
    NoAnswer,
    /// The file cannot be read.
    #[error("cannot read {file}: {problem}")]
    File {
        /// The file.
        file: String,
        /// What the system said.
        problem: String,
    },
    /// The name of the Secret has no namespace.
    #[error("{0:?} is not the name of a Secret; expected NAMESPACE/NAME")]
    SecretName(String),
    /// The Secret has no answer.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The answer cannot be used.
    #[error(transparent)]
    Answer(#[from] ResponseError),
    /// The kubeconfig in it is not safe to use.
    #[error("the kubeconfig is refused: {0}")]
    Kubeconfig(#[from] RefusedKubeconfig),
    /// The kubeconfig names no contract.
    #[error("the kubeconfig is refused: its context names no namespace; ask the provider for another one")]
    NoContract,
    /// The Secret of this name is for another provider.
    #[error(transparent)]
    OtherProvider(#[from] OtherProvider),
    /// The server refuses.
    #[error("{what}: {source}")]
    Server {
        /// What was read or written.
        what: String,
        /// What the server said.
        source: Error,
    },
    /// Nobody has installed kube-bind's CRDs.
    #[error(
        "{plural}.kube-bind.io is not served after {seconds} s: the konnector, which installs it, does not run; see `kubectl -n kube-bind get pods`"
    )]
    NoKonnector {
        /// Plural of the kind.
        plural: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// An object cannot be printed.
    #[error("cannot print what would be written: {0}")]
    Print(String),
}
