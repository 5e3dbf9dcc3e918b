//! The status of a PublishedResource: which schema represents it, and what is wrong, if anything. Pure.

use serde_json::{Map, Value, json};

use crate::agent::catalog::{KeptStatus, Problem};
use crate::agent::objects::ObjectsReport;
use crate::api::{PublishedResource, WITHDRAW_AT};

/// Whether no other agent would serve it.
const SERVED_BY_ONE: &str = "ServedByOne";
/// Whether a schema is held back.
const SCHEMA_HELD: &str = "SchemaHeld";
/// Whether the kind was withdrawn.
const WITHDRAWN: &str = "Withdrawn";
/// Our conditions, in the order in which they are shown, whichever is known first.
const ORDER: [&str; 10] = [
    "RulesValid",
    "SchemaPublished",
    "ExportUpdated",
    SCHEMA_HELD,
    WITHDRAWN,
    "Syncing",
    "ObjectsSynced",
    "RightsGranted",
    "RulesPlausible",
    SERVED_BY_ONE,
];

/// What came out of a reconcile.
pub(super) struct Report<'a> {
    /// Name of the schema that exists now.
    pub(super) schema_name: Option<&'a str>,
    /// What is said about a schema that is held back.
    pub(super) held: Option<&'a str>,
    /// Why the schema could not be published.
    pub(super) failure: Option<String>,
    /// What is wrong with the PublishedResource.
    pub(super) problem: Option<&'a Problem>,
    /// Whether the export lists the schema, or why not; nothing while that is not known.
    pub(super) exported: Option<Result<(), String>>,
    /// Whether objects travel.
    pub(super) syncing: Syncing,
    /// How objects are doing; nothing while that is not known.
    pub(super) objects: Option<&'a ObjectsReport>,
    /// Whether the service cluster grants all that is needed, or what it does not; nothing while that is not known.
    pub(super) rights: Option<Result<(), String>>,
    /// What is doubtful about the rules although they are valid; nothing while that is not known.
    pub(super) doubts: Option<&'a [String]>,
    /// What is said about another agent that would serve it too.
    pub(super) rivalry: Option<&'a str>,
    /// Whether that other agent serves it, and tells all the rest.
    pub(super) refused: bool,
    /// What is said about its withdrawal.
    pub(super) withdrawal: Option<Withdrawing>,
}

/// How far a withdrawal has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Withdrawing {
    /// The date cannot be read.
    Unclear(String),
    /// The date is known to consumers.
    Announced(String),
    /// The date has come, and consumers' objects are being released.
    Releasing,
    /// The export does not list it any more.
    Gone,
}

impl Withdrawing {
    /// Whether the date has come.
    fn is_due(&self) -> bool {
        matches!(self, Self::Releasing | Self::Gone)
    }
}

impl<'a> Report<'a> {
    /// For what another agent serves.
    pub(super) fn of_refused(rivalry: Option<&'a str>) -> Self {
        Self {
            schema_name: None,
            held: None,
            failure: None,
            problem: None,
            exported: None,
            syncing: Syncing::Disabled,
            objects: None,
            rights: None,
            doubts: None,
            rivalry,
            refused: true,
            withdrawal: None,
        }
    }
}

/// Whether objects travel, and by which rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syncing {
    /// By the rules of the PublishedResource as it is now.
    Current,
    /// By those of an earlier generation, because the current ones are not valid.
    Earlier(i64),
    /// Not at all: there are no valid rules.
    NoRules,
    /// Not at all, because the PublishedResource says so.
    Disabled,
    /// Not at all, because the agent was started without that part.
    SwitchedOff,
}

/// The merge patch that makes the status say so; `None` if it does already.
pub(super) fn patch(pr: &PublishedResource, report: &Report<'_>, kept: KeptStatus, now: &str) -> Option<Value> {
    let mut status = Map::new();
    if let Some(name) = report.schema_name
        && name != pr.status.resource_schema_name
    {
        status.insert("resourceSchemaName".to_owned(), json!(name));
    }
    let mut body = json!({});
    // Nothing is counted while nothing is synchronized.
    let counts = report.objects.filter(|_| syncing(report).holds).map(ObjectsReport::counts);
    if let Some(counts) = counts.filter(|counts| kept.counts && *counts != pr.status.objects) {
        status.insert("objects".to_owned(), json!(counts));
    }
    if kept.conditions {
        let old: Vec<Value> = pr.status.conditions.iter().map(|condition| condition.0.clone()).collect();
        let ours = [
            Some(rules_valid(report)),
            Some(schema_published(report)),
            export_updated(report),
            schema_held(report, &old),
            withdrawn(report, &old),
            Some(syncing(report)),
            objects_synced(report),
            rights_granted(report),
            rules_plausible(report),
            served_by_one(report, &old),
        ];
        let told = ours.into_iter().flatten().filter(|condition| !report.refused || condition.kind == SERVED_BY_ONE);
        let wanted = merged(pr, old.clone(), told, now);
        if wanted != old {
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
    reason: &'static str,
    message: String,
}

/// Only worth a condition if it was ever otherwise.
fn served_by_one(report: &Report<'_>, old: &[Value]) -> Option<Condition> {
    let kind = SERVED_BY_ONE;
    let (holds, reason, message) = match report.rivalry {
        Some(rivalry) => (false, "SeveralAgents", rivalry.to_owned()),
        None if old.iter().any(|condition| condition["type"] == kind) => {
            (true, "OneAgent", "No other agent would serve it.".to_owned())
        }
        None => return None,
    };
    Some(Condition { kind, holds, reason, message })
}

/// Only worth a condition if it was ever held.
fn schema_held(report: &Report<'_>, old: &[Value]) -> Option<Condition> {
    let kind = SCHEMA_HELD;
    let known = old.iter().any(|condition| condition["type"] == kind);
    let (holds, reason, message) = match report.held {
        Some(held) => (true, "NeedsApproval", held.to_owned()),
        None if known && report.schema_name.is_some() => (false, "Exported", "No schema is held back.".to_owned()),
        None => return None,
    };
    Some(Condition { kind, holds, reason, message })
}

/// Only worth a condition if somebody ever withdrew it.
fn withdrawn(report: &Report<'_>, old: &[Value]) -> Option<Condition> {
    let kind = WITHDRAWN;
    let (holds, reason, message) = match &report.withdrawal {
        Some(Withdrawing::Unclear(date)) => {
            let message = format!(
                "Nothing happens, because {WITHDRAW_AT} is no time: {date:?}; write it as 2026-12-31T12:00:00Z."
            );
            (false, "InvalidDate", message)
        }
        Some(Withdrawing::Announced(at)) => {
            let message =
                format!("Consumers are told that it is withdrawn at {at}. To take that back: carrick withdraw --undo.");
            (false, "Announced", message)
        }
        Some(Withdrawing::Releasing) => {
            (true, "Releasing", "Consumers' objects are being released; then it leaves the APIExport.".to_owned())
        }
        Some(Withdrawing::Gone) => {
            (true, "Withdrawn", "The APIExport does not list it any more. Copies stay as they are.".to_owned())
        }
        None if old.iter().any(|condition| condition["type"] == kind) => {
            (false, "Offered", "Nobody withdraws it.".to_owned())
        }
        None => return None,
    };
    Some(Condition { kind, holds, reason, message })
}

fn rules_valid(report: &Report<'_>) -> Condition {
    let (holds, reason, message) = match report.problem {
        None => (true, "Valid", "All rules are valid.".to_owned()),
        Some(problem) => (false, problem.reason, problem.message.clone()),
    };
    Condition { kind: "RulesValid", holds, reason, message }
}

fn schema_published(report: &Report<'_>) -> Condition {
    let (holds, reason, message) = match (report.schema_name, &report.failure, report.problem) {
        (Some(name), _, _) => (true, "Published", format!("APIResourceSchema {name} exists in kcp.")),
        (None, Some(failure), _) => (false, "PublishingFailed", failure.clone()),
        (None, None, Some(problem)) => (false, problem.reason, problem.message.clone()),
        (None, None, None) => (false, "Pending", "Not published yet.".to_owned()),
    };
    Condition { kind: "SchemaPublished", holds, reason, message }
}

fn export_updated(report: &Report<'_>) -> Option<Condition> {
    let kind = "ExportUpdated";
    let (holds, reason, message) = match (report.schema_name, &report.exported) {
        _ if report.withdrawal == Some(Withdrawing::Gone) => {
            (false, "Withdrawn", "It is withdrawn; see Withdrawn.".to_owned())
        }
        (None, _) => (false, "NotPublished", "There is no schema to export; see SchemaPublished.".to_owned()),
        (Some(name), Some(Ok(()))) => (true, "Exported", format!("The APIExport lists {name}.")),
        (Some(_), Some(Err(problem))) => (false, "UpdateFailed", problem.clone()),
        (Some(_), None) => return None,
    };
    Some(Condition { kind, holds, reason, message })
}

fn syncing(report: &Report<'_>) -> Condition {
    let (holds, reason, message) = match (report.syncing, report.problem) {
        _ if report.withdrawal.as_ref().is_some_and(Withdrawing::is_due) => {
            (false, "Withdrawn", "It is withdrawn; see Withdrawn.".to_owned())
        }
        (Syncing::Disabled, _) => {
            (false, "Disabled", "Only the schema is published: spec.synchronization.enabled is false.".to_owned())
        }
        (Syncing::SwitchedOff, _) => {
            (false, "SwitchedOff", "The agent runs with --disabled-controllers=sync; remove the flag.".to_owned())
        }
        (Syncing::NoRules, Some(problem)) => (false, problem.reason, problem.message.clone()),
        (Syncing::NoRules, None) => (false, "Pending", "Not published yet.".to_owned()),
        _ if report.schema_name.is_none() => {
            (false, "NotPublished", "There is no schema in kcp yet; see SchemaPublished.".to_owned())
        }
        (Syncing::Earlier(generation), _) => {
            let message =
                format!("By the rules of generation {generation}, because later ones are not valid; see RulesValid.");
            (true, "EarlierRules", message)
        }
        (Syncing::Current, _) => (true, "Running", "Objects are synchronized.".to_owned()),
    };
    Condition { kind: "Syncing", holds, reason, message }
}

fn objects_synced(report: &Report<'_>) -> Option<Condition> {
    let (holds, reason, message) = match report.objects {
        _ if !syncing(report).holds => (false, "NotSyncing", "Objects are not synchronized; see Syncing.".to_owned()),
        None => return None,
        Some(ObjectsReport { failing: Some(failing), .. }) => (false, "ObjectsFail", failing.clone()),
        Some(_) => (true, "NoneFails", "No object fails.".to_owned()),
    };
    Some(Condition { kind: "ObjectsSynced", holds, reason, message })
}

fn rights_granted(report: &Report<'_>) -> Option<Condition> {
    let (holds, reason, message) = match report.rights.clone()? {
        Ok(()) => (true, "Granted", "The service cluster grants all that copies and related objects need.".to_owned()),
        Err(lacking) => (false, "Missing", lacking),
    };
    Some(Condition { kind: "RightsGranted", holds, reason, message })
}

fn rules_plausible(report: &Report<'_>) -> Option<Condition> {
    let (holds, reason, message) = match report.doubts? {
        [] => (true, "Plausible", "The rules name nothing that cannot be there.".to_owned()),
        doubts => (false, "Doubtful", format!("This will probably not do what you want: {}", doubts.join("; "))),
    };
    Some(Condition { kind: "RulesPlausible", holds, reason, message })
}

/// The conditions of the PublishedResource with ours set; those of others stay, and times change only with the answer.
fn merged(
    pr: &PublishedResource,
    mut conditions: Vec<Value>,
    ours: impl Iterator<Item = Condition>,
    now: &str,
) -> Vec<Value> {
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
        if let Some(at) = old {
            conditions[at] = new;
        } else {
            let place = |kind: &Value| ORDER.iter().position(|it| kind == it);
            let own = place(&new["type"]);
            let next = conditions.iter().position(|it| place(&it["type"]).is_some_and(|other| Some(other) > own));
            conditions.insert(next.unwrap_or(conditions.len()), new);
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
            "status": { "resourceSchemaName": "v1.as.x", "objects": "2/2", "conditions": conditions },
        });
        serde_json::from_value(object).unwrap()
    }

    const FINE: ObjectsReport = ObjectsReport { failing: None, orders: 2, failures: 0 };
    const ALL: KeptStatus = KeptStatus { conditions: true, counts: true };
    const NONE: KeptStatus = KeptStatus { conditions: false, counts: false };

    fn good() -> Report<'static> {
        Report {
            schema_name: Some("v1.as.x"),
            held: None,
            failure: None,
            problem: None,
            exported: Some(Ok(())),
            syncing: Syncing::Current,
            objects: Some(&FINE),
            rights: Some(Ok(())),
            doubts: Some(&[]),
            rivalry: None,
            refused: false,
            withdrawal: None,
        }
    }

    #[test]
    fn a_status_that_says_it_already_is_left_alone() {
        assert_eq!(patch(&published(&json!([])), &good(), NONE, "now"), None);
        let first = patch(&published(&json!([])), &good(), ALL, "then").unwrap();
        let settled = published(&first["status"]["conditions"]);
        assert_eq!(patch(&settled, &good(), ALL, "now"), None);
        // What is not known changes nothing.
        assert_eq!(patch(&settled, &Report { exported: None, rights: None, doubts: None, ..good() }, ALL, "now"), None);
    }

    #[test]
    fn a_new_schema_name_is_written_without_conditions_where_the_crd_has_none() {
        let report = Report { schema_name: Some("v2.as.x"), ..good() };
        let got = patch(&published(&json!([])), &report, NONE, "now");
        assert_eq!(got, Some(json!({ "status": { "resourceSchemaName": "v2.as.x" } })));
    }

    #[test]
    fn times_change_with_the_answer_and_foreign_conditions_stay() {
        let foreign = json!({ "type": "Theirs", "status": "True" });
        let first = patch(&published(&json!([foreign])), &good(), ALL, "then").unwrap();
        let problem = Problem { reason: "Conflict", message: "no".to_owned() };
        let report = Report { problem: Some(&problem), ..good() };
        let second = patch(&published(&first["status"]["conditions"]), &report, ALL, "now").unwrap();
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

    #[test]
    fn a_withdrawal_is_told_from_its_announcement_to_its_end() {
        let told = |withdrawal: Option<Withdrawing>, before: &Value| {
            let patch = patch(&published(before), &Report { withdrawal, ..good() }, ALL, "now").unwrap();
            patch["status"]["conditions"].clone()
        };
        let reason = |conditions: &Value, kind: &str| {
            let all = conditions.as_array().unwrap();
            let found = all.iter().find(|condition| condition["type"] == kind).map(|it| it["reason"].clone());
            found.unwrap_or_default()
        };
        assert_eq!(reason(&told(None, &json!([])), WITHDRAWN), Value::Null);
        let mut before = json!([]);
        for (withdrawal, wanted, exported, syncing) in [
            (Some(Withdrawing::Unclear("soon".to_owned())), "InvalidDate", "Exported", "Running"),
            (Some(Withdrawing::Announced("then".to_owned())), "Announced", "Exported", "Running"),
            (Some(Withdrawing::Releasing), "Releasing", "Exported", "Withdrawn"),
            (Some(Withdrawing::Gone), "Withdrawn", "Withdrawn", "Withdrawn"),
            (None, "Offered", "Exported", "Running"),
        ] {
            before = told(withdrawal, &before);
            let got = [WITHDRAWN, "ExportUpdated", "Syncing"].map(|kind| reason(&before, kind));
            assert_eq!(got, [wanted, exported, syncing]);
        }
    }

    #[test]
    fn each_condition_tells_its_own_story() {
        let problem = Problem { reason: "InvalidRules", message: "spec.naming.name is wrong".to_owned() };
        let failing = ObjectsReport { failing: Some("1 object cannot".to_owned()), failures: 1, ..FINE };
        let nothing = || Report { schema_name: None, exported: None, syncing: Syncing::NoRules, ..good() };
        let cases = [
            (good(), ["Valid", "Published", "Exported", "Running", "NoneFails"]),
            (
                Report { objects: Some(&failing), ..good() },
                ["Valid", "Published", "Exported", "Running", "ObjectsFail"],
            ),
            (
                Report { syncing: Syncing::Disabled, ..good() },
                ["Valid", "Published", "Exported", "Disabled", "NotSyncing"],
            ),
            (
                Report { syncing: Syncing::SwitchedOff, ..good() },
                ["Valid", "Published", "Exported", "SwitchedOff", "NotSyncing"],
            ),
            (
                Report { problem: Some(&problem), syncing: Syncing::Earlier(1), ..good() },
                ["InvalidRules", "Published", "Exported", "EarlierRules", "NoneFails"],
            ),
            (
                Report { problem: Some(&problem), syncing: Syncing::NoRules, ..good() },
                ["InvalidRules", "Published", "Exported", "InvalidRules", "NotSyncing"],
            ),
            (
                Report { exported: Some(Err("forbidden".to_owned())), ..good() },
                ["Valid", "Published", "UpdateFailed", "Running", "NoneFails"],
            ),
            (
                Report { failure: Some("refused".to_owned()), syncing: Syncing::Current, ..nothing() },
                ["Valid", "PublishingFailed", "NotPublished", "NotPublished", "NotSyncing"],
            ),
            (
                Report { problem: Some(&problem), ..nothing() },
                ["InvalidRules", "InvalidRules", "NotPublished", "InvalidRules", "NotSyncing"],
            ),
        ];
        for (report, wanted) in cases {
            let patch = patch(&published(&json!([])), &report, ALL, "now").unwrap();
            let conditions = patch["status"]["conditions"].as_array().unwrap();
            let reasons: Vec<_> = conditions.iter().map(|condition| condition["reason"].as_str().unwrap()).collect();
            assert_eq!(reasons[..5], wanted);
            assert_eq!(reasons[5..], ["Granted", "Plausible"]);
        }
    }

    #[test]
    fn conditions_are_in_the_same_order_whichever_is_known_first() {
        let partly = [
            Report { exported: None, held: Some("v2"), ..good() },
            Report { rights: None, doubts: None, ..good() },
            Report { rivalry: Some("both"), rights: None, exported: None, ..good() },
        ];
        for first in partly {
            let first = patch(&published(&json!([])), &first, ALL, "now").unwrap();
            let withdrawal = Some(Withdrawing::Announced("then".to_owned()));
            let all = Report { rivalry: Some("both"), held: Some("v2"), withdrawal, ..good() };
            let then = patch(&published(&first["status"]["conditions"]), &all, ALL, "now").unwrap();
            let then = then["status"]["conditions"].as_array().unwrap();
            assert_eq!(then.iter().map(|it| it["type"].as_str().unwrap()).collect::<Vec<_>>(), ORDER);
        }
    }

    #[test]
    fn two_agents_say_the_same_and_the_one_that_stays_out_says_nothing_else() {
        let types = |patch: &Value| -> Vec<String> {
            let all = patch["status"]["conditions"].as_array().unwrap().iter();
            all.map(|it| format!("{} {}", it["type"].as_str().unwrap(), it["status"].as_str().unwrap())).collect()
        };
        let first = patch(&published(&json!([])), &good(), ALL, "then").unwrap();
        let settled = published(&first["status"]["conditions"]);
        let told = patch(&settled, &Report::of_refused(Some("a keeps it")), ALL, "then").unwrap();
        assert_eq!(types(&told).last().unwrap(), "ServedByOne False");
        assert_eq!(types(&told)[..7], types(&first)[..]);
        let settled = published(&told["status"]["conditions"]);
        assert_eq!(patch(&settled, &Report { rivalry: Some("a keeps it"), ..good() }, ALL, "now"), None);
        assert_eq!(patch(&settled, &Report::of_refused(Some("a keeps it")), ALL, "now"), None);
        let alone = patch(&settled, &good(), ALL, "now").unwrap();
        assert_eq!(types(&alone).last().unwrap(), "ServedByOne True");
    }

    #[test]
    fn objects_are_counted_where_they_are_known_and_the_crd_keeps_it() {
        let failing = ObjectsReport { failing: Some("1 object cannot".to_owned()), orders: 212, failures: 1 };
        let told = |report: &Report<'_>, kept| patch(&published(&json!([])), report, kept, "now").unwrap();
        let report = Report { objects: Some(&failing), ..good() };
        assert_eq!(told(&report, ALL)["status"]["objects"], "211/212");
        assert_eq!(told(&report, KeptStatus { counts: false, ..ALL })["status"].get("objects"), None);
        assert_eq!(told(&Report { syncing: Syncing::Disabled, ..report }, ALL)["status"].get("objects"), None);
        let mut counted = published(&json!([]));
        counted.status.objects = "2/2".to_owned();
        assert_eq!(patch(&counted, &good(), ALL, "now").unwrap()["status"].get("objects"), None);
        // After a restart nothing is known at first, and what was told stays.
        let unknown = told(&Report { objects: None, ..good() }, ALL);
        let types = unknown["status"]["conditions"].as_array().unwrap().iter().map(|it| it["type"].as_str().unwrap());
        assert!(!types.collect::<Vec<_>>().contains(&"ObjectsSynced"), "{unknown}");
    }

    #[test]
    fn a_schema_that_is_held_is_told_until_it_is_exported() {
        let held = |conditions: &Value| -> Option<Value> {
            conditions.as_array()?.iter().find(|condition| condition["type"] == SCHEMA_HELD).cloned()
        };
        let first = patch(&published(&json!([])), &good(), ALL, "then").unwrap();
        assert_eq!(held(&first["status"]["conditions"]), None, "it never was");
        let report = Report { held: Some("v2.as.x is held back"), ..good() };
        let told = patch(&published(&first["status"]["conditions"]), &report, ALL, "then").unwrap();
        let condition = held(&told["status"]["conditions"]).unwrap();
        assert_eq!((&condition["status"], &condition["message"]), (&json!("True"), &json!("v2.as.x is held back")));
        let settled = published(&told["status"]["conditions"]);
        assert_eq!(patch(&settled, &report, ALL, "now"), None);
        let done = patch(&settled, &good(), ALL, "now").unwrap();
        assert_eq!(held(&done["status"]["conditions"]).unwrap()["status"], "False");
    }

    #[test]
    fn what_is_missing_and_what_is_doubtful_has_conditions_of_its_own() {
        let doubts = ["spec.naming.name: .Object.x cannot exist".to_owned(), "another".to_owned()];
        let report =
            Report { rights: Some(Err("the agent may not delete".to_owned())), doubts: Some(&doubts), ..good() };
        let patch = patch(&published(&json!([])), &report, ALL, "now").unwrap();
        let conditions = patch["status"]["conditions"].as_array().unwrap();
        let told: Vec<_> = conditions[5..].iter().map(|it| (it["type"].as_str(), it["status"].as_str())).collect();
        assert_eq!(told, [(Some("RightsGranted"), Some("False")), (Some("RulesPlausible"), Some("False"))]);
        assert_eq!(conditions[5]["message"], "the agent may not delete");
        assert!(conditions[6]["message"].as_str().unwrap().ends_with("cannot exist; another"));
        // They do not keep anything from working.
        assert!(conditions[..5].iter().all(|condition| condition["status"] == "True"));
    }
}
