//! Orders whose last reconcile failed: where on its way each of them stopped, why, and since when.

use std::collections::{BTreeMap, HashMap};

use parking_lot::Mutex;
use serde::Serialize;

use crate::agent::metrics::fix;
use crate::rules::metadata::SourceKey;

/// The stations of an order, in the order in which it passes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Station {
    /// The consumer's object is read and held.
    Order,
    /// Its copy is named and written.
    Copy,
    /// The copy's status is written back.
    Status,
    /// Related objects are copied in either direction.
    Related,
}

/// Why an order stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Failure {
    /// Where.
    pub station: Station,
    /// Why, in one word.
    pub reason: String,
    /// Why, in the words of whoever refused.
    pub message: String,
    /// Whether no waiting will help.
    pub lasts: bool,
    /// When it failed first; other reasons in between count as well.
    pub since: String,
    /// When it failed last.
    pub at: String,
    /// How often it has failed in a row.
    pub times: u64,
    /// What to do about it.
    pub fix: &'static str,
}

impl Failure {
    /// A first failure.
    pub fn new(station: Station, reason: &str, message: String, lasts: bool, now: jiff::Timestamp) -> Self {
        let at = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        Self { station, reason: reason.to_owned(), message, lasts, since: at.clone(), at, times: 1, fix: fix(reason) }
    }
}

/// What a consumer was warned of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::agent::objects) struct Warned {
    /// In these words.
    pub message: String,
    /// Whether another object has the name of the copy.
    pub taken: bool,
}

/// All orders of one PublishedResource that fail now. One that succeeds is forgotten at once.
#[derive(Default)]
pub(crate) struct Failing(Mutex<HashMap<SourceKey, Failure>>);

impl Failing {
    /// Notes a failure, and returns the one before it, if the order failed already.
    pub fn note(&self, key: &SourceKey, mut failure: Failure) -> Option<Failure> {
        let mut all = self.0.lock();
        if let Some(before) = all.get(key) {
            failure.since.clone_from(&before.since);
            failure.times = before.times + 1;
        }
        all.insert(key.clone(), failure)
    }

    /// An order fails no more; returns how it failed before.
    pub fn healed(&self, key: &SourceKey) -> Option<Failure> {
        self.0.lock().remove(key)
    }

    /// Why an order fails, if it does.
    pub fn get(&self, key: &SourceKey) -> Option<Failure> {
        self.0.lock().get(key).cloned()
    }

    /// How many orders fail.
    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// All orders that fail, in a lasting order.
    pub fn keys(&self) -> Vec<SourceKey> {
        let mut keys: Vec<SourceKey> = self.0.lock().keys().cloned().collect();
        keys.sort_unstable();
        keys
    }

    /// What is wrong, reason by reason: how many orders fail for it, and one of them.
    pub fn reasons(&self) -> Vec<(SourceKey, Failure, usize)> {
        let mut groups: HashMap<&str, (&SourceKey, &Failure, usize)> = HashMap::new();
        let all = self.0.lock();
        for (key, failure) in &*all {
            let group = groups.entry(&failure.reason).or_insert((key, failure, 0));
            group.2 += 1;
            // The same one every time, and not whichever comes first.
            if key < group.0 {
                (group.0, group.1) = (key, failure);
            }
        }
        groups.into_values().map(|(key, failure, count)| (key.clone(), failure.clone(), count)).collect()
    }

    /// How many stopped for each reason.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for failure in self.0.lock().values() {
            *counts.entry(failure.reason.clone()).or_default() += 1;
        }
        counts
    }

    /// How many stopped for a reason.
    pub fn count(&self, reason: &str) -> usize {
        self.0.lock().values().filter(|failure| failure.reason == reason).count()
    }

    /// Those that no waiting will help: how many, and the first few with the reason.
    pub fn lasting(&self, most: usize, except: &str) -> (usize, Vec<(SourceKey, String)>) {
        let all = self.0.lock();
        let mut lasting: Vec<(&SourceKey, &Failure)> =
            all.iter().filter(|(_, failure)| failure.lasts && failure.reason != except).collect();
        lasting.sort_unstable_by_key(|(key, _)| *key);
        let first = lasting.iter().take(most).map(|(key, failure)| ((*key).clone(), failure.message.clone()));
        (lasting.len(), first.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> SourceKey {
        SourceKey { cluster: "c".into(), namespace: "ns".into(), name: name.into() }
    }

    fn failure(reason: &str, lasts: bool, second: i64) -> Failure {
        let now = jiff::Timestamp::from_second(second).unwrap();
        Failure::new(Station::Copy, reason, format!("{reason}!"), lasts, now)
    }

    #[test]
    fn an_order_fails_until_it_is_healed_and_counts_from_its_first_failure() {
        let failing = Failing::default();
        assert_eq!(failing.note(&key("a"), failure("Forbidden", true, 0)), None);
        assert_eq!(failing.note(&key("a"), failure("Invalid", true, 5)).unwrap().reason, "Forbidden");
        let now = failing.get(&key("a")).unwrap();
        let wanted = ("Invalid", "1970-01-01T00:00:00Z", "1970-01-01T00:00:05Z", 2);
        assert_eq!((now.reason.as_str(), now.since.as_str(), now.at.as_str(), now.times), wanted);
        assert_eq!(failing.healed(&key("a")).unwrap().reason, "Invalid");
        assert_eq!((failing.get(&key("a")), failing.len(), failing.healed(&key("a"))), (None, 0, None));
    }

    #[test]
    fn reasons_are_counted_with_one_example_each() {
        let failing = Failing::default();
        for (name, reason, lasts) in [("b", "Forbidden", true), ("a", "Forbidden", true), ("c", "Timeout", false)] {
            failing.note(&key(name), failure(reason, lasts, 0));
        }
        let mut reasons: Vec<_> =
            failing.reasons().into_iter().map(|(key, failure, count)| (failure.reason, key.name, count)).collect();
        reasons.sort();
        assert_eq!(reasons, [("Forbidden".to_owned(), "a".into(), 2), ("Timeout".to_owned(), "c".into(), 1)]);
        assert_eq!(failing.lasting(1, "Held"), (2, vec![(key("a"), "Forbidden!".to_owned())]));
        assert_eq!(failing.keys(), ["a", "b", "c"].map(key));
        assert_eq!(failing.counts().values().sum::<usize>(), failing.len());
    }
}
