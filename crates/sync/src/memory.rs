//! State: which desired state was last written to a copy.
//!
//! It is kept in one Secret per primary on the service cluster, in the reference agent's format, so that either agent can replace the
//! other. The extra keys are ignored by the reference agent:
//!
//! ```text
//!  <key>          the state that was written last, in the reference agent's format
//!  <key>.z        the same, compressed, if it would not fit otherwise
//!  <key>.sum      only its checksum, if even that does not fit
//!  <key>.next     states that are about to be written: recorded before the copy is changed, so that after a crash it is known which
//!                 states the copy may be in
//!  <key>.next.z   the same, compressed
//!  <key>.at       for related objects: which object it is, and where its copy is
//!  <key>.copy     for primaries: which object their copy is, and how the agent came to it
//!  <key>.status   what a server did with a status that it did not store as it was sent
//!  <key>.seen     what a server stored of the state, if drift is of interest: see [`crate::drift`]
//! ```

use std::collections::BTreeMap;
use std::fmt;

use carrick_json::go;
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::acquired::Acquired;
pub use crate::checksum::{checksum, sha1_hex, sum};
use crate::drift::Seen;
use crate::key::SourceKey;
use crate::mark::Mark;
use crate::object::annotation;
use crate::record::Record;
use crate::vocabulary::Vocabulary;

const NEXT: &str = ".next";
const AT: &str = ".at";
const COPY: &str = ".copy";
const STATUS: &str = ".status";
const SEEN: &str = ".seen";
const SUM: &str = ".sum";
const PACKED: &str = ".z";

/// How many bytes a state Secret may hold. Servers accept 1 MiB.
const LIMIT: usize = 1_000_000;
/// No state is larger than what an API server accepts.
const LARGEST: usize = 16 << 20;
/// How many states a copy may be in before it is written as a whole; each of them stems from a crash in the middle of a write.
const MOST_NEXT: usize = 4;
/// What is smaller is not worth packing.
const SMALL: usize = 128;
/// Compression level, from 1 (fast) to 10 (small).
const LEVEL: u8 = 4;

/// The keys of those values that are worth making smaller.
fn largest_first(data: &BTreeMap<String, Vec<u8>>, may: impl Fn(&str) -> bool) -> Vec<String> {
    let candidates = data.iter().filter(|(key, value)| value.len() > SMALL && may(key));
    let mut candidates: Vec<(usize, &String)> = candidates.map(|(key, value)| (value.len(), key)).collect();
    candidates.sort_unstable_by(|one, other| other.cmp(one));
    candidates.into_iter().map(|(_, key)| key.clone()).collect()
}

/// What is remembered about a primary and its related objects.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PrimaryState {
    entries: BTreeMap<String, StateEntry>,
    records: BTreeMap<String, Record>,
    /// Whether the Secret holds more than has been read.
    pub partial: bool,
}

/// What is remembered about one object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StateEntry {
    /// Desired state that is known to have been written.
    pub last: Option<Applied>,
    /// Desired states that may have been written since; more than one if the agent died several times.
    pub next: Vec<Applied>,
    /// A status that the server did not store as it was sent.
    pub status: Option<StatusNote>,
    /// The copy itself; related objects have it in their record.
    pub copy: Option<CopyNote>,
    /// What the server stored of the last state, if drift is of interest.
    pub seen: Option<Seen>,
}

/// A desired state that was, or may have been, written to a copy.
#[derive(Debug, Clone, PartialEq)]
pub enum Applied {
    /// The state itself.
    Whole(Value),
    /// Only its checksum.
    Sum(String),
}

/// A status that a server did not store as it was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusNote {
    /// Checksum of the status that was sent.
    pub sent: String,
    /// Checksum of what the server stored instead; `None` if it refused the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<String>,
    /// Name of the schema at that time.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub schema: String,
}

/// Which object a copy is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyNote {
    /// Its UID.
    pub uid: String,
    /// Its namespace, if its kind has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// UID of the source that it says it is the copy of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// How the agent came to it; `None` if that was before it was recorded, or if the agent died before it could record that. It is not inferred later: what
    /// was adopted says so itself, and whatever else bears the link of an order goes with it, recorded or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<Acquired>,
    /// The number of the last write to it that is remembered.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub write: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl CopyNote {
    /// What is noted of a copy as a server has it. What it says of itself comes before what is otherwise known.
    pub fn of(vocabulary: &Vocabulary, copy: &Value, how: Option<Acquired>) -> Option<Self> {
        let metadata = &copy["metadata"];
        let text = |field: &str| metadata[field].as_str().map(str::to_owned);
        Some(Self {
            uid: text("uid")?,
            namespace: text("namespace"),
            name: text("name").unwrap_or_default(),
            source: annotation(copy, vocabulary.source_uid).map(str::to_owned),
            how: Acquired::of(vocabulary, copy).or(how),
            write: annotation(copy, vocabulary.applied_state).map_or(0, |mark| Mark::read(mark).number),
        })
    }

    /// Whether an object is this copy, as it was before the last write that is remembered: restored from a backup, with another UID or
    /// with an older mark. One without a mark says nothing.
    pub fn is_restored(&self, vocabulary: &Vocabulary, copy: &Value) -> bool {
        let write = annotation(copy, vocabulary.applied_state).map(|mark| Mark::read(mark).number);
        copy["metadata"]["uid"] != *self.uid || write.is_some_and(|write| write < self.write)
    }
}

impl Applied {
    /// The checksum of the state.
    pub fn sum(&self) -> String {
        match self {
            Self::Whole(value) => sum(value),
            Self::Sum(sum) => sum.clone(),
        }
    }

    /// The state itself, if it is known.
    pub fn whole(&self) -> Option<&Value> {
        match self {
            Self::Whole(value) => Some(value),
            Self::Sum(_) => None,
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Whole(value) => value.clone(),
            Self::Sum(sum) => json!({"sum": sum}),
        }
    }

    fn of_json(value: Value) -> Self {
        match value.as_object().and_then(|fields| fields.get("sum")?.as_str().filter(|_| fields.len() == 1)) {
            Some(sum) => Self::Sum(sum.to_owned()),
            None => Self::Whole(value),
        }
    }
}

/// The entry for the copy of an order whose content is remembered by its server.
pub const BY_APPLY: &str = "server-side-apply";

impl StateEntry {
    /// Whether the server remembers the content.
    pub fn is_applied(&self) -> bool {
        let is_mark = |sum: &str| sum == BY_APPLY || Mark::read(sum).applied;
        matches!(&self.last, Some(Applied::Sum(sum)) if is_mark(sum)) && self.next.is_empty()
    }

    /// Whether the copy may be in this desired state as far as is remembered: it was written, or is about to be.
    pub fn has(&self, desired: &Value) -> bool {
        let desired = sum(desired);
        self.last.iter().chain(&self.next).any(|state| state.sum() == desired)
    }

    /// Whether something else is about to be written, or may still arrive. It must not be forgotten before a write to the copy has made
    /// sure that it cannot arrive any more.
    pub fn intends_other_than(&self, desired_sum: &str) -> bool {
        self.next.iter().any(|state| state.sum() != desired_sum)
    }

    /// Whether this desired state is known to have been written, and nothing after it.
    pub fn is_at(&self, desired: &Value) -> bool {
        self.last.as_ref().is_some_and(|last| last.sum() == sum(desired)) && self.next.is_empty()
    }
}

/// An object whose copy is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RememberedObject {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace, empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl RememberedObject {
    /// What a state says that it belongs to.
    pub fn of(value: &Value) -> Option<Self> {
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

impl fmt::Display for RememberedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

impl PrimaryState {
    /// Reads the data of a state Secret (decoded). Entries that are not JSON count as absent.
    pub fn from_data<'a>(vocabulary: &Vocabulary, data: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut state = Self::default();
        for (key, bytes) in data {
            let (key, unpacked) = match key.strip_suffix(PACKED) {
                Some(key) => match decompress_to_vec_zlib_with_limit(bytes, LARGEST) {
                    Ok(unpacked) => (key, Some(unpacked)),
                    Err(_) => continue,
                },
                None => (key, None),
            };
            state.take(vocabulary, key, unpacked.as_deref().unwrap_or(bytes));
        }
        state.entries.retain(|_, entry| *entry != StateEntry::default());
        state
    }

    fn take(&mut self, vocabulary: &Vocabulary, key: &str, bytes: &[u8]) {
        let mut entry =
            |key: &str, change: &dyn Fn(&mut StateEntry)| change(self.entries.entry(key.to_owned()).or_default());
        if let Some(key) = key.strip_suffix(NEXT) {
            let next: Vec<Value> = carrick_json::from_slice(bytes).unwrap_or_default();
            entry(key, &|entry| entry.next = next.iter().cloned().map(Applied::of_json).collect());
        } else if let Some(key) = key.strip_suffix(AT) {
            self.records.extend(Record::read(vocabulary, bytes).map(|record| (key.to_owned(), record)));
        } else if let Some(key) = key.strip_suffix(COPY) {
            entry(key, &|entry| entry.copy = serde_json::from_slice(bytes).ok());
        } else if let Some(key) = key.strip_suffix(STATUS) {
            entry(key, &|entry| entry.status = serde_json::from_slice(bytes).ok());
        } else if let Some(key) = key.strip_suffix(SEEN) {
            entry(key, &|entry| entry.seen = serde_json::from_slice(bytes).ok());
        } else if let Some(key) = key.strip_suffix(SUM) {
            entry(key, &|entry| {
                if entry.last.is_none() {
                    entry.last = std::str::from_utf8(bytes).ok().map(|sum| Applied::Sum(sum.to_owned()));
                }
            });
        } else if let Ok(value) = carrick_json::from_slice(bytes) {
            self.entries.entry(key.to_owned()).or_default().last = Some(Applied::Whole(value));
        }
    }

    /// The data of the Secret. If it would not fit, parts are compressed, the largest first; if it still does not fit, content is dropped
    /// and only its checksum kept: such a copy is written as a whole the next time.
    pub fn to_data(&self) -> BTreeMap<String, Vec<u8>> {
        let mut data = BTreeMap::new();
        for (key, entry) in &self.entries {
            // A JSON value can always be encoded.
            match &entry.last {
                Some(Applied::Whole(last)) => drop(data.insert(key.clone(), text(last))),
                Some(Applied::Sum(sum)) => drop(data.insert(format!("{key}{SUM}"), sum.clone().into_bytes())),
                None => {}
            }
            if !entry.next.is_empty() {
                let next: Vec<Value> = entry.next.iter().map(Applied::to_json).collect();
                data.insert(format!("{key}{NEXT}"), text(&next));
            }
            if let Some(status) = &entry.status {
                data.insert(format!("{key}{STATUS}"), text(status));
            }
            if let Some(seen) = &entry.seen {
                data.insert(format!("{key}{SEEN}"), text(seen));
            }
            if let Some(copy) = &entry.copy {
                data.insert(format!("{key}{COPY}"), text(copy));
            }
        }
        for (key, record) in &self.records {
            data.insert(format!("{key}{AT}"), text(record));
        }
        self.fit(&mut data);
        data
    }

    fn fit(&self, data: &mut BTreeMap<String, Vec<u8>>) {
        let mut size = data.values().map(Vec::len).sum::<usize>();
        for key in largest_first(data, |key| !key.ends_with(PACKED)) {
            if size <= LIMIT {
                return;
            }
            let plain = data.remove(&key).unwrap_or_default();
            let packed = compress_to_vec_zlib(&plain, LEVEL);
            size = size - plain.len() + packed.len();
            data.insert(format!("{key}{PACKED}"), packed);
        }
        // First the parts that are needed only after a crash. Which objects there are is never forgotten.
        let is_record = |key: &str| key.ends_with(&format!("{AT}{PACKED}"));
        let is_begun = |key: &str| key.ends_with(&format!("{NEXT}{PACKED}"));
        for is_next in [true, false] {
            let may = |key: &str| key.ends_with(PACKED) && !is_record(key) && is_begun(key) == is_next;
            for packed in largest_first(data, may) {
                if size <= LIMIT {
                    return;
                }
                let key = packed.trim_end_matches(PACKED).trim_end_matches(NEXT);
                let Some(entry) = self.entries.get(key) else { continue };
                let (key, value) = match &entry.last {
                    _ if is_next => {
                        let sums: Vec<Value> = entry.next.iter().map(|next| json!({"sum": next.sum()})).collect();
                        (format!("{key}{NEXT}"), text(&sums))
                    }
                    Some(last) => (format!("{key}{SUM}"), last.sum().into_bytes()),
                    None => continue,
                };
                size = size + value.len() - data.remove(&packed).map_or(0, |packed| packed.len());
                data.insert(key, value);
            }
        }
    }

    /// The same with checksums instead of states.
    #[must_use]
    pub fn sums(&self) -> Self {
        let of = |applied: &Applied| Applied::Sum(applied.sum());
        let entries = self.entries.iter().map(|(key, entry)| {
            let (last, next) = (entry.last.as_ref().map(of), entry.next.iter().map(of).collect());
            (key.clone(), StateEntry { last, next, ..entry.clone() })
        });
        Self { entries: entries.collect(), records: self.records.clone(), partial: true }
    }

    /// What is remembered under a key.
    pub fn entry(&self, key: &str) -> Option<&StateEntry> {
        self.entries.get(key)
    }

    /// Everything that is remembered, by key.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &StateEntry)> {
        self.entries.iter().map(|(key, entry)| (key.as_str(), entry))
    }

    /// Records what is about to be written. What was recorded before stays: it may still arrive.
    pub fn note_next(&mut self, key: &str, value: Value) {
        let next = &mut self.entries.entry(key.to_owned()).or_default().next;
        let value = Applied::Whole(value);
        if next.len() >= MOST_NEXT {
            // It is no longer known what is on the copy: it is written as a whole.
            *next = vec![Applied::Sum(value.sum())];
        } else if !next.contains(&value) {
            next.push(value);
        }
    }

    /// Records what was written.
    pub fn note(&mut self, key: &str, value: Value) {
        self.note_as(key, Applied::Whole(value));
    }

    /// The same in the form in which it is stored.
    pub fn note_as(&mut self, key: &str, applied: Applied) {
        let entry = self.entries.entry(key.to_owned()).or_default();
        entry.last = Some(applied);
        entry.next.clear();
        // It is about the state before.
        entry.seen = None;
    }

    /// Records what a server stored of a state, and what became of it since.
    pub fn note_seen(&mut self, key: &str, seen: Seen) {
        self.entries.entry(key.to_owned()).or_default().seen = Some(seen);
    }

    /// Records what a server did with a status, or that it stored one as it was sent.
    pub fn note_status(&mut self, key: &str, status: Option<StatusNote>) {
        if status.is_some() || self.entries.contains_key(key) {
            self.entries.entry(key.to_owned()).or_default().status = status;
        }
        self.entries.retain(|_, entry| *entry != StateEntry::default());
    }

    /// The consumer's objects, other than the primary, that have an entry but no record.
    pub fn others_of_consumer(&self, primary: &SourceKey) -> Vec<RememberedObject> {
        let own = entry_key(&primary.cluster, &primary.namespace, &primary.name);
        let others = self.entries.iter().filter(|(key, _)| **key != own && !self.records.contains_key(*key));
        others
            .filter_map(|(key, entry)| {
                let object = RememberedObject::of(entry.last.as_ref().or(entry.next.first())?.whole()?)?;
                // Keys of originals on the service cluster have an empty cluster.
                (*key != entry_key("", &object.namespace, &object.name)).then_some(object)
            })
            .collect()
    }

    /// The related objects that are served, by key.
    pub fn records(&self) -> impl Iterator<Item = (&str, &Record)> {
        self.records.iter().map(|(key, record)| (key.as_str(), record))
    }

    /// The related object that a key refers to.
    pub fn record(&self, key: &str) -> Option<&Record> {
        self.records.get(key)
    }

    /// Records that a related object is served. The UID of its copy is kept.
    pub fn track(&mut self, key: &str, mut record: Record) {
        if let Some(old) = self.records.get(key).filter(|old| old.is_same(&record)) {
            record.how = record.how.or(old.how.filter(|_| record.uid.is_none() || record.uid == old.uid));
            record.uid = record.uid.or_else(|| old.uid.clone());
        }
        self.records.insert(key.to_owned(), record);
    }

    /// Records related objects that are served, and what is about to be created for them: this identifies a copy if the agent dies before
    /// it can record the
    /// UID.
    pub fn track_all(&mut self, records: Vec<(String, Record, Option<Value>)>) {
        for (key, record, new) in records {
            self.track(&key, record);
            if let Some(new) = new {
                self.note_next(&key, new);
            }
        }
    }

    /// Records what was written and to which copy.
    pub fn note_written(&mut self, key: &str, applied: Applied, copy: Option<CopyNote>) {
        self.note_as(key, applied);
        if let Some(copy) = copy {
            self.note_copy(key, copy);
        }
    }

    /// Records which object a copy is. What is known of the same object is kept, should it not say so any more.
    pub fn note_copy(&mut self, key: &str, mut copy: CopyNote) {
        if let Some(record) = self.records.get_mut(key) {
            let known = record.how.filter(|_| record.uid.as_ref() == Some(&copy.uid));
            record.how = copy.how.or(known);
            record.uid = Some(copy.uid);
        } else {
            let noted = &mut self.entries.entry(key.to_owned()).or_default().copy;
            if let Some(known) = noted.take().filter(|noted| noted.uid == copy.uid) {
                copy.how = copy.how.or(known.how);
                copy.source = copy.source.or(known.source);
            }
            *noted = Some(copy);
        }
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

fn text(value: &impl Serialize) -> Vec<u8> {
    go::to_string(value).unwrap_or_default().into_bytes()
}

/// Key of an object inside the Secret. The cluster is empty for originals on the service cluster.
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
    use crate::vocabulary::tests::WORDS;
    use serde_json::json;

    fn read(data: &BTreeMap<String, Vec<u8>>) -> PrimaryState {
        PrimaryState::from_data(&WORDS, data.iter().map(|(k, v)| (k.as_str(), v.as_slice())))
    }

    #[test]
    fn state_survives_the_secret() {
        let mut state = PrimaryState::default();
        state.note("a", json!({"spec": {"x": 1}}));
        state.note_next("a", json!({"spec": {"x": 2}}));
        let note = StatusNote { sent: "s".into(), stored: None, schema: String::new() };
        state.note_status("a", Some(note));
        let data = state.to_data();
        assert_eq!(data.keys().collect::<Vec<_>>(), ["a", "a.next", "a.status"]);
        assert_eq!(read(&data), state);
        state.note("a", json!({"spec": {"x": 2}}));
        state.note_status("a", None);
        assert_eq!(state.to_data().len(), 1);
    }

    #[test]
    fn states_that_were_never_written_do_not_pile_up() {
        let mut state = PrimaryState::default();
        state.note("a", json!({"spec": 0}));
        for i in 0..30 {
            state.note_next("a", json!({"spec": i}));
        }
        assert!(state.entry("a").unwrap().next.len() <= MOST_NEXT);
    }

    #[test]
    fn whatever_its_size_a_state_fits_into_its_secret() {
        let size = |data: &BTreeMap<String, Vec<u8>>| data.values().map(Vec::len).sum::<usize>();
        // Hard to compress, and as large as an API server accepts.
        let mut seed = 1u64;
        let mut noise = |length: usize| -> String {
            let mut next = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                char::from(b' ' + u8::try_from((seed >> 33) % 90).unwrap())
            };
            (0..length).map(|_| next()).collect()
        };
        let large = json!({"data": noise(700 * 1024)});
        let mut state = PrimaryState::default();
        state.note("plain", large.clone());
        assert_eq!(state.to_data().keys().collect::<Vec<_>>(), ["plain"], "the reference agent can read it");
        state.note_next("plain", json!({"data": noise(700 * 1024)}));
        let data = state.to_data();
        assert!(
            size(&data) <= LIMIT && read(&data).entry("plain").unwrap().last.as_ref().unwrap().whole() == Some(&large)
        );
        let mut state = PrimaryState::default();
        for key in ["a", "b", "c"] {
            state.note(key, json!({"data": "text ".repeat(100 * 1024)}));
        }
        assert!(size(&state.to_data()) <= LIMIT);
        assert_eq!(read(&state.to_data()), state, "nothing is lost");
        for key in ["a", "b", "c"] {
            state.note(key, json!({"data": noise(600 * 1024)}));
        }
        let data = state.to_data();
        assert!(size(&data) <= LIMIT);
        assert_eq!(read(&data).sums(), state.sums(), "at least the checksums are kept");
    }

    #[test]
    fn very_many_small_objects_fit_as_well_and_none_is_forgotten() {
        let kind = std::sync::Arc::new(crate::ApiKind {
            group: String::new(),
            version: "v1".into(),
            kind: "ConfigMap".into(),
            plural: "configmaps".into(),
            namespaced: true,
        });
        let at = |side, namespace: &str, name: &str| crate::ObjectAddress {
            side,
            kind: kind.clone(),
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
        };
        let mut state = PrimaryState::default();
        for number in 0..2_000 {
            let name = format!("m{number}-{}", "x".repeat(240));
            let (origin, copy) = (at(WORDS.provider, "1a2b3c4d5e", &name), at(WORDS.consumer, "default", &name));
            let uid = Some("0d3ffb15-1e99-4117-9b5e-36fe0cbec651".to_owned());
            let key = sha1_hex(&name);
            state.track(&key, Record { identifier: "many".into(), origin, copy, uid, how: None });
            state.note(&key, json!({"data": {"a": sha1_hex(&key).repeat(20)}, "metadata": {"name": name}}));
            state.note_next(&key, json!({"data": {"a": sha1_hex(&name).repeat(20)}, "metadata": {"name": name}}));
        }
        let data = state.to_data();
        assert!(data.values().map(Vec::len).sum::<usize>() <= LIMIT);
        let read = read(&data);
        assert!(read.records().eq(state.records()), "which objects are served is never forgotten");
        assert_eq!(read.sums(), state.sums());
    }

    #[test]
    fn broken_entries_count_as_absent() {
        assert!(PrimaryState::from_data(&WORDS, [("a", b"{oops".as_slice())]).is_empty());
    }

    #[test]
    fn what_has_a_record_is_known_by_it_alone_and_keeps_its_uid() {
        let text = json!({
            "identifier": "creds", "origin": "kcp",
            "source": {"version": "v1", "kind": "Secret", "resource": "secrets", "namespace": "ns", "name": "b"},
            "copy": {"version": "v1", "kind": "Secret", "resource": "secrets", "namespace": "c", "name": "b"},
        });
        let record = Record::read(&WORDS, text.to_string().as_bytes()).unwrap();
        let primary = SourceKey { cluster: "c".into(), namespace: "ns".into(), name: "a".into() };
        let key = entry_key("c", "ns", "b");
        let mut state = PrimaryState::default();
        state.note(&key, json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "ns", "name": "b"}}));
        assert_eq!(state.others_of_consumer(&primary).len(), 1);
        state.track(&key, record.clone());
        assert!(state.others_of_consumer(&primary).is_empty());
        let copy = json!({"metadata": {"uid": "u", "annotations": {WORDS.acquired: "adopted-x"}}});
        state.note_written(&key, Applied::Whole(json!({"kind": "Secret"})), CopyNote::of(&WORDS, &copy, None));
        assert!(state.entry(&key).unwrap().is_at(&json!({})));
        state.track(&key, record.clone());
        let how = Some(Acquired::Adopted);
        assert_eq!(state.record(&key).map(|it| (it.uid.as_deref(), it.how)), Some((Some("u"), how)));
        let wiped = CopyNote::of(&WORDS, &json!({"metadata": {"uid": "u"}}), None);
        state.note_written(&key, Applied::Whole(json!({"kind": "Secret"})), wiped);
        assert_eq!(state.record(&key).unwrap().how, how, "how it was acquired is not forgotten");
        let mut elsewhere = record;
        elsewhere.copy.name = "other".into();
        state.track(&key, elsewhere);
        assert_eq!(state.record(&key).unwrap().uid, None, "another copy is another object");
    }
}
