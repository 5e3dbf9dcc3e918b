//! Pauses between attempts.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(200);
/// Short, because what failed may work again at any time and should be noticed soon; watches that fail together take turns.
const LONGEST: Duration = Duration::from_secs(3);
/// A kind that is not served yet usually will be soon: its CRD or binding is on the way.
const LONGEST_UNSERVED: Duration = Duration::from_secs(2);

/// Growing pauses with jitter, so that many watches of a restarted server do not come back at once.
#[derive(Default)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The next pause; at least what the server asked for.
    pub(super) fn next(&mut self, retry_after: Option<Duration>) -> Duration {
        self.next_up_to(LONGEST, retry_after)
    }

    /// The next pause while the kind is not served.
    pub(super) fn next_unserved(&mut self, retry_after: Option<Duration>) -> Duration {
        self.next_up_to(LONGEST_UNSERVED, retry_after)
    }

    fn next_up_to(&mut self, longest: Duration, retry_after: Option<Duration>) -> Duration {
        let ceiling = FIRST.saturating_mul(1 << self.failures.min(16)).min(longest);
        self.failures = self.failures.saturating_add(1);
        let pause = ceiling.mul_f64(0.5 + 0.5 * fastrand::f64());
        pause.max(retry_after.unwrap_or_default())
    }

    /// Begins again with short pauses, without forgetting that there were failures.
    pub(super) fn shorten(&mut self) {
        self.failures = self.failures.min(1);
    }

    /// Whether there were failures since the last reset.
    pub(super) fn is_raised(&self) -> bool {
        self.failures > 0
    }

    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_start_again() {
        let mut backoff = Backoff::default();
        let first = backoff.next(None);
        assert!(first >= FIRST / 2 && first <= FIRST);
        for _ in 0..100 {
            assert!(backoff.next(None) <= LONGEST);
        }
        assert!(backoff.next(None) >= LONGEST / 2);
        backoff.shorten();
        assert!(backoff.is_raised() && backoff.next(None) <= 2 * FIRST);
        backoff.reset();
        assert!(!backoff.is_raised() && backoff.next(None) <= FIRST);
    }

    #[test]
    fn a_kind_that_is_not_served_is_asked_for_often() {
        let mut backoff = Backoff::default();
        for _ in 0..100 {
            assert!(backoff.next_unserved(None) <= LONGEST_UNSERVED);
        }
    }

    #[test]
    fn the_server_may_ask_for_longer_pauses() {
        let wish = Duration::from_secs(77);
        assert_eq!(Backoff::default().next(Some(wish)), wish);
    }
}
