//! How much of each cluster the stores of a fleet keep.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::name::ClusterName;

/// What an object takes beside its JSON: its key, its header and its places in maps.
pub(super) const OVERHEAD: usize = 512;

/// How many bytes the stores of a fleet keep of each cluster, and how many they may.
#[derive(Debug)]
pub(crate) struct Ledger {
    most: usize,
    taken: Mutex<HashMap<ClusterName, usize>>,
}

impl Ledger {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, taken: Mutex::default() }
    }

    /// How many bytes more may be kept of a cluster.
    pub(crate) fn room(&self, cluster: &str) -> usize {
        self.most.saturating_sub(self.taken.lock().get(cluster).copied().unwrap_or_default())
    }

    /// Something of a cluster takes another number of bytes than before.
    pub(super) fn replace(&self, cluster: &ClusterName, before: usize, now: usize) {
        let mut all = self.taken.lock();
        let taken = all.entry(cluster.clone()).or_default();
        *taken = (*taken + now).saturating_sub(before);
        if *taken == 0 {
            all.remove(cluster);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use carrick_client::Object;
    use carrick_client::watch::Event;
    use serde_json::json;

    use super::*;
    use crate::endpoint::ClusterKey;
    use crate::name::EndpointId;
    use crate::request::Key;
    use crate::store::FleetStore;

    /// An object of a cluster that cannot be compressed.
    fn object(cluster: &str, name: &str, version: u32, length: usize) -> (Key, Event) {
        let mut seed = u64::from(version) + name.len() as u64;
        let text: String = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'A' + u8::try_from((seed >> 33) % 26).unwrap())
        })
        .take(length)
        .collect();
        let metadata = json!({"name": name, "uid": name, "resourceVersion": version.to_string(),
            "annotations": {"kcp.io/cluster": cluster}});
        let object = Object::from_value(&json!({"metadata": metadata, "spec": {"text": text}})).unwrap();
        (Key::new(cluster.parse().unwrap(), "", name), Event::Applied(object))
    }

    #[test]
    fn what_exceeds_the_room_of_a_cluster_is_known_by_its_metadata_until_there_is_room() {
        let ledger = Arc::new(Ledger::new(30_000));
        let store = FleetStore::compact_within(Some(ledger.clone()));
        let (endpoint, of) = (EndpointId::from("e"), ClusterKey::KCP);
        let apply = |cluster: &str, name: &str, version: u32, length: usize| {
            let (key, event) = object(cluster, name, version, length);
            store.apply(&endpoint, &of, event);
            key
        };
        let is_whole = |key: &Key| store.lookup(key).unwrap().left_out().is_none();
        let first = apply("greedy", "first", 1, 20_000);
        let second = apply("greedy", "second", 2, 20_000);
        let modest = apply("modest", "one", 3, 20_000);
        assert!(is_whole(&first) && is_whole(&modest) && !is_whole(&second));
        assert_eq!(store.lookup(&second).unwrap().value()["metadata"]["name"], "second");
        assert!(ledger.room("greedy") > 0, "what is left out takes no room");
        let small = apply("greedy", "small", 4, 10);
        assert!(is_whole(&small), "small ones are kept in any case");

        let whole = |version: u32| match object("greedy", "second", version, 20_000).1 {
            Event::Applied(object) => object,
            _ => unreachable!(),
        };
        assert!(!store.complete(&second, whole(2)), "there is no room");
        apply("greedy", "first", 5, 1_000);
        assert!(!store.complete(&second, whole(9)), "it is another version");
        assert!(store.complete(&second, whole(2)) && is_whole(&second));
        apply("greedy", "first", 6, 20_000);
        assert!(!is_whole(&first), "one that grows may exceed it, too");
        let (key, Event::Applied(gone)) = object("greedy", "second", 7, 1) else { unreachable!() };
        store.apply(&endpoint, &of, Event::Deleted(gone));
        assert_eq!(store.lookup(&key), None);
        drop(store);
        assert_eq!((ledger.room("greedy"), ledger.taken.lock().len()), (30_000, 0), "nothing is kept any more");
    }

    #[test]
    fn each_cluster_has_its_own_room() {
        let ledger = Ledger::new(100);
        let (one, other) = ("one".parse().unwrap(), "other".parse().unwrap());
        ledger.replace(&one, 0, 70);
        ledger.replace(&other, 0, 10);
        assert_eq!((ledger.room("one"), ledger.room("other"), ledger.room("third")), (30, 90, 100));
        ledger.replace(&one, 70, 120);
        assert_eq!(ledger.room("one"), 0, "what is there already may exceed it");
        ledger.replace(&one, 120, 0);
        assert_eq!(ledger.room("one"), 100);
        assert_eq!(ledger.taken.lock().len(), 1, "nothing is remembered of clusters without objects");
    }
}
