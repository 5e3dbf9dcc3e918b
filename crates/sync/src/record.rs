//! Records: which related object a state entry belongs to, and where its copy is.
//!
//! The reference agent's entry holds only the original. The record is kept beside it, under `<key>.at`, and is written before anything
//! else is done for the object. It says what to take back when the rules no longer select the object, and who else uses it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::acquired::Acquired;
use crate::address::{ObjectAddress, Role, Side};
use crate::kind::ApiKind;
use crate::vocabulary::Vocabulary;

/// One related object that is served for a primary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "StoredRecord")]
pub struct Record {
    /// Identifier of the entry in `spec.related`.
    pub identifier: String,
    /// The original.
    pub origin: ObjectAddress,
    /// Its copy.
    pub copy: ObjectAddress,
    /// UID of the copy, once it is known: an object that somebody else puts in its place has a different one.
    pub uid: Option<String>,
    /// How the agent came to that copy; `None` if it was recorded by a version that did not tell.
    pub how: Option<Acquired>,
}

impl Record {
    /// Reads a record; `None` if it is not one.
    pub fn read(vocabulary: &Vocabulary, bytes: &[u8]) -> Option<Self> {
        let stored: StoredRecord = serde_json::from_slice(bytes).ok()?;
        let (origin, copy) = match stored.origin {
            StoredSide::Kcp => (vocabulary.consumer, vocabulary.provider),
            StoredSide::Service => (vocabulary.provider, vocabulary.consumer),
        };
        Some(Self {
            identifier: stored.identifier,
            origin: stored.source.at(origin),
            copy: stored.copy.at(copy),
            uid: stored.uid,
            how: stored.how,
        })
    }

    /// Whether both refer to the same original and the same copy, for the same entry.
    pub fn is_same(&self, other: &Self) -> bool {
        self.identifier == other.identifier
            && self.origin.is_same_object(&other.origin)
            && self.copy.is_same_object(&other.copy)
    }
}

/// A record as it is stored.
#[derive(Clone, Serialize, Deserialize)]
struct StoredRecord {
    identifier: String,
    origin: StoredSide,
    source: StoredAddress,
    copy: StoredAddress,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    how: Option<Acquired>,
}

/// The words of the first agent that wrote records.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StoredSide {
    Kcp,
    Service,
}

#[derive(Clone, Serialize, Deserialize)]
struct StoredAddress {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    group: String,
    version: String,
    kind: String,
    resource: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    name: String,
}

impl From<Record> for StoredRecord {
    fn from(record: Record) -> Self {
        let origin = match record.origin.side.role {
            Role::Consumer => StoredSide::Kcp,
            Role::Provider => StoredSide::Service,
        };
        Self {
            identifier: record.identifier,
            origin,
            source: record.origin.into(),
            copy: record.copy.into(),
            uid: record.uid,
            how: record.how,
        }
    }
}

impl From<ObjectAddress> for StoredAddress {
    fn from(address: ObjectAddress) -> Self {
        let kind = Arc::unwrap_or_clone(address.kind);
        Self {
            group: kind.group,
            version: kind.version,
            kind: kind.kind,
            resource: kind.plural,
            namespace: address.namespace,
            name: address.name,
        }
    }
}

impl StoredAddress {
    fn at(self, side: Side) -> ObjectAddress {
        let kind = ApiKind {
            group: self.group,
            version: self.version,
            kind: self.kind,
            plural: self.resource,
            namespaced: self.namespace.is_some(),
        };
        ObjectAddress { side, kind: Arc::new(kind), namespace: self.namespace, name: self.name }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::tests::WORDS;
    use serde_json::json;

    #[test]
    fn a_record_survives_the_secret_and_ignores_versions() {
        let text = json!({
            "identifier": "creds", "origin": "kcp",
            "source": {"version": "v1", "kind": "Secret", "resource": "secrets", "namespace": "default", "name": "a"},
            "copy": {"group": "g", "version": "v1", "kind": "Safe", "resource": "safes", "name": "b"},
        });
        let record = Record::read(&WORDS, text.to_string().as_bytes()).unwrap();
        assert_eq!((record.origin.side, record.copy.side), (WORDS.consumer, WORDS.provider));
        assert!(record.origin.kind.namespaced && !record.copy.kind.namespaced);
        assert_eq!(serde_json::to_value(&record).unwrap(), text);
        let mut other = record.clone();
        other.copy.kind = Arc::new(ApiKind { version: "v2".into(), ..(*record.copy.kind).clone() });
        assert!(record.is_same(&other));
        other.copy.name = "c".into();
        assert!(!record.is_same(&other));
    }

    #[test]
    fn records_of_other_entries_and_places_are_others() {
        let text = json!({
            "identifier": "creds", "origin": "kcp",
            "source": {"version": "v1", "kind": "Secret", "resource": "secrets", "namespace": "default", "name": "a"},
            "copy": {"version": "v1", "kind": "Secret", "resource": "secrets", "namespace": "c1", "name": "a"},
        });
        let record = Record::read(&WORDS, text.to_string().as_bytes()).unwrap();
        let mut other = record.clone();
        other.identifier = "more".into();
        assert!(!record.is_same(&other));
        for namespace in [None, Some("elsewhere".to_owned())] {
            let mut other = record.clone();
            other.origin.namespace = namespace;
            assert!(!record.is_same(&other));
        }
    }
}
