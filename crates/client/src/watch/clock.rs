//! Whether the versions of one server have gone back, as after a restore of its database.
//!
//! Versions are opaque to clients, with one exception that the server grants: those of one kind from one server can be compared while they
//! are numbers. Nothing here compares versions of different servers.

use tokio::time::{Duration, Instant};

/// A server that sends events out of order is not asked about it more often than this.
const CALM: Duration = Duration::from_mins(1);

/// The newest version that a server has shown to one watch.
#[derive(Default)]
pub(super) struct VersionClock {
    newest: Option<u64>,
    /// Whether there is a sign that versions have gone back. One alone may be an answer that came late.
    pub(super) doubted: bool,
    checked: Option<Instant>,
}

/// A version below one that was known before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Behind {
    pub(super) known: u64,
    pub(super) found: u64,
}

impl VersionClock {
    /// Whether there is anything to compare with.
    pub(super) fn is_set(&self) -> bool {
        self.newest.is_some()
    }

    /// What a version is behind, if it is.
    pub(super) fn behind(&self, version: &str) -> Option<Behind> {
        let (known, found) = (self.newest?, version.parse().ok()?);
        (found < known).then_some(Behind { known, found })
    }

    /// Takes in a version of an event or of a complete list; false if it is below what was known.
    pub(super) fn advance(&mut self, version: &str) -> bool {
        let Ok(found) = version.parse::<u64>() else { return true };
        let ahead = self.newest.is_none_or(|newest| newest <= found);
        self.newest = self.newest.max(Some(found));
        ahead
    }

    /// The server has begun a new life: what was known says nothing about what comes.
    pub(super) fn restart(&mut self) {
        (self.newest, self.doubted) = (None, false);
    }

    /// Whether an event out of order is a reason to ask the server.
    pub(super) fn may_check(&mut self) -> bool {
        let due = self.checked.is_none_or(|last| last.elapsed() >= CALM);
        if due {
            self.checked = Some(Instant::now());
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_are_compared_and_only_within_one_life() {
        let mut clock = VersionClock::default();
        assert!(!clock.is_set() && clock.behind("1").is_none());
        assert!(clock.advance("v5") && clock.advance("") && !clock.is_set(), "no numbers");
        assert!(clock.advance("10") && clock.advance("10") && clock.advance("12"));
        assert!(!clock.advance("11"), "an event from before");
        assert_eq!(clock.behind("11"), Some(Behind { known: 12, found: 11 }));
        assert_eq!((clock.behind("12"), clock.behind("x")), (None, None));
        clock.restart();
        assert!(clock.behind("3").is_none() && clock.advance("3"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_mixes_up_its_events_is_asked_now_and_then() {
        let mut clock = VersionClock::default();
        assert!(clock.may_check() && !clock.may_check());
        tokio::time::advance(CALM).await;
        assert!(clock.may_check());
    }
}
