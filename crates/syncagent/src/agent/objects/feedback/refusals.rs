//! What orders were told: a refusal is written once for each reason, however its words vary.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::rules::metadata::SourceKey;

/// How many reasons an order is told one after the other without a pause.
const FREE: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_mins(10);

/// What the orders of one PublishedResource were told. Every write to an order leads to its next reconcile, and a refusal that names the
/// time of day or the number of a request would be written again by each.
#[derive(Default)]
pub(in crate::agent::objects) struct ReportedReasons(Mutex<HashMap<SourceKey, LastWords>>);

struct LastWords {
    generation: i64,
    text: String,
    gist: String,
    times: u32,
    at: Instant,
}

impl ReportedReasons {
    /// Whether an order is told why it is refused, which is noted. `there` is what it says now.
    pub fn is_news(&self, key: &SourceKey, generation: i64, there: Option<&str>, why: &str) -> bool {
        let (mut all, now, new) = (self.0.lock(), Instant::now(), gist(why));
        let before = all.get(key).filter(|before| before.generation == generation);
        if let Some(before) = before {
            let is_same = before.gist == new && there.is_some_and(|there| gist(there) == new);
            if is_same || now < before.at + pause(before.times) {
                return false;
            }
        }
        let times = before.map_or(0, |before| before.times) + 1;
        all.insert(key.clone(), LastWords { generation, text: why.to_owned(), gist: new, times, at: now });
        true
    }

    /// Whether an event tells it: the same words only count up, others are new objects.
    pub fn is_event(&self, key: &SourceKey, generation: i64, why: &str) -> bool {
        let is_same = |before: &LastWords| before.generation == generation && before.text == why;
        self.0.lock().get(key).is_some_and(is_same) || self.is_news(key, generation, Some(why), why)
    }

    /// By other rules, the same words with other numbers are news: a limit is another one.
    pub fn rules_changed(&self) {
        self.0.lock().clear();
    }

    /// Forgets the orders that are meant.
    pub fn forget(&self, is_meant: impl Fn(&SourceKey) -> bool) {
        self.0.lock().retain(|key, _| !is_meant(key));
    }

    /// An order is refused no more.
    pub fn over(&self, key: &SourceKey) {
        self.0.lock().remove(key);
    }
}

fn pause(times: u32) -> Duration {
    let Some(doublings) = times.checked_sub(FREE) else { return Duration::ZERO };
    FIRST_PAUSE.saturating_mul(1 << doublings.min(16)).min(LONGEST_PAUSE)
}

/// A text without the words that have digits: times, counts and the numbers of requests.
fn gist(text: &str) -> String {
    let words = text.split(|character: char| character.is_whitespace() || "\"'`,;()[]{}".contains(character));
    let plain = words.map(|word| if word.contains(|character: char| character.is_ascii_digit()) { "#" } else { word });
    plain.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> SourceKey {
        SourceKey { cluster: "c".into(), namespace: "n".into(), name: name.into() }
    }

    #[tokio::test(start_paused = true)]
    async fn one_reason_is_told_once_whatever_its_numbers_are() {
        let told = ReportedReasons::default();
        let text = |number: u32| format!("denied at 2026-01-01T00:00:{number}Z (request {number}f3c-{number}): no");
        assert!(told.is_news(&key("a"), 1, None, &text(1)));
        for number in 2..100 {
            assert!(!told.is_news(&key("a"), 1, Some(&text(1)), &text(number)));
            tokio::time::advance(Duration::from_mins(5)).await;
        }
        assert!(told.is_news(&key("a"), 1, Some(&text(1)), "exceeded quota"), "that is another reason");
        assert!(told.is_news(&key("a"), 2, Some("exceeded quota"), "exceeded quota 2"), "and that another change");
        assert!(told.is_news(&key("a"), 2, None, "exceeded quota 2"), "somebody has removed it");
        told.rules_changed();
        assert!(told.is_news(&key("a"), 2, Some("exceeded quota 2"), "exceeded quota 1"), "rules have changed");
        assert!(told.is_event(&key("e"), 1, &text(1)) && told.is_event(&key("e"), 1, &text(1)), "the same is counted");
        assert!(!told.is_event(&key("e"), 1, &text(2)));
        assert!(told.is_news(&key("b"), 1, None, &text(1)));
        told.over(&key("b"));
        assert!(told.is_news(&key("b"), 1, None, &text(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn words_that_are_new_each_time_are_told_ever_more_rarely() {
        let told = ReportedReasons::default();
        let words = |mut number: u32| {
            let mut text = String::from("no");
            while number > 0 {
                text.push(char::from(b'a' + u8::try_from(number % 26).unwrap()));
                number /= 26;
            }
            text
        };
        let (mut there, mut writes) = (None, 0);
        for number in 0..36_000 {
            if told.is_news(&key("a"), 1, there.as_deref(), &words(number)) {
                (there, writes) = (Some(words(number)), writes + 1);
            }
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        assert!((8..=18).contains(&writes), "{writes} in an hour");
    }
}
