//! Remembered state: which desired state was last written to a copy.
//!
//! It lives in one Secret for each primary on the service cluster, in the reference agent's format, so that either agent can take over
//! from the other. One thing is added: before a copy is changed, the new state is noted under `<key>.next`. If the agent dies between
//! changing the copy and noting that it did, the notes show which states the copy may be in. For related objects a record is kept under
//! `<key>.at`. The reference agent ignores these keys.

use std::collections::BTreeMap;
use std::fmt;

use carrick_json::go;
use serde::Serialize;
use serde_json::Value;

use super::record::Record;
use crate::api::OBJECT_STATE;
use crate::rules::ApiKind;
use crate::rules::metadata::{Link, SourceKey, sha1_hex};

const NEXT: &str = ".next";
const AT: &str = ".at";

/// What is remembered about a primary and its related objects.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    entries: BTreeMap<String, Entry>,
    records: BTreeMap<String, Record>,
}

/// What is remembered about one object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entry {
    /// Desired state that is known to have been written.
    pub last: Option<Value>,
    /// Desired states that may have been written since; more than one if the agent died several times.
    pub next: Vec<Value>,
}

impl Entry {
    /// Whether this desired state is known to have been written, and nothing after it.
    pub fn is_at(&self, desired: &Value) -> bool {
        self.last.as_ref() == Some(desired) && self.next.is_empty()
    }
}

/// An object whose copy is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace, empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Remembered {
    fn of(value: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some(Self {
            api_version: text(&value["apiVersion"])?,
            kind: text(&value["kind"])?,
            namespace: text(&value["metadata"]["namespace"]).unwrap_or_default(),
            name: text(&value["metadata"]["name"])?,
        })
    }

    /// The API group, empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

impl fmt::Display for Remembered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

impl State {
    /// Reads the data of a state Secret (decoded). Entries that are not JSON count as absent.
    pub fn from_data<'a>(data: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut state = Self::default();
        for (key, bytes) in data {
            if let Some(key) = key.strip_suffix(NEXT) {
                let next = serde_json::from_slice(bytes).unwrap_or_default();
                state.entries.entry(key.to_owned()).or_default().next = next;
            } else if let Some(key) = key.strip_suffix(AT) {
                state.records.extend(serde_json::from_slice(bytes).ok().map(|record| (key.to_owned(), record)));
            } else {
                let last = serde_json::from_slice(bytes).ok();
                state.entries.entry(key.to_owned()).or_default().last = last;
            }
        }
        state.entries.retain(|_, entry| *entry != Entry::default());
        state
    }

    /// The data of the Secret.
    pub fn to_data(&self) -> BTreeMap<String, String> {
        let mut data = BTreeMap::new();
        for (key, entry) in &self.entries {
            // A JSON value can always be encoded.
            if let Some(last) = &entry.last {
                data.insert(key.clone(), go::to_string(last).unwrap_or_default());
            }
            if !entry.next.is_empty() {
                data.insert(format!("{key}{NEXT}"), go::to_string(&entry.next).unwrap_or_default());
            }
        }
        for (key, record) in &self.records {
            data.insert(format!("{key}{AT}"), go::to_string(record).unwrap_or_default());
        }
        data
    }

    /// What is remembered under a key.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Everything that is remembered, by key.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(key, entry)| (key.as_str(), entry))
    }

    /// Notes what is about to be written.
    pub fn note_next(&mut self, key: &str, value: Value) {
        let next = &mut self.entries.entry(key.to_owned()).or_default().next;
        if !next.contains(&value) {
            next.push(value);
        }
    }

    /// Notes what was written.
    pub fn note(&mut self, key: &str, value: Value) {
        self.entries.insert(key.to_owned(), Entry { last: Some(value), next: Vec::new() });
    }

    /// The objects in kcp, other than the primary, whose copies are remembered without a record.
    pub fn others_in_kcp(&self, primary: &SourceKey) -> Vec<Remembered> {
        let own = entry_key(&primary.cluster, &primary.namespace, &primary.name);
        let others = self.entries.iter().filter(|(key, _)| **key != own && !self.records.contains_key(*key));
        others
            .filter_map(|(key, entry)| {
                let object = Remembered::of(entry.last.as_ref().or(entry.next.first())?)?;
                // Truths on the service cluster have an empty cluster in their key.
                (*key != entry_key("", &object.namespace, &object.name)).then_some(object)
            })
            .collect()
    }

    /// Whether any object of a kind is remembered, in any version.
    pub fn remembers(&self, group: &str, kind: &str) -> bool {
        let values = self.entries.values().flat_map(|entry| entry.last.iter().chain(&entry.next));
        values.filter_map(Remembered::of).any(|object| object.kind == kind && object.group() == group)
    }

    /// Which related objects are kept in line, by key.
    pub fn records(&self) -> impl Iterator<Item = (&str, &Record)> {
        self.records.iter().map(|(key, record)| (key.as_str(), record))
    }

    /// The related object that a key is about.
    pub fn record(&self, key: &str) -> Option<&Record> {
        self.records.get(key)
    }

    /// Notes that a related object is being kept in line.
    pub fn track(&mut self, key: &str, record: Record) {
        self.records.insert(key.to_owned(), record);
    }

    /// Whether anything is remembered under a key.
    pub fn knows(&self, key: &str) -> bool {
        self.entries.contains_key(key) || self.records.contains_key(key)
    }

    /// Removes what is remembered under a key.
    pub fn drop_entry(&mut self, key: &str) {
        self.entries.remove(key);
        self.records.remove(key);
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.records.is_empty()
    }
}

/// Name of the Secret that remembers a primary.
pub fn secret_name(remote: &ApiKind, source: &SourceKey) -> String {
    #[derive(Serialize)]
    struct Hashed<'a> {
        #[serde(rename = "apiVersion")]
        api_version: String,
        kind: &'a str,
        name: &'a str,
        namespace: &'a str,
    }
    let hashed = Hashed {
        api_version: remote.api_version(),
        kind: &remote.kind,
        name: &source.name,
        namespace: &source.namespace,
    };
    let text = go::to_line(&hashed).unwrap_or_default();
    format!("obj-state-{}-{}", source.cluster, &sha1_hex(&text)[..20])
}

/// Labels of the Secret that remembers a primary.
pub fn secret_labels(source: &SourceKey) -> BTreeMap<String, String> {
    let link = Link::to(source, None).labels.into_iter().map(|(k, v)| (k.to_owned(), v));
    link.chain([(OBJECT_STATE.to_owned(), "true".to_owned())]).collect()
}

/// Key of an object inside the Secret. The cluster is empty for objects whose truth is on the service cluster.
pub fn entry_key(cluster: &str, namespace: &str, name: &str) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct Hashed<'a> {
        cluster_name: &'a str,
        workspace_path: &'a str,
        namespace: &'a str,
        name: &'a str,
    }
    let hashed = Hashed { cluster_name: cluster, workspace_path: "", namespace, name };
    sha1_hex(&go::to_line(&hashed).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_and_keys_equal_those_of_the_reference_agent() {
        let kind = ApiKind {
            group: "kcp.example.com".into(),
            version: "v1".into(),
            kind: "CronTab".into(),
            plural: "crontabs".into(),
            namespaced: true,
        };
        let source = SourceKey { cluster: "c".into(), namespace: "default".into(), name: "my-crontab".into() };
        assert_eq!(secret_name(&kind, &source), "obj-state-c-3d62e88a9631d524a143");
        assert_eq!(entry_key("testcluster", "default", "my-crontab"), "ba6b92e7ed17509603b449355d5d4cbce3e526c0");
        assert_eq!(secret_labels(&source).len(), 4);
    }

    #[test]
    fn state_survives_the_secret() {
        let mut state = State::default();
        state.note("a", json!({"spec": {"x": 1}}));
        state.note_next("a", json!({"spec": {"x": 2}}));
        let data = state.to_data();
        assert_eq!(data.keys().collect::<Vec<_>>(), ["a", "a.next"]);
        let read = State::from_data(data.iter().map(|(k, v)| (k.as_str(), v.as_bytes())));
        assert_eq!(read, state);
        state.note("a", json!({"spec": {"x": 2}}));
        assert_eq!(state.to_data().len(), 1);
    }

    #[test]
    fn what_is_remembered_tells_whose_copies_there_are() {
        let primary = SourceKey { cluster: "c".into(), namespace: "ns".into(), name: "a".into() };
        let value = |kind: &str, name: &str| json!({"apiVersion": "example.com/v1", "kind": kind, "metadata": {"namespace": "ns", "name": name}});
        let mut state = State::default();
        state.note(&entry_key("c", "ns", "a"), value("CronTab", "a"));
        state.note_next(&entry_key("c", "ns", "b"), value("Backup", "b"));
        state.note(&entry_key("", "ns", "c"), value("Secret", "c"));
        let others = state.others_in_kcp(&primary);
        assert_eq!(
            others.iter().map(|o| (o.group(), o.kind.as_str(), o.name.as_str())).collect::<Vec<_>>(),
            [("example.com", "Backup", "b")]
        );
        assert!(state.remembers("example.com", "CronTab") && !state.remembers("", "CronTab"));
    }

    #[test]
    fn broken_entries_count_as_absent() {
        assert!(State::from_data([("a", b"{oops".as_slice())]).is_empty());
    }
}
