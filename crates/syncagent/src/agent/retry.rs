//! Retries: growing pauses between attempts, and when the next attempt is due.

use std::time::Duration;

use tokio::time::Instant;

/// What failed may work at any moment, such as after a right was granted, and is then to go on within five seconds.
const LONGEST: Duration = Duration::from_secs(4);

/// Pauses that double from one attempt to the next, up to a limit.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    limit: Duration,
    next: Duration,
}

impl Backoff {
    /// For a server that cannot be reached, or refuses: half a second to four seconds. A server that is known to be down is not asked
    /// meanwhile, and whoever pauses with [`carrick_client::Client::pause`] goes on as soon as it is back.
    pub fn for_servers() -> Self {
        Self::new(Duration::from_millis(500), LONGEST)
    }

    /// For an object that cannot be reconciled: 5 ms to four seconds.
    pub fn for_objects() -> Self {
        Self::new(Duration::from_millis(5), LONGEST)
    }

    /// For an object that somebody else writes all the time: 5 ms to half a minute.
    pub fn for_disputes() -> Self {
        Self::new(Duration::from_millis(5), Duration::from_secs(30))
    }

    /// For a token that cannot be renewed: five seconds to five minutes. Half of its time is left, and whoever refuses is not to be pestered.
    pub fn for_tokens() -> Self {
        Self::new(Duration::from_secs(5), Duration::from_mins(5))
    }

    fn new(first: Duration, limit: Duration) -> Self {
        Self { first, limit, next: first }
    }

    /// How long to wait now.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.limit);
        pause
    }

    /// Starts over after a success.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

/// When something that failed is tried again. A loop that waits for changes waits for this as well.
#[derive(Debug, Clone)]
pub struct Retry {
    backoff: Backoff,
    at: Option<Instant>,
}

impl Retry {
    /// With the pauses of [`Backoff::for_servers`].
    pub fn for_servers() -> Self {
        Self { backoff: Backoff::for_servers(), at: None }
    }

    /// With the pauses of [`Backoff::for_objects`].
    pub fn for_objects() -> Self {
        Self { backoff: Backoff::for_objects(), at: None }
    }

    /// With the pauses of [`Backoff::for_tokens`].
    pub fn for_tokens() -> Self {
        Self { backoff: Backoff::for_tokens(), at: None }
    }

    /// An attempt has failed: another one is due after a pause.
    pub fn failed(&mut self) {
        self.at = Some(Instant::now() + self.backoff.pause());
    }

    /// An attempt has succeeded: no other one is due.
    pub fn succeeded(&mut self) {
        self.backoff.reset();
        self.at = None;
    }

    /// The next attempt is due at that time, however the last one ended.
    pub fn set(&mut self, at: Option<Instant>) {
        self.at = at;
    }

    /// Whether an attempt is due now.
    pub fn is_due(&self) -> bool {
        self.at.is_some_and(|at| at <= Instant::now())
    }

    /// Waits until an attempt is due; for ever if none is.
    pub async fn due(&self) {
        wait_until(self.at).await;
    }
}

/// Waits until a moment; for ever if there is none.
pub async fn wait_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_their_limit() {
        let mut backoff = Backoff::for_servers();
        let pauses: Vec<_> = (0..7).map(|_| backoff.pause().as_millis()).collect();
        assert_eq!(pauses, [500, 1000, 2000, 4000, 4000, 4000, 4000]);
        backoff.reset();
        assert_eq!(backoff.pause().as_millis(), 500);
    }

    #[tokio::test]
    async fn an_attempt_is_due_after_a_failure_and_not_after_a_success() {
        let mut retry = Retry::for_objects();
        assert!(!retry.is_due());
        retry.failed();
        retry.due().await;
        assert!(retry.is_due());
        retry.succeeded();
        assert!(!retry.is_due() && retry.at.is_none());
    }
}
