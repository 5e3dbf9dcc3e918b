//! Access reviews: may somebody do something, and what may the caller do.

use serde_json::{Map, Value, json};

use super::super::call::Call;
use super::spec::{self, texts};
use crate::auth::decision::Verdict;
use crate::auth::rbac::aggregate;
use crate::caller::Caller;
use crate::request::Attributes;
use crate::status::Status;

/// The subject of a review.
pub(super) fn subject(spec: &Value) -> Caller {
    let extra = spec["extra"].as_object().into_iter().flatten();
    Caller {
        user: spec["user"].as_str().unwrap_or_default().to_owned(),
        uid: spec["uid"].as_str().unwrap_or_default().to_owned(),
        groups: texts(&spec["groups"]),
        extra: extra.map(|(key, values)| (key.clone(), texts(values))).collect(),
        system: false,
    }
}

/// The status of a review about a subject. The cluster answers, also for those who ask through a virtual workspace.
pub(super) fn status(call: &Call<'_>, cluster: &str, subject: &Caller, spec: &Value) -> Value {
    let decision = call.api().decide(subject, cluster, &attributes(spec));
    let mut status = Map::new();
    status.insert("allowed".into(), decision.is_allowed().into());
    if decision.verdict == Verdict::Deny {
        status.insert("denied".into(), true.into());
    }
    let errors = spec::selector_errors(&spec["resourceAttributes"]).join("; ");
    for (key, text) in [("reason", decision.reason), ("evaluationError", errors)] {
        if !text.is_empty() {
            status.insert(key.into(), text.into());
        }
    }
    Value::Object(status)
}

fn attributes(spec: &Value) -> Attributes {
    let resource = &spec["resourceAttributes"];
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    if !resource.is_object() {
        let plain = &spec["nonResourceAttributes"];
        return Attributes { verb: text(plain, "verb"), path: text(plain, "path"), ..Attributes::default() };
    }
    Attributes {
        verb: text(resource, "verb"),
        group: text(resource, "group"),
        version: text(resource, "version"),
        resource: text(resource, "resource"),
        subresource: text(resource, "subresource"),
        namespace: text(resource, "namespace"),
        name: text(resource, "name"),
        path: String::new(),
    }
}

/// The status of a review of the caller's own rules in a namespace.
pub(super) fn rules(call: &Call<'_>, cluster: &str, review: &Value) -> Result<Value, Status> {
    let namespace = review["spec"]["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    let (found, errors) = call.api().rules(call.caller, cluster, namespace);
    let part = |rule: &Value, keys: &[&str]| {
        let filled = |key: &&&str| rule[**key].as_array().is_some_and(|list| !list.is_empty());
        let pairs = keys.iter().filter(filled).map(|key| ((*key).to_owned(), rule[*key].clone()));
        pairs.collect::<Map<String, Value>>()
    };
    let about = |key: &str, keys: &[&str]| -> Vec<Value> {
        let rules = found.iter().filter(|rule| rule[key].as_array().is_some_and(|list| !list.is_empty()));
        rules.map(|rule| part(rule, keys).into()).collect()
    };
    let mut status = json!({
        "resourceRules": about("resources", &["verbs", "apiGroups", "resources", "resourceNames"]),
        "nonResourceRules": about("nonResourceURLs", &["verbs", "nonResourceURLs"]),
        "incomplete": false,
    });
    if !errors.is_empty() {
        status["evaluationError"] = aggregate(errors).into();
    }
    Ok(status)
}
