//! What a copy looks like, and whose it is: the marks that konnectors leave on both sides.
//!
//! ```text
//!   consumer's object ──for_provider──▶ copy   cluster-namespace: ours; consumer-namespace, consumer-uid: of the source
//!   provider's object ──for_consumer──▶ copy   cluster-namespace: ours; provider-namespace, provider-uid: of the source
//! ```
//!
//! A copy without our mark is not ours: it is neither written nor deleted. kube-bind marks copies on the consumer with the source's uid alone, which
//! will do, because nobody but the konnector writes there on the provider's behalf.

use carrick_kcp::meta::OwnerReference;
use serde_json::{Map, Value, json};

use crate::existing::ADOPTED_ANNOTATION;
use crate::mapping::ObjectKey;
use crate::names::{
    CONSUMER_CLUSTER_ANNOTATION, CONSUMER_NAME_ANNOTATION, CONSUMER_NAMESPACE_ANNOTATION, CONSUMER_UID_ANNOTATION,
    CONTRACT_ANNOTATION, KCP_CLAIM_LABEL, KCP_CLUSTER_ANNOTATION, OWNER_LABEL, Owner, PROVIDER_NAMESPACE_ANNOTATION,
    PROVIDER_UID_ANNOTATION,
};

/// Whose an object on the provider is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// A copy of this contract.
    Ours,
    /// A copy of another contract.
    OtherContract(String),
    /// Nobody's copy: the provider has made it itself.
    Unmarked,
}

/// Whose an object on the provider is, by its contract annotation.
pub fn ownership(object: &Value, contract: &str) -> Ownership {
    match annotation(object, CONTRACT_ANNOTATION) {
        Some(marked) if marked == contract => Ownership::Ours,
        Some(other) => Ownership::OtherContract(other.to_owned()),
        None => Ownership::Unmarked,
    }
}

/// The value of an annotation that is there and not empty.
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][key].as_str().filter(|value| !value.is_empty())
}

/// The uid of an object.
pub fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

/// Who owns an object, if its label says so.
pub fn labelled_owner(object: &Value) -> Option<Owner> {
    object["metadata"]["labels"][OWNER_LABEL].as_str().and_then(Owner::of_label)
}

/// Whether an object of the consumer says what the provider wanted it to say: a mirror, or one that was adopted and still has the mark of that.
pub fn came_from_provider(object: &Value) -> bool {
    labelled_owner(object) == Some(Owner::Provider) || annotation(object, ADOPTED_ANNOTATION).is_some()
}

/// The copy on the provider of a consumer's object, without its status.
pub fn for_provider(source: &Value, at: &ObjectKey, contract: &str, owner: Option<&OwnerReference>) -> Value {
    let mut copy = stripped(source, at);
    let namespace = source["metadata"]["namespace"].as_str().unwrap_or_default();
    annotate(&mut copy, CONTRACT_ANNOTATION, contract);
    annotate(&mut copy, CONSUMER_NAMESPACE_ANNOTATION, namespace);
    annotate(&mut copy, CONSUMER_UID_ANNOTATION, uid(source));
    if let Some(owner) = owner {
        copy["metadata"]["ownerReferences"] = json!([owner]);
    }
    copy
}

/// The copy on the consumer of a provider's object, without its status. Claimed objects travel this way, and those that are shown or adopted.
pub fn for_consumer(source: &Value, at: &ObjectKey, contract: &str) -> Value {
    let mut copy = stripped(source, at);
    let namespace = source["metadata"]["namespace"].as_str().unwrap_or_default();
    annotate(&mut copy, CONTRACT_ANNOTATION, contract);
    annotate(&mut copy, PROVIDER_NAMESPACE_ANNOTATION, namespace);
    annotate(&mut copy, PROVIDER_UID_ANNOTATION, uid(source));
    copy
}

/// The same copy with the label that says who owns its source.
#[must_use]
pub fn labelled(mut copy: Value, owner: Owner) -> Value {
    if !copy["metadata"]["labels"].is_object() {
        copy["metadata"]["labels"] = json!({});
    }
    copy["metadata"]["labels"][OWNER_LABEL] = json!(owner.label());
    copy
}

/// An object as it goes to another cluster: nothing that its own server or the sync has put into it.
fn stripped(source: &Value, at: &ObjectKey) -> Value {
    let mut copy = source.clone();
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), json!(at.name));
    if let Some(namespace) = &at.namespace {
        metadata.insert("namespace".to_owned(), json!(namespace));
    }
    for (key, foreign) in [("labels", KCP_CLAIM_LABEL), ("annotations", KCP_CLUSTER_ANNOTATION)] {
        let kept = source["metadata"][key].as_object().into_iter().flatten();
        let kept = kept.filter(|(name, _)| !name.contains(foreign) && !is_mark(name));
        let kept: Map<String, Value> = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
        if !kept.is_empty() {
            metadata.insert(key.to_owned(), Value::Object(kept));
        }
    }
    if let Some(fields) = copy.as_object_mut() {
        fields.remove("status");
        fields.insert("metadata".to_owned(), Value::Object(metadata));
    }
    copy
}

/// Whether an annotation is a mark of one side about the other: about the copy it would be a lie.
fn is_mark(annotation: &str) -> bool {
    [
        CONTRACT_ANNOTATION,
        CONSUMER_NAMESPACE_ANNOTATION,
        CONSUMER_UID_ANNOTATION,
        PROVIDER_NAMESPACE_ANNOTATION,
        PROVIDER_UID_ANNOTATION,
        CONSUMER_CLUSTER_ANNOTATION,
        CONSUMER_NAME_ANNOTATION,
        ADOPTED_ANNOTATION,
        // What kubectl remembers of the source repeats all of it, Secrets included.
        "kubectl.kubernetes.io/last-applied-configuration",
    ]
    .contains(&annotation)
}

fn annotate(copy: &mut Value, key: &str, value: &str) {
    if !copy["metadata"]["annotations"].is_object() {
        copy["metadata"]["annotations"] = json!({});
    }
    copy["metadata"]["annotations"][key] = json!(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Value {
        json!({"apiVersion": "g.io/v1", "kind": "Thing", "metadata": {
            "name": "db", "namespace": "team", "uid": "u1", "resourceVersion": "7", "generation": 2, "generateName": "d",
            "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": 0, "selfLink": "/x", "finalizers": ["kubebind.io/syncer"],
            "ownerReferences": [{"kind": "Other"}], "managedFields": [{"manager": "kubectl"}],
            "labels": {"app": "x", "claimed.internal.apis.kcp.io/abc": "1"},
            "annotations": {"note": "y", "kcp.io/cluster": "c", "kube-bind.io/provider-uid": "old", "kube-bind.io/cluster-namespace": "forged",
                "kubectl.kubernetes.io/last-applied-configuration": "{}"}},
            "spec": {"size": 1}, "status": {"phase": "Up"}})
    }

    #[test]
    fn copies_carry_the_content_and_the_marks_and_nothing_else() {
        let copy = for_provider(&source(), &ObjectKey::namespaced("c-1-team", "db"), "c-1", None);
        assert_eq!(
            copy,
            json!({"apiVersion": "g.io/v1", "kind": "Thing", "spec": {"size": 1}, "metadata": {
                "name": "db", "namespace": "c-1-team", "labels": {"app": "x"}, "annotations": {"note": "y",
                    "kube-bind.io/cluster-namespace": "c-1", "kube-bind.io/consumer-namespace": "team",
                    "kube-bind.io/consumer-uid": "u1"}}})
        );
        let copy = labelled(for_consumer(&source(), &ObjectKey::namespaced("n", "db"), "c-1"), Owner::Provider);
        assert_eq!(
            copy["metadata"],
            json!({"name": "db", "namespace": "n", "labels": {"app": "x", "kube-bind.io/owner": "provider"},
                "annotations": {"note": "y", "kube-bind.io/cluster-namespace": "c-1",
                    "kube-bind.io/provider-namespace": "team", "kube-bind.io/provider-uid": "u1"}})
        );
    }

    #[test]
    fn a_copy_of_a_copy_has_the_marks_of_the_last_step_only() {
        let there = for_provider(&source(), &ObjectKey::namespaced("c-1-team", "db"), "c-1", None);
        let back = for_consumer(&there, &ObjectKey::namespaced("team", "db"), "c-1");
        assert_eq!(annotation(&back, CONSUMER_UID_ANNOTATION), None);
        assert_eq!(annotation(&back, PROVIDER_NAMESPACE_ANNOTATION), Some("c-1-team"));
    }

    #[test]
    fn cluster_scoped_copies_belong_to_their_contract() {
        let mut owner = OwnerReference::default();
        "c-1".clone_into(&mut owner.name);
        let bare = json!({"metadata": {"name": "db", "uid": "u"}});
        let copy = for_provider(&bare, &ObjectKey::cluster("c-1-db"), "c-1", Some(&owner));
        assert_eq!(copy["metadata"]["ownerReferences"], json!([{"name": "c-1"}]));
        assert_eq!(copy["metadata"].get("namespace"), None);
        assert_eq!(copy["metadata"]["annotations"]["kube-bind.io/consumer-namespace"], "");
    }

    #[test]
    fn whose_a_copy_is_stands_in_its_annotation() {
        let marked = |contract: Value| json!({"metadata": {"annotations": {CONTRACT_ANNOTATION: contract}}});
        assert_eq!(ownership(&marked(json!("c-1")), "c-1"), Ownership::Ours);
        assert_eq!(ownership(&marked(json!("c-2")), "c-1"), Ownership::OtherContract("c-2".to_owned()));
        for nothing in [json!(""), Value::Null, json!(1)] {
            assert_eq!(ownership(&marked(nothing), "c-1"), Ownership::Unmarked);
        }
        // Prefixes are no contracts.
        assert_eq!(ownership(&marked(json!("c-10")), "c-1"), Ownership::OtherContract("c-10".to_owned()));
    }
}
