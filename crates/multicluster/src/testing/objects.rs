//! What a server in memory keeps.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::channel::mpsc;
use serde_json::{Value, json};

/// What finalizers hold back says when it was deleted; the time is always the same.
const DELETED_AT: &str = "2026-01-01T00:00:00Z";

/// The annotation with the cluster of an object.
const CLUSTER: &str = carrick_client::CLUSTER_ANNOTATION;

/// Which object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ObjectKey {
    pub(super) plural: String,
    pub(super) cluster: String,
    /// Empty for cluster-wide objects.
    pub(super) namespace: String,
    pub(super) name: String,
}

/// Why a write is refused: code, reason and message.
pub(super) type Refusal = (u16, &'static str, String);

/// All objects, and whoever watches them.
#[derive(Default)]
pub(super) struct Objects {
    version: u64,
    known: BTreeMap<ObjectKey, Value>,
    events: Vec<Event>,
    /// Watches may not start before this version.
    oldest: u64,
    watchers: Vec<Watcher>,
}

struct Event {
    version: u64,
    plural: String,
    line: Bytes,
}

struct Watcher {
    plural: String,
    /// Events up to this version are not for it, even if the server goes back behind it.
    since: u64,
    lines: mpsc::UnboundedSender<Bytes>,
}

impl Objects {
    /// Creates or replaces an object. Its key, uid and version are filled in.
    pub(super) fn put(&mut self, key: ObjectKey, mut object: Value) -> Value {
        self.version += 1;
        let kind = if self.known.contains_key(&key) { "MODIFIED" } else { "ADDED" };
        let metadata = &mut object["metadata"];
        metadata["name"] = json!(key.name);
        metadata["uid"] = json!(format!("{}-{}-{}", key.cluster, key.namespace, key.name));
        metadata["resourceVersion"] = json!(self.version.to_string());
        metadata["annotations"][CLUSTER] = json!(key.cluster);
        if !key.namespace.is_empty() {
            metadata["namespace"] = json!(key.namespace);
        }
        self.announce(&key.plural, kind, &object);
        self.known.insert(key, object.clone());
        object
    }

    /// Removes an object, whatever its finalizers say.
    pub(super) fn remove(&mut self, key: &ObjectKey) -> Option<Value> {
        let mut object = self.known.remove(key)?;
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.announce(&key.plural, "DELETED", &object);
        Some(object)
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Value> {
        self.known.get(key)
    }

    /// The version of everything, and the objects of a kind, of all clusters and namespaces unless said otherwise.
    pub(super) fn list(&self, plural: &str, cluster: Option<&str>, namespace: &str) -> (u64, Vec<&Value>) {
        let is_wanted = |key: &&ObjectKey| {
            key.plural == plural
                && cluster.is_none_or(|cluster| cluster == key.cluster)
                && (namespace.is_empty() || namespace == key.namespace)
        };
        (self.version, self.known.iter().filter(|(key, _)| is_wanted(key)).map(|(_, object)| object).collect())
    }

    /// Creates an object as a client does.
    pub(super) fn create(&mut self, key: ObjectKey, mut object: Value) -> Result<Value, Refusal> {
        if self.known.contains_key(&key) {
            return Err((409, "AlreadyExists", format!("{} {:?} already exists", key.plural, key.name)));
        }
        object["metadata"]["generation"] = json!(1);
        Ok(self.put(key, object))
    }

    /// Replaces an object as a client does: of the version it knows, if it says so.
    pub(super) fn update(&mut self, key: ObjectKey, mut object: Value) -> Result<Value, Refusal> {
        let Some(before) = self.known.get(&key) else { return Err(missing(&key)) };
        let wanted = object["metadata"]["resourceVersion"].as_str();
        if wanted.is_some_and(|wanted| before["metadata"]["resourceVersion"] != wanted) {
            return Err((409, "Conflict", format!("{} {:?} has been modified", key.plural, key.name)));
        }
        let deleted = before["metadata"]["deletionTimestamp"].clone();
        if let Some(generation) = before["metadata"]["generation"].as_i64() {
            let changed = i64::from(content(before) != content(&object));
            object["metadata"]["generation"] = json!(generation + changed);
        }
        if deleted.is_null() {
            return Ok(self.put(key, object));
        }
        object["metadata"]["deletionTimestamp"] = deleted;
        if has_finalizers(&object) {
            return Ok(self.put(key, object));
        }
        self.put(key.clone(), object);
        self.remove(&key).ok_or_else(|| missing(&key))
    }

    /// Changes an object by a merge patch as a client does.
    pub(super) fn patch(&mut self, key: ObjectKey, patch: &Value) -> Result<Value, Refusal> {
        let Some(before) = self.known.get(&key) else { return Err(missing(&key)) };
        let mut object = before.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            // Compared only if the patch has one.
            metadata.remove("resourceVersion");
        }
        merge(&mut object, patch);
        self.update(key, object)
    }

    /// Deletes an object as a client does: finalizers hold it back.
    pub(super) fn delete(&mut self, key: &ObjectKey) -> Result<Value, Refusal> {
        let Some(before) = self.known.get(key) else { return Err(missing(key)) };
        if !has_finalizers(before) {
            return self.remove(key).ok_or_else(|| missing(key));
        }
        let mut object = before.clone();
        object["metadata"]["deletionTimestamp"] = json!(DELETED_AT);
        Ok(self.put(key.clone(), object))
    }

    /// The events of a kind from a version on; `None` if they are not known any more.
    pub(super) fn watch(&mut self, plural: &str, since: u64) -> Option<mpsc::UnboundedReceiver<Bytes>> {
        if since < self.oldest {
            return None;
        }
        let (lines, received) = mpsc::unbounded();
        for event in self.events.iter().filter(|event| event.version > since && event.plural == plural) {
            // The receiver is right here.
            let _ = lines.unbounded_send(event.line.clone());
        }
        self.watchers.push(Watcher { plural: plural.to_owned(), since, lines });
        Some(received)
    }

    pub(super) fn is_watched(&self) -> bool {
        self.watchers.iter().any(|watcher| !watcher.lines.is_closed())
    }

    /// Ends all watches.
    pub(super) fn end_watches(&mut self) {
        self.watchers.clear();
    }

    /// Ends all watches; new ones may start only from the present.
    pub(super) fn forget_events(&mut self) {
        self.end_watches();
        self.version += 1;
        self.oldest = self.version;
        self.events.clear();
    }

    /// Everything there is now.
    pub(super) fn snapshot(&self) -> (u64, BTreeMap<ObjectKey, Value>) {
        (self.version, self.known.clone())
    }

    /// Ends all watches and goes back, version included. New watches may start from the future, and are silent until it has come.
    pub(super) fn restore(&mut self, (version, known): (u64, BTreeMap<ObjectKey, Value>)) {
        self.end_watches();
        self.events.clear();
        (self.version, self.known, self.oldest) = (version, known, version);
    }

    fn announce(&mut self, plural: &str, kind: &str, object: &Value) {
        let line = Bytes::from(format!("{}\n", json!({"type": kind, "object": object})));
        self.events.push(Event { version: self.version, plural: plural.to_owned(), line: line.clone() });
        let version = self.version;
        self.watchers.retain(|watcher| {
            let concerned = watcher.plural == plural && version > watcher.since;
            !concerned || watcher.lines.unbounded_send(line.clone()).is_ok()
        });
    }
}

fn missing(key: &ObjectKey) -> Refusal {
    (404, "NotFound", format!("{} {:?} not found", key.plural, key.name))
}

fn has_finalizers(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())
}

/// What a generation counts: all but metadata and status.
fn content(object: &Value) -> BTreeMap<&String, &Value> {
    let members = object.as_object().into_iter().flatten();
    members.filter(|(name, _)| !matches!(name.as_str(), "metadata" | "status" | "apiVersion" | "kind")).collect()
}

/// RFC 7386.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in patch {
        if value.is_null() {
            target.as_object_mut().map(|target| target.remove(name));
        } else {
            merge(&mut target[name], value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ObjectKey {
        let [plural, cluster, namespace, name] = ["widgets", "c", "ns", "w"].map(str::to_owned);
        ObjectKey { plural, cluster, namespace, name }
    }

    #[test]
    fn finalizers_hold_a_deletion_back() {
        let mut objects = Objects::default();
        objects.create(key(), json!({"metadata": {"finalizers": ["a/b"]}})).unwrap();
        let held = objects.delete(&key()).unwrap();
        assert_eq!(held["metadata"]["deletionTimestamp"], DELETED_AT);
        objects.patch(key(), &json!({"metadata": {"finalizers": null}})).unwrap();
        assert!(objects.get(&key()).is_none());
        assert_eq!(objects.delete(&key()).unwrap_err().0, 404);
    }

    #[test]
    fn generations_count_what_is_neither_metadata_nor_status() {
        let mut objects = Objects::default();
        objects.create(key(), json!({"spec": {"a": 1}})).unwrap();
        for (patch, wanted) in [
            (json!({"metadata": {"labels": {"l": "v"}}}), 1),
            (json!({"status": {"ready": true}}), 1),
            (json!({"spec": {"a": 2}}), 2),
        ] {
            assert_eq!(objects.patch(key(), &patch).unwrap()["metadata"]["generation"], wanted, "{patch}");
        }
    }

    #[test]
    fn an_older_version_is_refused() {
        let mut objects = Objects::default();
        let first = objects.create(key(), json!({})).unwrap();
        objects.update(key(), first.clone()).unwrap();
        assert_eq!(objects.update(key(), first).unwrap_err().1, "Conflict");
        assert_eq!(objects.create(key(), json!({})).unwrap_err().1, "AlreadyExists");
    }
}
