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
    /// How far the versions of each shard are ahead of those in the store.
    pub(crate) ahead: Vec<u64>,
    pub(crate) stop: CancellationToken,
}

impl Server {
    /// How far the versions that a request for a cluster sees are ahead of those in the store.
    pub(super) fn ahead(&self, cluster: &str) -> u64 {
        if self.ahead.is_empty() {
            return 0;
        }
        let shard = self.shard.or_else(|| self.api.extension().map(|extension| extension.shard_of(cluster)));
        shard.and_then(|shard| self.ahead.get(shard)).copied().unwrap_or(0)
    }

    /// The caller that a bearer token belongs to, whatever its audience.
    pub(crate) fn check(&self, token: &str) -> Option<Checked> {
        let accounts = &self.api.accounts;
        match self.tokens.caller(token) {
            Some(caller) => Some(Checked { caller, audiences: vec![accounts.issuer().to_owned()] }),
            None => accounts.check(&self.api.store, token),
        }
    }
}
