//! One index of a store.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::request::Key;

pub(super) type Values<K> = dyn Fn(&K) -> Vec<String> + Send + Sync;

/// An object with a value: a hash of the value, then its cluster, namespace and name.
pub(super) type Entry = (u64, [Arc<str>; 3]);

/// Objects by value and cluster.
pub(super) struct Index<K> {
    values: Box<Values<K>>,
    // One set in order: maps of maps of sets take several times the room, as most values have one object. Values can be had from the
    // objects, so their hashes do.
    entries: BTreeSet<Entry>,
}

impl<K> Index<K> {
    pub(super) fn new(values: Box<Values<K>>) -> Self {
        Self { values, entries: BTreeSet::new() }
    }

    pub(super) fn add(&mut self, key: &Key, item: &K) {
        self.entries.extend((self.values)(item).iter().map(|value| entry(value, key)));
    }

    pub(super) fn remove(&mut self, key: &Key, item: &K) {
        for value in (self.values)(item) {
            self.entries.remove(&entry(&value, key));
        }
    }

    /// Where the objects with a value may be, of one cluster if one is given. Some may have another value with the same hash.
    pub(super) fn of<'a>(
        &'a self,
        value: &str,
        cluster: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Entry> + use<'a, K> {
        let hash = hash(value);
        let first: Entry = (hash, [cluster.unwrap_or_default(), "", ""].map(Arc::from));
        let is_wanted = move |(found, [of, ..]): &&Entry| *found == hash && cluster.is_none_or(|name| **of == *name);
        self.entries.range(first..).take_while(is_wanted)
    }

    /// Whether an object has a value.
    pub(super) fn has(&self, item: &K, value: &str) -> bool {
        (self.values)(item).iter().any(|found| found == value)
    }
}

fn entry(value: &str, key: &Key) -> Entry {
    (hash(value), [key.cluster.to_arc(), key.namespace.clone(), key.name.clone()])
}

fn hash(value: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
