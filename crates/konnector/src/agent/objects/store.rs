//! The objects of one watch, as they were seen or written last.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use carrick_bind_api::mapping::ObjectKey;
use carrick_client::{Error, Object, Packer};
use carrick_sync::executor::refusal::is_unserved;
use parking_lot::RwLock;
use serde_json::Value;

use super::consumers::Keys;

/// How many objects that are gone are remembered: an answer may arrive after the watch has told that its object is gone.
const MOST_GONE: usize = 1024;

/// The objects of one watch, which may have several parts: one for each endpoint where it is open.
#[derive(Default)]
pub(in crate::agent) struct Store {
    keys: Keys,
    state: RwLock<StoreState>,
    packer: Packer,
}

#[derive(Default)]
struct StoreState {
    objects: HashMap<ObjectKey, Entry>,
    /// The uids of objects that have gone of late.
    gone: VecDeque<Arc<str>>,
    /// Whether it is known which parts there are.
    opened: bool,
    parts: BTreeMap<Arc<str>, Part>,
}

#[derive(Default)]
struct Part {
    synced: bool,
    failing: Option<Outage>,
}

/// One object, or no more than its metadata.
struct Entry {
    object: Object,
    is_bare: bool,
    /// The part that has told it last; an empty name if we have written it ourselves and no part has told it before.
    part: Arc<str>,
    /// Whether its version is of an earlier life of the server, so that it cannot be compared.
    past: bool,
}

/// Why a watch does not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::agent) struct Outage {
    /// What the server said.
    pub words: String,
    /// Whether the server does not serve this kind at all.
    pub not_served: bool,
}

impl Store {
    /// An empty one.
    pub fn new(keys: Keys) -> Self {
        Self { keys, ..Self::default() }
    }

    /// The key of an object.
    pub fn key_of(&self, object: &Object) -> ObjectKey {
        self.keys.of(object)
    }

    /// There is a part, whose objects are not known yet.
    pub fn open(&self, part: &Arc<str>) {
        let mut state = self.state.write();
        state.opened = true;
        state.parts.entry(Arc::clone(part)).or_default();
    }

    /// It is known which parts there are, even if there is none.
    pub fn opened(&self) {
        self.state.write().opened = true;
    }

    /// A part is not there any more. What it has told stays: nobody has said that it is gone.
    pub fn close(&self, part: &str) {
        self.state.write().parts.remove(part);
    }

    /// Whether the objects of a part were listed once.
    pub fn has_synced(&self, part: &str) -> bool {
        self.state.read().parts.get(part).is_some_and(|part| part.synced)
    }

    /// The namespaces that objects are in: logical cluster and name, by the namespace of their keys.
    pub fn namespaces(&self) -> BTreeMap<String, (String, String)> {
        let state = self.state.read();
        let named = state.objects.iter().filter_map(|(key, entry)| Some((key.namespace.clone()?, &entry.object)));
        named.map(|(flat, object)| (flat, (object.cluster.to_string(), object.namespace.to_string()))).collect()
    }

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

    /// Whether there is an object like this in a namespace.
    pub fn any_in(&self, namespace: &str, is: impl Fn(&Object) -> bool) -> bool {
        let state = self.state.read();
        state.objects.iter().any(|(key, entry)| key.namespace.as_deref() == Some(namespace) && is(&entry.object))
    }

    /// Whether an object with this uid is there.
    pub fn has_uid(&self, uid: &str) -> bool {
        self.state.read().objects.values().any(|entry| &*entry.object.uid == uid)
    }

    /// Whether the objects of all parts were listed once. They stay known while the server is away.
    pub fn is_synced(&self) -> bool {
        let state = self.state.read();
        state.opened && state.parts.values().all(|part| part.synced)
    }

    /// Why the watch does not work at the moment.
    pub fn outage(&self) -> Option<Outage> {
        self.state.read().parts.values().find_map(|part| part.failing.clone())
    }

    /// The watch does not work.
    pub fn fail(&self, part: &Arc<str>, error: &Error) {
        let outage = Outage { words: error.to_string(), not_served: is_unserved(error) };
        self.state.write().parts.entry(Arc::clone(part)).or_default().failing = Some(outage);
    }

    /// The watch works again.
    pub fn recover(&self, part: &Arc<str>) {
        self.state.write().parts.entry(Arc::clone(part)).or_default().failing = None;
    }

    /// Takes over a complete list of a part, and returns the keys of what is new, changed or gone.
    pub fn replace(&self, part: &Arc<str>, listed: Vec<SeenObject>) -> Vec<ObjectKey> {
        let mut changed = Vec::new();
        let mut state = self.state.write();
        let mut before: HashMap<ObjectKey, Entry> =
            state.objects.extract_if(|_, entry| entry.part == *part || entry.part.is_empty()).collect();
        for told in listed {
            let key = self.key_of(&told.object);
            // What another part has told of this object was before it moved here.
            let known = before.remove(&key).or_else(|| state.objects.remove(&key));
            let newest = match known {
                Some(known) if known.covers(part, &told) => Entry { part: Arc::clone(part), ..known },
                _ => {
                    changed.push(key.clone());
                    self.entry(part, &told)
                }
            };
            state.objects.insert(key, newest);
        }
        // What we have written may be in another part.
        for (key, entry) in before {
            if entry.part.is_empty() && !part.is_empty() {
                state.objects.insert(key, entry);
            } else {
                changed.push(key);
            }
        }
        state.parts.entry(Arc::clone(part)).or_default().failing = None;
        changed
    }

    /// The server of a part has gone back in time: versions that are known from it say nothing about those that come, and what was
    /// gone may be there again.
    pub fn went_back(&self, part: &str) {
        let mut state = self.state.write();
        state.gone.clear();
        let known = state.objects.values_mut().filter(|entry| *entry.part == *part || entry.part.is_empty());
        known.for_each(|entry| entry.past = true);
    }

    /// What follows from the list of a part is known: decisions may rest on it. Returns whether that is new.
    pub fn mark_synced(&self, part: &Arc<str>) -> bool {
        let mut state = self.state.write();
        state.opened = true;
        !std::mem::replace(&mut state.parts.entry(Arc::clone(part)).or_default().synced, true)
    }

    /// An object has come or changed. Returns whether that was not known.
    pub fn put(&self, part: &Arc<str>, told: &SeenObject) -> bool {
        let key = self.key_of(&told.object);
        let mut state = self.state.write();
        // What we write stays with the part that has told it.
        let part = match state.objects.get(&key) {
            Some(known) if part.is_empty() => Arc::clone(&known.part),
            _ => Arc::clone(part),
        };
        if let Some(known) = state.objects.get_mut(&key)
            && known.covers(&part, told)
        {
            if !part.is_empty() {
                known.part = part;
            }
            return false;
        }
        state.objects.insert(key, self.entry(&part, told));
        true
    }

    fn entry(&self, part: &Arc<str>, told: &SeenObject) -> Entry {
        Entry { object: self.packer.pack(&told.object), is_bare: told.is_bare, part: Arc::clone(part), past: false }
    }

    /// An object is gone. Returns whether that was not known.
    pub fn remove(&self, object: &Object) -> bool {
        let key = self.key_of(object);
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
            self.put(&Arc::from(""), &SeenObject { object, is_bare: false });
        }
    }
}

/// What a watch tells, or no more than its metadata.
pub(in crate::agent) struct SeenObject {
    /// The object.
    pub object: Object,
    /// Whether the rest of it was left out.
    pub is_bare: bool,
}

impl Entry {
    /// Whether nothing new is told. Versions of different parts cannot be compared: their servers count for themselves.
    fn covers(&self, part: &Arc<str>, told: &SeenObject) -> bool {
        let comparable = !self.past && (self.part == *part || self.part.is_empty());
        comparable && self.covers_version(told)
    }

    fn covers_version(&self, told: &SeenObject) -> bool {
        is_newer(&self.object, &told.object) || is_same(&self.object, &told.object) && (told.is_bare || !self.is_bare)
    }
}

/// Namespace and name of an object.
pub(in crate::agent) fn key_of(object: &Object) -> ObjectKey {
    Keys::Plain.of(object)
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
    use crate::decide::tenants::FlatKeys;
    use serde_json::json;

    fn value(name: &str, uid: &str, version: u64) -> Value {
        json!({"metadata": {"name": name, "uid": uid, "resourceVersion": version.to_string()}})
    }

    fn part() -> Arc<str> {
        Arc::from("")
    }

    fn object(name: &str, uid: &str, version: u64) -> Object {
        Object::from_value(&value(name, uid, version)).unwrap()
    }

    fn told(name: &str, uid: &str, version: u64) -> SeenObject {
        SeenObject { object: object(name, uid, version), is_bare: false }
    }

    fn version(store: &Store, name: &str) -> Option<String> {
        Some(store.get(&ObjectKey::cluster(name))?.resource_version.to_string())
    }

    #[test]
    fn what_we_wrote_is_not_undone_by_a_slow_watch() {
        let store = Store::default();
        assert!(store.put(&part(), &told("a", "1", 5)));
        store.wrote(&value("a", "1", 9));
        assert!(!store.put(&part(), &told("a", "1", 7)) && !store.put(&part(), &told("a", "1", 9)));
        assert_eq!(version(&store, "a").as_deref(), Some("9"));
        assert!(store.put(&part(), &told("a", "2", 8)), "another object of the same name");
        assert!(!store.remove(&object("a", "1", 10)), "that is about the one before");
        assert!(store.remove(&object("a", "2", 11)));
        store.wrote(&value("a", "2", 10));
        assert_eq!(version(&store, "a"), None, "it is gone");
    }

    #[test]
    fn versions_of_different_parts_are_not_compared() {
        let (store, a, b) = (Store::default(), Arc::<str>::from("a"), Arc::<str>::from("b"));
        assert!(store.put(&a, &told("x", "1", 1000)));
        store.wrote(&value("x", "1", 1001));
        assert!(!store.put(&a, &told("x", "1", 1000)), "what we wrote is newer");
        assert!(store.put(&b, &told("x", "1", 7)), "it has moved to a server that counts for itself");
        assert!(!store.put(&b, &told("x", "1", 6)) && store.put(&b, &told("x", "1", 8)));
        assert_eq!(store.replace(&a, vec![told("x", "1", 1000)]).len(), 1, "and back again");
        assert_eq!(version(&store, "x").as_deref(), Some("1000"));
    }

    #[test]
    fn after_a_restore_the_older_objects_of_the_server_win() {
        let store = Store::default();
        assert!(store.put(&part(), &told("x", "1", 1000)) && store.put(&part(), &told("y", "2", 1001)));
        assert!(store.remove(&object("y", "2", 1002)));
        store.went_back("");
        let mut changed = store.replace(&part(), vec![told("x", "1", 800), told("y", "2", 801)]);
        changed.sort();
        assert_eq!(changed, [ObjectKey::cluster("x"), ObjectKey::cluster("y")]);
        assert_eq!(version(&store, "x").as_deref(), Some("800"));
        store.wrote(&value("y", "2", 802));
        assert_eq!(version(&store, "y").as_deref(), Some("802"), "it is there again");
        assert!(!store.put(&part(), &told("x", "1", 799)), "within one life versions are compared as before");
    }

    #[test]
    fn what_is_bare_is_completed_and_not_stripped_again() {
        let (store, key) = (Store::default(), ObjectKey::cluster("a"));
        let bare = || SeenObject { object: object("a", "1", 5), is_bare: true };
        assert!(store.put(&part(), &bare()) && store.is_bare(&key) && !store.put(&part(), &bare()));
        assert!(store.put(&part(), &told("a", "1", 5)) && !store.is_bare(&key));
        assert!(!store.put(&part(), &bare()) && !store.is_bare(&key));
        store.replace(&part(), vec![bare()]);
        assert!(!store.is_bare(&key));
    }

    #[test]
    fn a_list_tells_what_is_new_changed_and_gone() {
        let store = Store::default();
        assert!(!store.is_synced());
        let mut changed = store.replace(&part(), vec![told("a", "1", 1), told("b", "2", 2), told("c", "3", 3)]);
        changed.sort();
        assert_eq!(changed, ["a", "b", "c"].map(ObjectKey::cluster));
        assert!(!store.is_synced() && store.mark_synced(&part()) && !store.mark_synced(&part()) && store.is_synced());
        store.wrote(&value("b", "2", 9));
        let mut changed = store.replace(&part(), vec![told("a", "1", 4), told("b", "2", 2)]);
        changed.sort();
        assert_eq!(changed, ["a", "c"].map(ObjectKey::cluster));
        assert_eq!((version(&store, "b").as_deref(), store.keys().len()), (Some("9"), 2));
    }

    fn of_cluster(cluster: &str, version: u64) -> SeenObject {
        let metadata = json!({"name": "a", "uid": format!("{cluster}-{version}"), "resourceVersion": version.to_string(),
            "annotations": {"kcp.io/cluster": cluster}});
        SeenObject { object: Object::from_value(&json!({"metadata": metadata})).unwrap(), is_bare: false }
    }

    #[test]
    fn a_list_of_one_part_says_nothing_about_the_others_and_a_part_that_is_gone_takes_nothing_along() {
        let store = Store::new(Keys::Flat(FlatKeys::new("c-1")));
        let (one, two): (Arc<str>, Arc<str>) = (Arc::from("one"), Arc::from("two"));
        assert!(!store.is_synced(), "nobody knows which parts there are");
        store.open(&one);
        store.open(&two);
        assert_eq!(store.replace(&one, vec![of_cluster("x", 1)]).len(), 1);
        assert!(store.mark_synced(&one) && !store.is_synced() && store.has_synced("one"));
        assert_eq!(store.replace(&two, vec![of_cluster("y", 1)]).len(), 1);
        assert!(store.mark_synced(&two) && store.is_synced());
        assert_eq!(store.keys().len(), 2, "equal names of two workspaces are two objects");
        assert_eq!(store.replace(&one, Vec::new()).len(), 1);
        assert_eq!(store.keys().len(), 1);
        store.close("two");
        assert!(store.is_synced() && store.keys().len() == 1 && !store.has_synced("two"));
        // What we have written ourselves belongs to no part until one tells it.
        let written = json!({"metadata": {"name": "b", "uid": "b", "resourceVersion": "9", "annotations": {"kcp.io/cluster": "x"}}});
        store.wrote(&written);
        assert!(store.replace(&one, Vec::new()).is_empty() && store.keys().len() == 2);
        let told = SeenObject { object: Object::from_value(&written).unwrap(), is_bare: false };
        assert!(!store.put(&one, &told));
        assert_eq!(store.replace(&one, Vec::new()).len(), 1);
    }
}
