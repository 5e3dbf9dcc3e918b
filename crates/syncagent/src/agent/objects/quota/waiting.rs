//! PlacedOrders: who has one and who waits for one, where only some objects of a workspace are placed.
//!
//! ```text
//!  first of a workspace to ask ──▶ survey of all its objects, once ──▶ Line { placed, waiting: by age }
//!  ask    has one, waits, or is new: known at once                     O(log n)
//!  leave  the oldest that waits gets the place, and is reconciled      O(log n)
//! ```

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use crate::rules::metadata::SourceKey;

/// When an object was created, and its namespace and name: those of one second are ordered by these.
pub(in crate::agent::objects) type Age = [String; 3];

/// How old an object is among others.
pub(in crate::agent::objects) fn age(object: &Value) -> Age {
    ["creationTimestamp", "namespace", "name"]
        .map(|field| object["metadata"][field].as_str().unwrap_or_default().to_owned())
}

/// All objects of a workspace that the rules select.
#[derive(Debug, Default)]
pub(in crate::agent::objects) struct Survey {
    /// Those that have a place.
    pub placed: Vec<SourceKey>,
    /// Those that would like to have one.
    pub others: Vec<(Age, SourceKey)>,
}

/// The places of one PublishedResource. Nothing of this outlives the agent: after a restart the caches say the same.
#[derive(Default)]
pub(in crate::agent::objects) struct PlacedOrders(Mutex<HashMap<Arc<str>, Line>>);

/// How many places there are, and by which rules. A reconcile that began by other rules does not count for these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::agent::objects) struct Limit {
    /// How many.
    pub most: usize,
    /// What tells these rules apart from all others.
    pub rules: usize,
}

/// The places of one workspace.
#[derive(Default)]
struct Line {
    limit: Limit,
    placed: HashSet<SourceKey>,
    waiting: BTreeMap<Age, SourceKey>,
    ages: HashMap<SourceKey, Age>,
}

impl Line {
    fn of(Survey { placed, others }: Survey, limit: Limit) -> Self {
        let mut line = Self { limit, placed: placed.into_iter().collect(), ..Self::default() };
        for (age, key) in others {
            line.wait(key, age);
        }
        while line.promote().is_some() {}
        line
    }

    fn wait(&mut self, key: SourceKey, age: Age) {
        self.ages.insert(key.clone(), age.clone());
        self.waiting.insert(age, key);
    }

    fn stop_waiting(&mut self, key: &SourceKey) {
        if let Some(age) = self.ages.remove(key) {
            self.waiting.remove(&age);
        }
    }

    /// Gives a free place to the oldest that waits.
    fn promote(&mut self) -> Option<SourceKey> {
        if self.placed.len() >= self.limit.most {
            return None;
        }
        let (_, key) = self.waiting.pop_first()?;
        self.ages.remove(&key);
        self.placed.insert(key.clone());
        Some(key)
    }
}

impl PlacedOrders {
    /// Whether an object without a copy has a place; if there is none for it, it waits. Where nobody has asked before, `survey` says who is there.
    pub fn ask(&self, (key, age): (&SourceKey, Age), limit: Limit, survey: impl FnOnce() -> Survey) -> bool {
        // Two objects must not get the last place at the same time.
        let mut all = self.0.lock();
        let known = all.get(&key.cluster).is_some_and(|line| line.limit == limit);
        if !known {
            all.insert(key.cluster.clone(), Line::of(survey(), limit));
        }
        let Some(line) = all.get_mut(&key.cluster) else { return false };
        if line.placed.contains(key) || line.ages.contains_key(key) {
            return line.placed.contains(key);
        }
        line.wait(key.clone(), age);
        line.promote();
        line.placed.contains(key)
    }

    /// An object has a copy, and so it has a place, whoever gave it that.
    pub fn settle(&self, key: &SourceKey) {
        let mut all = self.0.lock();
        let Some(line) = all.get_mut(&key.cluster).filter(|line| !line.placed.contains(key)) else { return };
        line.stop_waiting(key);
        line.placed.insert(key.clone());
    }

    /// An object is deleted before it got a place: it wants none any more.
    pub fn stop_waiting(&self, key: &SourceKey) {
        if let Some(line) = self.0.lock().get_mut(&key.cluster) {
            line.stop_waiting(key);
        }
    }

    /// An object is gone, or no longer selected. Who gets its place has to be reconciled.
    pub fn leave(&self, key: &SourceKey) -> Option<SourceKey> {
        let mut all = self.0.lock();
        let line = all.get_mut(&key.cluster)?;
        line.stop_waiting(key);
        line.placed.remove(key).then(|| line.promote()).flatten()
    }

    /// Other rules select other objects, or place more or fewer of them.
    pub fn rules_changed(&self) {
        self.0.lock().clear();
    }

    /// A workspace has left.
    pub fn forget_workspace(&self, cluster: &str) {
        self.0.lock().remove(cluster);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> SourceKey {
        SourceKey { cluster: "c".into(), namespace: "n".into(), name: name.into() }
    }

    fn limit(most: usize) -> Limit {
        Limit { most, rules: 0 }
    }

    fn born(second: usize) -> Age {
        [format!("2026-01-01T00:{:02}:{:02}Z", second / 60, second % 60), "n".to_owned(), String::new()]
    }

    fn crowd(placed: &[&str], others: &[usize]) -> Survey {
        let others = others.iter().map(|second| (born(*second), key(&second.to_string()))).collect();
        Survey { placed: placed.iter().map(|name| key(name)).collect(), others }
    }

    #[test]
    fn the_last_place_goes_to_one_object_and_the_others_wait() {
        let places = PlacedOrders::default();
        assert!(places.ask((&key("1"), born(1)), limit(1), || crowd(&[], &[1, 2])));
        let nobody_asks_again = || -> Survey { panic!("it is known who is there") };
        assert!(places.ask((&key("1"), born(1)), limit(1), nobody_asks_again), "it has one");
        assert!(!places.ask((&key("2"), born(2)), limit(1), nobody_asks_again));
        assert_eq!(places.leave(&key("2")), None, "it had none");
        assert!(!places.ask((&key("2"), born(2)), limit(1), nobody_asks_again), "it is back");
        assert_eq!(places.leave(&key("1")), Some(key("2")));
        assert!(places.ask((&key("2"), born(2)), limit(1), nobody_asks_again));
        places.forget_workspace("c");
        assert!(places.0.lock().is_empty());
    }

    #[test]
    fn for_each_free_place_the_oldest_is_called() {
        let places = PlacedOrders::default();
        assert!(!places.ask((&key("9"), born(9)), limit(2), || crowd(&["a", "b"], &[5, 3, 9, 7])));
        assert_eq!([places.leave(&key("a")), places.leave(&key("b"))], [Some(key("3")), Some(key("5"))]);
        // One of them is gone before it was reconciled, and another one is deleted while it waits.
        places.stop_waiting(&key("7"));
        assert_eq!(
            [places.leave(&key("3")), places.leave(&key("9")), places.leave(&key("5"))],
            [Some(key("9")), None, None]
        );
    }

    #[test]
    fn whoever_has_a_copy_has_a_place_although_there_are_too_many() {
        let places = PlacedOrders::default();
        assert!(!places.ask((&key("5"), born(5)), limit(1), || crowd(&["a"], &[5, 6])));
        places.settle(&key("5"));
        places.settle(&key("new"));
        assert_eq!((places.leave(&key("a")), places.leave(&key("new"))), (None, None), "there were three");
        assert_eq!(places.leave(&key("5")), Some(key("6")));
        // A limit that was raised.
        places.rules_changed();
        assert!(!places.ask((&key("8"), born(8)), limit(2), || crowd(&["6"], &[7, 8])));
        assert!(places.ask((&key("7"), born(7)), limit(2), Survey::default));
        // Other rules, of which a reconcile that is under way does not know yet, select others.
        let other = Limit { rules: 1, ..limit(2) };
        assert!(places.ask((&key("8"), born(8)), other, || crowd(&["6"], &[8])));
    }

    #[test]
    fn however_many_wait_all_of_them_are_counted_once() {
        let (places, mut surveys) = (PlacedOrders::default(), 0);
        let all: Vec<usize> = (0..500).collect();
        // In whatever order they ask after a restart, and again and again.
        for second in all.iter().rev().chain(&all) {
            let has = places.ask((&key(&second.to_string()), born(*second)), limit(20), || {
                surveys += 1;
                crowd(&["placed"], &all)
            });
            assert_eq!(has, *second < 19, "{second}");
        }
        assert_eq!(surveys, 1);
        for second in 19..60 {
            assert_eq!(places.leave(&key(&(second - 19).to_string())), Some(key(&second.to_string())));
        }
    }
}
