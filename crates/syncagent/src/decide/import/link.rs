//! The link that makes an object the copy of an order, before that order exists.

use serde_json::{Value, json};

use crate::api::{AGENT_NAME, ON_DELETE, REMOTE_RESOURCE, REMOTE_UID};
use crate::rules::Rules;
use crate::rules::import::OnDelete;
use crate::rules::metadata::{SourceKey, WORDS, annotation, is_deleting, label, link_to_object, source_of};

/// Whose an object is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportStanding {
    /// Nobody's.
    Free,
    /// It is linked to the order that is meant already.
    Linked,
    /// Somebody else's, or it cannot be handed over; with the reason.
    Foreign(String),
}

/// Whose an object is that is to become the copy of an order.
pub fn standing(rules: &Rules, object: &Value, key: &SourceKey) -> ImportStanding {
    use ImportStanding::{Foreign, Free, Linked};
    if is_deleting(object) {
        return Foreign("it is being deleted".to_owned());
    }
    if let Some(agent) = label(object, AGENT_NAME).filter(|agent| *agent != rules.agent_name) {
        return Foreign(format!("it belongs to agent {agent}"));
    }
    let marks: Vec<&str> = marks(object).collect();
    if marks.is_empty() {
        return Free;
    }
    let resource = annotation(object, REMOTE_RESOURCE);
    if let Some(other) = resource.filter(|other| *other != rules.remote.resource()) {
        return Foreign(format!("it is the copy of an order of {other}"));
    }
    match source_of(object) {
        Some(source) if source == *key && is_whole(rules, object, key) => Linked,
        Some(source) => Foreign(format!(
            "it is linked to {}/{} in logical cluster {}",
            source.namespace, source.name, source.cluster
        )),
        None => Foreign(format!("it carries marks of an agent: {}", marks.join(", "))),
    }
}

/// Whether the link to an order is complete, with the agent's name.
fn is_whole(rules: &Rules, object: &Value, key: &SourceKey) -> bool {
    let link = link_to_object(key, None, &rules.remote.resource(), &Value::Null);
    link.is_on(object) && label(object, AGENT_NAME) == Some(rules.agent_name.as_str())
}

/// What agents have written into the metadata of an object.
pub(super) fn marks(object: &Value) -> impl Iterator<Item = &'static str> + '_ {
    let is_there = |key: &str| label(object, key).is_some() || annotation(object, key).is_some();
    WORDS.of_copies.iter().copied().filter(move |key| is_there(key))
}

/// The merge patch that links exactly this version of an object to an order that does not exist yet; so the link names no UID.
pub fn link_patch(
    rules: &Rules,
    object: &Value,
    key: &SourceKey,
    workspace_path: Option<&str>,
    on_delete: OnDelete,
) -> Value {
    let mut patch = json!({"metadata": version(object)});
    let link = link_to_object(key, workspace_path, &rules.remote.resource(), &Value::Null);
    link.write(&mut patch, &WORDS, &rules.agent_name);
    match on_delete {
        OnDelete::Keep => patch["metadata"]["annotations"][ON_DELETE] = carrick_sync::acquired::KEEP.into(),
        // What an earlier import has wished for does not count any more.
        OnDelete::Delete => patch["metadata"]["annotations"][ON_DELETE] = Value::Null,
    }
    patch
}

/// The merge patch that takes everything of the agent and of the import off exactly this version of an object.
pub fn unlink_patch(object: &Value) -> Value {
    let mut patch = json!({"metadata": version(object)});
    for edit in carrick_sync::acquired::let_go(&WORDS, object) {
        if let [_, field, key] = edit.path.as_slice() {
            patch["metadata"][field][key] = Value::Null;
        }
    }
    if annotation(object, ON_DELETE).is_some() {
        patch["metadata"]["annotations"][ON_DELETE] = Value::Null;
    }
    patch
}

/// Whether the link was made by an import, and no order was carried out for it since, or its provider keeps it whatever becomes of the order.
pub(super) fn is_of_import(object: &Value) -> bool {
    let is_untouched = annotation(object, REMOTE_UID).is_none() && annotation(object, WORDS.applied_state).is_none();
    is_untouched || carrick_sync::acquired::is_kept(&WORDS, object)
}

fn version(object: &Value) -> Value {
    json!({"uid": object["metadata"]["uid"], "resourceVersion": object["metadata"]["resourceVersion"]})
}

#[cfg(test)]
mod tests {
    use carrick_json::merge;

    use super::*;
    use crate::api::{APPLIED_STATE, RELATED_OWNER, REMOTE_NAME};
    use crate::rules::tests::{crontab, published};

    fn rules() -> Rules {
        Rules::compile(&published(json!({})), &crontab(), "agent").unwrap()
    }

    fn key() -> SourceKey {
        SourceKey { cluster: "c1".into(), namespace: "team".into(), name: "mine".into() }
    }

    fn object() -> Value {
        json!({"metadata": {"name": "theirs", "uid": "u", "resourceVersion": "7", "labels": {"app": "x"}}, "spec": {"a": 1}})
    }

    fn linked(on_delete: OnDelete) -> Value {
        let mut object = object();
        let patch = link_patch(&rules(), &object, &key(), Some("root:team"), on_delete);
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        merge::apply(&mut object, &patch);
        object
    }

    #[test]
    fn a_link_is_known_again_and_leaves_no_trace_when_it_is_taken_off() {
        for on_delete in [OnDelete::Keep, OnDelete::Delete] {
            let mut linked = linked(on_delete);
            assert_eq!(linked["spec"], object()["spec"]);
            assert_eq!(annotation(&linked, REMOTE_UID), None, "the order does not exist yet");
            assert_eq!(annotation(&linked, ON_DELETE), (on_delete == OnDelete::Keep).then_some("Keep"));
            assert_eq!(standing(&rules(), &linked, &key()), ImportStanding::Linked);
            assert!(is_of_import(&linked));
            let patch = unlink_patch(&linked);
            merge::apply(&mut linked, &patch);
            linked["metadata"].as_object_mut().unwrap().remove("annotations");
            assert_eq!(linked, object());
        }
    }

    #[test]
    fn what_is_somebodys_is_not_linked() {
        let with = |field: &str, key: &str, value: &str| {
            let mut object = object();
            object["metadata"][field][key] = value.into();
            object
        };
        let mut elsewhere = linked(OnDelete::Keep);
        elsewhere["metadata"]["annotations"][REMOTE_NAME] = "other".into();
        let mut of_another = linked(OnDelete::Keep);
        of_another["metadata"]["annotations"][REMOTE_RESOURCE] = "others.io".into();
        let mut half = linked(OnDelete::Keep);
        half["metadata"]["labels"].as_object_mut().unwrap().remove(AGENT_NAME);
        let mut going = object();
        going["metadata"]["deletionTimestamp"] = "now".into();
        for (object, reason) in [
            (with("labels", AGENT_NAME, "other"), "belongs to agent other"),
            (with("labels", AGENT_NAME, "agent"), "carries marks of an agent: syncagent.kcp.io/agent-name"),
            (with("labels", RELATED_OWNER, "x"), "carries marks of an agent"),
            (with("annotations", APPLIED_STATE, "x"), "carries marks of an agent"),
            (elsewhere, "linked to team/other in logical cluster c1"),
            (of_another, "the copy of an order of others.io"),
            (half, "linked to team/mine"),
            (going, "being deleted"),
        ] {
            let ImportStanding::Foreign(why) = standing(&rules(), &object, &key()) else { panic!("{object}") };
            assert!(why.contains(reason), "{why}");
        }
        assert_eq!(standing(&rules(), &with("annotations", ON_DELETE, "Keep"), &key()), ImportStanding::Free);
    }
}
