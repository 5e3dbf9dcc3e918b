//! Why the front does not start.

use carrick_client::ConnectError;

use super::secrecy::CryptoError;
use crate::provider::ProviderError;

/// Why the front does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrontError {
    /// The Secret with the keys can neither be read nor created.
    #[error("the keys of tokens cannot be read or stored: {0}")]
    Keys(ProviderError),
    /// The Secret with the keys lacks one.
    #[error(
        "the Secret with the keys of tokens lacks {0}, or it cannot be used; delete the Secret, and everybody logs in again"
    )]
    MissingKey(String),
    /// There is no randomness.
    #[error(transparent)]
    Crypto(#[from] CryptoError),
    /// Certificates cannot be used.
    #[error("cannot use --oidc-ca-file: {0}")]
    Trust(ConnectError),
    /// The issuer does not say how to log in.
    #[error("issuer {issuer} of --oidc-issuer-url does not tell how to log in: {problem}")]
    Issuer {
        /// Its URL.
        issuer: String,
        /// What is wrong.
        problem: String,
    },
    /// The certificate or key of the server cannot be used.
    #[error("cannot use --tls-cert-file {cert} with --tls-key-file {key}: {problem}")]
    Tls {
        /// File of the certificate.
        cert: String,
        /// File of the key.
        key: String,
        /// What is wrong.
        problem: String,
    },
}
