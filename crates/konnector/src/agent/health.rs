//! Whether the konnector works: what `/healthz` and `/readyz` answer.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::local::Local;

/// An election that makes no progress for so long has stalled.
const STALLED: Duration = Duration::from_secs(20);

/// Whether the konnector works.
#[derive(Default)]
pub struct Health {
    /// When the lease last worked, be it held or waited for.
    lease: Mutex<Option<Instant>>,
    local: Mutex<Weak<Local>>,
}

impl Health {
    /// From now on there must be a lease.
    pub fn expect_lease(&self) {
        self.lease.lock().get_or_insert_with(Instant::now);
    }

    /// The lease works.
    pub fn lease_works(&self) {
        *self.lease.lock() = Some(Instant::now());
    }

    /// Follows what is read of this cluster.
    pub(super) fn follow(&self, local: &Arc<Local>) {
        *self.local.lock() = Arc::downgrade(local);
    }

    /// Whether every check passes, and each of them in kube-bind's words.
    pub fn checks(&self) -> (bool, Value) {
        let works = self.lease.lock().is_none_or(|at| at.elapsed() < STALLED);
        (works, json!({"leaderElection": if works { "ok" } else { "degraded" }}))
    }

    /// Why it is not ready. A replica that waits for the lease is: otherwise no rollout with two of them would ever finish.
    pub fn unready(&self) -> Option<String> {
        let (works, checks) = self.checks();
        if !works {
            return Some(checks.to_string());
        }
        let local = self.local.lock().upgrade()?;
        [&local.bindings, &local.bundles].iter().find_map(|cache| cache.unknown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_election_that_stalls_is_told() {
        let health = Health::default();
        tokio::time::advance(STALLED * 2).await;
        assert!(health.checks().0, "without a lease there is nothing to stall");
        health.expect_lease();
        tokio::time::advance(STALLED / 2).await;
        health.lease_works();
        tokio::time::advance(Duration::from_secs(19)).await;
        assert_eq!(health.checks(), (true, json!({"leaderElection": "ok"})));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(health.checks(), (false, json!({"leaderElection": "degraded"})));
        assert_eq!(health.unready().as_deref(), Some(r#"{"leaderElection":"degraded"}"#));
    }
}
