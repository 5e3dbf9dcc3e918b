//! The objects of one watch, as they were seen or written last.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use carrick_bind_api::mapping::ObjectKey;
use carrick_client::{Error, Object, Packer};
use parking_lot::RwLock;
use serde_json::Value;

/// How many objects that are gone are remembered: an answer may arrive after the watch has told that its object is gone.
const MOST_GONE: usize = 1024;

/// The objects of one watch.
#[derive(Default)]
pub(super) struct Store {
    state: RwLock<StoreState>,
    packer: Packer,
}

#[derive(Default)]
struct StoreState {
    objects: HashMap<ObjectKey, Entry>,
    /// The uids of objects that have gone of late.
    gone: VecDeque<Arc<str>>,
    synced: bool,
    failing: Option<Outage>,
}

/// One object, or no more than its metadata.
struct Entry {
    object: Object,
    is_bare: bool,
}

/// Why a watch does not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outage {
    /// What the server said.
    pub words: String,
    /// Whether the server does not serve this kind at all.
    pub not_served: bool,
}

impl Store {
    /// An object.
    pub fn get(&self, key: &ObjectKey) -> Option<Object> {
        self.state.read().objects.get(key).map(|entry| entry.object.clone())
    }

    /// Whether only the metadata of an object is kept.
    pub fn is_bare(&self, key: &ObjectKey) -> bool {
        self.state.read().objects.get(key).is_some_and(|entry| entry.is_bare)
    }

    /// All keys.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.state.read().objects.keys().cloned().collect()
    }

    /// All objects.
    pub fn objects(&self) -> Vec<Object> {
        self.state.read().objects.values().map(|entry| entry.object.clone()).collect()
    }

    /// Whether an object with this uid is there.
    pub fn has_uid(&self, uid: &str) -> bool {
        self.state.read().objects.values().any(|entry| &*entry.object.uid == uid)
    }

    /// Whether the objects were listed once. They stay known while the server is away.
    pub fn is_synced(&self) -> bool {
        self.state.read().synced
    }

    /// Why the watch does not work at the moment.
    pub fn outage(&self) -> Option<Outage> {
        self.state.read().failing.clone()
    }

    /// The watch does not work.
    pub fn fail(&self, error: &Error) {
        let outage = Outage { words: error.to_string(), not_served: error.is_not_found() };
        self.state.write().failing = Some(outage);
    }

    /// The watch works again.
    pub fn recover(&self) {
        self.state.write().failing = None;
    }

    /// Takes over a complete list, and returns the keys of what is new, changed or gone.
    pub fn replace(&self, listed: Vec<Told>) -> Vec<ObjectKey> {
        let mut changed = Vec::new();
        let mut state = self.state.write();
        let mut before = std::mem::take(&mut state.objects);
        for told in listed {
            let key = key_of(&told.object);
            let newest = match before.remove(&key) {
                Some(known) if known.covers(&told) => known,
                _ => {
                    changed.push(key.clone());
                    self.entry(&told)
                }
            };
            state.objects.insert(key, newest);
        }
        changed.extend(before.into_keys());
        state.failing = None;
        changed
    }

    /// What follows from the list is known: decisions may rest on it. Returns whether that is new.
    pub fn mark_synced(&self) -> bool {
        !std::mem::replace(&mut self.state.write().synced, true)
    }

    /// An object has come or changed. Returns whether that was not known.
    pub fn put(&self, told: &Told) -> bool {
        let key = key_of(&told.object);
        let mut state = self.state.write();
        if state.objects.get(&key).is_some_and(|known| known.covers(told)) {
            return false;
        }
        state.objects.insert(key, self.entry(told));
        true
    }

    fn entry(&self, told: &Told) -> Entry {
        Entry { object: self.packer.pack(&told.object), is_bare: told.is_bare }
    }

    /// An object is gone. Returns whether that was not known.
    pub fn remove(&self, object: &Object) -> bool {
        let key = key_of(object);
        let mut state = self.state.write();
        if state.gone.len() >= MOST_GONE {
            state.gone.pop_front();
        }
        state.gone.push_back(Arc::clone(&object.uid));
        let is_it = state.objects.get(&key).is_some_and(|known| known.object.uid == object.uid);
        is_it && state.objects.remove(&key).is_some()
    }

    /// We have written an object: what follows rests on that, even if the watch is slow.
    pub fn wrote(&self, object: &Value) {
        let Some(object) = Object::from_value(object) else { return };
        if !self.state.read().gone.contains(&object.uid) {
            self.put(&Told { object, is_bare: false });
        }
    }
}

/// What a watch tells, or no more than its metadata.
pub(super) struct Told {
    /// The object.
    pub object: Object,
    /// Whether the rest of it was left out.
    pub is_bare: bool,
}

impl Entry {
    /// Whether nothing new is told.
    fn covers(&self, told: &Told) -> bool {
        is_newer(&self.object, &told.object) || is_same(&self.object, &told.object) && (told.is_bare || !self.is_bare)
    }
}

/// The key of an object.
pub(super) fn key_of(object: &Object) -> ObjectKey {
    let namespace = (!object.namespace.is_empty()).then(|| object.namespace.to_string());
    ObjectKey { namespace, name: object.name.to_string() }
}

fn is_same(known: &Object, object: &Object) -> bool {
    known.uid == object.uid && known.resource_version == object.resource_version
}

/// Whether what is known is newer than what a watch tells now. Versions are numbers that grow.
fn is_newer(known: &Object, object: &Object) -> bool {
    let number = |object: &Object| object.resource_version.parse::<u64>().ok();
    known.uid == object.uid && number(known).zip(number(object)).is_some_and(|(known, told)| known > told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn value(name: &str, uid: &str, version: u64) -> Value {
        json!({"metadata": {"name": name, "uid": uid, "resourceVersion": version.to_string()}})
    }

    fn object(name: &str, uid: &str, version: u64) -> Object {
        Object::from_value(&value(name, uid, version)).unwrap()
    }

    fn told(name: &str, uid: &str, version: u64) -> Told {
        Told { object: object(name, uid, version), is_bare: false }
    }

    fn version(store: &Store, name: &str) -> Option<String> {
        Some(store.get(&ObjectKey::cluster(name))?.resource_version.to_string())
    }

    #[test]
    fn what_we_wrote_is_not_undone_by_a_slow_watch() {
        let store = Store::default();
        assert!(store.put(&told("a", "1", 5)));
        store.wrote(&value("a", "1", 9));
        assert!(!store.put(&told("a", "1", 7)) && !store.put(&told("a", "1", 9)));
        assert_eq!(version(&store, "a").as_deref(), Some("9"));
        assert!(store.put(&told("a", "2", 8)), "another object of the same name");
        assert!(!store.remove(&object("a", "1", 10)), "that is about the one before");
        assert!(store.remove(&object("a", "2", 11)));
        store.wrote(&value("a", "2", 10));
        assert_eq!(version(&store, "a"), None, "it is gone");
    }

    #[test]
    fn what_is_bare_is_completed_and_not_stripped_again() {
        let (store, key) = (Store::default(), ObjectKey::cluster("a"));
        let bare = || Told { object: object("a", "1", 5), is_bare: true };
        assert!(store.put(&bare()) && store.is_bare(&key) && !store.put(&bare()));
        assert!(store.put(&told("a", "1", 5)) && !store.is_bare(&key));
        assert!(!store.put(&bare()) && !store.is_bare(&key));
        store.replace(vec![bare()]);
        assert!(!store.is_bare(&key));
    }

    #[test]
    fn a_list_tells_what_is_new_changed_and_gone() {
        let store = Store::default();
        assert!(!store.is_synced());
        let mut changed = store.replace(vec![told("a", "1", 1), told("b", "2", 2), told("c", "3", 3)]);
        changed.sort();
        assert_eq!(changed, ["a", "b", "c"].map(ObjectKey::cluster));
        assert!(!store.is_synced() && store.mark_synced() && !store.mark_synced() && store.is_synced());
        store.wrote(&value("b", "2", 9));
        let mut changed = store.replace(vec![told("a", "1", 4), told("b", "2", 2)]);
        changed.sort();
        assert_eq!(changed, ["a", "c"].map(ObjectKey::cluster));
        assert_eq!((version(&store, "b").as_deref(), store.keys().len()), (Some("9"), 2));
    }
}
