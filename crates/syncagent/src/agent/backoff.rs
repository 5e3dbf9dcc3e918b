//! Growing pauses between attempts.

use std::time::Duration;

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
    /// For a server that cannot be reached, or refuses: half a second to four seconds. A server that is known to be away is not asked
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
        assert_eq!(pauses, [500, 1000, 2000, 4000, 4000, 4000, 4000]);
        backoff.reset();
        assert_eq!(backoff.pause().as_millis(), 500);
    }
}
