//! What several configuration kinds have in common: rules, selectors, match conditions.

use carrick_cel::{Admission, AdmissionScope, AdmissionType};
use carrick_go::names;
use serde_json::Value;

use super::super::expression::wording;
use super::super::rule::texts;
use crate::definition::Faults;

/// The object before an update; `None` on create.
pub(super) type Old<'a> = Option<&'a Value>;

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
/// More match conditions are refused.
const MOST_CONDITIONS: usize = 64;

/// A text, empty if there is none.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// The elements of a list, with their places.
pub(super) fn listed<'a>(list: &'a Value, path: &str) -> impl Iterator<Item = (String, &'a Value)> + use<'a> {
    let path = path.to_owned();
    let items = list.as_array().into_iter().flatten().enumerate();
    items.map(move |(index, item)| (format!("{path}[{index}]"), item))
}

/// Refuses a text that is none of these.
pub(super) fn one_of(value: &Value, path: &str, known: &[&str], faults: &mut Faults) {
    if let Some(found) = value.as_str().filter(|found| !known.contains(found)) {
        faults.unsupported(path, &found.into(), known);
    }
}

/// Refuses a rule that could never match, or contradicts itself.
pub(super) fn rule(rule: &Value, path: &str, faults: &mut Faults) {
    let at = |key: &str| format!("{path}.{key}");
    let operations = texts(&rule["operations"]);
    if operations.is_empty() {
        faults.required(&at("operations"), "");
    }
    alone(&operations, &rule["operations"], &at("operations"), "operations", faults);
    for (place, operation) in listed(&rule["operations"], &at("operations")) {
        one_of(operation, &place, &OPERATIONS, faults);
    }
    let groups = texts(&rule["apiGroups"]);
    if groups.is_empty() {
        faults.required(&at("apiGroups"), "");
    }
    alone(&groups, &rule["apiGroups"], &at("apiGroups"), "API groups", faults);
    let versions = texts(&rule["apiVersions"]);
    if versions.is_empty() {
        faults.required(&at("apiVersions"), "");
    }
    alone(&versions, &rule["apiVersions"], &at("apiVersions"), "API versions", faults);
    for (place, _) in listed(&rule["apiVersions"], &at("apiVersions")).filter(|(_, version)| *version == "") {
        faults.required(&place, "");
    }
    resources(&rule["resources"], &at("resources"), faults);
    one_of(&rule["scope"], &at("scope"), &["*", "Cluster", "Namespaced"], faults);
}

/// A wildcard stands alone.
fn alone(items: &[String], value: &Value, path: &str, what: &str, faults: &mut Faults) {
    if items.len() > 1 && items.iter().any(|item| item == "*") {
        faults.invalid(path, value, &format!("if '*' is present, must not specify other {what}"));
    }
}

fn resources(list: &Value, path: &str, faults: &mut Faults) {
    let all = texts(list);
    if all.is_empty() {
        faults.required(path, "");
    }
    let (mut any_subresource, mut any_resource): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    // As in Kubernetes, only the last plain name counts.
    let mut plain = false;
    for (index, item) in all.iter().enumerate() {
        let place = format!("{path}[{index}]");
        if item.is_empty() {
            faults.required(&place, "");
            continue;
        }
        let Some((resource, subresource)) = item.split_once('/') else {
            plain = item != "*";
            continue;
        };
        if any_subresource.contains(&resource) {
            let why = format!("if '{resource}/*' is present, must not specify {item}");
            faults.invalid(&place, &item.as_str().into(), &why);
        }
        if any_resource.contains(&subresource) {
            let why = format!("if '*/{subresource}' is present, must not specify {item}");
            faults.invalid(&place, &item.as_str().into(), &why);
        }
        if subresource == "*" {
            any_subresource.push(resource);
        }
        if resource == "*" {
            any_resource.push(subresource);
        }
    }
    let has = |wanted: &str| all.iter().any(|item| item == wanted);
    if all.len() > 1 && has("*/*") {
        faults.invalid(path, list, "if '*/*' is present, must not specify other resources");
    }
    if has("*") && plain {
        faults.invalid(path, list, "if '*' is present, must not specify other resources without subresources");
    }
}

/// Refuses a label selector that cannot be used.
pub(super) fn selector(selector: &Value, path: &str, faults: &mut Faults) {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let place = format!("{path}.matchLabels");
    for (key, value) in labels {
        label_key(key, &place, faults);
        label_value(value, &place, faults);
    }
    for (place, requirement) in listed(&selector["matchExpressions"], &format!("{path}.matchExpressions")) {
        let values = format!("{place}.values");
        let none = requirement["values"].as_array().is_none_or(Vec::is_empty);
        match text(requirement, "operator") {
            "In" | "NotIn" if none => {
                faults.required(&values, "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "In" | "NotIn" => {}
            "Exists" | "DoesNotExist" if none => {}
            "Exists" | "DoesNotExist" => {
                faults.forbidden(&values, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
            }
            other => faults.invalid(&format!("{place}.operator"), &other.into(), "not a valid selector operator"),
        }
        label_key(text(requirement, "key"), &format!("{place}.key"), faults);
        for (place, value) in listed(&requirement["values"], &values) {
            label_value(value, &place, faults);
        }
    }
}

/// Refuses what is no key of a label, nor any other qualified name.
pub(super) fn label_key(key: &str, path: &str, faults: &mut Faults) {
    for why in names::V1_34.label_key(key) {
        faults.invalid(path, &key.into(), &why);
    }
}

fn label_value(value: &Value, path: &str, faults: &mut Faults) {
    for why in names::V1_34.label_value(value.as_str().unwrap_or_default()) {
        faults.invalid(path, value, &why);
    }
}

/// Refuses match conditions that do not compile or have no name of their own.
pub(super) fn conditions(list: &Value, path: &str, scope: &AdmissionScope, faults: &mut Faults) {
    let count = list.as_array().map_or(0, Vec::len);
    if count > MOST_CONDITIONS {
        faults.too_many(path, count, MOST_CONDITIONS);
    }
    let mut seen: Vec<&str> = Vec::new();
    for (place, condition) in listed(list, path) {
        let source = text(condition, "expression").trim();
        if source.is_empty() {
            faults.required(&format!("{place}.expression"), "");
        } else {
            expression(source, &format!("{place}.expression"), scope, AdmissionType::Bool, faults);
        }
        let (name, place) = (text(condition, "name"), format!("{place}.name"));
        if name.is_empty() {
            faults.required(&place, "");
            continue;
        }
        label_key(name, &place, faults);
        if seen.contains(&name) {
            faults.duplicate(&place, &name.into());
        }
        seen.push(name);
    }
}

/// Refuses an expression that does not compile.
pub(super) fn expression(source: &str, path: &str, scope: &AdmissionScope, wanted: AdmissionType, faults: &mut Faults) {
    if let Err(error) = Admission::compile(source, scope, wanted) {
        faults.invalid(path, &source.into(), &wording(&error, source));
    }
}
