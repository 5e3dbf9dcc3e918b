//! Deletions that nobody has reconciled yet.

use std::collections::{BTreeMap, HashMap};

use crate::name::ClusterName;
use crate::request::Key;

/// How many deletions are remembered.
const MOST: usize = 10_000;

/// Deletions in clusters that another process works on: if that one dies before it has reconciled them, this one has to.
#[derive(Default)]
pub(super) struct Deletions {
    /// Each with its number.
    by_cluster: HashMap<ClusterName, HashMap<Key, u64>>,
    /// Oldest first.
    in_order: BTreeMap<u64, Key>,
    next: u64,
    /// Whether some had to be forgotten.
    overrun: bool,
}

impl Deletions {
    pub(super) fn remember(&mut self, key: Key) {
        self.forget(&key);
        self.next += 1;
        self.in_order.insert(self.next, key.clone());
        self.by_cluster.entry(key.cluster.clone()).or_default().insert(key, self.next);
        if self.in_order.len() > MOST
            && let Some((_, oldest)) = self.in_order.first_key_value()
        {
            let oldest = oldest.clone();
            self.forget(&oldest);
            if !std::mem::replace(&mut self.overrun, true) {
                tracing::warn!(
                    remembered = MOST,
                    "There are more deletions in clusters of other processes than can be remembered; the oldest are forgotten."
                );
            }
        }
    }

    /// The object is there again.
    pub(super) fn forget(&mut self, key: &Key) {
        let Some(keys) = self.by_cluster.get_mut(&key.cluster) else { return };
        if let Some(number) = keys.remove(key) {
            self.in_order.remove(&number);
        }
        if keys.is_empty() {
            self.by_cluster.remove(&key.cluster);
        }
    }

    /// Everything that was deleted in a cluster.
    pub(super) fn take(&mut self, cluster: &ClusterName) -> Vec<Key> {
        let keys = self.by_cluster.remove(cluster).unwrap_or_default();
        for number in keys.values() {
            self.in_order.remove(number);
        }
        keys.into_keys().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(cluster: &str, name: &str) -> Key {
        Key::new(cluster.parse().unwrap(), "", name)
    }

    #[test]
    fn deletions_are_remembered_until_they_are_taken_or_undone() {
        let mut deletions = Deletions::default();
        for (cluster, name) in [("a", "1"), ("a", "2"), ("b", "1"), ("a", "1")] {
            deletions.remember(key(cluster, name));
        }
        deletions.forget(&key("a", "2"));
        deletions.forget(&key("c", "2"));
        assert_eq!(deletions.take(&"a".parse().unwrap()), [key("a", "1")]);
        assert!(deletions.take(&"a".parse().unwrap()).is_empty());
        assert_eq!(deletions.take(&"b".parse().unwrap()), [key("b", "1")]);
        assert!(deletions.in_order.is_empty() && deletions.by_cluster.is_empty());
    }

    #[test]
    fn the_oldest_of_too_many_are_forgotten() {
        let mut deletions = Deletions::default();
        deletions.remember(key("a", "first"));
        for number in 0..MOST {
            deletions.remember(key("b", &number.to_string()));
        }
        assert!(deletions.take(&"a".parse().unwrap()).is_empty());
        assert_eq!(deletions.take(&"b".parse().unwrap()).len(), MOST);
    }
}
