//! Policies and their bindings.

use carrick_cel::{AdmissionScope, AdmissionType};
use carrick_go::names;
use serde_json::Value;

use super::super::expression::wording;
use super::super::rule::texts;
use super::fields::{Old, conditions, expression, label_key, listed, one_of, rule, selector, text};
use crate::definition::Faults;

const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];
const MOST_ANNOTATIONS: usize = 20;
const LONGEST_ANNOTATION: usize = 5 * 1024;

/// What is wrong with a policy.
pub(super) fn check(policy: &Value, old: Old<'_>, faults: &mut Faults) {
    let spec = &policy["spec"];
    match spec["failurePolicy"].as_str() {
        None => faults.required("spec.failurePolicy", ""),
        Some(_) => one_of(&spec["failurePolicy"], "spec.failurePolicy", &["Fail", "Ignore"], faults),
    }
    let has_params = spec["paramKind"].is_object();
    if has_params {
        param_kind(&spec["paramKind"], faults);
    }
    if spec["matchConstraints"].is_object() {
        resources(&spec["matchConstraints"], "spec.matchConstraints", faults);
        if spec["matchConstraints"]["resourceRules"].as_array().is_none_or(Vec::is_empty) {
            faults.required("spec.matchConstraints.resourceRules", "");
        }
    } else {
        faults.required("spec.matchConstraints", "");
    }
    let unchanged =
        old.is_some_and(|old| ["paramKind", "matchConditions"].iter().all(|key| old["spec"][*key] == spec[*key]));
    if !unchanged {
        conditions(&spec["matchConditions"], "spec.matchConditions", &AdmissionScope::new(has_params), faults);
    }
    let mut scope = AdmissionScope::new(has_params);
    if spec["variables"].as_array().is_some_and(|variables| !variables.is_empty()) {
        scope = scope.with_variables();
    }
    for (place, variable) in listed(&spec["variables"], "spec.variables") {
        define(&mut scope, variable, &place, faults);
    }
    let has = |key: &str| spec[key].as_array().is_some_and(|list| !list.is_empty());
    if !has("validations") && !has("auditAnnotations") {
        let why = "validations or auditAnnotations must contain at least one item";
        faults.required("spec.validations", why);
        faults.required("spec.auditAnnotations", why);
        return;
    }
    for (place, validation) in listed(&spec["validations"], "spec.validations") {
        check_validation(validation, &place, &scope, faults);
    }
    annotations(policy, &scope, faults);
}

fn param_kind(kind: &Value, faults: &mut Faults) {
    let (version, place) = (text(kind, "apiVersion"), "spec.paramKind.apiVersion");
    let parts: Vec<&str> = version.split('/').collect();
    match parts.as_slice() {
        [""] => faults.required(place, ""),
        [name] => label(name, place, faults),
        ["", ""] => faults.invalid(place, &version.into(), "version must be specified"),
        [group, name] => {
            let wrong = names::V1_34.dns1123_subdomain(group);
            if !group.is_empty() && !wrong.is_empty() {
                faults.invalid(place, &(*group).into(), &wrong.join(","));
            }
            if name.is_empty() {
                faults.invalid(place, &version.into(), "version must be specified");
            } else {
                label(name, place, faults);
            }
        }
        _ => faults.invalid(place, &version.into(), &format!("unexpected GroupVersion string: {version}")),
    }
    let (name, place) = (text(kind, "kind"), "spec.paramKind.kind");
    if name.is_empty() {
        return faults.required(place, "");
    }
    let wrong = names::V1_34.dns1035_label(&name.to_lowercase());
    if !wrong.is_empty() {
        let why = format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
        faults.invalid(place, &name.into(), &why);
    }
}

fn label(name: &str, place: &str, faults: &mut Faults) {
    let wrong = names::V1_34.dns1035_label(name);
    if !wrong.is_empty() {
        faults.invalid(place, &name.into(), &wrong.join(","));
    }
}

fn resources(resources: &Value, path: &str, faults: &mut Faults) {
    one_of(&resources["matchPolicy"], &format!("{path}.matchPolicy"), &["Equivalent", "Exact"], faults);
    for key in ["namespaceSelector", "objectSelector"] {
        selector(&resources[key], &format!("{path}.{key}"), faults);
    }
    for key in ["resourceRules", "excludeResourceRules"] {
        for (place, found) in listed(&resources[key], &format!("{path}.{key}")) {
            let mut seen: Vec<&Value> = Vec::new();
            for (place, name) in listed(&found["resourceNames"], &format!("{place}.resourceNames")) {
                segment(name.as_str().unwrap_or_default(), &place, faults);
                if seen.contains(&name) {
                    faults.duplicate(&place, name);
                }
                seen.push(name);
            }
            rule(found, &place, faults);
        }
    }
}

/// Refuses a name that cannot be part of a URL path.
fn segment(name: &str, place: &str, faults: &mut Faults) {
    if matches!(name, "." | "..") {
        return faults.invalid(place, &name.into(), &format!("may not be '{name}'"));
    }
    for illegal in ["/", "%"].into_iter().filter(|illegal| name.contains(illegal)) {
        faults.invalid(place, &name.into(), &format!("may not contain '{illegal}'"));
    }
}

fn define(scope: &mut AdmissionScope, variable: &Value, place: &str, faults: &mut Faults) {
    let (name, source) = (text(variable, "name"), text(variable, "expression"));
    if name.trim().is_empty() {
        faults.required(&format!("{place}.name"), "name is not specified");
    } else if !is_identifier(name) {
        faults.invalid(&format!("{place}.name"), &name.into(), "must be a valid CEL identifier");
    }
    if source.trim().is_empty() {
        faults.required(&format!("{place}.expression"), "expression is not specified");
    } else if let Err(error) = scope.define(name, source) {
        faults.invalid(&format!("{place}.expression"), &source.into(), &wording(&error, source));
    }
}

fn is_identifier(name: &str) -> bool {
    const RESERVED: [&str; 21] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && !RESERVED.contains(&name)
}

fn check_validation(validation: &Value, place: &str, scope: &AdmissionScope, faults: &mut Faults) {
    let at = |key: &str| format!("{place}.{key}");
    let source = text(validation, "expression");
    if source.trim().is_empty() {
        faults.required(&at("expression"), "expression is not specified");
    } else {
        expression(source, &at("expression"), scope, AdmissionType::Bool, faults);
    }
    let source = text(validation, "messageExpression");
    if !source.is_empty() && source.trim().is_empty() {
        faults.invalid(&at("messageExpression"), &source.into(), "must be non-empty if specified");
    } else if !source.is_empty() {
        expression(source, &at("messageExpression"), scope, AdmissionType::Text, faults);
    }
    let message = text(validation, "message");
    if !message.is_empty() && message.trim().is_empty() {
        faults.invalid(&at("message"), &message.into(), "must be non-empty if specified");
    } else if message.trim().contains(['\n', '\r']) {
        faults.invalid(&at("message"), &message.into(), "must not contain line breaks");
    }
    one_of(&validation["reason"], &at("reason"), &REASONS, faults);
}

fn annotations(policy: &Value, scope: &AdmissionScope, faults: &mut Faults) {
    let list = &policy["spec"]["auditAnnotations"];
    if list.as_array().is_some_and(|list| list.len() > MOST_ANNOTATIONS) {
        let why = format!("must not have more than {MOST_ANNOTATIONS} auditAnnotations");
        faults.invalid("spec.auditAnnotations", list, &why);
    }
    let name = text(&policy["metadata"], "name");
    let mut seen: Vec<&str> = Vec::new();
    for (place, annotation) in listed(list, "spec.auditAnnotations") {
        let key = text(annotation, "key");
        if name.is_empty() {
            faults.invalid(&format!("{place}.key"), &key.into(), "requires metadata.name be non-empty");
        } else {
            label_key(&format!("{name}/{key}"), &format!("{place}.key"), faults);
        }
        let (source, at) = (text(annotation, "valueExpression").trim(), format!("{place}.valueExpression"));
        if source.is_empty() {
            faults.required(&at, "valueExpression is not specified");
        } else if source.len() > LONGEST_ANNOTATION {
            faults.required(&at, &format!("must not exceed {LONGEST_ANNOTATION} bytes in length"));
        } else {
            expression(source, &at, scope, AdmissionType::TextOrNull, faults);
        }
        if seen.contains(&key) {
            faults.duplicate(&format!("{place}.key"), &key.into());
        }
        seen.push(key);
    }
}

/// What is wrong with a binding.
pub(super) fn check_binding(binding: &Value, faults: &mut Faults) {
    let spec = &binding["spec"];
    let policy = text(spec, "policyName");
    if policy.is_empty() {
        faults.required("spec.policyName", "");
    }
    for why in names::V1_34.dns1123_subdomain(policy).iter().filter(|_| !policy.is_empty()) {
        faults.invalid("spec.policyName", &policy.into(), why);
    }
    if spec["paramRef"].is_object() {
        param_ref(&spec["paramRef"], faults);
    }
    if spec["matchResources"].is_object() {
        resources(&spec["matchResources"], "spec.matchResources", faults);
    }
    let mut seen: Vec<&Value> = Vec::new();
    for (place, action) in listed(&spec["validationActions"], "spec.validationActions") {
        one_of(action, &place, &ACTIONS, faults);
        if seen.contains(&action) {
            faults.duplicate(&place, action);
        }
        seen.push(action);
    }
    let actions = texts(&spec["validationActions"]);
    let has = |wanted: &str| actions.iter().any(|action| action == wanted);
    if has("Deny") && has("Warn") {
        let why = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
                   response and headers serves no purpose)";
        faults.invalid("spec.validationActions", &spec["validationActions"], why);
    }
    if actions.is_empty() {
        faults.required("spec.validationActions", "at least one validation action is required");
    }
}

fn param_ref(reference: &Value, faults: &mut Faults) {
    const PATH: &str = "spec.paramRef";
    let name = text(reference, "name");
    let selects = reference["selector"].is_object();
    if !name.is_empty() {
        segment(name, &format!("{PATH}.name"), faults);
    }
    if !name.is_empty() && selects {
        faults.forbidden(&format!("{PATH}.name"), "name and selector are mutually exclusive");
    }
    if selects {
        selector(&reference["selector"], &format!("{PATH}.selector"), faults);
        if !name.is_empty() {
            faults.forbidden(&format!("{PATH}.selector"), "name and selector are mutually exclusive");
        }
    }
    if name.is_empty() && !selects {
        faults.required(PATH, "one of name or selector must be specified");
    }
    let place = format!("{PATH}.parameterNotFoundAction");
    match text(reference, "parameterNotFoundAction") {
        "" => faults.required(&place, ""),
        _ => one_of(&reference["parameterNotFoundAction"], &place, &["Deny", "Allow"], faults),
    }
}
