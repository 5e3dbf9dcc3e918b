//! One index of a store.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::request::Key;

pub(super) type Values<K> = dyn Fn(&K) -> Vec<String> + Send + Sync;

/// An object with a value: the value, then its cluster, namespace and name.
pub(super) type Entry = [Arc<str>; 4];

/// Objects by value and cluster.
pub(super) struct Index<K> {
    values: Box<Values<K>>,
    // One set in order: maps of maps of sets take several times the room, as most values have one object.
    entries: BTreeSet<Entry>,
}

impl<K> Index<K> {
    pub(super) fn new(values: Box<Values<K>>) -> Self {
        Self { values, entries: BTreeSet::new() }
    }

    pub(super) fn add(&mut self, key: &Key, item: &K) {
        self.entries.extend((self.values)(item).into_iter().map(|value| entry(value, key)));
    }

    pub(super) fn remove(&mut self, key: &Key, item: &K) {
        for value in (self.values)(item) {
            self.entries.remove(&entry(value, key));
        }
    }

    /// The objects with a value, of one cluster if one is given.
    pub(super) fn of<'a>(&'a self, value: &'a str, cluster: Option<&'a str>) -> impl Iterator<Item = &'a Entry> {
        let first: Entry = [value, cluster.unwrap_or_default(), "", ""].map(Arc::from);
        let is_wanted = move |[found, of, ..]: &&Entry| **found == *value && cluster.is_none_or(|name| **of == *name);
        self.entries.range(first..).take_while(is_wanted)
    }
}

fn entry(value: String, key: &Key) -> Entry {
    [value.into(), key.cluster.to_arc(), key.namespace.clone(), key.name.clone()]
}
