//! What an agent writes into the metadata of objects, and what it leaves behind when it copies them.

use serde_json::{Map, Value};

use crate::address::Side;

/// Fields set by the server or by controllers of one cluster, which mean nothing in another.
const STRIPPED: [&str; 8] = [
    "creationTimestamp",
    "finalizers",
    "generation",
    "ownerReferences",
    "resourceVersion",
    "managedFields",
    "uid",
    "selfLink",
];

/// The finalizer, labels and annotations of one kind of agent.
#[derive(Debug)]
pub struct Vocabulary {
    /// The consumers' side.
    pub consumer: Side,
    /// The provider's side.
    pub provider: Side,
    /// Finalizer on sources while a copy may exist.
    pub finalizer: &'static str,
    /// Annotation on sources: who relies on the finalizer. Empty if nobody but the agent has it.
    pub held_by: &'static str,
    /// Label on copies: which agent owns them.
    pub agent_name: &'static str,
    /// Annotation on copies: checksum of the desired state that was written last.
    pub applied_state: &'static str,
    /// Annotation on an object in the place of a copy, by which its owner allows taking it over.
    pub adoption: &'static str,
    /// Annotation on copies: how the agent came to them. Empty if nothing is written.
    pub acquired: &'static str,
    /// Annotation on copies, by which the provider says what becomes of them when their source goes. It stays on those that are let go: until
    /// the source is gone, too, nothing else tells them from copies that have lost their link. Empty if nobody can say so.
    pub on_delete: &'static str,
    /// The field manager of the agent, which may have more appended after a slash.
    pub manager: &'static str,
    /// Labels and annotations that the agent writes to copies, and removes from those that it lets go.
    pub of_copies: &'static [&'static str],
    /// Annotation on sources: how the copy is deleted.
    pub deletion_propagation: &'static str,
    /// Annotation on copies: the resource of the source.
    pub source_resource: &'static str,
    /// Annotation on copies: UID of the source.
    pub source_uid: &'static str,
    /// What all labels and annotations of the agent begin with.
    pub prefix: &'static str,
    /// Names the source that a copy belongs to, if it carries a complete link.
    pub source_of: fn(&Value) -> Option<String>,
    /// Whether a label is copied.
    pub label_crosses: fn(&str) -> bool,
    /// Whether an annotation is copied.
    pub annotation_crosses: fn(&str) -> bool,
}

impl Vocabulary {
    /// The object without the metadata that must not be copied.
    pub fn strip(&self, object: &Value) -> Value {
        let mut out = object.clone();
        if let Some(metadata) = out.get_mut("metadata").and_then(Value::as_object_mut) {
            for key in STRIPPED {
                metadata.remove(key);
            }
            keep(metadata, "labels", self.label_crosses);
            keep(metadata, "annotations", self.annotation_crosses);
        }
        out
    }
}

fn keep(metadata: &mut Map<String, Value>, field: &str, crosses: fn(&str) -> bool) {
    if let Some(entries) = metadata.get_mut(field).and_then(Value::as_object_mut) {
        entries.retain(|key, _| crosses(key));
        if entries.is_empty() {
            metadata.remove(field);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The words of an agent in tests.
    pub(crate) static WORDS: Vocabulary = Vocabulary {
        consumer: Side::consumer("here"),
        provider: Side::provider("there"),
        finalizer: "test/finalizer",
        held_by: "test/held-by",
        agent_name: "test/agent",
        applied_state: "test/applied-state",
        adoption: "test/adoption",
        acquired: "test/acquired",
        on_delete: "test/on-delete",
        manager: "agent",
        of_copies: &["test/agent", "test/applied-state", "test/acquired", "test/source"],
        deletion_propagation: "test/deletion",
        source_resource: "test/resource",
        source_uid: "test/uid",
        prefix: "test/",
        source_of: |copy| Some(copy["metadata"]["annotations"].get("test/source")?.as_str()?.to_owned()),
        label_crosses: |key| !key.starts_with("test/"),
        annotation_crosses: |key| !key.starts_with("test/"),
    };

    #[test]
    fn what_servers_and_the_agent_write_stays_behind() {
        let object = serde_json::json!({"metadata": {
            "name": "n", "namespace": "ns", "uid": "u", "resourceVersion": "1", "generation": 2, "managedFields": [],
            "finalizers": ["f"], "ownerReferences": [], "creationTimestamp": "t", "selfLink": "s", "generateName": "g-",
            "labels": {"mine": "1", "test/agent": "evil"}, "annotations": {"test/uid": "u"},
        }, "spec": {"a": 1}});
        let left = serde_json::json!({
            "metadata": {"name": "n", "namespace": "ns", "generateName": "g-", "labels": {"mine": "1"}}, "spec": {"a": 1}
        });
        assert_eq!(WORDS.strip(&object), left);
    }
}
