//! A cache of one watch, by object name.

use std::collections::{BTreeMap, BTreeSet};

/// What a watch has reported so far. Objects missing from a new list disappear when that list is complete, not before.
#[derive(Debug)]
pub(super) struct WatchCache<T> {
    objects: BTreeMap<String, T>,
    listed: Option<BTreeSet<String>>,
    synced: bool,
}

impl<T> Default for WatchCache<T> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), listed: None, synced: false }
    }
}

impl<T> WatchCache<T> {
    /// A new list begins.
    pub(super) fn begin(&mut self) {
        self.listed = Some(BTreeSet::new());
    }

    /// The list is complete.
    pub(super) fn sync(&mut self) {
        if let Some(listed) = self.listed.take() {
            self.objects.retain(|name, _| listed.contains(name));
        }
        self.synced = true;
    }

    /// An object exists.
    pub(super) fn insert(&mut self, name: &str, object: T) {
        if let Some(listed) = &mut self.listed {
            listed.insert(name.to_owned());
        }
        self.objects.insert(name.to_owned(), object);
    }

    /// An object is gone.
    pub(super) fn remove(&mut self, name: &str) {
        self.objects.remove(name);
    }

    /// Whether a complete list was seen.
    pub(super) fn synced(&self) -> bool {
        self.synced
    }

    /// All objects.
    pub(super) fn objects(&self) -> &BTreeMap<String, T> {
        &self.objects
    }

    /// All objects, to be changed.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.objects.values_mut()
    }

    /// One object, to be changed.
    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        self.objects.get_mut(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_vanish_only_when_a_list_is_complete() {
        let mut cache = WatchCache::default();
        cache.begin();
        cache.insert("a", 1);
        cache.insert("b", 2);
        assert!(!cache.synced());
        cache.sync();
        assert!(cache.synced());
        cache.begin();
        cache.insert("b", 3);
        assert_eq!(cache.objects().len(), 2);
        cache.sync();
        assert_eq!(cache.objects(), &BTreeMap::from([("b".to_owned(), 3)]));
        cache.remove("b");
        assert!(cache.objects().is_empty());
    }
}
