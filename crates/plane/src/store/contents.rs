//! All objects, and when which part of them was last written.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::key::{Key, Kind};
use super::object::Object;

/// Cluster, namespace and name with zero bytes between them: one piece of memory, in the order of lists.
pub(super) type ObjectAddress = Box<str>;
/// The objects of a kind.
pub(super) type Objects = BTreeMap<ObjectAddress, Object>;

/// All objects at one revision.
#[derive(Debug, Clone, Default)]
pub(super) struct Contents {
    pub(super) revision: u64,
    pub(super) objects: BTreeMap<Kind, Objects>,
    /// Writes of all lives of the store, counted. Revisions come back after a restore; this number does not.
    pub(super) touches: u64,
    /// Number of the last write per kind and cluster, to invalidate what is derived from it.
    pub(super) touched: HashMap<(Kind, Arc<str>), u64>,
    /// The same per kind, whatever the cluster.
    pub(super) written: HashMap<Kind, u64>,
}

impl Contents {
    /// Remembers that a kind was written in a cluster.
    pub(super) fn touch(&mut self, key: &Key) {
        self.touches += 1;
        self.touched.insert((key.kind.clone(), key.cluster.clone()), self.touches);
        match self.written.get_mut(&key.kind) {
            Some(last) => *last = self.touches,
            None => drop(self.written.insert(key.kind.clone(), self.touches)),
        }
    }

    /// Every object.
    pub(super) fn all(&self) -> impl Iterator<Item = (Key, Object)> {
        self.objects
            .iter()
            .flat_map(|(kind, objects)| objects.iter().map(|(place, object)| (key_at(kind, place), object.clone())))
    }
}

/// The address of an object among those of its kind.
pub(super) fn place(key: &Key) -> ObjectAddress {
    [&*key.cluster, &*key.namespace, &*key.name].join("\0").into()
}

/// The key of the object at an address.
pub(super) fn key_at(kind: &Kind, place: &str) -> Key {
    let mut parts = place.splitn(3, '\0');
    let mut part = || parts.next().unwrap_or_default().into();
    Key { kind: kind.clone(), cluster: part(), namespace: part(), name: part() }
}
