//! Floods: what goes wrong with very many orders of one workspace at once is said about the first of them. Neither kcp nor the events of other
//! workspaces have to make room for the rest.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// How many warnings of the same words a workspace gets in a time: what else is wrong is news.
pub(super) const MOST: u32 = 60;
/// The same of any words for one reason: consumers' own words may be among them.
const MOST_OF_REASON: u32 = 10 * MOST;
const TIME: Duration = Duration::from_mins(1);
/// How many workspaces and reasons are counted before those whose time is over are forgotten.
const LIMIT: usize = 1024;

/// Warnings of the last minute.
#[derive(Debug, Default)]
pub(super) struct Flood(Mutex<Counts>);

/// What is counted together: the URL of the workspace, the reason and the words; without words, all that are written for that reason.
type Window = (String, String, Option<String>);

#[derive(Debug, Default)]
struct Counts {
    /// Since when, and how many.
    windows: HashMap<Window, (Instant, u32)>,
    /// How many are counted at most before those that are over are forgotten.
    limit: usize,
}

/// What becomes of a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admitted {
    /// It is written.
    Yes,
    /// It is written, and says that it is the last one for a while.
    Last,
    /// It is left out.
    No,
}

impl Flood {
    /// Counts a warning in a workspace.
    pub(super) fn admits(&self, url: &str, (reason, words): (&str, &str), now: Instant) -> Admitted {
        let mut counts = self.0.lock();
        let all = (url.to_owned(), reason.to_owned(), None);
        if counts.known(&all, now) >= MOST_OF_REASON {
            return Admitted::No;
        }
        let count = counts.count((url.to_owned(), reason.to_owned(), Some(words.to_owned())), now);
        if count > MOST {
            return Admitted::No;
        }
        let is_last = counts.count(all, now) == MOST_OF_REASON || count == MOST;
        if is_last { Admitted::Last } else { Admitted::Yes }
    }
}

impl Counts {
    /// How many there are in this time.
    fn known(&self, key: &Window, now: Instant) -> u32 {
        self.windows.get(key).filter(|(since, _)| now.duration_since(*since) < TIME).map_or(0, |(_, count)| *count)
    }

    /// Counts one more, and returns how many there are in this time.
    fn count(&mut self, key: Window, now: Instant) -> u32 {
        let is_over = |since: Instant| now.duration_since(since) >= TIME;
        if self.windows.len() >= self.limit.max(LIMIT) {
            self.windows.retain(|_, (since, _)| !is_over(*since));
            // Whoever has that many workspaces at once does not go through all of them for each.
            self.limit = self.windows.len() * 2;
        }
        let window = self.windows.entry(key).or_insert((now, 0));
        if is_over(window.0) {
            *window = (now, 0);
        }
        window.1 = window.1.saturating_add(1);
        window.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_very_many_warnings_the_first_of_each_reason_are_written_in_each_minute() {
        let (flood, start) = (Flood::default(), Instant::now());
        let written = |url: &str, reason: &str, count: usize, now: Instant| {
            (0..count).filter(|_| flood.admits(url, (reason, "words"), now) != Admitted::No).count()
        };
        let other = |now: Instant| flood.admits("a", ("NotPlaced", "other words"), now);
        assert_eq!(written("a", "NotPlaced", 10_000, start), MOST as usize);
        assert_eq!(written("a", "ReconcilingError", 5, start), 5, "another reason has its own");
        assert_eq!(other(start), Admitted::Yes, "and so has what else is wrong");
        assert_eq!(written("b", "NotPlaced", 5, start), 5, "and so has another workspace");
        assert_eq!(written("a", "NotPlaced", 5, start + TIME / 2), 0);
        assert_eq!(written("a", "NotPlaced", 100, start + TIME), MOST as usize, "the next minute");
    }

    #[test]
    fn words_that_differ_each_time_have_an_end_too() {
        let (flood, start) = (Flood::default(), Instant::now());
        let admitted: Vec<Admitted> =
            (0..10_000).map(|number| flood.admits("a", ("r", &number.to_string()), start)).collect();
        assert_eq!(admitted.iter().filter(|it| **it != Admitted::No).count(), MOST_OF_REASON as usize);
        assert_eq!(admitted[MOST_OF_REASON as usize - 1], Admitted::Last);
    }

    #[test]
    fn the_last_one_says_so() {
        let (flood, start) = (Flood::default(), Instant::now());
        let last = (1..=MOST).find(|_| flood.admits("a", ("r", "w"), start) == Admitted::Last);
        assert_eq!((last, flood.admits("a", ("r", "w"), start)), (Some(MOST), Admitted::No));
    }

    #[test]
    fn what_is_over_is_forgotten() {
        let (flood, start) = (Flood::default(), Instant::now());
        for number in 0..LIMIT {
            flood.admits(&number.to_string(), ("r", "w"), start);
        }
        flood.admits("late", ("r", "w"), start + TIME);
        assert_eq!(flood.0.lock().windows.len(), 2);
        for number in 0..3 * LIMIT {
            flood.admits(&number.to_string(), ("r", "w"), start + TIME);
        }
        assert_eq!(flood.0.lock().windows.len(), 2 * (3 * LIMIT + 1), "what is not over is counted on");
    }
}
