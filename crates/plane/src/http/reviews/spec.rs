//! What a valid access review looks like.

use carrick_go::labels::{Requirement, Selector};
use serde_json::Value;

use crate::status::Cause;

/// A list of texts.
pub(super) fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// What is wrong with the spec of an access review; `own` reviews name no subject.
pub(super) fn causes(spec: &Value, own: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (resource, plain) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    if resource.is_object() && plain.is_object() {
        let detail = "cannot be specified in combination with resourceAttributes";
        causes.push(Cause::invalid_text("spec.nonResourceAttributes", &shown_plain(plain), detail));
    }
    if !resource.is_object() && !plain.is_object() {
        let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        causes.push(Cause::invalid("spec.resourceAttributes", &Value::Null, detail));
    }
    let nobody = spec["user"].as_str().unwrap_or_default().is_empty() && texts(&spec["groups"]).is_empty();
    if !own && nobody {
        causes.push(Cause::invalid("spec.user", &"".into(), "at least one of user or group must be specified"));
    }
    for field in ["fieldSelector", "labelSelector"] {
        causes.extend(selector_causes(&resource[field], &format!("spec.resourceAttributes.{field}")));
    }
    causes
}

/// Drops what Kubernetes' types leave out when they are written: empty texts and lists, and a map without extra attributes.
pub(super) fn settle(spec: &mut Value) {
    let Some(map) = spec.as_object_mut() else { return };
    let nobody = |key: &str, value: &Value| key == "extra" && value.as_object().is_some_and(serde_json::Map::is_empty);
    map.retain(|key, value| !is_empty(value) && !nobody(key, value));
    for (_, value) in map.iter_mut().filter(|(key, _)| *key != "extra") {
        settle(value);
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || *value == "" || value.as_array().is_some_and(Vec::is_empty)
}

/// Reviews have no metadata, except for the namespace of local ones.
pub(super) fn metadata_cause(metadata: &Value, local: bool) -> Option<Cause> {
    let given = |key: &str, value: &Value| {
        let nothing = value.is_null() || *value == "" || value.as_object().is_some_and(serde_json::Map::is_empty);
        !nothing && key != "managedFields" && !(local && key == "namespace")
    };
    let detail = if local { "must be empty except for namespace" } else { "must be empty" };
    metadata
        .as_object()
        .is_some_and(|map| map.iter().any(|(key, value)| given(key, value)))
        .then(|| Cause::invalid("metadata", metadata, detail))
}

/// The further conditions for a review in a namespace.
pub(super) fn local_causes(spec: &Value, namespace: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (resource, plain) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let named = resource["namespace"].as_str().unwrap_or_default();
    if resource.is_object() && named != namespace {
        let field = "spec.resourceAttributes.namespace";
        causes.push(Cause::invalid(field, &named.into(), "must match metadata.namespace"));
    }
    if plain.is_object() {
        let detail = "disallowed on this kind of request";
        causes.push(Cause::invalid_text("spec.nonResourceAttributes", &shown_plain(plain), detail));
    }
    causes
}

/// Attributes of a URL as Go prints the structure.
fn shown_plain(plain: &Value) -> String {
    let text = |key: &str| plain[key].as_str().unwrap_or_default();
    format!("{{\"Path\":{:?},\"Verb\":{:?}}}", text("path"), text("verb"))
}

fn selector_causes(selector: &Value, field: &str) -> Vec<Cause> {
    if !selector.is_object() {
        return Vec::new();
    }
    let raw = selector["rawSelector"].as_str().unwrap_or_default();
    let requirements = selector["requirements"].as_array().map_or(0, Vec::len);
    if !raw.is_empty() && requirements > 0 {
        let detail = "may not specified at the same time as requirements";
        return vec![Cause::invalid(&format!("{field}.rawSelector"), &raw.into(), detail)];
    }
    if raw.is_empty() && requirements == 0 {
        let detail = format!("Required value: when {field} is specified, requirements or rawSelector is required");
        return vec![Cause::new("FieldValueRequired", &format!("{field}.requirements"), detail)];
    }
    Vec::new()
}

/// Errors about selectors that cannot be read: they are ignored, because RBAC decides without them.
pub(super) fn selector_errors(resource: &Value) -> Vec<String> {
    let fields = read(&resource["fieldSelector"], is_field_selector, is_field_requirement);
    let labels = read(&resource["labelSelector"], |raw| Selector::parse(raw).is_ok(), is_label_requirement);
    let reported = |name: &str, (good, all): (usize, usize)| {
        let how = if good == 0 { "ignored" } else { "partially ignored" };
        (good < all).then(|| format!("spec.resourceAttributes.{name} {how} due to parse error"))
    };
    [reported("fieldSelector", fields), reported("labelSelector", labels)].into_iter().flatten().collect()
}

/// How many requirements of a selector can be read, and how many there are.
fn read(selector: &Value, raw: impl Fn(&str) -> bool, requirement: impl Fn(&Value) -> bool) -> (usize, usize) {
    let text = selector["rawSelector"].as_str().unwrap_or_default();
    let list = selector["requirements"].as_array().map_or(&[][..], Vec::as_slice);
    if list.is_empty() {
        return if text.is_empty() || raw(text) { (1, 1) } else { (0, 1) };
    }
    (list.iter().filter(|one| requirement(one)).count(), list.len())
}

fn is_field_selector(text: &str) -> bool {
    text.split(',').all(|part| part.is_empty() || part.contains('='))
}

fn is_field_requirement(requirement: &Value) -> bool {
    matches!(requirement["operator"].as_str(), Some("In" | "NotIn")) && texts(&requirement["values"]).len() == 1
}

fn is_label_requirement(requirement: &Value) -> bool {
    let (key, operator) = (requirement["key"].as_str().unwrap_or_default(), requirement["operator"].as_str());
    Requirement::expression(key, operator.unwrap_or_default(), texts(&requirement["values"])).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_that_cannot_be_read_are_reported_and_ignored() {
        let field = |operator: &str| json!({"key": "metadata.name", "operator": operator, "values": ["a"]});
        let cases = [
            (json!({}), ""),
            (json!({"fieldSelector": {"rawSelector": "a=b"}, "labelSelector": {"rawSelector": "a in (b)"}}), ""),
            (json!({"labelSelector": {"rawSelector": "a in"}}), "labelSelector ignored"),
            (json!({"fieldSelector": {"rawSelector": "a"}}), "fieldSelector ignored"),
            (json!({"fieldSelector": {"requirements": [field("Exists")]}}), "fieldSelector ignored"),
            (
                json!({"fieldSelector": {"requirements": [field("In"), field("Odd")]}}),
                "fieldSelector partially ignored",
            ),
        ];
        for (resource, expected) in cases {
            let reported = selector_errors(&resource).join("; ");
            let full = format!("spec.resourceAttributes.{expected} due to parse error");
            assert_eq!(reported, if expected.is_empty() { String::new() } else { full }, "{resource}");
        }
    }
}
