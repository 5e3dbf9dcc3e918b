//! Describes what a plan does and why. Values of Secrets are never shown.

mod explained;

use carrick_sync::Transform as _;
use serde::Serialize;
use serde_json::Value;

use super::edit::Edit;
use super::events::texts;
use super::holders::has_finalizer;
use super::pause::Pauses;
use super::primary::{Copies, PrimaryView};
use super::{ObjectAddress, Plan, Role, Side, Step, compare};
use crate::api::{APPLIED_STATE, FINALIZER, REMOTE_GENERATION, REMOTE_RESOURCE, REMOTE_UID};
use crate::rules::metadata::is_deleting;
use crate::rules::mutation::Informed;
use crate::rules::{Duty, Rules, Selection};

pub use explained::{DriftState, ExplainedDrift, ExplainedField};

/// Longest value that is shown whole.
const LONGEST: usize = 60;

/// Annotations that the agent writes on copies for its own use.
const MARKS: [&str; 4] = [APPLIED_STATE, REMOTE_GENERATION, REMOTE_RESOURCE, REMOTE_UID];

/// The description of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The situation of the object.
    pub why: String,
    /// What is done about it, one sentence for each step.
    pub steps: Vec<String>,
    /// What is reported as wrong on the way; everything else is done all the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// What it waits for: related objects that the rules name and nobody has created yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<String>,
    /// What somebody else has changed of the copies, and the agent leaves alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// The same field by field, where spec.drift asks for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<Vec<ExplainedDrift>>,
}

/// Describes a plan. What is wrong with it was found out partly by those who read the related objects.
pub fn explain(rules: &Rules, seen: PrimaryView<'_>, plan: &Plan, unreadable: Vec<String>) -> Explanation {
    let steps = plan.steps.iter().chain(plan.strands.iter().flatten());
    let problems = unreadable.into_iter().chain(plan.problems.iter().cloned()).chain(plan.notices.iter().cloned());
    let changed = if plan.is_settled() { changed(rules, seen, plan) } else { Vec::new() };
    let (situation, paused) = (situation(rules, seen, plan, !changed.is_empty()), Pauses::seen(rules, &seen));
    let why = if paused.is_empty() { situation } else { format!("paused: {}; {situation}", paused.words()) };
    Explanation {
        why,
        steps: steps.map(|step| sentence(rules, step)).collect(),
        problems: problems.collect(),
        waits: Vec::new(),
        changed,
        drift: explained::drift(rules, seen, plan),
    }
}

/// What somebody else has changed of the copies of an order and of its related objects. Only the fields are named: values may be secret.
fn changed(rules: &Rules, seen: PrimaryView<'_>, plan: &Plan) -> Vec<String> {
    let (Some(source), Copies::One(copy)) = (seen.source, &seen.copies) else { return Vec::new() };
    if is_deleting(source) || rules.duty != Duty::Sync {
        return Vec::new();
    }
    // Where the rules fail, nothing is known to be meant.
    let own =
        rules.mutation.spec(source, Some(copy)).map_or_else(|_| Vec::new(), |wanted| compare::changed(&wanted, copy));
    // Where drift is looked for, what the server makes of values is kept apart from what others do.
    let own = if rules.drift.is_off() { own } else { explained::fields(rules, plan) };
    let own = (!own.is_empty()).then(|| {
        let at = format!("service {} {}", rules.local.kind, shown_name(copy));
        format!("{at} is not as ordered: {}. {}", own.join(", "), stays(rules, &seen, "the order"))
    });
    let related = overwritten(rules, &seen).into_iter().map(|it| format!("{} is {}", it.copy, it.changed));
    own.into_iter().chain(related).collect()
}

/// How long a change by somebody else stays.
fn stays(rules: &Rules, seen: &PrimaryView<'_>, changes: &str) -> String {
    if Pauses::seen(rules, seen).content() {
        return "This stays until the pause ends".to_owned();
    }
    format!("This stays until {changes} changes the same fields")
}

/// The copy of a related object that somebody else has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OverwrittenCopy {
    /// The entry of `spec.related`.
    pub identifier: String,
    /// The copy.
    pub copy: String,
    /// What is different, and until when. Only the fields are named: values may be secret.
    pub changed: String,
}

impl OverwrittenCopy {
    /// Whether it is the one that an order's own annotation names as `<identifier>: <namespace>/<name>`.
    pub fn is_shown_as(&self, related: &str) -> bool {
        related.split_once(": ").is_some_and(|(identifier, name)| {
            identifier == self.identifier && self.copy.rsplit(' ').next() == Some(name)
        })
    }
}

/// What somebody else has changed of the copies of an order's related objects, on either side.
pub fn overwritten(rules: &Rules, seen: &PrimaryView<'_>) -> Vec<OverwrittenCopy> {
    if rules.duty != Duty::Sync || seen.source.is_none_or(is_deleting) {
        return Vec::new();
    }
    let related = seen.related.into_iter().flat_map(|view| view.seen.iter().map(move |it| (view, it)));
    let related = related.filter_map(|(view, it)| {
        let entry = rules.related.get(it.entry)?;
        let copy = it.destination.as_ref()?;
        let transform = Informed { mutation: &entry.mutation, objects: &view.objects };
        let fields = compare::changed(&transform.spec(&it.origin, Some(copy)).ok()?, copy);
        (!fields.is_empty()).then(|| OverwrittenCopy {
            identifier: entry.identifier.clone(),
            copy: it.record(entry).copy.to_string(),
            changed: format!("not as its original: {}. {}", fields.join(", "), stays(rules, seen, "the original")),
        })
    });
    related.collect()
}

fn situation(rules: &Rules, seen: PrimaryView<'_>, plan: &Plan, changed: bool) -> String {
    let Some(source) = seen.source else { return "it does not exist".to_owned() };
    let idle = plan.is_settled();
    let copy = match seen.copies {
        Copies::One(copy) => Some(format!("service {} {}", rules.local.kind, shown_name(copy))),
        Copies::None => None,
        Copies::Many(names) => return format!("it has several copies: {}", names.join(", ")),
    };
    match (is_deleting(source), has_finalizer(source), copy) {
        (true, false, _) => "it is being deleted, and this agent does not hold it".to_owned(),
        (true, true, Some(copy)) if idle => format!("it is being deleted and waits until {copy} is gone"),
        (true, true, Some(copy)) => format!("it is being deleted: {copy} is deleted first"),
        (true, true, None) => "it is being deleted and has no copy any more".to_owned(),
        (false, ..) if rules.duty == Duty::End => "the rules of its PublishedResource are not valid".to_owned(),
        (false, ..) if rules.duty != Duty::Sync => "its kind is no longer synchronized".to_owned(),
        (false, ..) if rules.selects(source, seen.namespace) == Selection::Out => {
            "spec.filter of the PublishedResource does not select it".to_owned()
        }
        (false, ..) if rules.selects(source, seen.namespace) == Selection::Unknown => {
            "spec.filter.namespace cannot be applied: its namespace is not visible".to_owned()
        }
        (false, _, None) => "it has no copy yet".to_owned(),
        (false, _, Some(copy)) if idle && Pauses::seen(rules, &seen).content() => {
            format!("placed as {copy}, which is left as it is")
        }
        (false, _, Some(copy)) if idle && changed => {
            format!("placed as {copy}, but somebody else has changed something")
        }
        (false, _, Some(copy)) if idle => format!("in line with {copy}"),
        (false, _, Some(copy)) => format!("not in line with {copy} yet"),
    }
}

fn sentence(rules: &Rules, step: &Step) -> String {
    match step {
        Step::SetFinalizers { at, finalizers, .. } if finalizers.iter().any(|it| it == FINALIZER) => {
            format!("hold {at} with the finalizer {FINALIZER}, so that it stays until its copy is gone")
        }
        Step::SetFinalizers { at, .. } => format!("release {at}: remove the finalizer {FINALIZER}"),
        Step::EnsureNamespace { side, name } => format!("make sure that namespace {name} exists {}", place(*side)),
        Step::Create { at, .. } => format!("create {at}"),
        Step::Edit { at, edits, .. } if edits.is_empty() => format!("make sure that {at} is what the caches show"),
        Step::Edit { at, edits, .. } => format!("change {at}: {}", edited(rules, at, edits)),
        Step::Apply { at, .. } => format!("apply the desired state to {at}"),
        Step::Patch { at, patch } => format!("change {at}: {}", changes(rules, at, patch)),
        Step::Replace { at, .. } => format!("write the whole of {at}: what was written before is not known"),
        Step::WriteStatus { at, .. } => format!("write the status of {at}"),
        Step::Delete { at, .. } => format!("delete {at}"),
        Step::ConfirmNoCopy => "ask the service cluster whether a copy is left".to_owned(),
        Step::RememberNext { .. } => "record in the state Secret what is about to be written".to_owned(),
        Step::Remember { .. } => "record in the state Secret what was written".to_owned(),
        Step::RememberSeen { .. } => "record in the state Secret what the server stored".to_owned(),
        Step::Track { records } => {
            let names: Vec<String> = records.iter().map(|(_, record, _)| record.origin.to_string()).collect();
            format!("record in the state Secret that these are copied: {}", names.join(", "))
        }
        Step::Drop { .. } => "remove a related object from the state Secret".to_owned(),
        Step::Forget => "remove the state Secret".to_owned(),
        Step::Report { at, event } => format!("report to the consumer on {at}: {}", texts(*event).0),
    }
}

fn place(side: Side) -> &'static str {
    match side.role {
        Role::Consumer => "in the consumer's workspace",
        Role::Provider => "on the service cluster",
    }
}

/// The fields that a merge patch changes; without their values if those may come from a Secret.
fn changes(rules: &Rules, at: &ObjectAddress, patch: &Value) -> String {
    let (mut fields, mut patch) = (Vec::new(), patch.clone());
    // What must still hold does not change.
    if let Some(metadata) = patch.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| !["uid", "resourceVersion"].contains(&key.as_str()));
    }
    collect(&patch, &mut String::new(), rules.is_confidential(&at.kind), &mut fields);
    fields.join(", ")
}

/// The fields that edits change; without their values if those may come from a Secret.
fn edited(rules: &Rules, at: &ObjectAddress, edits: &[Edit]) -> String {
    let mut fields = Vec::new();
    let is_mark = |edit: &&Edit| edit.path.last().is_some_and(|key| MARKS.contains(&key.as_str()));
    for edit in edits.iter().filter(|edit| !is_mark(edit)) {
        let mut field = edit.path.join(".");
        match &edit.value {
            None => fields.push(format!("{field} goes")),
            Some(Value::Null) => fields.push(format!("{field} = null")),
            Some(value) => collect(value, &mut field, rules.is_confidential(&at.kind), &mut fields),
        }
    }
    if fields.is_empty() {
        return "only its mark, so that no earlier write can arrive any more".to_owned();
    }
    fields.join(", ")
}

fn collect(patch: &Value, field: &mut String, confidential: bool, fields: &mut Vec<String>) {
    match patch {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                let length = field.len();
                if length > 0 {
                    field.push('.');
                }
                field.push_str(key);
                collect(value, field, confidential, fields);
                field.truncate(length);
            }
        }
        Value::Null => fields.push(format!("{field} goes")),
        _ if confidential => fields.push(field.clone()),
        value => {
            let text = value.to_string();
            let short = text.char_indices().nth(LONGEST).map(|(end, _)| format!("{}…", &text[..end]));
            fields.push(format!("{field} = {}", short.unwrap_or(text)));
        }
    }
}

fn shown_name(object: &Value) -> String {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    match text("namespace") {
        "" => text("name").to_owned(),
        namespace => format!("{namespace}/{}", text("name")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::rules::metadata::SERVICE_SIDE;

    use serde_json::json;

    use super::*;
    use crate::rules::ApiKind;

    fn at(group: &str, kind: &str) -> ObjectAddress {
        let kind = ApiKind {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural: "things".to_owned(),
            namespaced: true,
        };
        ObjectAddress {
            side: SERVICE_SIDE,
            kind: Arc::new(kind),
            namespace: Some("ns".to_owned()),
            name: "one".to_owned(),
        }
    }

    fn rules() -> Rules {
        let related = json!([{
            "identifier": "a", "origin": "service", "version": "v1", "resource": "secrets",
            "projection": { "group": "vault.io", "resource": "things" }, "object": { "reference": { "path": "spec.image" } },
        }]);
        let pr = crate::rules::tests::published(json!({ "related": related }));
        Rules::compile(&pr, &crate::rules::tests::crontab(), "agent").unwrap()
    }

    #[test]
    fn a_patch_is_shown_field_by_field() {
        let patch = json!({"spec": {"size": 2, "old": null, "tags": ["a"]}, "metadata": {"uid": "u", "resourceVersion": "7", "labels": {"a.b/c": "d"}}});
        let step = Step::Patch { at: at("example.com", "Bucket"), patch };
        assert_eq!(
            sentence(&rules(), &step),
            r#"change service Bucket ns/one: metadata.labels.a.b/c = "d", spec.old goes, spec.size = 2, spec.tags = ["a"]"#
        );
    }

    #[test]
    fn values_of_secrets_are_not_shown_whatever_they_become() {
        let patch =
            json!({"data": {"password": "czNjcjN0"}, "metadata": {"annotations": {"copy": "czNjcjN0"}}, "old": null});
        let mut secret = at("", "Secret");
        Arc::make_mut(&mut secret.kind).plural = "secrets".to_owned();
        for (at, kind) in [(secret, "Secret"), (at("vault.io", "Vault"), "Vault")] {
            let text = sentence(&rules(), &Step::Patch { at, patch: patch.clone() });
            let wanted = format!("change service {kind} ns/one: data.password, metadata.annotations.copy, old goes");
            assert_eq!(text, wanted);
        }
    }

    #[test]
    fn long_values_are_cut() {
        let patch = json!({"spec": {"text": "ä".repeat(100)}});
        let text = sentence(&rules(), &Step::Patch { at: at("example.com", "Bucket"), patch });
        assert!(text.ends_with('…') && text.chars().count() < 120, "{text}");
    }
}
