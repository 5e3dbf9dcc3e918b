//! What the front is told.

use std::path::PathBuf;
use std::time::Duration;

use carrick_bind_api::install::HostAliases;

use super::networks::Network;

/// What the front is told.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// How people call this provider.
    pub pretty_name: String,
    /// How long a login holds.
    pub token_expiry: Duration,
    /// Who says who somebody is.
    pub login: LoginMethod,
    /// Where the issuer sends browsers back to; it ends with `/api/callback`.
    pub callback: String,
    /// Certificate and key; plain HTTP without.
    pub tls: Option<TlsFiles>,
    /// Keys that come first before the stored ones.
    pub keys: GivenKeys,
    /// Who may bind.
    pub allowed: Allowed,
    /// Networks beside the public Internet that uploaded kubeconfigs may lead to.
    pub consumer_networks: Vec<Network>,
    /// Names that the pods of konnectors get to know which are installed from here.
    pub konnector_aliases: HostAliases,
}

/// Who says who somebody is.
#[derive(Clone)]
pub enum LoginMethod {
    /// The backend itself, which lets everybody in: for development.
    Embedded {
        /// Its URL, which ends with `/oidc`.
        issuer: String,
    },
    /// An OIDC issuer.
    External {
        /// Its URL.
        issuer: String,
        /// Who the backend is there.
        client_id: String,
        /// Its secret; without one the client is public.
        client_secret: Option<String>,
        /// Certificate authorities of the issuer.
        ca_file: Option<PathBuf>,
    },
}

impl std::fmt::Debug for LoginMethod {
    /// Without the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Embedded { issuer } => f.debug_struct("Embedded").field("issuer", issuer).finish(),
            Self::External { issuer, client_id, .. } => {
                f.debug_struct("External").field("issuer", issuer).field("client_id", client_id).finish_non_exhaustive()
            }
        }
    }
}

/// Certificate and key of the server.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate and those of its issuers, in PEM.
    pub cert: PathBuf,
    /// The key, in PEM.
    pub key: PathBuf,
}

/// Keys that somebody gives.
#[derive(Clone, Default)]
pub struct GivenKeys {
    /// Signs tokens.
    pub signing: Option<Vec<u8>>,
    /// Encrypts cookies.
    pub encryption: Option<Vec<u8>>,
}

impl std::fmt::Debug for GivenKeys {
    /// Whether there are any.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { signing, encryption } = self;
        write!(f, "GivenKeys({}, {})", signing.is_some(), encryption.is_some())
    }
}

/// Who gets the right to bind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Groups, as the issuer names them.
    pub groups: Vec<String>,
    /// Subjects, as the issuer names them.
    pub users: Vec<String>,
}
