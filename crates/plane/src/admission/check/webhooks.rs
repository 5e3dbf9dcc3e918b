//! Webhook configurations.

use carrick_cel::AdmissionScope;
use carrick_go::names;
use serde_json::{Value, json};

use super::super::rule::texts;
use super::fields::{Old, conditions, listed, one_of, rule, selector, text};
use crate::definition::{Faults, check_service, check_url};

const NO_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];

/// What is wrong with a configuration.
pub(super) fn check(kind: &str, object: &Value, old: Old<'_>, faults: &mut Faults) {
    // What an older server has accepted may stay.
    let hooks = |object: &Value| object["webhooks"].as_array().cloned().unwrap_or_default();
    let before = old.map(hooks).unwrap_or_default();
    let harmless = before.iter().all(|hook| NO_EFFECTS.contains(&text(hook, "sideEffects")));
    let same_conditions = old.is_some()
        && before.len() == hooks(object).len()
        && before.iter().zip(hooks(object)).all(|(old, new)| old["matchConditions"] == new["matchConditions"]);
    let mut seen: Vec<&str> = Vec::new();
    for (place, hook) in listed(&object["webhooks"], "webhooks") {
        let at = |key: &str| format!("{place}.{key}");
        let name = text(hook, "name");
        qualified(name, &at("name"), faults);
        for (place, found) in listed(&hook["rules"], &at("rules")) {
            rule(found, &place, faults);
        }
        one_of(&hook["failurePolicy"], &at("failurePolicy"), &["Fail", "Ignore"], faults);
        one_of(&hook["matchPolicy"], &at("matchPolicy"), &["Equivalent", "Exact"], faults);
        let allowed: &[&str] = if harmless { &NO_EFFECTS } else { &["None", "NoneOnDryRun", "Some", "Unknown"] };
        if hook["sideEffects"].is_null() {
            faults.required(&at("sideEffects"), &format!("must specify one of {}", allowed.join(", ")));
        }
        one_of(&hook["sideEffects"], &at("sideEffects"), allowed, faults);
        if let Some(seconds) = hook["timeoutSeconds"].as_i64().filter(|seconds| !(1..=30).contains(seconds)) {
            let why = "the timeout value must be between 1 and 30 seconds";
            faults.invalid(&at("timeoutSeconds"), &seconds.into(), why);
        }
        selector(&hook["namespaceSelector"], &at("namespaceSelector"), faults);
        selector(&hook["objectSelector"], &at("objectSelector"), faults);
        if kind == "MutatingWebhookConfiguration" {
            one_of(&hook["reinvocationPolicy"], &at("reinvocationPolicy"), &["IfNeeded", "Never"], faults);
        }
        let client = &hook["clientConfig"];
        match (client["url"].as_str(), client["service"].is_object()) {
            (Some(_), true) | (None, false) => {
                faults.required(&at("clientConfig"), "exactly one of url or service is required");
            }
            (Some(url), false) => check_url(url, &at("clientConfig.url"), faults),
            (None, true) => check_service(&client["service"], &at("clientConfig.service"), faults),
        }
        if !same_conditions {
            let scope = AdmissionScope::new(false);
            conditions(&hook["matchConditions"], &at("matchConditions"), &scope, faults);
        }
        review_versions(&hook["admissionReviewVersions"], &at("admissionReviewVersions"), faults);
        if !name.is_empty() && seen.contains(&name) {
            faults.duplicate(&at("name"), &name.into());
        }
        seen.push(name);
    }
}

/// The name of a webhook has at least three parts.
fn qualified(name: &str, path: &str, faults: &mut Faults) {
    if name.is_empty() {
        return faults.required(path, "");
    }
    let wrong = names::V1_34.dns1123_subdomain(name);
    if !wrong.is_empty() {
        faults.invalid(path, &name.into(), &wrong.join(","));
    } else if name.split('.').count() < 3 {
        faults.invalid(path, &name.into(), "should be a domain with at least three segments separated by dots");
    }
}

fn review_versions(list: &Value, path: &str, faults: &mut Faults) {
    let versions = texts(list);
    if versions.is_empty() {
        return faults.required(path, "must specify one of v1, v1beta1");
    }
    for (index, version) in versions.iter().enumerate() {
        let place = format!("{path}[{index}]");
        if versions[..index].contains(version) {
            faults.invalid(&place, &version.as_str().into(), "duplicate version");
            continue;
        }
        for why in names::V1_34.dns1035_label(version) {
            faults.invalid(&place, &version.as_str().into(), &why);
        }
    }
    if !versions.iter().any(|version| matches!(version.as_str(), "v1" | "v1beta1")) {
        faults.invalid(path, &json!(versions), "must include at least one of v1, v1beta1");
    }
}
