//! Growing pauses between attempts.

use std::time::Duration;

/// Pauses that double from one attempt to the next, up to a limit.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    limit: Duration,
    next: Duration,
}

impl Backoff {
    /// For a server that cannot be reached: half a second to a quarter of a minute.
    pub fn for_servers() -> Self {
        Self::new(Duration::from_millis(500), Duration::from_secs(15))
    }

    /// For an object that cannot be reconciled: 5 ms to half a minute.
    pub fn for_objects() -> Self {
        Self::new(Duration::from_millis(5), Duration::from_secs(30))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_their_limit() {
        let mut backoff = Backoff::for_servers();
        let pauses: Vec<_> = (0..7).map(|_| backoff.pause().as_millis()).collect();
        assert_eq!(pauses, [500, 1000, 2000, 4000, 8000, 15000, 15000]);
        backoff.reset();
        assert_eq!(backoff.pause().as_millis(), 500);
    }
}
