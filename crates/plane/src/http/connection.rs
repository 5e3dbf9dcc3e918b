//! What a request knows about the connection it came on.

use tokio_util::sync::CancellationToken;

use crate::caller::Caller;

/// What a request knows about the connection it came on.
#[derive(Clone)]
pub(super) struct Connection {
    /// Ends the connection at once, with everything on it.
    pub(super) kill: CancellationToken,
    /// The caller authenticated by a client certificate.
    pub(super) peer: Option<Caller>,
}
