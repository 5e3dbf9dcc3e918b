//! The status of a PublishedResource: which schema represents it, and what is wrong, if anything. Pure.

use serde_json::{Map, Value, json};

use crate::agent::catalog::Problem;
use crate::api::PublishedResource;

/// What came out of a reconcile.
pub(super) struct Report<'a> {
    /// Name of the schema that exists now.
    pub(super) schema_name: Option<&'a str>,
    /// Why the schema could not be published.
    pub(super) failure: Option<String>,
    /// What is wrong with the PublishedResource.
    pub(super) problem: Option<&'a Problem>,
}

/// The merge patch that makes the status say so; `None` if it does already.
pub(super) fn patch(pr: &PublishedResource, report: &Report<'_>, conditions: bool, now: &str) -> Option<Value> {
    let mut status = Map::new();
    if let Some(name) = report.schema_name
        && name != pr.status.resource_schema_name
    {
        status.insert("resourceSchemaName".to_owned(), json!(name));
    }
    let mut body = json!({});
    if conditions {
        let wanted = merged(pr, &[rules_valid(report), schema_published(report)], now);
        if wanted != pr.status.conditions {
            status.insert("conditions".to_owned(), json!(wanted));
            // Lists are replaced as a whole, so nobody may have changed it in between.
            body["metadata"] = json!({ "resourceVersion": pr.metadata.resource_version });
        }
    }
    if status.is_empty() {
        return None;
    }
    body["status"] = Value::Object(status);
    Some(body)
}

/// One condition, not yet with times and generations.
struct Condition {
    kind: &'static str,
    holds: bool,
    reason: String,
    message: String,
}

fn rules_valid(report: &Report<'_>) -> Condition {
    let (holds, reason, message) = match report.problem {
        None => (true, "Valid", "All rules are valid.".to_owned()),
        Some(problem) => (false, problem.reason, problem.message.clone()),
    };
    Condition { kind: "RulesValid", holds, reason: reason.to_owned(), message }
}

fn schema_published(report: &Report<'_>) -> Condition {
    let (holds, reason, message) = match (report.schema_name, &report.failure, report.problem) {
        (Some(name), _, _) => (true, "Published", format!("APIResourceSchema {name} exists in kcp.")),
        (None, Some(failure), _) => (false, "PublishingFailed", failure.clone()),
        (None, None, Some(problem)) => (false, problem.reason, problem.message.clone()),
        (None, None, None) => (false, "Pending", "Not published yet.".to_owned()),
    };
    Condition { kind: "SchemaPublished", holds, reason: reason.to_owned(), message }
}

/// The conditions of the PublishedResource with ours set; those of others stay, and times change only with the answer.
fn merged(pr: &PublishedResource, ours: &[Condition], now: &str) -> Vec<Value> {
    let mut conditions = pr.status.conditions.clone();
    for condition in ours {
        let status = if condition.holds { "True" } else { "False" };
        let old = conditions.iter().position(|old| old["type"] == condition.kind);
        let since = old
            .map(|at| &conditions[at])
            .filter(|old| old["status"] == status)
            .and_then(|old| old["lastTransitionTime"].as_str())
            .unwrap_or(now);
        let new = json!({
            "type": condition.kind,
            "status": status,
            "reason": condition.reason,
            "message": condition.message,
            "lastTransitionTime": since,
            "observedGeneration": pr.metadata.generation,
        });
        match old {
            Some(at) => conditions[at] = new,
            None => conditions.push(new),
        }
    }
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(conditions: &Value) -> PublishedResource {
        let object = json!({
            "metadata": { "name": "a", "generation": 2, "resourceVersion": "7" },
            "status": { "resourceSchemaName": "v1.as.x", "conditions": conditions },
        });
        serde_json::from_value(object).unwrap()
    }

    fn good() -> Report<'static> {
        Report { schema_name: Some("v1.as.x"), failure: None, problem: None }
    }

    #[test]
    fn a_status_that_says_it_already_is_left_alone() {
        assert_eq!(patch(&published(&json!([])), &good(), false, "now"), None);
        let first = patch(&published(&json!([])), &good(), true, "then").unwrap();
        let settled = published(&first["status"]["conditions"]);
        assert_eq!(patch(&settled, &good(), true, "now"), None);
    }

    #[test]
    fn a_new_schema_name_is_written_without_conditions_where_the_crd_has_none() {
        let report = Report { schema_name: Some("v2.as.x"), ..good() };
        let got = patch(&published(&json!([])), &report, false, "now");
        assert_eq!(got, Some(json!({ "status": { "resourceSchemaName": "v2.as.x" } })));
    }

    #[test]
    fn times_change_with_the_answer_and_foreign_conditions_stay() {
        let foreign = json!({ "type": "Theirs", "status": "True" });
        let first = patch(&published(&json!([foreign])), &good(), true, "then").unwrap();
        let problem = Problem { reason: "Conflict", message: "no".to_owned() };
        let report = Report { problem: Some(&problem), ..good() };
        let second = patch(&published(&first["status"]["conditions"]), &report, true, "now").unwrap();
        assert_eq!(second["metadata"]["resourceVersion"], "7");
        assert_eq!(second["status"].get("resourceSchemaName"), None);
        let conditions = &second["status"]["conditions"];
        assert_eq!(conditions[0], foreign);
        assert_eq!(
            conditions[1],
            json!({
                "type": "RulesValid", "status": "False", "reason": "Conflict", "message": "no",
                "lastTransitionTime": "now", "observedGeneration": 2,
            })
        );
        assert_eq!(conditions[2]["lastTransitionTime"], "then");
    }
}
