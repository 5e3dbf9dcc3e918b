//! Metadata of synchronized objects: what is stripped, what is never copied, and what links a copy to its source.

use carrick_kcp::{CLAIM_LABEL_PREFIX, CLUSTER_ANNOTATION};
use carrick_sync::{Side, Vocabulary};
use serde_json::Value;

use crate::api::{
    ACQUIRED, ADOPTION, AFTER_RESTORE, AGENT_NAME, APPLIED_STATE, DELETION_PROPAGATION, FIELD_MANAGER, FINALIZER,
    HELD_BY, IMPORTED, ON_DELETE, PAUSE, PLACED_GENERATION, REFUSAL, RELATED_IDENTIFIER, RELATED_OWNER, RELATED_PREFIX,
    RELATED_PRIMARY_NAME, RELATED_PRIMARY_NAMESPACE, REMOTE_CLUSTER, REMOTE_GENERATION, REMOTE_NAME, REMOTE_NAME_HASH,
    REMOTE_NAMESPACE, REMOTE_NAMESPACE_HASH, REMOTE_RESOURCE, REMOTE_UID, REMOTE_WORKSPACE_PATH, WAITS_FOR, WITHDRAWAL,
};

pub use carrick_sync::memory::sha1_hex;
pub use carrick_sync::object::{annotation, is_deleting, label, set};
pub use carrick_sync::{Link, SourceKey};

/// The consumers' side.
pub const KCP_SIDE: Side = Side::consumer("kcp");
/// The service cluster.
pub const SERVICE_SIDE: Side = Side::provider("service");

/// The agent's finalizer, labels and annotations.
pub static WORDS: Vocabulary = Vocabulary {
    consumer: KCP_SIDE,
    provider: SERVICE_SIDE,
    finalizer: FINALIZER,
    held_by: HELD_BY,
    agent_name: AGENT_NAME,
    applied_state: APPLIED_STATE,
    adoption: ADOPTION,
    acquired: ACQUIRED,
    on_delete: ON_DELETE,
    manager: FIELD_MANAGER,
    of_copies: &[
        REMOTE_CLUSTER,
        REMOTE_NAME_HASH,
        REMOTE_NAMESPACE_HASH,
        AGENT_NAME,
        RELATED_OWNER,
        RELATED_IDENTIFIER,
        REMOTE_NAME,
        REMOTE_NAMESPACE,
        REMOTE_WORKSPACE_PATH,
        REMOTE_RESOURCE,
        REMOTE_UID,
        REMOTE_GENERATION,
        APPLIED_STATE,
        ACQUIRED,
        RELATED_PRIMARY_NAME,
        RELATED_PRIMARY_NAMESPACE,
    ],
    deletion_propagation: DELETION_PROPAGATION,
    source_resource: REMOTE_RESOURCE,
    source_uid: REMOTE_UID,
    prefix: "syncagent.kcp.io/",
    source_of: |copy| {
        let source = source_of(copy)?;
        Some(format!("{}/{} in logical cluster {}", source.namespace, source.name, source.cluster))
    },
    label_crosses: crosses_as_label,
    annotation_crosses: crosses_as_annotation,
};

/// The link to a source.
pub fn link_to(source: &SourceKey, workspace_path: Option<&str>) -> Link {
    let mut labels = vec![(REMOTE_CLUSTER, source.cluster.to_string()), (REMOTE_NAME_HASH, sha1_hex(&source.name))];
    let mut annotations = vec![(REMOTE_NAME, source.name.to_string())];
    if !source.namespace.is_empty() {
        labels.push((REMOTE_NAMESPACE_HASH, sha1_hex(&source.namespace)));
        annotations.push((REMOTE_NAMESPACE, source.namespace.to_string()));
    }
    if let Some(path) = workspace_path {
        annotations.push((REMOTE_WORKSPACE_PATH, path.to_owned()));
    }
    Link { labels, annotations, marks: Vec::new(), notes: Vec::new() }
}

/// The same for one particular object, with its resource in kcp, its UID and its generation.
pub fn link_to_object(key: &SourceKey, workspace_path: Option<&str>, resource: &str, source: &Value) -> Link {
    let mut link = link_to(key, workspace_path);
    link.marks.push((REMOTE_RESOURCE, resource.to_owned()));
    if let Some(uid) = source["metadata"]["uid"].as_str() {
        link.marks.push((REMOTE_UID, uid.to_owned()));
    }
    if let Some(generation) = source["metadata"]["generation"].as_i64() {
        link.notes.push((REMOTE_GENERATION, generation.to_string()));
    }
    link
}

/// The source a copy leads back to, if it carries a complete link.
pub fn source_of(copy: &Value) -> Option<SourceKey> {
    let cluster = label(copy, REMOTE_CLUSTER)?;
    let name = annotation(copy, REMOTE_NAME)?;
    let namespace = annotation(copy, REMOTE_NAMESPACE).unwrap_or_default();
    Some(SourceKey { cluster: cluster.into(), namespace: namespace.into(), name: name.into() })
}

/// Writes a link and the agent's name to a copy.
pub fn write_link(link: &Link, copy: &mut Value, agent_name: &str) {
    link.write(copy, &WORDS, agent_name);
}

/// The object without the metadata that must not be copied.
pub fn strip(object: &Value) -> Value {
    WORDS.strip(object)
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
            | REMOTE_GENERATION
            | AFTER_RESTORE
            | PAUSE
            | APPLIED_STATE
            | HELD_BY
            | ADOPTION
            | ACQUIRED
            | ON_DELETE
            | IMPORTED
            | DELETION_PROPAGATION
            | PLACED_GENERATION
            | REFUSAL
            | WAITS_FOR
            | WITHDRAWAL
            | RELATED_PRIMARY_NAME
            | RELATED_PRIMARY_NAMESPACE
    ) && !key.starts_with(RELATED_PREFIX)
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
        let link = link_to(&source(), Some("root:a"));
        write_link(&link, &mut copy, "agent");
        assert_eq!(label(&copy, REMOTE_NAME_HASH), Some("c346c8ceb5d104cc783d09b95e8ea7032c190948"));
        assert_eq!(label(&copy, AGENT_NAME), Some("agent"));
        assert_eq!(annotation(&copy, REMOTE_WORKSPACE_PATH), Some("root:a"));
        assert_eq!(source_of(&copy), Some(source()));
        assert!(link.is_on(&copy));
        assert!(!link_to(&SourceKey { cluster: "c2".into(), ..source() }, None).is_on(&copy));
    }

    #[test]
    fn cluster_scoped_sources_leave_no_namespace_behind() {
        let link = link_to(&SourceKey { namespace: "".into(), ..source() }, None);
        assert_eq!((link.labels.len(), link.annotations.len()), (2, 1));
    }

    #[test]
    fn what_agents_write_about_related_copies_is_not_copied_further() {
        let object = json!({"metadata": {
            "labels": {"mine": "1", RELATED_OWNER: "x", RELATED_IDENTIFIER: "y", AGENT_NAME: "z"},
            "annotations": {"mine": "1", RELATED_PRIMARY_NAME: "x", RELATED_PRIMARY_NAMESPACE: "y", DELETION_PROPAGATION: "orphan",
                PLACED_GENERATION: "1", REFUSAL: "no", WITHDRAWAL: "soon"},
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
        for key in [
            "kubectl.kubernetes.io/last-applied-configuration",
            HELD_BY,
            APPLIED_STATE,
            ADOPTION,
            ACQUIRED,
            ON_DELETE,
            IMPORTED,
            REMOTE_UID,
            REMOTE_GENERATION,
            AFTER_RESTORE,
        ] {
            let object = json!({"metadata": {"name": "n", "annotations": {key: "x"}}});
            assert_eq!(strip(&object), json!({"metadata": {"name": "n"}}), "{key}");
        }
    }
}
