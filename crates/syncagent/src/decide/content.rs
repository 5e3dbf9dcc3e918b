//! Content: which writes turn a copy into what the rules make of its source.

use carrick_json::merge;
use serde_json::{Map, Value};

use super::state::Entry;
use crate::api::AGENT_NAME;
use crate::rules::ApiKind;
use crate::rules::metadata::{Link, annotation, label, set, strip};

/// Keys that never belong to the desired state of a copy.
const IDENTITY: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Metadata that says where an object is.
const PLACE: [&str; 3] = ["name", "namespace", "generateName"];

/// How the content of a copy is brought in line.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Change {
    /// It is in line already, and that is remembered.
    None,
    /// It is in line already, but that is not remembered yet.
    Remember,
    /// Send this merge patch.
    Patch(Value),
    /// Nothing is remembered: write the whole desired state over it.
    Replace(Value),
}

/// The state to remember for a source: stripped metadata, no subresources.
pub(super) fn remembered(source: &Value, subresources: &[&str]) -> Value {
    let mut state = strip(source);
    drop_keys(&mut state, subresources);
    state
}

/// Compares what is remembered with what is desired. Fields that were changed on the copy alone are left alone.
pub(super) fn compare(
    desired: &Value,
    copy: &Value,
    entry: Option<&Entry>,
    link: Option<(&Link, &str)>,
    subresources: &[&str],
) -> Change {
    let Some((last, next)) = entry.and_then(|entry| Some((entry.last.as_ref()?, &entry.next))) else {
        return overwrite(desired, copy, link, subresources);
    };
    let mut wanted = desired.clone();
    if let Some((link, agent_name)) = link {
        repair_link(&mut wanted, copy, link, agent_name);
    }
    let diff = |state: &Value| {
        let mut state = state.clone();
        drop_keys(&mut state, subresources);
        diff_from(state, &wanted)
    };
    let mut patch = diff(last);
    // The agent died on the way to these states: the copy may be in any of them.
    for state in next {
        unite(&mut patch, diff(state));
    }
    match (merge::is_empty(&patch), next.is_empty()) {
        (false, _) => Change::Patch(patch),
        (true, false) => Change::Remember,
        (true, true) => Change::None,
    }
}

fn diff_from(mut from: Value, wanted: &Value) -> Value {
    for key in ["apiVersion", "kind"] {
        // A new name of the kind in kcp is not a change of the copy.
        if let (Some(from), Some(kind)) = (from.as_object_mut(), wanted.get(key)) {
            from.insert(key.into(), kind.clone());
        }
    }
    // The last label that goes must not take labels along that only the copy has, such as its link.
    let mut patch = merge::diff(&with_maps(from), &with_maps(wanted.clone()));
    // A copy keeps its place, whatever rules make of the name of its source.
    if let Some(metadata) = patch.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| !PLACE.contains(&key.as_str()));
        if metadata.is_empty() {
            drop_keys(&mut patch, &["metadata"]);
        }
    }
    patch
}

/// The object with labels and annotations, be they empty.
fn with_maps(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["labels", "annotations"] {
            metadata.entry(field).or_insert_with(|| Map::new().into());
        }
    }
    object
}

/// Adds labels and annotations of the link where the copy lacks them, so that a patch brings them back.
fn repair_link(wanted: &mut Value, copy: &Value, link: &Link, agent_name: &str) {
    for (key, value) in &link.labels {
        if label(copy, key) != Some(value) {
            set(wanted, "labels", key, value);
        }
    }
    if label(copy, AGENT_NAME) != Some(agent_name) {
        set(wanted, "labels", AGENT_NAME, agent_name);
    }
    for (key, value) in &link.annotations {
        if annotation(copy, key) != Some(value) {
            set(wanted, "annotations", key, value);
        }
    }
}

/// The whole desired state over the copy; nothing if that changes nothing.
fn overwrite(desired: &Value, copy: &Value, link: Option<(&Link, &str)>, subresources: &[&str]) -> Change {
    let mut out = copy.clone();
    let Some(fields) = desired.as_object() else { return Change::None };
    for (key, value) in fields {
        if !IDENTITY.contains(&key.as_str()) && !subresources.contains(&key.as_str()) {
            out[key] = value.clone();
        }
    }
    for field in ["labels", "annotations"] {
        for (key, value) in desired["metadata"][field].as_object().unwrap_or(&Map::new()) {
            set(&mut out, field, key, value.as_str().unwrap_or_default());
        }
    }
    if let Some((link, agent_name)) = link {
        link.write(&mut out, agent_name);
    }
    if out == *copy { Change::Remember } else { Change::Replace(out) }
}

/// Whether a copy holds the whole desired state and no content beside it.
pub(super) fn is_exact(desired: &Value, copy: &Value, subresources: &[&str]) -> bool {
    let is_content = |key: &str| !IDENTITY.contains(&key) && !subresources.contains(&key);
    let mut content = copy.as_object().into_iter().flat_map(Map::keys).filter(|key| is_content(key));
    content.all(|key| desired.get(key).is_some()) && overwrite(desired, copy, None, subresources) == Change::Remember
}

/// Whether the server refuses a patch because the fields can never change: the type of a Secret, and the content of what is immutable.
pub(super) fn is_refused(kind: &ApiKind, copy: &Value, patch: &Value) -> bool {
    let changes = |keys: &[&str]| keys.iter().any(|key| patch.get(key).is_some());
    let frozen = copy["immutable"] == true && changes(&["immutable", "data", "binaryData", "stringData"]);
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Secret") => frozen || changes(&["type"]),
        ("", "ConfigMap") => frozen,
        _ => false,
    }
}

/// Merges one patch into another; both lead to the same desired state.
fn unite(patch: &mut Value, other: Value) {
    match (patch, other) {
        (Value::Object(patch), Value::Object(other)) => {
            for (key, value) in other {
                match patch.get_mut(&key) {
                    Some(existing) => unite(existing, value),
                    None => {
                        patch.insert(key, value);
                    }
                }
            }
        }
        // One side replaces the whole value with the desired one already.
        (patch, other) if !other.is_object() => *patch = other,
        _ => {}
    }
}

/// Removes top-level keys.
pub(super) fn drop_keys(object: &mut Value, keys: &[&str]) {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|key, _| !keys.contains(&key.as_str()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(last: &Value, next: &[&Value]) -> Entry {
        Entry { last: Some(last.clone()), next: next.iter().map(|v| (*v).clone()).collect() }
    }

    #[test]
    fn only_what_changed_in_the_source_is_patched() {
        let last = json!({"spec": {"a": 1, "b": 2}});
        let desired = json!({"spec": {"a": 1, "b": 3}});
        let copy = json!({"spec": {"a": 99, "b": 2}});
        let change = compare(&desired, &copy, Some(&entry(&last, &[])), None, &[]);
        assert_eq!(change, Change::Patch(json!({"spec": {"b": 3}})));
        assert_eq!(compare(&last, &copy, Some(&entry(&last, &[])), None, &[]), Change::None);
    }

    #[test]
    fn what_a_server_never_changes_is_known() {
        let kind = |kind: &str| ApiKind {
            group: String::new(),
            version: "v1".into(),
            kind: kind.into(),
            plural: String::new(),
            namespaced: true,
        };
        for (kind, copy, patch, refused) in [
            (kind("Secret"), json!({}), json!({"type": "x"}), true),
            (kind("Secret"), json!({}), json!({"data": {"a": "b"}, "immutable": true}), false),
            (kind("Secret"), json!({"immutable": true}), json!({"data": {"a": "b"}}), true),
            (kind("Secret"), json!({"immutable": true}), json!({"metadata": {"labels": {"a": "b"}}}), false),
            (kind("ConfigMap"), json!({"immutable": true}), json!({"immutable": null}), true),
            (kind("ConfigMap"), json!({}), json!({"type": "x"}), false),
            (kind("Other"), json!({"immutable": true}), json!({"data": 1}), false),
        ] {
            assert_eq!(is_refused(&kind, &copy, &patch), refused, "{} {patch}", kind.kind);
        }
    }

    #[test]
    fn after_a_crash_both_possible_states_lead_to_the_desired_one() {
        let last = json!({"spec": {"a": 1}});
        let next = json!({"spec": {"a": 2, "b": 5}});
        // Set back to what is remembered, while the copy may hold the newer state.
        let change = compare(&last, &json!({}), Some(&entry(&last, &[&next])), None, &[]);
        assert_eq!(change, Change::Patch(json!({"spec": {"a": 1, "b": null}})));
        // The desired state did not change: only the half that may be missing is sent again.
        let change = compare(&next, &json!({}), Some(&entry(&last, &[&next])), None, &[]);
        assert_eq!(change, Change::Patch(json!({"spec": {"a": 2, "b": 5}})));
    }

    #[test]
    fn a_new_name_of_the_source_does_not_move_the_copy() {
        let last = json!({"metadata": {"name": "a", "namespace": "x", "labels": {"l": "1"}}, "spec": {}});
        let renamed = json!({"metadata": {"name": "b", "namespace": "y", "labels": {"l": "1"}}, "spec": {}});
        assert_eq!(compare(&renamed, &json!({}), Some(&entry(&last, &[])), None, &[]), Change::None);
        let relabelled = json!({"metadata": {"name": "b", "namespace": "y"}, "spec": {}});
        let change = compare(&relabelled, &json!({}), Some(&entry(&last, &[])), None, &[]);
        assert_eq!(change, Change::Patch(json!({"metadata": {"labels": {"l": null}}})), "other labels stay");
    }

    #[test]
    fn without_memory_the_whole_state_is_written_unless_it_is_there() {
        let desired =
            json!({"apiVersion": "x", "metadata": {"name": "n", "labels": {"l": "1"}}, "spec": {"a": 1}, "status": {}});
        let copy = json!({"metadata": {"name": "other"}, "spec": {"a": 2}, "data": 1});
        let change = compare(&desired, &copy, None, None, &["status"]);
        let expected = json!({"metadata": {"name": "other", "labels": {"l": "1"}}, "spec": {"a": 1}, "data": 1});
        assert_eq!(change, Change::Replace(expected.clone()));
        assert_eq!(compare(&desired, &expected, None, None, &["status"]), Change::Remember);
    }
}
