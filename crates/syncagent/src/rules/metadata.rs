//! Metadata of synchronized objects: what is stripped, what is never copied, and what links a copy to its source.

use std::fmt;
use std::sync::Arc;

use carrick_kcp::{CLAIM_LABEL_PREFIX, CLUSTER_ANNOTATION};
use serde_json::{Map, Value};
use sha1::{Digest, Sha1};

use super::hex;
use crate::api::{
    ADOPTION, AGENT_NAME, APPLIED_STATE, DELETION_PROPAGATION, HELD_BY, RELATED_IDENTIFIER, RELATED_OWNER,
    RELATED_PREFIX, RELATED_PRIMARY_NAME, RELATED_PRIMARY_NAMESPACE, REMOTE_CLUSTER, REMOTE_NAME, REMOTE_NAME_HASH,
    REMOTE_NAMESPACE, REMOTE_NAMESPACE_HASH, REMOTE_RESOURCE, REMOTE_UID, REMOTE_WORKSPACE_PATH,
};

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

/// Where a source is in kcp. Cloning is cheap.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceKey {
    /// Logical cluster.
    pub cluster: Arc<str>,
    /// Namespace, empty for cluster-scoped kinds.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl fmt::Display for SourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cluster://{}/{}/{}", self.cluster, self.namespace, self.name)
    }
}

/// Labels and annotations on a copy that lead back to its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Labels, without the agent's name.
    pub labels: Vec<(&'static str, String)>,
    /// Annotations.
    pub annotations: Vec<(&'static str, String)>,
    /// Annotations that distinguish sources with the same cluster, namespace and name. The reference agent's copies lack them: they are
    /// written together with other changes, and their absence alone is no reason to write.
    pub marks: Vec<(&'static str, String)>,
}

impl Link {
    /// The link to a source.
    pub fn to(source: &SourceKey, workspace_path: Option<&str>) -> Self {
        let mut labels = vec![(REMOTE_CLUSTER, source.cluster.to_string()), (REMOTE_NAME_HASH, sha1_hex(&source.name))];
        let mut annotations = vec![(REMOTE_NAME, source.name.to_string())];
        if !source.namespace.is_empty() {
            labels.push((REMOTE_NAMESPACE_HASH, sha1_hex(&source.namespace)));
            annotations.push((REMOTE_NAMESPACE, source.namespace.to_string()));
        }
        if let Some(path) = workspace_path {
            annotations.push((REMOTE_WORKSPACE_PATH, path.to_owned()));
        }
        Self { labels, annotations, marks: Vec::new() }
    }

    /// The same for one particular object, with its resource in kcp and its UID.
    #[must_use]
    pub fn to_object(mut self, resource: &str, source: &Value) -> Self {
        self.marks.push((REMOTE_RESOURCE, resource.to_owned()));
        if let Some(uid) = source["metadata"]["uid"].as_str() {
            self.marks.push((REMOTE_UID, uid.to_owned()));
        }
        self
    }

    /// The source a copy leads back to, if it carries a complete link.
    pub fn source_of(copy: &Value) -> Option<SourceKey> {
        let cluster = label(copy, REMOTE_CLUSTER)?;
        let name = annotation(copy, REMOTE_NAME)?;
        let namespace = annotation(copy, REMOTE_NAMESPACE).unwrap_or_default();
        Some(SourceKey { cluster: cluster.into(), namespace: namespace.into(), name: name.into() })
    }

    /// Whether the copy carries these labels.
    pub fn is_on(&self, copy: &Value) -> bool {
        self.labels.iter().all(|(key, value)| label(copy, key) == Some(value))
    }

    /// Writes the link and the agent's name to a copy.
    pub fn write(&self, copy: &mut Value, agent_name: &str) {
        for (key, value) in &self.labels {
            set(copy, "labels", key, value);
        }
        set(copy, "labels", AGENT_NAME, agent_name);
        for (key, value) in self.annotations.iter().chain(&self.marks) {
            set(copy, "annotations", key, value);
        }
    }
}

/// The object without the metadata that must not be copied.
pub fn strip(object: &Value) -> Value {
    let mut out = object.clone();
    if let Some(metadata) = out.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in STRIPPED {
            metadata.remove(key);
        }
        keep(metadata, "labels", crosses_as_label);
        keep(metadata, "annotations", crosses_as_annotation);
    }
    out
}

/// A label of an object.
pub fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["labels"].get(key)?.as_str()
}

/// Whether the object is being deleted.
pub fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// An annotation of an object.
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"].get(key)?.as_str()
}

/// Sets a label (`field` = `labels`) or an annotation.
pub fn set(object: &mut Value, field: &str, key: &str, value: &str) {
    let metadata = &mut object["metadata"];
    if !metadata[field].is_object() {
        metadata[field] = Value::Object(Map::new());
    }
    metadata[field][key] = value.into();
}

/// Lower-case hexadecimal SHA-1 of a text.
pub fn sha1_hex(text: &str) -> String {
    hex(&Sha1::digest(text.as_bytes()))
}

/// The agent's own label is not copied either: a consumer who sets it must not detach the copy from its agent.
fn crosses_as_label(key: &str) -> bool {
    !matches!(
        key,
        REMOTE_CLUSTER | REMOTE_NAME_HASH | REMOTE_NAMESPACE_HASH | AGENT_NAME | RELATED_OWNER | RELATED_IDENTIFIER
    ) && !key.starts_with(CLAIM_LABEL_PREFIX)
}

fn crosses_as_annotation(key: &str) -> bool {
    !matches!(
        key,
        CLUSTER_ANNOTATION
            | "kubectl.kubernetes.io/last-applied-configuration"
            | REMOTE_NAME
            | REMOTE_NAMESPACE
            | REMOTE_WORKSPACE_PATH
            | REMOTE_RESOURCE
            | REMOTE_UID
            | APPLIED_STATE
            | HELD_BY
            | ADOPTION
            | DELETION_PROPAGATION
            | RELATED_PRIMARY_NAME
            | RELATED_PRIMARY_NAMESPACE
    ) && !key.starts_with(RELATED_PREFIX)
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
mod tests {
    use super::*;
    use serde_json::json;

    fn source() -> SourceKey {
        SourceKey { cluster: "c1".into(), namespace: "default".into(), name: "my-test-thing".into() }
    }

    #[test]
    fn a_link_leads_back_to_its_source() {
        let mut copy = json!({"metadata": {"name": "x"}});
        let link = Link::to(&source(), Some("root:a"));
        link.write(&mut copy, "agent");
        assert_eq!(label(&copy, REMOTE_NAME_HASH), Some("c346c8ceb5d104cc783d09b95e8ea7032c190948"));
        assert_eq!(label(&copy, AGENT_NAME), Some("agent"));
        assert_eq!(annotation(&copy, REMOTE_WORKSPACE_PATH), Some("root:a"));
        assert_eq!(Link::source_of(&copy), Some(source()));
        assert!(link.is_on(&copy));
        assert!(!Link::to(&SourceKey { cluster: "c2".into(), ..source() }, None).is_on(&copy));
    }

    #[test]
    fn cluster_scoped_sources_leave_no_namespace_behind() {
        let link = Link::to(&SourceKey { namespace: "".into(), ..source() }, None);
        assert_eq!((link.labels.len(), link.annotations.len()), (2, 1));
    }

    #[test]
    fn what_agents_write_about_related_copies_is_not_copied_further() {
        let object = json!({"metadata": {
            "labels": {"mine": "1", RELATED_OWNER: "x", RELATED_IDENTIFIER: "y", AGENT_NAME: "z"},
            "annotations": {"mine": "1", RELATED_PRIMARY_NAME: "x", RELATED_PRIMARY_NAMESPACE: "y", DELETION_PROPAGATION: "orphan"},
        }});
        assert_eq!(strip(&object), json!({"metadata": {"labels": {"mine": "1"}, "annotations": {"mine": "1"}}}));
    }

    #[test]
    fn stripping_keeps_what_belongs_to_the_user() {
        let object = json!({"metadata": {
            "name": "n", "namespace": "ns", "uid": "u", "resourceVersion": "1", "generation": 2, "managedFields": [],
            "finalizers": ["f"], "ownerReferences": [], "creationTimestamp": "t", "generateName": "g-",
            "labels": {"mine": "1", AGENT_NAME: "evil", REMOTE_CLUSTER: "c", "claimed.internal.apis.kcp.io/x": "y"},
            "annotations": {"kcp.io/cluster": "c", "related-resources.syncagent.kcp.io/a.0": "{}"},
        }, "spec": {"a": 1}});
        assert_eq!(
            strip(&object),
            json!({"metadata": {"name": "n", "namespace": "ns", "generateName": "g-",
            "labels": {"mine": "1"}}, "spec": {"a": 1}})
        );
    }

    #[test]
    fn what_kubectl_and_agents_note_on_an_order_stays_there() {
        for key in ["kubectl.kubernetes.io/last-applied-configuration", HELD_BY, APPLIED_STATE, ADOPTION, REMOTE_UID] {
            let object = json!({"metadata": {"name": "n", "annotations": {key: "x"}}});
            assert_eq!(strip(&object), json!({"metadata": {"name": "n"}}), "{key}");
        }
    }
}
