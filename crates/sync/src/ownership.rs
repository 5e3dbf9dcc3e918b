//! Field ownership: what a server records about who wrote which field of an object.
//!
//! A field that an apply no longer names is removed only if nobody else owns it. Fields that we wrote in other ways (when the copy was
//! created, or changed before server-side apply was enabled) belong to us under another manager; before the first apply they are
//! transferred to the manager that applies.

use serde_json::{Map, Value, json};

/// The entries of `managedFields` after the fields that some writers own by updates have been transferred to a manager that applies.
/// `None` if there is nothing to transfer.
pub fn turned_over(entries: &[Value], writers: &[&str], manager: &str) -> Option<Vec<Value>> {
    let is_update = |entry: &&Value| {
        entry["operation"] == "Update"
            && entry["subresource"].as_str().unwrap_or_default().is_empty()
            && writers.iter().any(|writer| entry["manager"] == *writer)
    };
    let is_apply = |entry: &&Value| entry["operation"] == "Apply" && entry["manager"] == manager;
    let updates: Vec<&Value> = entries.iter().filter(is_update).collect();
    let mut whole = entries.iter().find(is_apply).or(updates.first().copied())?.clone();
    if updates.is_empty() {
        return None;
    }
    whole["manager"] = json!(manager);
    whole["operation"] = json!("Apply");
    for update in &updates {
        unite(&mut whole["fieldsV1"], &update["fieldsV1"]);
    }
    let others = entries.iter().filter(|entry| !is_update(entry) && !is_apply(entry));
    Some(others.cloned().chain([whole]).collect())
}

/// Whether an agent has written content of an object, or labels, as the server records it. Caches do not keep that; an object from a cache
/// was written by nobody.
pub fn is_written_by(object: &Value, manager: &str) -> bool {
    let is_content = |entry: &Value| {
        let keys = entry["fieldsV1"].as_object().into_iter().flat_map(Map::keys);
        keys.filter(|key| !["f:metadata", "f:status"].contains(&key.as_str())).count() > 0
    };
    entries_of(object, manager).any(is_content) || !written_by(object, manager, "labels").is_empty()
}

fn entries_of<'a>(object: &'a Value, manager: &'a str) -> impl Iterator<Item = &'a Value> {
    let is_ours = move |entry: &&Value| {
        let name = entry["manager"].as_str().unwrap_or_default();
        name.strip_prefix(manager).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    object["metadata"]["managedFields"].as_array().into_iter().flatten().filter(is_ours)
}

/// Labels (`field` = `labels`) or annotations of an object that an agent has written, by whatever way.
pub fn written_by<'a>(object: &'a Value, manager: &'a str, field: &str) -> Vec<&'a str> {
    let fields = entries_of(object, manager)
        .filter_map(|entry| entry["fieldsV1"]["f:metadata"][format!("f:{field}")].as_object());
    fields.flat_map(Map::keys).filter_map(|key| key.strip_prefix("f:")).collect()
}

/// Adds the fields of one set to another.
fn unite(all: &mut Value, more: &Value) {
    let Some(more) = more.as_object() else { return };
    if !all.is_object() {
        *all = Value::Object(Map::new());
    }
    for (key, value) in more {
        unite(&mut all[key], value);
        if all[key].is_null() {
            all[key] = value.clone();
        }
    }
}

/// What a server does with an apply, for models in tests: fields that are no longer named are removed, the others are set.
///
/// # Panics
///
/// If the apply is not for the live version of the live object.
#[cfg(any(test, feature = "testing"))]
pub fn applied(owned: &Value, object: &Value, live: &mut Value) {
    let metadata = |field: &str| (&live["metadata"][field], &object["metadata"][field]);
    for (there, sent) in ["uid", "resourceVersion"].map(metadata) {
        assert_eq!(there, sent, "an apply is for one version of one object");
    }
    replaced(owned, object, live);
}

#[cfg(any(test, feature = "testing"))]
fn replaced(owned: &Value, object: &Value, live: &mut Value) {
    let (Some(sent), true) = (object.as_object(), live.is_object()) else {
        *live = object.clone();
        return;
    };
    for key in owned.as_object().into_iter().flat_map(Map::keys).filter(|key| !sent.contains_key(*key)) {
        if let Some(fields) = live.as_object_mut() {
            fields.remove(key);
        }
    }
    for (key, value) in sent {
        replaced(&owned[key], value, &mut live[key]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    #[test]
    fn what_was_written_otherwise_is_turned_over_to_the_one_that_applies() {
        let (operator, ours, old) = (
            entry("operator", "Update", &json!({"f:spec": {"f:theirs": {}}})),
            entry("agent/x", "Update", &json!({"f:spec": {".": {}, "f:a": {}, "f:deep": {"f:b": {}}}})),
            entry("agent", "Update", &json!({"f:spec": {"f:deep": {"f:c": {}}}, "f:data": {}})),
        );
        let mut status = entry("agent", "Update", &json!({"f:status": {}}));
        status["subresource"] = json!("status");
        let writers = ["agent/x", "agent"];
        let entries = [operator.clone(), ours, old, status.clone()];
        let after = turned_over(&entries, &writers, "agent/x").unwrap();
        let whole = entry(
            "agent/x",
            "Apply",
            &json!({"f:spec": {".": {}, "f:a": {}, "f:deep": {"f:b": {}, "f:c": {}}}, "f:data": {}}),
        );
        assert_eq!(after, [operator.clone(), status, whole.clone()]);
        assert_eq!(turned_over(&after, &writers, "agent/x"), None, "once");
        assert_eq!(turned_over(&[operator], &writers, "agent/x"), None, "others keep what is theirs");

        let later = entry("agent", "Update", &json!({"f:spec": {"f:d": {}}}));
        let after = turned_over(&[whole, later], &writers, "agent/x").unwrap();
        assert_eq!(after.len(), 1);
        assert!(after[0]["fieldsV1"]["f:spec"]["f:d"].is_object() && after[0]["fieldsV1"]["f:spec"]["f:a"].is_object());
    }

    #[test]
    fn labels_are_known_by_who_wrote_them() {
        let labels = |keys: &[&str]| {
            let keys: Map<String, Value> = keys.iter().map(|key| (format!("f:{key}"), json!({}))).collect();
            json!({"f:metadata": {"f:labels": keys}})
        };
        let entries = [
            entry("agent", "Update", &labels(&["a"])),
            entry("agent/x", "Apply", &labels(&["b"])),
            entry("agents", "Update", &labels(&["c"])),
            entry("operator", "Update", &labels(&["d"])),
        ];
        let object = json!({"metadata": {"managedFields": entries}});
        assert_eq!(written_by(&object, "agent", "labels"), ["a", "b"]);
        assert!(written_by(&object, "agent", "annotations").is_empty());
        for (fields, written) in [
            (json!({"f:data": {".": {}}}), true),
            (labels(&["a"]), true),
            (json!({"f:metadata": {"f:finalizers": {}, "f:annotations": {"f:a": {}}}}), false),
            (json!({"f:status": {}}), false),
            (json!({}), false),
        ] {
            let by = |manager: &str| json!({"metadata": {"managedFields": [entry(manager, "Update", &fields)]}});
            assert_eq!(is_written_by(&by("agent"), "agent"), written, "{fields}");
            assert!(!is_written_by(&by("operator"), "agent"));
        }
    }
}
