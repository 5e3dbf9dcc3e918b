//! What is worked out from stored objects and kept until they change, because unpacking a large object costs more than the rest of a request.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use crate::store::{Key, Object, Store};

/// What was worked out from each object of some kind.
pub struct Derived<T> {
    known: Mutex<Known<T>>,
}

struct Known<T> {
    /// By address: the state it was worked out from, and what it is.
    of: HashMap<Key, (u64, Arc<T>)>,
    /// With more entries than this, those of objects that no longer exist are removed.
    limit: usize,
}

impl<T> Default for Derived<T> {
    fn default() -> Self {
        Self { known: Mutex::new(Known { of: HashMap::new(), limit: 64 }) }
    }
}

impl<T> Derived<T> {
    /// What follows from an object; `make` is called once per state.
    pub fn of(&self, store: &Store, key: &Key, object: &Object, make: impl FnOnce(&Value) -> T) -> Arc<T> {
        if let Some((serial, known)) = self.known.lock().of.get(key)
            && *serial == object.serial()
        {
            return known.clone();
        }
        // Not through the store's cache of recent values, where a few large objects would displace all others.
        let made = Arc::new(make(&object.value()));
        let mut known = self.known.lock();
        known.of.insert(key.clone(), (object.serial(), made.clone()));
        if known.of.len() > known.limit {
            known.of.retain(|key, _| store.has(key));
            known.limit = known.of.len() * 2 + 64;
        }
        made
    }

    /// The same for an object by its address, if it exists.
    pub fn at(&self, store: &Store, key: &Key, make: impl FnOnce(&Value) -> T) -> Option<Arc<T>> {
        let Some(object) = store.peek(key) else {
            self.known.lock().of.remove(key);
            return None;
        };
        Some(self.of(store, key, &object, make))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::store::{Expect, Kind};

    #[test]
    fn every_revision_is_looked_at_once_and_what_is_gone_is_forgotten() {
        let (store, derived, kind) = (Store::default(), Derived::default(), Kind::new("", "things"));
        let mut made = 0;
        let mut size = |key: &Key| {
            let found = derived.at(&store, key, |object| {
                made += 1;
                object["size"].as_i64()
            });
            (found.and_then(|size| *size), made)
        };
        let key = Key::new(&kind, "a", "", "one");
        assert_eq!(size(&key), (None, 0));
        store.commit(&key, Expect::Absent, Some(json!({"metadata": {}, "size": 1}))).unwrap();
        assert_eq!(size(&key), (Some(1), 1));
        assert_eq!(size(&key), (Some(1), 1));
        store.commit(&key, Expect::Any, Some(json!({"metadata": {}, "size": 2}))).unwrap();
        assert_eq!(size(&key), (Some(2), 2));
        store.commit(&key, Expect::Any, None).unwrap();
        assert_eq!(size(&key), (None, 2));
        for number in 0..500 {
            let key = Key::new(&kind, "a", "", &number.to_string());
            store.commit(&key, Expect::Absent, Some(json!({"metadata": {}}))).unwrap();
            assert_eq!(size(&key).0, None);
            store.commit(&key, Expect::Any, None).unwrap();
        }
        assert!(derived.known.lock().of.len() < 100);
    }
}
