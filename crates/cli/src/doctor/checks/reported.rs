//! What a running agent has reported about a PublishedResource, as far as that is still so.

use carrick_kcp::condition::{Condition, ConditionStatus};
use serde::Deserialize;
use serde_json::Value;

use super::Finding;
use super::export::unmet;
use crate::doctor::facts::{CheckedRight, Facts, Published};
use crate::doctor::right::RightScope;

/// Conditions that are good news when they are False: what is held back.
const HELD: [&str; 2] = ["SchemaHeld", "MappingHeld"];
/// Conditions that judge the rules, which the doctor does as well.
const OF_RULES: [&str; 2] = ["RulesValid", "RulesPlausible"];
/// Reasons of other conditions that follow from rules that are not valid.
const FOLLOWING: [&str; 8] = [
    "InvalidRules",
    "InvalidProjection",
    "InvalidCRD",
    "KindNotFound",
    "Conflict",
    "Pending",
    "NotPublished",
    "NotSyncing",
];

/// The conditions of a PublishedResource. Those that judge other rules than it has now are left out.
pub(super) fn conditions(one: &Published) -> Vec<Condition> {
    let all = one.object["status"]["conditions"].as_array().into_iter().flatten();
    let of_earlier_rules = |it: &Value| {
        let is_one_of = |field: &str, of: &[&str]| it[field].as_str().is_some_and(|it| of.contains(&it));
        is_earlier(one, it) && (is_one_of("type", &OF_RULES) || is_one_of("reason", &FOLLOWING))
    };
    all.filter(|it| !of_earlier_rules(it)).filter_map(|it| Condition::deserialize(it).ok()).collect()
}

/// Whether a condition is of an earlier generation.
fn is_earlier(one: &Published, condition: &Value) -> bool {
    let now = one.object["metadata"]["generation"].as_i64();
    condition["observedGeneration"].as_i64().is_some_and(|seen| Some(seen) < now)
}

/// The last change, if agents have judged earlier rules and not these.
pub(super) fn unseen_change(one: &Published, facts: &Facts) -> Option<Finding> {
    let all = one.object["status"]["conditions"].as_array()?;
    let judged = all.iter().find(|it| it["type"] == OF_RULES[0]).filter(|it| is_earlier(one, it))?;
    let (name, now, seen) = (&one.name, &one.object["metadata"]["generation"], &judged["observedGeneration"]);
    let text = format!(
        "{name}: no agent has taken up its last change yet, generation {now}; what its conditions say is of generation {seen}"
    );
    Some(Finding::amber(text).id("change-not-taken-up").fixes(facts.carrick(&format!("explain {name}"))))
}

/// Those that are bad news when they are False. A withdrawal that was taken back is none; one that is announced is.
pub(super) fn of_interest(one: &Published, facts: &Facts) -> Vec<Condition> {
    // The check of rights names the same ones, with the commands that grant them.
    let lacks = |right: &CheckedRight| {
        right.need.place == RightScope::Service && right.denied.as_ref().is_ok_and(|denied| !denied.is_empty())
    };
    let known = facts.rights.iter().any(lacks);
    let is_good =
        |it: &Condition| HELD.contains(&it.type_.as_str()) || it.type_ == "Withdrawn" && it.reason == "Offered";
    // The check of agents names the other one, with the way out.
    let is_other = |it: &Condition| {
        it.type_ == "ServedByOne" && it.reason == "SeveralExports" || it.type_ == "RightsGranted" && known
    };
    conditions(one).into_iter().filter(|condition| !is_good(condition) && !is_other(condition)).collect()
}

/// What is held back on purpose until somebody approves it.
pub(super) fn held(one: &Published, facts: &Facts) -> Option<Finding> {
    let conditions = conditions(one);
    let is_held = |kind: &str, it: &Condition| it.type_ == kind && it.status == ConditionStatus::True;
    let finding = |kind: &str| {
        let condition = conditions.iter().find(|it| is_held(kind, it))?;
        Some(Finding::amber(format!("{}: {}", one.name, condition.message)))
    };
    let found = finding(HELD[0]).map(|found| found.id("schema-held"));
    let found = found.or_else(|| finding(HELD[1]).map(|found| found.id("mapping-held")))?;
    Some(found.fixes(facts.carrick(&format!("approve {}", one.name))))
}

/// Why kcp refuses the export that a PublishedResource needs, as the agent says.
pub(super) fn refused(one: &Published) -> Option<String> {
    let refused = conditions(one).into_iter().find(|it| it.type_ == "ExportUpdated" && it.reason == "UpdateFailed")?;
    (refused.status == ConditionStatus::False).then_some(refused.message)
}

/// What a running agent says of invalid rules in their present generation, and by which rules it goes on, if it does.
pub(super) fn reported_on_rules(one: &Published) -> Option<(String, Option<String>)> {
    let now = one.object["metadata"]["generation"].as_i64();
    let all = one.object["status"]["conditions"].as_array()?;
    let of = |kind: &str| all.iter().find(|it| it["type"] == kind && it["observedGeneration"].as_i64() == now);
    let text = |condition: &Value| condition["message"].as_str().unwrap_or_default().to_owned();
    let invalid = of(OF_RULES[0]).filter(|it| it["status"] == "False")?;
    Some((text(invalid), of("Syncing").filter(|it| it["reason"] == "EarlierRules").map(text)))
}

/// Whether an agent has reported already what is doubtful about the rules.
pub(super) fn has_reported_doubts(one: &Published) -> bool {
    unmet(&conditions(one)).any(|(condition, _)| condition == OF_RULES[1])
}

/// Orders that are paused, as a running agent says: no failure, but easily forgotten.
pub(super) fn paused(one: &Published) -> Option<Finding> {
    let synced = conditions(one).into_iter().find(|it| it.type_ == "ObjectsSynced")?;
    let (_, paused) = synced.message.split_once("No object fails. ")?;
    let fix = "remove the annotation syncagent.kcp.io/pause where it is not needed any more".to_owned();
    let is_paused = synced.status == ConditionStatus::True && paused.contains(" paused");
    is_paused.then(|| Finding::amber(format!("{}: {}", one.name, short(paused))).id("objects-paused").fix(fix))
}

/// A message, cut where it gets too long; those who explain it tell all of it.
pub(super) fn short(message: &str) -> String {
    const LONGEST: usize = 1500;
    match message.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}
