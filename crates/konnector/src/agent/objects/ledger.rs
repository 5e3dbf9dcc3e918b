//! What is remembered about pieces of work as long as the konnector runs.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use parking_lot::Mutex;

use super::outcome::Problem;
use crate::decide::objects::Noted;

/// How many writes in a row an object may need. Finalizer and copy, trace, status and a little more.
const MOST_ROUNDS: u32 = 8;

/// What is remembered about pieces of work.
pub(in crate::agent) struct Ledger<K> {
    notes: Mutex<HashMap<K, Noted>>,
    problems: Mutex<BTreeMap<K, Problem>>,
    /// How often something was done for an object without coming to rest.
    rounds: Mutex<HashMap<K, u32>>,
}

impl<K> Default for Ledger<K> {
    fn default() -> Self {
        Self { notes: Mutex::default(), problems: Mutex::default(), rounds: Mutex::default() }
    }
}

impl<K: Clone + Eq + Hash + Ord> Ledger<K> {
    /// What is remembered about an object.
    pub fn noted(&self, key: &K) -> Noted {
        self.notes.lock().get(key).cloned().unwrap_or_default()
    }

    /// Remembers something about an object; most are as they should be and take no room.
    pub fn note(&self, key: &K, noted: Noted) {
        let mut notes = self.notes.lock();
        if noted == Noted::default() {
            notes.remove(key);
        } else {
            notes.insert(key.clone(), noted);
        }
    }

    /// What is wrong with a piece of work, or nothing; whether that is new.
    pub fn set_problem(&self, key: &K, problem: Option<Problem>) -> bool {
        let mut problems = self.problems.lock();
        match problem {
            Some(problem) => problems.insert(key.clone(), problem.clone()) != Some(problem),
            None => problems.remove(key).is_some(),
        }
    }

    /// What is wrong with some pieces of work.
    pub fn problems(&self, which: impl Fn(&K) -> bool) -> BTreeMap<K, Problem> {
        let problems = self.problems.lock();
        problems.iter().filter(|(key, _)| which(key)).map(|(key, it)| (key.clone(), it.clone())).collect()
    }

    /// Something was done for an object: whether that should have come to rest by now.
    pub fn another_round(&self, key: &K) -> bool {
        let mut rounds = self.rounds.lock();
        let count = rounds.entry(key.clone()).or_default();
        *count = count.saturating_add(1);
        *count > MOST_ROUNDS
    }

    /// An object has come to rest.
    pub fn at_rest(&self, key: &K) {
        self.rounds.lock().remove(key);
    }

    /// Forgets everything about the others.
    pub fn retain(&self, lives: impl Fn(&K) -> bool) {
        self.rounds.lock().retain(|key, _| lives(key));
        self.notes.lock().retain(|key, _| lives(key));
        self.problems.lock().retain(|key, _| lives(key));
    }
}
