//! Orders for which a server asked to wait: nothing is sent for them until that time is over, whatever changes meanwhile. Others go on.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::agent::objects::error::ReconcileError;
use crate::rules::metadata::SourceKey;

/// Orders of one PublishedResource that wait.
#[derive(Default)]
pub(in crate::agent::objects) struct Throttled(Mutex<HashMap<SourceKey, (Instant, String)>>);

impl Throttled {
    /// Notes how long a server asked to wait, if it did.
    pub fn note(&self, key: &SourceKey, error: &ReconcileError) {
        if let Some(wait) = error.asks_to_wait() {
            self.0.lock().insert(key.clone(), (Instant::now() + wait, error.told().0));
        }
    }

    /// Why an order has to wait, and how long still; none if it has not.
    pub fn left(&self, key: &SourceKey) -> Option<ReconcileError> {
        let mut all = self.0.lock();
        let (until, said) = all.get(key)?;
        let left = until.saturating_duration_since(Instant::now());
        if left > Duration::ZERO {
            return Some(ReconcileError::Throttled { said: said.clone(), left });
        }
        all.remove(key);
        None
    }

    /// Forgets the orders that are meant.
    pub fn forget(&self, is_meant: impl Fn(&SourceKey) -> bool) {
        self.0.lock().retain(|key, _| !is_meant(key));
    }
}

#[cfg(test)]
mod tests {
    use carrick_client::Status;
    use carrick_sync::executor::{StepError, Target, Verb};

    use super::*;

    fn key(name: &str) -> SourceKey {
        SourceKey { cluster: "c".into(), namespace: "n".into(), name: name.into() }
    }

    fn answered(code: u16, seconds: u64) -> ReconcileError {
        let retry_after = Some(Duration::from_secs(seconds));
        let status = Status { code, message: "slow down".to_owned(), retry_after, ..Status::default() };
        StepError::Write { verb: Verb::Create, at: Target::Namespace("ns".to_owned()), source: status.into() }.into()
    }

    #[tokio::test(start_paused = true)]
    async fn an_order_waits_as_long_as_its_server_asks_for_and_others_do_not() {
        let throttled = Throttled::default();
        assert_eq!(answered(429, 300).pause(), Some(Duration::from_mins(5)));
        throttled.note(&key("a"), &answered(429, 300));
        throttled.note(&key("b"), &answered(503, 300));
        tokio::time::advance(Duration::from_secs(299)).await;
        let waits = throttled.left(&key("a")).unwrap();
        assert_eq!(waits.pause(), Some(Duration::from_secs(1)), "whatever has changed, and no longer");
        assert!(waits.to_string().contains("the server asks to wait for 300 s") && waits.is_transient(), "{waits}");
        // To wait anew does not begin anew.
        throttled.note(&key("a"), &waits);
        assert!(throttled.left(&key("b")).is_none() && throttled.left(&key("c")).is_none());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(throttled.left(&key("a")).is_none() && throttled.0.lock().is_empty());
    }

    #[test]
    fn who_has_to_wait_long_is_reported() {
        let lasts = |error: &ReconcileError| error.told().1;
        assert!(lasts(&answered(429, 300)) && !lasts(&answered(429, 1)) && !lasts(&answered(503, 300)));
    }
}
