//! Drift: what somebody on the other side has changed of a copy.

use std::collections::BTreeMap;

use carrick_bind_api::names::{
    CONSUMER_CLUSTER_ANNOTATION, CONSUMER_NAME_ANNOTATION, CONSUMER_NAMESPACE_ANNOTATION, CONSUMER_UID_ANNOTATION,
    PROVIDER_NAMESPACE_ANNOTATION, PROVIDER_UID_ANNOTATION,
};
use carrick_sync::memory::checksum;
use carrick_sync::object::annotation;
use serde_json::Value;

/// Fields of an object that are not its content.
const NO_CONTENT: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// The annotations that lead from a copy to its source.
const MARKS: [&str; 6] = [
    CONSUMER_CLUSTER_ANNOTATION,
    CONSUMER_NAME_ANNOTATION,
    CONSUMER_NAMESPACE_ANNOTATION,
    CONSUMER_UID_ANNOTATION,
    PROVIDER_NAMESPACE_ANNOTATION,
    PROVIDER_UID_ANNOTATION,
];

/// A checksum of the content of a copy and of its marks, for [`super::Noted::altered`].
pub fn content_sum(copy: &Value) -> String {
    let content: BTreeMap<_, _> = content(copy).collect();
    checksum(&(content, MARKS.map(|mark| annotation(copy, mark))))
}

/// Whether the content of a copy or its marks are not as they were sent.
pub fn is_altered(sent: &Value, stored: &Value) -> bool {
    let is_lost = |mark: &str| annotation(sent, mark).is_some_and(|sent| annotation(stored, mark) != Some(sent));
    has_drifted(sent, stored) || MARKS.iter().any(|mark| is_lost(mark))
}

/// Whether the content of a copy is not what was written. Fields that only the copy has are none of ours, and neither are its labels and annotations.
fn has_drifted(desired: &Value, copy: &Value) -> bool {
    let mut content = content(desired);
    content.any(|(key, value)| !contains(copy.get(key).unwrap_or(&Value::Null), value))
}

/// The content of an object, for a checksum.
fn content(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flatten().filter(|(key, _)| !NO_CONTENT.contains(&key.as_str()))
}

/// Whether a value has all that is wanted of it. Servers add defaults, and leave out what is empty.
fn contains(there: &Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (Value::Null, Value::Object(wanted)) => wanted.values().all(|wanted| contains(&Value::Null, wanted)),
        (Value::Null, Value::Array(wanted)) => wanted.is_empty(),
        (Value::Object(there), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| contains(there.get(key).unwrap_or(&Value::Null), wanted))
        }
        (Value::Array(there), Value::Array(wanted)) => {
            there.len() == wanted.len() && there.iter().zip(wanted).all(|(there, wanted)| contains(there, wanted))
        }
        (there, wanted) => there == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_servers_add_and_leave_out_is_no_drift_and_what_people_change_is() {
        let desired = json!({"spec": {"size": 1, "empty": {}, "none": null, "list": [{"a": 1}], "no": []}, "metadata": {"labels": {"a": "b"}}});
        let with = |spec: Value| json!({"spec": spec, "metadata": {}, "status": {}});
        for same in [
            json!({"size": 1, "list": [{"a": 1}]}),
            json!({"size": 1, "list": [{"a": 1, "default": true}], "more": 1, "empty": {"default": 1}}),
        ] {
            assert!(!has_drifted(&desired, &with(same.clone())), "{same}");
        }
        for other in [
            json!({"size": 2, "list": [{"a": 1}]}),
            json!({"list": [{"a": 1}]}),
            json!({"size": 1, "list": [{"a": 2}]}),
            json!({"size": 1, "list": []}),
            json!({"size": 1, "list": [{"a": 1}, {"a": 1}]}),
            json!({"size": 1, "list": [{"a": 1}], "no": [1]}),
            Value::Null,
        ] {
            assert!(has_drifted(&desired, &with(other.clone())), "{other}");
        }
    }
}
