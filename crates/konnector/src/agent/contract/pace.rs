//! When to look again.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(15);

/// What one look has led to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::agent) struct PassResult {
    /// Something could not be written.
    pub failed: bool,
    /// Look again after this long, whatever happens.
    pub again: Option<Duration>,
}

impl PassResult {
    /// A write has failed.
    pub fn failure() -> Self {
        Self { failed: true, again: None }
    }

    /// Look again after this long.
    pub fn after(again: Duration) -> Self {
        Self { failed: false, again: Some(again) }
    }

    /// What two parts together lead to.
    pub fn add(&mut self, other: Self) {
        self.failed |= other.failed;
        self.again = match (self.again, other.again) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
}

/// Growing pauses while writes fail.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::agent) struct Pace {
    pause: Option<Duration>,
}

impl Pace {
    /// When to look again after this.
    pub fn next(&mut self, outcome: PassResult) -> Option<Duration> {
        if !outcome.failed {
            self.pause = None;
            return outcome.again;
        }
        let pause = self.pause.map_or(FIRST, |pause| (pause * 2).min(LONGEST));
        self.pause = Some(pause);
        Some(outcome.again.map_or(pause, |again| again.min(pause)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_while_something_fails_and_start_over_afterwards() {
        let mut pace = Pace::default();
        assert_eq!(pace.next(PassResult::default()), None);
        let pauses: Vec<_> = (0..9).filter_map(|_| pace.next(PassResult::failure())).map(|it| it.as_millis()).collect();
        assert_eq!(pauses, [250, 500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000]);
        let mut both = PassResult::after(Duration::from_secs(9));
        both.add(PassResult::after(Duration::from_secs(3)));
        assert_eq!(pace.next(both), Some(Duration::from_secs(3)));
        assert_eq!(pace.next(PassResult::failure()), Some(FIRST));
    }
}
