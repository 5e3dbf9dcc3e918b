//! State: what is remembered about primaries, in one Secret for each on the service cluster, in the reference agent's format, so that
//! either agent can replace the other.

use std::collections::BTreeMap;

use carrick_json::go;
use serde::Serialize;
use serde_json::Value;

use crate::api::{OBJECT_STATE, REMOTE_CLUSTER};
use crate::rules::ApiKind;
use crate::rules::metadata::{SourceKey, WORDS, link_to, sha1_hex};

pub use carrick_sync::memory::{
    Applied, CopyNote, PrimaryState, RememberedObject, StatusNote, checksum, entry_key, sum,
};

/// Reads the data of a state Secret (decoded).
pub fn read<'a>(data: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> PrimaryState {
    PrimaryState::from_data(&WORDS, data)
}

/// The kind of the primary, as `Kind.group`, if the state contains it. Labels are those of the Secret.
pub fn kind_of_primary(state: &PrimaryState, labels: &Value) -> Option<String> {
    let cluster = labels[REMOTE_CLUSTER].as_str()?;
    state.entries().find_map(|(key, entry)| {
        let object = RememberedObject::of(entry.last.as_ref().or(entry.next.first())?.whole()?)?;
        let source = SourceKey {
            cluster: cluster.into(),
            namespace: object.namespace.as_str().into(),
            name: object.name.as_str().into(),
        };
        let is_primary = state.record(key).is_none()
            && *key == entry_key(cluster, &object.namespace, &object.name)
            && secret_labels(&source).iter().all(|(key, value)| labels[key] == value.as_str());
        is_primary.then(|| format!("{}.{}", object.kind, object.group()))
    })
}

/// Name of a primary's state Secret.
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

/// Labels of a primary's state Secret.
pub fn secret_labels(source: &SourceKey) -> BTreeMap<String, String> {
    let link = link_to(source, None).labels.into_iter().map(|(k, v)| (k.to_owned(), v));
    link.chain([(OBJECT_STATE.to_owned(), "true".to_owned())]).collect()
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
    fn the_state_shows_whose_copies_exist() {
        let primary = SourceKey { cluster: "c".into(), namespace: "ns".into(), name: "a".into() };
        let value = |kind: &str, name: &str| json!({"apiVersion": "example.com/v1", "kind": kind, "metadata": {"namespace": "ns", "name": name}});
        let mut state = PrimaryState::default();
        state.note(&entry_key("c", "ns", "a"), value("CronTab", "a"));
        state.note_next(&entry_key("c", "ns", "b"), value("Backup", "b"));
        state.note(&entry_key("", "ns", "c"), value("Secret", "c"));
        let others = state.others_of_consumer(&primary);
        assert_eq!(
            others.iter().map(|o| (o.group(), o.kind.as_str(), o.name.as_str())).collect::<Vec<_>>(),
            [("example.com", "Backup", "b")]
        );
        let labels = json!(secret_labels(&primary));
        assert_eq!(kind_of_primary(&state, &labels).as_deref(), Some("CronTab.example.com"));
        let other = SourceKey { name: "z".into(), ..primary };
        assert_eq!(kind_of_primary(&state, &json!(secret_labels(&other))), None);
    }
}
