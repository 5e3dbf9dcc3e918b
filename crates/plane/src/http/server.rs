//! What every request needs.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::slow::SlowReaders;
use crate::api::Api;
use crate::auth::Tokens;
use crate::auth::accounts::Checked;
use crate::config::Limits;
use crate::faults::Faults;

/// What every request needs.
pub(crate) struct Server {
    pub(crate) api: Arc<Api>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) faults: Faults,
    pub(crate) limits: Limits,
    pub(crate) slow: Arc<SlowReaders>,
    /// Which endpoint this is.
    pub(crate) number: usize,
    /// The shard whose clusters it serves; `None` for the front proxy, which serves all of them.
    pub(crate) shard: Option<usize>,
    pub(crate) stop: CancellationToken,
}

impl Server {
    /// The caller that a bearer token belongs to, whatever its audience.
    pub(crate) fn check(&self, token: &str) -> Option<Checked> {
        let accounts = &self.api.accounts;
        match self.tokens.caller(token) {
            Some(caller) => Some(Checked { caller, audiences: vec![accounts.issuer().to_owned()] }),
            None => accounts.check(&self.api.store, token),
        }
    }
}
