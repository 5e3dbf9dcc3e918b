//! What the status of an order says in the agent's name, compiled.

use std::sync::Arc;

use carrick_cel::{Summary, SummaryInput};
use serde_json::{Value, json};
use thiserror::Error;

use super::crd::{Crd, Version};
use super::hints;
use super::mutation::{ObjectsRead, names_read};
use super::projection::{in_use, project};
use crate::api::PublishedResource;

/// The words that say how an order is doing.
pub const WORDS: [&str; 6] = ["Unknown", PROVISIONING, AVAILABLE, "Degraded", DELETING, FAILED];
/// It is not ready to be used yet.
pub const PROVISIONING: &str = "Provisioning";
/// It can be used.
pub const AVAILABLE: &str = "Available";
/// It is being deleted.
pub const DELETING: &str = "Deleting";
/// It was refused.
pub const FAILED: &str = "Failed";

/// Field of the status that lists related objects.
pub const RELATED: &str = "relatedResources";
/// Field of the status that has conditions.
pub const CONDITIONS: &str = "conditions";
/// Where the word is, unless the rules say otherwise.
const PATH: &str = "status.status";

/// Why a report is refused.
#[derive(Debug, Error)]
pub enum ReportError {
    /// The kind has no status of its own.
    #[error(
        "spec.report: {kind} has no status subresource, so that consumers could write what is reported themselves; add one to its CRD, or remove spec.report"
    )]
    NoStatus {
        /// The kind in kcp.
        kind: String,
    },
    /// The expression is not valid.
    #[error("spec.report.status: {0}")]
    Compile(String),
    /// The path does not lead into the status.
    #[error("spec.report.statusPath: {0:?} is no path of names below status, such as status.status")]
    Path(String),
    /// There is no such way with conditions.
    #[error("spec.report.conditions: {0:?} is none of None, Copy, Own")]
    Conditions(String),
}

/// What becomes of conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conditions {
    /// They stay as the copy has them.
    None,
    /// They are completed.
    Copy,
    /// They are completed, and one says whether the order was placed.
    Own,
}

/// What the status of an order says in the agent's name.
#[derive(Debug, Clone)]
pub struct Report {
    /// The expression for the word, and where it is written below the status.
    word: Option<(Arc<Summary>, Vec<String>)>,
    /// Whether related objects are listed.
    pub related: bool,
    /// What becomes of conditions.
    pub conditions: Conditions,
}

impl Report {
    /// Compiles `spec.report`, given whether the status is a subresource.
    pub fn compile(pr: &PublishedResource, has_status: bool, kind: &str) -> Result<Option<Self>, ReportError> {
        let Some(report) = &pr.spec.report else { return Ok(None) };
        if !has_status {
            return Err(ReportError::NoStatus { kind: kind.to_owned() });
        }
        let path = if report.status_path.is_empty() { PATH } else { &report.status_path };
        let mut names = path.split('.').map(str::to_owned);
        let is_below = names.next().as_deref() == Some("status");
        let names: Vec<String> = names.collect();
        if !is_below || names.is_empty() || names.iter().any(String::is_empty) {
            return Err(ReportError::Path(path.to_owned()));
        }
        let compile = |text: &str| {
            let compiled = Summary::compile(text).map_err(|error| ReportError::Compile(hints::cel(text, &error)));
            compiled.map(|summary| (Arc::new(summary), names.clone()))
        };
        let conditions = match report.conditions.as_str() {
            "None" => Conditions::None,
            "Copy" => Conditions::Copy,
            "" | "Own" => Conditions::Own,
            other => return Err(ReportError::Conditions(other.to_owned())),
        };
        let word = Some(report.status.as_str()).filter(|text| !text.trim().is_empty()).map(compile).transpose()?;
        Ok(Some(Self { word, related: report.related.unwrap_or(true), conditions }))
    }

    /// The same without what a version in kcp has no room for: it would be dropped there, or the whole status refused for it.
    #[must_use]
    pub fn within(self, version: Option<&Version>) -> Self {
        let status = status_of(version);
        let fits = |path: &[&str], sample: &Value| status.as_ref().is_none_or(|status| has_room(status, path, sample));
        let word = self.word.filter(|(_, path)| {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            fits(&path, &json!(PROVISIONING))
        });
        let conditions = if fits(&[CONDITIONS], &sample_conditions()) { self.conditions } else { Conditions::None };
        Self { word, related: self.related && fits(&[RELATED], &sample_related()), conditions }
    }

    /// Where the word is written, below the status; none if there is no word.
    pub fn path(&self) -> Option<&[String]> {
        self.word.as_ref().map(|(_, path)| path.as_slice())
    }

    /// Whether a field of an order, by its path, is the agent's to write.
    pub fn writes(&self, field: &str) -> bool {
        let is_below =
            |path: &str| field.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
        self.path().is_some_and(|path| is_below(&format!("status.{}", path.join("."))))
            || self.related && is_below("status.relatedResources")
            || self.conditions != Conditions::None && is_below("status.conditions")
    }

    /// The word for an order that is placed.
    pub fn word(&self, input: SummaryInput<'_>) -> Option<Result<&'static str, String>> {
        let (summary, _) = self.word.as_ref()?;
        Some(match summary.eval(input) {
            Ok(Value::String(text)) => WORDS
                .into_iter()
                .find(|word| *word == text)
                .ok_or_else(|| format!("spec.report.status yields {text:?}, which is none of {}", WORDS.join(", "))),
            Ok(_) => Err(format!("spec.report.status yields no text; let it yield one of {}", WORDS.join(", "))),
            Err(error) => Err(format!("spec.report.status failed: {error}")),
        })
    }

    /// What the expression refers to of `spec.reads`.
    pub fn objects_read(&self) -> Vec<ObjectsRead> {
        let read = self.word.as_ref().map(|(summary, _)| summary.objects_read()).unwrap_or_default();
        let at = "spec.report.status".to_owned();
        names_read(&read).into_iter().map(|identifier| ObjectsRead { at: at.clone(), identifier }).collect()
    }
}

/// What is not reported, because the schema in kcp has no room for it.
pub fn doubts(pr: &PublishedResource, crd: &Crd) -> Vec<String> {
    let Ok(projected) = project(pr, crd) else { return Vec::new() };
    let version = in_use(&projected.spec.versions);
    let Ok(Some(wanted)) = Report::compile(pr, true, "") else { return Vec::new() };
    let found = wanted.clone().within(version);
    let name = version.map(|version| version.name.as_str()).unwrap_or_default();
    let told = |field: &str, path: &str, what: &str| {
        format!("{field}: {path} is not written, because the schema of version {name} in kcp has no room for {what}")
    };
    let mut doubts = Vec::new();
    if let (Some(path), None) = (wanted.path(), found.path()) {
        let path = format!("status.{}", path.join("."));
        doubts.push(told("spec.report.statusPath", &path, "a text there"));
    }
    // Whoever did not ask for them is not told that they are missing.
    let spelled_out = pr.spec.report.as_ref().and_then(|report| report.related) == Some(true);
    if wanted.related && !found.related && (spelled_out || !pr.spec.related.is_empty()) {
        doubts.push(told("spec.report.related", "status.relatedResources", "names and kinds of objects there"));
    }
    if wanted.conditions == Conditions::Own && found.conditions != Conditions::Own {
        doubts.push(told("spec.report.conditions", "condition Placed", "it"));
    }
    doubts
}

/// Whether objects of a schema have room for condition `Placed` in their status.
pub fn has_room_for_placed(schema: &Value) -> bool {
    has_room(&status_in(schema), &[CONDITIONS], &sample_conditions())
}

/// The schema of the status; none if it is not known.
fn status_of(version: Option<&Version>) -> Option<Value> {
    let schema = version?.schema.as_ref()?.open_api_v3_schema.as_deref()?;
    Some(status_in(&serde_json::to_value(schema).ok()?))
}

fn status_in(schema: &Value) -> Value {
    let keeps_all = schema["x-kubernetes-preserve-unknown-fields"] == true;
    let unknown = if keeps_all { json!({ "x-kubernetes-preserve-unknown-fields": true }) } else { json!({}) };
    schema["properties"].get("status").cloned().unwrap_or(unknown)
}

/// Whether a value at a path is kept as it is.
fn has_room(schema: &Value, path: &[&str], sample: &Value) -> bool {
    let keeps_all = |schema: &Value| schema["x-kubernetes-preserve-unknown-fields"] == true;
    let Some((name, rest)) = path.split_first() else {
        let Ok(compiled) = carrick_schema::Schema::part(schema) else { return false };
        let (mut kept, mut dropped) = (sample.clone(), Vec::new());
        compiled.prune(&mut kept, &mut dropped);
        return kept == *sample && compiled.validate(sample, None).is_empty();
    };
    let of_any = schema.get("additionalProperties").filter(|it| it.is_object());
    match schema["properties"].get(*name).or(of_any) {
        Some(below) => has_room(below, rest, sample),
        None => keeps_all(schema),
    }
}

fn sample_related() -> Value {
    let kind = json!({ "group": "core", "version": "v1", "kind": "Secret" });
    json!({ "credentials": { "namespace": "default", "name": "credentials", "gvk": kind } })
}

fn sample_conditions() -> Value {
    json!([{ "type": "Placed", "status": "False", "reason": "Refused", "message": "why", "lastTransitionTime": "2026-01-01T00:00:00Z" }])
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)] // cases read best as plain literals
mod tests {
    use super::*;
    use crate::rules::tests::{crontab, published};

    fn crd(status: Value) -> Crd {
        let mut crd = json!({ "metadata": { "name": "crontabs.example.com" }, "spec": crontab().spec });
        crd["spec"]["versions"][0]["subresources"] = json!({ "status": {} });
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = status;
        Crd::from_json(&crd).unwrap()
    }

    fn compiled(report: Value) -> Result<Report, String> {
        let found = Report::compile(&published(json!({ "report": report })), true, "CronTab");
        found.map(Option::unwrap).map_err(|error| error.to_string())
    }

    #[test]
    fn bad_reports_name_the_field() {
        for (report, wanted) in [
            (json!({ "status": "self.(" }), "spec.report.status: "),
            (json!({ "status": "valu" }), "spec.report.status: "),
            (json!({ "statusPath": "spec.a" }), "spec.report.statusPath: \"spec.a\" is no path"),
            (json!({ "statusPath": "status" }), "spec.report.statusPath: "),
            (json!({ "statusPath": "status..a" }), "spec.report.statusPath: "),
            (json!({ "conditions": "All" }), "spec.report.conditions: \"All\" is none of"),
        ] {
            let error = compiled(report.clone()).unwrap_err();
            assert!(error.starts_with(wanted), "{report}: {error}");
        }
        let bare = Report::compile(&published(json!({ "report": {} })), false, "CronTab").unwrap_err().to_string();
        assert!(bare.starts_with("spec.report: CronTab has no status subresource"), "{bare}");
    }

    #[test]
    fn only_known_words_are_reported() {
        let (null, none) = (json!(null), json!({}));
        for (expression, wanted) in [
            ("'Available'", Ok("Available")),
            ("self.ready ? 'Available' : 'Degraded'", Ok("Degraded")),
            ("'Unavailable'", Err("spec.report.status yields \"Unavailable\", which is none of Unknown, ")),
            ("1", Err("spec.report.status yields no text")),
            ("self.nope", Err("spec.report.status failed: ")),
        ] {
            let report = compiled(json!({ "status": expression })).unwrap();
            let this = json!({ "ready": false });
            let input = SummaryInput { this: &this, other: &null, objects: &none, related: &none };
            match (report.word(input).unwrap(), wanted) {
                (Ok(word), Ok(wanted)) => assert_eq!(word, wanted),
                (Err(error), Err(wanted)) => assert!(error.starts_with(wanted), "{error}"),
                (found, _) => panic!("{expression}: {found:?}"),
            }
        }
    }

    #[test]
    fn what_has_no_room_is_left_out_and_told() {
        let text = json!({ "type": "string" });
        let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let kind = json!({ "type": "object", "properties": { "group": text, "version": text, "kind": text } });
        let entry = json!({ "type": "object", "properties": { "name": text, "namespace": text, "gvk": kind } });
        let condition = json!({ "type": "object", "required": ["type", "status"], "properties": {
            "type": text, "status": text, "reason": text, "message": text, "lastTransitionTime": text } });
        let whole = json!({ "type": "object", "properties": {
            "status": text,
            "relatedResources": { "type": "object", "additionalProperties": entry },
            "conditions": { "type": "array", "items": condition },
        } });
        let strict = json!({ "type": "object", "properties": {
            "status": { "type": "string", "enum": ["fine"] },
            "relatedResources": { "type": "object", "properties": {} },
            "conditions": { "type": "array", "items": { "type": "object", "properties": { "type": text } } },
        } });
        let report = json!({ "status": "'Available'" });
        let related = json!([{"identifier": "a", "origin": "service", "kind": "Secret", "object": {"template": {"template": "x"}}}]);
        for (status, fits) in [(open, true), (whole, true), (strict, false), (json!({ "type": "object" }), false)] {
            let crd = crd(status.clone());
            let pr = published(json!({ "report": report, "related": related }));
            let found = compiled(report.clone()).unwrap().within(in_use(&crd.spec.versions));
            assert_eq!((found.path().is_some(), found.related), (fits, fits), "{status}");
            assert_eq!(found.conditions == Conditions::Own, fits, "{status}");
            let told = doubts(&pr, &crd);
            let fields =
                ["spec.report.statusPath: status.status is not", "spec.report.related: ", "spec.report.conditions: "];
            assert_eq!(told.len(), if fits { 0 } else { 3 }, "{told:?}");
            assert!(told.iter().zip(fields).all(|(told, field)| told.starts_with(field)), "{told:?}");
        }
    }
}
