//! Why a plane does not start.

use std::net::SocketAddr;

/// Why a plane does not start.
#[derive(Debug, thiserror::Error)]
pub enum PlaneError {
    /// The address is taken or not allowed.
    #[error("cannot listen on {address}: {source}; choose another port")]
    Bind {
        /// The requested address.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
    /// The data folder cannot be read or written.
    #[error("cannot use the data folder: {0}")]
    Data(#[from] std::io::Error),
    /// Certificates could not be made or read.
    #[error("cannot prepare the server certificate: {0}")]
    Certificate(String),
    /// The file with authorities for client certificates is missing, empty or not PEM.
    #[error("cannot read the client authorities in {path}: {why}")]
    ClientCa {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// A file with the server's certificate or its key is missing or not PEM.
    #[error("cannot read the server certificate in {path}: {why}")]
    Serving {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// A kubeconfig was requested for a user without a token.
    #[error("there is no user {user:?} with a token, only {}; add it to the users of the config", known.join(", "))]
    UnknownUser {
        /// The requested name.
        user: String,
        /// The names that exist.
        known: Vec<String>,
    },
}
