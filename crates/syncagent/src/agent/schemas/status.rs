//! The status of a PublishedResource: which schema represents it, and what is wrong, if anything. Pure.

use serde_json::{Map, Value, json};

use crate::agent::catalog::{KeptStatus, Problem};
use crate::agent::objects::{Drift, ImportsReport, ObjectsReport};
use crate::agent::platform_mesh::{self, AcceptReport};
use crate::api::{MappingInForce, PublishedResource, WITHDRAW_AT};
use crate::rules::serving::{self, Serving};

/// Whether no other agent would serve it.
const SERVED_BY_ONE: &str = "ServedByOne";
/// Whether a schema is held back.
const SCHEMA_HELD: &str = "SchemaHeld";
/// Whether changed steps of `spec.implements` are held back.
pub(super) const MAPPING_HELD: &str = "MappingHeld";
/// Whether the kind was withdrawn.
const WITHDRAWN: &str = "Withdrawn";
/// Whether no server has gone back in time.
const SERVERS_IN_TIME: &str = "ServersInTime";
/// Whether nobody else has changed copies.
const DRIFT_FREE: &str = "DriftFree";
/// Whether all objects that `spec.import` selects have their orders.
const OBJECTS_IMPORTED: &str = "ObjectsImported";
/// Our conditions, in the order in which they are shown, whichever is known first.
const ORDER: [&str; 15] = [
    "RulesValid",
    "SchemaPublished",
    "ExportUpdated",
    SCHEMA_HELD,
    MAPPING_HELD,
    WITHDRAWN,
    "Syncing",
    "ObjectsSynced",
    DRIFT_FREE,
    OBJECTS_IMPORTED,
    platform_mesh::CONDITION,
    "RightsGranted",
    "RulesPlausible",
    SERVED_BY_ONE,
    SERVERS_IN_TIME,
];

/// What came out of a reconcile.
pub(super) struct Report<'a> {
    /// Name of the schema that exists now.
    pub(super) schema_name: Option<&'a str>,
    /// What is said about a schema that is held back.
    pub(super) held: Option<&'a str>,
    /// What becomes of the steps of `spec.implements`.
    pub(super) mapping: MappingChoice,
    /// What consumers can write and no rule reads.
    pub(super) ignored: Option<&'a str>,
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
    /// How its AcceptAPI is doing; nothing if it has none, or that is not known.
    pub(super) accept: Option<&'a AcceptReport>,
    /// What is said about another agent that would serve it too.
    pub(super) rivalry: Option<&'a str>,
    /// Whether that other agent serves it, and tells all the rest.
    pub(super) refused: bool,
    /// For which exports it is served; nothing while that is not known.
    pub(super) serving: Option<Serving>,
    /// What is said about its withdrawal.
    pub(super) withdrawal: Option<Withdrawing>,
    /// What is said about servers that have gone back in time.
    pub(super) rewound: Option<&'a str>,
}

/// What becomes of the steps of `spec.implements`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct MappingChoice {
    /// Those to be noted as being at work, unless they are already.
    pub(super) comes_into_force: Option<MappingInForce>,
    /// What is held back, and why.
    pub(super) held: Option<String>,
    /// Whether that is news.
    pub(super) fresh: bool,
    /// Whether it has to be decided again, because the orders are not known yet.
    pub(super) is_open: bool,
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
            mapping: MappingChoice::default(),
            ignored: None,
            failure: None,
            problem: None,
            exported: None,
            syncing: Syncing::Disabled,
            objects: None,
            rights: None,
            doubts: None,
            accept: None,
            rivalry,
            refused: true,
            serving: None,
            withdrawal: None,
            rewound: None,
        }
    }

    /// Whether another agent tells all but who serves it.
    fn is_elsewhere(&self) -> bool {
        self.refused || self.serving.as_ref().is_some_and(|serving| serving.defers)
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
    if let Some(mapping) = report.mapping.comes_into_force.as_ref().filter(|_| !report.is_elsewhere()) {
        status.insert("mapping".to_owned(), json!(mapping));
    }
    let mut body = json!({});
    // Nothing is counted while nothing is synchronized.
    let counts = report.objects.filter(|_| syncing(report).holds && !report.is_elsewhere()).map(ObjectsReport::counts);
    if let Some(counts) = counts.filter(|counts| kept.counts && *counts != pr.status.objects) {
        status.insert("objects".to_owned(), json!(counts));
    }
    if let Some(entries) = report.serving.as_ref().and_then(|it| it.write.as_ref()).filter(|_| kept.serving) {
        status.insert("servedFor".to_owned(), json!(entries));
        body["metadata"] = json!({ "resourceVersion": pr.metadata.resource_version });
    }
    if kept.conditions {
        let old: Vec<Value> = pr.status.conditions.iter().map(|condition| condition.0.clone()).collect();
        let ours = [
            Some(rules_valid(report)),
            Some(schema_published(report)),
            export_updated(report),
            schema_held(report, &old),
            mapping_held(report, &old),
            withdrawn(report, &old),
            Some(syncing(report)),
            objects_synced(report),
            drift_free(report, &old),
            objects_imported(pr, report, &old),
            accept_api_kept(report),
            rights_granted(report),
            rules_plausible(report),
            served_by_one(pr, report, &old),
            servers_in_time(report, &old),
        ];
        let told = ours.into_iter().flatten().filter(|it| !report.is_elsewhere() || it.kind == SERVED_BY_ONE);
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
fn served_by_one(pr: &PublishedResource, report: &Report<'_>, old: &[Value]) -> Option<Condition> {
    let kind = SERVED_BY_ONE;
    let exports = report.serving.as_ref().map(|serving| serving.several.as_slice()).unwrap_or_default();
    let (holds, reason, message) = match report.rivalry {
        Some(rivalry) => (false, "SeveralAgents", rivalry.to_owned()),
        None if !exports.is_empty() => (false, "SeveralExports", serving::several(&pr.metadata.name, exports)),
        None if old.iter().any(|condition| condition["type"] == kind) => {
            (true, "OneAgent", "No other agent would serve it.".to_owned())
        }
        None => return None,
    };
    Some(Condition { kind, holds, reason, message })
}

/// Only worth a condition if it was ever otherwise.
fn servers_in_time(report: &Report<'_>, old: &[Value]) -> Option<Condition> {
    let kind = SERVERS_IN_TIME;
    let (holds, reason, message) = match report.rewound {
        Some(rewound) => (false, "WentBack", rewound.to_owned()),
        None if old.iter().any(|condition| condition["type"] == kind) => {
            (true, "InTime", "No server has gone back in time of late.".to_owned())
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

/// Only worth a condition if any were ever held.
fn mapping_held(report: &Report<'_>, old: &[Value]) -> Option<Condition> {
    let kind = MAPPING_HELD;
    let (holds, reason, message) = match &report.mapping.held {
        Some(held) => (true, "NeedsApproval", held.clone()),
        None if old.iter().any(|condition| condition["type"] == kind) => {
            (false, "InForce", "The steps of spec.implements are at work as they are written.".to_owned())
        }
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
            let message = format!(
                "Consumers are informed that it is withdrawn at {at}. To take that back: carrick withdraw --undo."
            );
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
        Some(ObjectsReport { failing: Some(failing), paused, .. }) => {
            let said = [Some(failing), paused.as_ref()].into_iter().flatten().cloned().collect::<Vec<_>>();
            (false, "ObjectsFail", said.join(". "))
        }
        Some(ObjectsReport { paused: Some(paused), .. }) => (true, "NoneFails", format!("No object fails. {paused}.")),
        Some(_) => (true, "NoneFails", "No object fails.".to_owned()),
    };
    Some(Condition { kind: "ObjectsSynced", holds, reason, message })
}

/// Only worth a condition if somebody asks for it, or did.
fn drift_free(report: &Report<'_>, old: &[Value]) -> Option<Condition> {
    let kind = DRIFT_FREE;
    let objects = report.objects.filter(|_| syncing(report).holds)?;
    let (holds, reason, message) = match &objects.drift {
        Some(Drift::Some(drift)) => (false, "Drifted", format!("{drift}.")),
        Some(Drift::None) => (true, "NoDrift", "Nobody else has changed fields of copies.".to_owned()),
        None if old.iter().any(|condition| condition["type"] == kind) => {
            (true, "Ignored", "Changes by others are ignored, as spec.drift says.".to_owned())
        }
        None => return None,
    };
    Some(Condition { kind, holds, reason, message })
}

/// Only worth a condition where the PublishedResource imports objects, or did.
fn objects_imported(pr: &PublishedResource, report: &Report<'_>, old: &[Value]) -> Option<Condition> {
    let kind = OBJECTS_IMPORTED;
    let objects = report.objects.filter(|_| syncing(report).holds)?;
    let (holds, reason, message) = match &objects.imports {
        Some(ImportsReport::Refused(refused)) => (false, "NotImported", format!("{refused}.")),
        Some(ImportsReport::Done) => {
            (true, "Imported", "All objects that spec.import selects have their orders, or had them.".to_owned())
        }
        None if pr.spec.import.is_none() && old.iter().any(|condition| condition["type"] == kind) => {
            (true, "Off", "No objects are imported.".to_owned())
        }
        None => return None,
    };
    Some(Condition { kind, holds, reason, message })
}

fn rights_granted(report: &Report<'_>) -> Option<Condition> {
    let (holds, reason, message) = match report.rights.clone()? {
        Ok(()) => (true, "Granted", "The service cluster grants all that copies and related objects need.".to_owned()),
        Err(lacking) => (false, "Missing", lacking),
    };
    Some(Condition { kind: "RightsGranted", holds, reason, message })
}

fn accept_api_kept(report: &Report<'_>) -> Option<Condition> {
    let AcceptReport { holds, reason, message } = report.accept?;
    Some(Condition { kind: platform_mesh::CONDITION, holds: *holds, reason, message: message.clone() })
}

fn rules_plausible(report: &Report<'_>) -> Option<Condition> {
    let (holds, reason, mut message) = match report.doubts? {
        [] => (true, "Plausible", "The rules name nothing that cannot be there.".to_owned()),
        doubts => (false, "Doubtful", format!("This will probably not do what you want: {}", doubts.join("; "))),
    };
    if let Some(ignored) = report.ignored {
        // An API of somebody else may offer more than one implementation has.
        message = format!("{message} Ignored: {ignored}.");
    }
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
mod tests;
