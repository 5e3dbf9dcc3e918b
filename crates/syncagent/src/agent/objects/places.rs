//! Places: who has one that no cache shows yet, and who waits for one, where only some objects of a workspace are placed.

use std::collections::HashSet;

use parking_lot::Mutex;

use crate::rules::metadata::SourceKey;

/// The places of one PublishedResource. Nothing of this outlives the agent: after a restart the caches say the same.
#[derive(Default)]
pub(super) struct Places {
    taken: Mutex<HashSet<SourceKey>>,
    waiting: Mutex<HashSet<SourceKey>>,
}

impl Places {
    /// Asks for a place for an object without a copy: how many others come first, at most `most`. `ahead` counts them, given those that
    /// have a place which no cache shows. If that leaves a place, the object has it from now on; if not, it waits.
    pub fn ask(&self, key: &SourceKey, most: usize, ahead: impl FnOnce(&HashSet<SourceKey>) -> usize) -> usize {
        // Two objects must not get the last place at the same time.
        let mut taken = self.taken.lock();
        if taken.contains(key) {
            return 0;
        }
        let ahead = ahead(&taken);
        if ahead < most {
            taken.insert(key.clone());
            self.waiting.lock().remove(key);
        } else {
            self.waiting.lock().insert(key.clone());
        }
        ahead
    }

    /// An object needs no place here any more: the caches show it, or it is gone.
    pub fn leave(&self, key: &SourceKey) {
        self.taken.lock().remove(key);
        self.waiting.lock().remove(key);
    }

    /// The objects of a workspace that wait for a place.
    pub fn waiting(&self, cluster: &str) -> Vec<SourceKey> {
        self.waiting.lock().iter().filter(|key| &*key.cluster == cluster).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_place_goes_to_one_object_and_the_others_wait() {
        let places = Places::default();
        let key = |name: &str| SourceKey { cluster: "c".into(), namespace: "n".into(), name: name.into() };
        assert_eq!(places.ask(&key("a"), 1, HashSet::len), 0);
        assert_eq!(places.ask(&key("a"), 1, |_| 9), 0, "it has one");
        assert_eq!(places.ask(&key("b"), 1, HashSet::len), 1);
        assert_eq!((places.waiting("c"), places.waiting("d")), (vec![key("b")], Vec::new()));
        places.leave(&key("a"));
        assert_eq!(places.ask(&key("b"), 1, HashSet::len), 0);
        assert!(places.waiting("c").is_empty());
    }
}
