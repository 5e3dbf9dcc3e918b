//! One index of a store.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::guard::caught;
use crate::request::Key;

pub(super) type Values<K> = dyn Fn(&K) -> Vec<String> + Send + Sync;

/// An object with a value: a hash of the value, then its cluster, namespace and name.
pub(super) type IndexEntry = (u64, [Arc<str>; 3]);

/// Objects by value and cluster.
pub(super) struct Index<K> {
    values: Box<Values<K>>,
    // One ordered set: nested maps would take several times the memory, because most values have one object. The values themselves are in the
    // objects, so hashes suffice.
    entries: BTreeSet<IndexEntry>,
}

impl<K> Index<K> {
    pub(super) fn new(values: Box<Values<K>>) -> Self {
        Self { values, entries: BTreeSet::new() }
    }

    /// Adds an object; the error is the message of the panic.
    pub(super) fn add(&mut self, key: &Key, item: &K) -> Result<(), String> {
        let values = caught(|| (self.values)(item))?;
        self.entries.extend(values.iter().map(|value| entry(value, key)));
        Ok(())
    }

    pub(super) fn remove(&mut self, key: &Key, item: &K) {
        match caught(|| (self.values)(item)) {
            Ok(values) => {
                for value in values {
                    self.entries.remove(&entry(&value, key));
                }
            }
            // It panicked when the object was added as well, most probably. Slow, but nothing stays behind.
            Err(_) => self.entries.retain(|(_, [cluster, namespace, name])| {
                **cluster != *key.cluster || *namespace != key.namespace || *name != key.name
            }),
        }
    }

    /// Where the objects with a value may be, of one cluster if one is given. Some may have another value with the same hash.
    pub(super) fn of<'a>(
        &'a self,
        value: &str,
        cluster: Option<&'a str>,
    ) -> impl Iterator<Item = &'a IndexEntry> + use<'a, K> {
        let hash = hash(value);
        let first: IndexEntry = (hash, [cluster.unwrap_or_default(), "", ""].map(Arc::from));
        let is_wanted =
            move |(found, [of, ..]): &&IndexEntry| *found == hash && cluster.is_none_or(|name| **of == *name);
        self.entries.range(first..).take_while(is_wanted)
    }

    /// Whether an object has a value.
    pub(super) fn has(&self, item: &K, value: &str) -> bool {
        caught(|| (self.values)(item)).is_ok_and(|values| values.iter().any(|found| found == value))
    }
}

fn entry(value: &str, key: &Key) -> IndexEntry {
    (hash(value), [key.cluster.to_arc(), key.namespace.clone(), key.name.clone()])
}

fn hash(value: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
