//! Orders that left something behind: all of them are counted, and the latest are named. Nobody reports when somebody has cleaned up after them, so
//! they are reported for a day and then forgotten: the consumer has the event, and the log has all of them.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// How many of them are named.
const MOST: usize = 100;
/// For how long they are reported.
const REPORTED: Duration = Duration::from_hours(24);

/// What could not be cleaned up.
#[derive(Debug, Default)]
pub(in crate::agent::objects) struct Losses {
    /// Those that are named, with when they were noted, the latest first.
    named: VecDeque<(String, String, Instant)>,
    /// How many were noted when, the latest last.
    noted: VecDeque<(Instant, usize)>,
}

impl Losses {
    /// Notes what an order left behind. It may say so several times.
    pub fn note(&mut self, order: &str, loss: String, now: Instant) {
        self.expire(now);
        if let Some(known) = self.named.iter_mut().find(|(known, ..)| known == order) {
            known.1 = loss;
            return;
        }
        self.named.push_front((order.to_owned(), loss, now));
        self.named.truncate(MOST);
        // Those of one minute end together.
        match self.noted.back_mut().filter(|(at, _)| now.duration_since(*at) < Duration::from_mins(1)) {
            Some((_, count)) => *count += 1,
            None => self.noted.push_back((now, 1)),
        }
    }

    /// Forgets what has been reported for long enough. Says whether there was any.
    pub fn expire(&mut self, now: Instant) -> bool {
        let before = self.count();
        while self.noted.front().is_some_and(|(at, _)| now.duration_since(*at) >= REPORTED) {
            self.noted.pop_front();
        }
        let since = self.noted.front().map(|(at, _)| *at);
        self.named.retain(|(.., at)| since.is_some_and(|since| *at >= since));
        self.count() != before
    }

    /// When something is forgotten next; none if nothing is noted.
    pub fn ends(&self) -> Option<Instant> {
        self.noted.front().map(|(at, _)| *at + REPORTED)
    }

    /// How many orders have left something behind.
    pub fn count(&self) -> usize {
        self.noted.iter().map(|(_, count)| count).sum()
    }

    /// The latest ones, with what they left.
    pub fn latest(&self, most: usize) -> impl Iterator<Item = (&str, &str)> {
        self.named.iter().take(most).map(|(order, loss, _)| (order.as_str(), loss.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted_and_the_latest_are_named() {
        let (mut losses, now) = (Losses::default(), Instant::now());
        for number in 0..3 * MOST {
            for _ in 0..2 {
                losses.note(&number.to_string(), "a Secret".to_owned(), now);
            }
        }
        assert_eq!((losses.count(), losses.named.len()), (3 * MOST, MOST));
        let last = (3 * MOST - 1).to_string();
        losses.note(&last, "two Secrets".to_owned(), now);
        assert_eq!(losses.latest(1).collect::<Vec<_>>(), [(last.as_str(), "two Secrets")]);
    }

    #[test]
    fn they_are_reported_for_a_day_and_then_forgotten() {
        let (mut losses, start) = (Losses::default(), Instant::now());
        assert_eq!(losses.ends(), None);
        losses.note("early", "a Secret".to_owned(), start);
        let noon = start + REPORTED / 2;
        losses.note("late", "a Secret".to_owned(), noon);
        assert_eq!((losses.ends(), losses.expire(noon)), (Some(start + REPORTED), false));
        assert!(losses.expire(start + REPORTED));
        assert_eq!((losses.count(), losses.latest(9).map(|(order, _)| order).collect::<Vec<_>>()), (1, vec!["late"]));
        assert!(losses.expire(noon + REPORTED) && !losses.expire(noon + REPORTED));
        assert_eq!((losses.count(), losses.named.len(), losses.ends()), (0, 0, None));
        // Should the same order leave something again, that is news.
        losses.note("early", "a Secret".to_owned(), noon + REPORTED);
        assert_eq!(losses.count(), 1);
    }
}
