//! One index of a store.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::name::ClusterName;
use crate::request::Key;

pub(super) type Values<K> = dyn Fn(&K) -> Vec<String> + Send + Sync;

/// Namespace and name.
pub(super) type Name = (Arc<str>, Arc<str>);

/// Objects by value and cluster.
pub(super) struct Index<K> {
    values: Box<Values<K>>,
    entries: HashMap<String, HashMap<ClusterName, HashSet<Name>>>,
}

impl<K> Index<K> {
    pub(super) fn new(values: Box<Values<K>>) -> Self {
        Self { values, entries: HashMap::new() }
    }

    pub(super) fn add(&mut self, key: &Key, item: &K) {
        for value in (self.values)(item) {
            let clusters = self.entries.entry(value).or_default();
            let names = clusters.entry(key.cluster.clone()).or_default();
            names.insert((key.namespace.clone(), key.name.clone()));
        }
    }

    pub(super) fn remove(&mut self, key: &Key, item: &K) {
        for value in (self.values)(item) {
            let Some(clusters) = self.entries.get_mut(&value) else { continue };
            if let Some(names) = clusters.get_mut(&key.cluster) {
                names.remove(&(key.namespace.clone(), key.name.clone()));
                if names.is_empty() {
                    clusters.remove(&key.cluster);
                }
            }
            if clusters.is_empty() {
                self.entries.remove(&value);
            }
        }
    }

    /// The objects of one cluster with a value.
    pub(super) fn of(&self, cluster: &str, value: &str) -> impl Iterator<Item = &Name> {
        self.entries.get(value).and_then(|clusters| clusters.get(cluster)).into_iter().flatten()
    }

    /// The objects of all clusters with a value.
    pub(super) fn all(&self, value: &str) -> impl Iterator<Item = (&ClusterName, &Name)> {
        let clusters = self.entries.get(value).into_iter().flatten();
        clusters.flat_map(|(cluster, names)| names.iter().map(move |name| (cluster, name)))
    }
}
