//! Orders that are paused now. A pause is no failure, so they are counted apart from those that fail.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;

use crate::decide::pause::Pauses;
use crate::rules::metadata::SourceKey;

/// The shortest time after which it is checked whether a pause has ended: clocks of timers and of calendars do not agree to the millisecond.
const SHORTEST: Duration = Duration::from_millis(20);

/// All orders of one PublishedResource that are paused now.
pub(crate) struct PausedOrders {
    all: Mutex<HashMap<SourceKey, PausedOrder>>,
    /// Since when this agent reports them.
    since: Timestamp,
}

struct PausedOrder {
    words: String,
    until: Option<Timestamp>,
    /// What was reported of it: that a deletion waits, or that something cannot be read.
    reported: Vec<String>,
}

impl Default for PausedOrders {
    fn default() -> Self {
        Self { all: Mutex::default(), since: Timestamp::now() }
    }
}

impl PausedOrders {
    /// Notes what is paused of an order, if anything, and says whether that is news.
    pub fn note(&self, key: &SourceKey, pauses: &Pauses) -> bool {
        let mut all = self.all.lock();
        if pauses.is_empty() {
            return all.remove(key).is_some();
        }
        let (words, until) = (pauses.words(), pauses.until());
        let before = all.remove(key);
        let is_news = before.as_ref().is_none_or(|before| before.words != words);
        let reported = before.map(|before| before.reported).unwrap_or_default();
        all.insert(key.clone(), PausedOrder { words, until, reported });
        is_news
    }

    /// Whether something is to be reported of a paused order: it was not before.
    pub fn is_event(&self, key: &SourceKey, message: &str) -> bool {
        let mut all = self.all.lock();
        let Some(paused) = all.get_mut(key) else { return false };
        let is_news = !paused.reported.iter().any(|reported| reported == message);
        if is_news {
            paused.reported.push(message.to_owned());
        }
        is_news
    }

    /// Whether a deletion is news: one that began before this agent was reported by the one before it, and a restart reports nothing twice.
    pub fn is_recent(&self, deleted: &str) -> bool {
        // Servers leave out fractions of a second.
        deleted.parse::<Timestamp>().is_ok_and(|at| at.as_second() >= self.since.as_second())
    }

    /// How long the pause of an order still lasts, if it is paused and ends by itself.
    pub fn left(&self, key: &SourceKey, now: Timestamp) -> Option<Duration> {
        let until = self.all.lock().get(key)?.until?;
        Some(Duration::try_from(until.duration_since(now)).unwrap_or_default().max(SHORTEST))
    }

    /// What is paused of an order, in words.
    pub fn words(&self, key: &SourceKey) -> Option<String> {
        Some(self.all.lock().get(key)?.words.clone())
    }

    /// How many are paused.
    pub fn len(&self) -> usize {
        self.all.lock().len()
    }

    /// The first of them, with what is paused.
    pub fn first(&self) -> Option<(SourceKey, String)> {
        let all = self.all.lock();
        all.iter().min_by_key(|(key, _)| *key).map(|(key, paused)| (key.clone(), paused.words.clone()))
    }

    /// Forgets some of them.
    pub fn forget(&self, which: impl Fn(&SourceKey) -> bool) {
        self.all.lock().retain(|key, _| !which(key));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::PAUSE;
    use crate::rules::Rules;
    use crate::rules::tests::{crontab, published};

    #[test]
    fn pauses_are_counted_and_reported_once() {
        let rules = Rules::compile(&published(json!({})), &crontab(), "agent").unwrap();
        let pauses = |value: Option<&str>| {
            let copy = json!({ "metadata": { "annotations": value.map(|value| json!({ PAUSE: value })) } });
            Pauses::of(&rules, &json!({}), Some(&copy), "2026-12-31T18:00:00Z")
        };
        let key = |name: &str| SourceKey { cluster: "c".into(), namespace: "ns".into(), name: name.into() };
        let now: Timestamp = "2026-12-31T18:00:00Z".parse().unwrap();
        let orders = PausedOrders { since: now, ..PausedOrders::default() };
        assert!(orders.is_recent("2026-12-31T18:00:00Z") && !orders.is_recent("2026-12-31T17:59:59Z"));
        assert!(!orders.note(&key("a"), &pauses(None)), "nothing is paused");
        assert!(orders.note(&key("a"), &pauses(Some("Spec"))) && !orders.note(&key("a"), &pauses(Some("Spec"))));
        assert_eq!((orders.len(), orders.left(&key("a"), now)), (1, None));
        assert!(orders.is_event(&key("a"), "waits") && !orders.is_event(&key("a"), "waits"));
        assert!(orders.note(&key("a"), &pauses(Some("All; until=2026-12-31T18:00:05Z"))), "it is another one");
        assert_eq!(orders.left(&key("a"), now), Some(Duration::from_secs(5)));
        assert!(!orders.is_event(&key("a"), "waits"), "the same is reported once");
        orders.note(&key("b"), &pauses(Some("Status")));
        assert_eq!(orders.first().unwrap().0, key("a"));
        assert!(orders.note(&key("a"), &pauses(Some("All; until=2026-12-31T18:00:00Z"))), "its time has come");
        assert_eq!(orders.words(&key("b")).unwrap(), "Status by its provider");
        orders.forget(|key| &*key.name == "b");
        assert_eq!((orders.len(), orders.is_event(&key("b"), "waits")), (0, false));
    }
}
